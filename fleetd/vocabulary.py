"""
The nouns of fleetd. Frozen data, Protocols and one way to make a step: importing this does no I/O.

`Ref` and `Resource` (what should exist) come from `topology.resource`; here is what was seen,
what is thought of it, what is to be done, and how that went. What a driver is given to work with
is `fleetd.tools`.
"""

import enum
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NewType, Protocol, cast

import msgspec

from topology import blind
from topology.resource import Facts, Ref, Resource

WRITES = "writes"
"""Argument of a step that changes the world more than once: how often at most."""

PlanId = NewType("PlanId", str)
StepId = NewType("StepId", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What we saw, and when; never "the truth"."""

    ref: Ref
    at: datetime
    facts: Facts | None
    """None: we could not look. Empty: we looked and it is not there. Never mix the two."""
    error: str = ""
    """Why we could not look."""
    blind: str = blind.NOT_OBSERVED
    """The same as a reason, of `blind.REASONS`; says nothing where there are facts."""
    silent: str = ""
    """Backend of who did not answer, where that may be another than the thing's own: a cluster is
    also asked for by what stands elsewhere. Empty: the thing's own, or nobody was silent."""
    digest: int = 0
    """Fingerprint of `facts`; equal facts, equal digest."""
    calm: bool = False
    """True: asking again soon would tell nothing new. It was read from caches, and whatever changes
    in them wakes who read them; or nobody but us changes it."""


class Truth(enum.StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One judgement, always of positive polarity: True is good."""

    type: str
    truth: Truth
    reason: str
    """CamelCase, from a fixed set, never with data in it. Of a Ready condition this is the state
    that time limits are about."""
    message: str
    """For a person; may change freely."""
    generation: int
    """Of the Resource it judges."""
    since: datetime
    """Moves only when truth moves."""
    reason_since: datetime
    """Moves only when reason moves."""
    served: bool = False
    """It is not True now, and was True before in the same generation: it failed, rather than not
    having come up yet."""


READY = "Ready"
ABSENT = "Absent"
"""Reason of a Ready condition for a thing that was looked for and is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One act of one driver. Leaves the executor nothing to decide."""

    id: StepId
    """Digest of ref, verb, args, generation and what it destroys: the same deed has the same id
    after a restart, and whoever approves it has approved no other."""
    ref: Ref
    verb: str
    args: Facts
    why: str
    """Shown to the operator before it runs."""
    deadline: timedelta
    generation: int
    disrupts: frozenset[Ref] = frozenset()
    """Counted against the budgets."""
    destroys: frozenset[Ref] = frozenset()
    """What cannot be had back afterwards: a wiped disk, a deleted cluster, a revoked key. Never
    without approval."""
    after: frozenset[StepId] = frozenset()
    """Only steps earlier in the plan. Shown, never followed: a step that comes after another is not
    begun. When that one is done the thing is looked at again, and its driver proposes what is left,
    now with nothing before it. So a driver must propose from what is seen, not from a list."""


def step_id(
    ref: Ref, verb: str, args: Facts, generation: int, destroys: Iterable[Ref] = ()
) -> StepId:
    """Digest of what a step does: equal deed, equal id, on every machine and after a restart."""
    deed: tuple[object, ...] = (ref.kind, ref.name, verb, args, generation)
    if lost := sorted(destroys):
        deed = (*deed, lost)
    return StepId(hashlib.blake2b(_CANONICAL.encode(deed), digest_size=10).hexdigest())


def make_step(
    want: Resource,
    verb: str,
    args: Facts,
    *,
    why: str,
    deadline: timedelta,
    disrupts: Iterable[Ref] = (),
    destroys: Iterable[Ref] = (),
    after: Iterable[StepId] = (),
    writes: int = 1,
) -> Step:
    """The one way for a driver to make a step, so that no id is ever made up. `writes`: how often
    it changes the world at most; more than one only where nothing good lies between them."""
    if writes > 1:
        args = {**args, WRITES: writes}
    # One empty set for all: a hundred thousand of them would weigh 60 MB.
    lost = frozenset(destroys) or _NO_REFS
    return Step(
        id=step_id(want.ref, verb, args, want.generation, lost),
        ref=want.ref,
        verb=verb,
        args=args,
        why=why,
        deadline=deadline,
        generation=want.generation,
        disrupts=frozenset(disrupts) or _NO_REFS,
        destroys=lost,
        after=frozenset(after) or _NO_STEPS,
    )


def _plain(value: object) -> object:
    """What msgspec does not know: mappings that are not dicts."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    raise TypeError(f"a step's arguments cannot hold a {type(value).__name__}")


_NO_REFS: frozenset[Ref] = frozenset()
_NO_STEPS: frozenset[StepId] = frozenset()
_CANONICAL = msgspec.json.Encoder(enc_hook=_plain, order="deterministic")


class HoldReason(enum.StrEnum):
    """Why something is held back. The set is part of the public contract."""

    DEPENDENCY = "DependencyNotReady"
    BUDGET = "BudgetSpent"
    WINDOW = "OutsideWindow"
    APPROVAL = "NeedsApproval"
    PAUSED = "Paused"
    STALE = "StaleObservation"
    OVERDUE = "Overdue"
    FAILED = "StepFailed"
    """The last attempt failed in a way that no retry mends; a person is needed."""
    NO_DRIVER = "NoDriver"
    ORPHANED = "Orphaned"
    """It exists, but no document names it any more."""
    STUCK = "NothingToDo"
    """Not Ready, and its driver proposes nothing and waits for nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What was not planned, and why."""

    ref: Ref
    reason: HoldReason
    message: str
    steps: tuple[Step, ...] = ()
    """What would be done if nothing held it."""
    blocker: Ref | None = None
    """The thing it waits for, where there is one."""
    approval: str = ""
    """What to pass to `fleetctl approve`."""
    until: datetime | None = None
    """When time alone will end it, if that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The world, or a step already sent, is at work; there is nothing to do but look again."""

    ref: Ref
    reason: str
    message: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be done in one region, and what is not, and why. Equal input, equal id."""

    id: PlanId
    region: str
    topology: str
    """Digest of the desired state it answers."""
    steps: tuple[Step, ...]
    holds: tuple[Hold, ...]
    waits: tuple[Wait, ...]
    again: datetime | None = None
    """When time alone may change this plan: a window opens, an observation grows stale."""
    approved: frozenset[str] = frozenset()
    """The approvals and consents that its steps rest on."""


@dataclass(frozen=True, slots=True)
class Done:
    pass


@dataclass(frozen=True, slots=True)
class Waiting:
    """The request was taken; the far side is at work."""

    reason: str
    again: timedelta


@dataclass(frozen=True, slots=True)
class Failed:
    reason: str
    message: str
    retry: bool
    """False: a person is needed."""


@dataclass(frozen=True, slots=True)
class Lost:
    """We do not know: the daemon died, or was told to stop, before the answer came. Only the
    engine makes these; the thing is looked at before anything is repeated."""

    message: str


Outcome = Done | Waiting | Failed
Ending = Outcome | Lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """History for people. Nothing decides from it."""

    at: datetime
    ref: Ref
    reason: str
    message: str
    plan: PlanId | None = None


class Driver(Protocol):
    """Drives one kind of far side. Three of five methods are pure; none sleeps, retries or
    decides for others; `observe` changes nothing; `apply` is idempotent."""

    @property
    def kind(self) -> str: ...

    def check(self, want: Resource) -> Sequence[str]:
        """What is wrong with this spec, in words; pure."""
        ...

    async def observe(self, want: Resource) -> Observation:
        """Look. A far side that cannot be reached gives `facts=None`, not an exception."""
        ...

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        """What would bring `seen` to `want`, in order; pure. Nothing if the world is at work.

        It may read `want`, `seen`, and the topology (of its own region) and the rules that its
        tools hold; nothing else: no clock, no condition of another thing, no answer of a far side
        and nothing that an earlier call kept. Equal topology, rules, `want` and `seen` give equal
        steps, also from another instance of the driver. It is asked again when one of these
        changes, and about documents that are not in force (`fleetd.daemon.sealed`), in a thread."""
        ...

    async def apply(self, step: Step) -> Outcome:
        """Do it. May be called twice for the same step."""
        ...

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        """What is thought of it; pure. True means that it does its work now: a thing that serves
        but is out of date is Ready, and `propose` says what is missing. Budgets count as down
        what is not Ready, so the two must not be mixed."""
        ...


class Clock(Protocol):
    """The part of `fleetd.clock.Clock` that a driver may use: to stamp what it saw."""

    def now(self) -> datetime: ...
