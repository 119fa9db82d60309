"""
What the faces may read: the one window between the engine and everything that shows.

`fleetd.app` implements `Panel` from the engine's state; HTTP and metrics read it and change
nothing. One rule: every method except `events` answers from memory, at once, and `tally` costs the
number of (kind, region) pairs, never the number of resources.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from fleetd.plan.capacity import Capacity, Count, Place
from fleetd.plan.incidents import Report
from fleetd.plan.policy import Pause
from fleetd.plan.view import Attempt
from fleetd.plan.why import Answer
from fleetd.store.base import Recorded
from fleetd.vocabulary import Condition, HoldReason, Observation, Plan, Truth
from topology.catalogue import Component
from topology.resource import Backend, Ref, Resource, Topology


class Unready(NamedTuple):
    """One thing that keeps the daemon from being ready: `documents`, `store`, `observer` ..."""

    name: str
    message: str


class Slot(NamedTuple):
    """A series of the resource metrics."""

    kind: str
    region: str
    truth: Truth


class Held(NamedTuple):
    region: str
    reason: HoldReason


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendState:
    """How one far side is doing."""

    name: str
    """`garden:eu-1`, `cluster:hv`; its kind is what stands before the colon."""
    breaker: str
    """closed, half-open or open."""
    in_flight: int
    waited_seconds: float
    """Sum of the time that calls have waited for a token or a slot."""
    failures: int = 0
    """In a row."""
    calls: int = 0
    """Ended since the start."""
    unanswered: int = 0
    called_seconds: float = 0.0
    """Sum of the time that calls took."""

    @property
    def kind(self) -> str:
        return Backend.of(self.name).kind


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    ready: int
    """Keys that wait for a worker."""
    delayed: int
    """Keys whose time has not come."""
    working: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Counts that metrics and `/api/v1/regions` show. Kept up to date by whoever changes a
    condition or a plan (see `Counts`), so that reading them does not walk the fleet."""

    resources: Mapping[Slot, int]
    held: Mapping[Held, int]
    waiting: Mapping[str, int]
    """By region: resources where the world, or a step already sent, is at work."""
    planned: Mapping[str, int]
    """By region: steps in the current plan."""


class Histogram(NamedTuple):
    """How long something took. `counts` has one place more than `bounds`: the rest."""

    bounds: Sequence[float]
    counts: Sequence[int]
    total: float


NO_TIMES = Histogram((), (0,), 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The numbers of one region."""

    kinds: Sequence[str]
    resources: Mapping[tuple[str, Truth], int]
    held: Mapping[HoldReason, int]
    waiting: int
    planned: int
    places: Mapping[Place, Count]
    clusters: Mapping[str, bool]
    """Whether each is Ready."""
    not_ready: datetime | None
    """Since when the region is not as its documents say; None if it is."""
    changing: datetime | None = None
    """Since when something new is asked of it that is not reached; None if all is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the engine did since it started."""

    looks: Mapping[tuple[str, str], Histogram]
    """By driver and kind of backend: garden, metal, cluster ..."""
    steps: Mapping[tuple[str, str], Histogram]
    """Calls of `apply`, by the same."""
    outcomes: Mapping[tuple[str, str], int]
    """By driver and ending (`Done`, `Waiting`, `Failed`, `Lost`), counted after it is on disk."""
    plans: Histogram
    plans_refused: int = 0
    abandoned: int = 0
    """Calls of drivers that were given up and have not ended."""
    commits: int = 0
    """Durable writes of the store."""
    store_bytes: int = 0
    looked: Mapping[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    """By driver and result: seen or blind."""
    writes: Histogram = NO_TIMES
    """Until an intent was on disk."""
    lag: Histogram = NO_TIMES
    """How late the event loop woke up a timer."""
    queued: Histogram = NO_TIMES
    """How long what was due for a look waited for a worker."""


@dataclass(slots=True, kw_only=True)
class Counts:
    """Counts resources by kind, region and truth, one move at a time."""

    slots: Counter[Slot] = field(default_factory=Counter[Slot])

    def move(self, kind: str, region: str, old: Truth | None, new: Truth | None) -> None:
        """A resource went from one truth to another; None is "not there"."""
        if old is not None:
            self.slots[Slot(kind, region, old)] -= 1
        if new is not None:
            self.slots[Slot(kind, region, new)] += 1


class Panel(Protocol):
    def now(self) -> datetime: ...

    def topology(self) -> Topology:
        """The accepted desired state; `topology.resource.EMPTY` before there is one."""
        ...

    def ready(self, ref: Ref) -> Condition | None:
        """Its Ready condition; None if it was never judged."""
        ...

    def conditions(self, ref: Ref) -> Sequence[Condition]:
        """All conditions its driver reported at the last look."""
        ...

    def seen(self, ref: Ref) -> Observation | None: ...

    def plan(self, region: str) -> Plan | None:
        """The current plan of a region; None before the first."""
        ...

    def orphans(self) -> Mapping[Ref, Resource]:
        """What exists but is named by no document any more, as it was last wanted."""
        ...

    def pauses(self) -> Mapping[str, Pause]:
        """What people told to rest, by scope."""
        ...

    def retired(self) -> frozenset[Ref]:
        """Orphans that a person retired: they are on their way out."""
        ...

    def attempt(self, ref: Ref) -> Attempt | None:
        """The newest try at a step of this thing, while it has something to say."""
        ...

    def component(self, kind: str) -> Component | None:
        """What the catalogue says of a kind."""
        ...

    def why(self, ref: Ref) -> Answer:
        """Of something in the topology or among the orphans."""
        ...

    def incidents(self) -> Report:
        """What has failed, once each, with what it affects. Costs what is in trouble, and that at
        most once a second however often it is asked."""
        ...

    def capacity(self) -> Capacity:
        """Servers by place. Kept up to date by whoever looks at them."""
        ...

    def because(self, source: Ref, target: Ref) -> str:
        """Why the one needs the other; empty if nobody wrote it down."""
        ...

    async def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        ref: Ref | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[Recorded]:
        """History between two numbers, oldest or newest first."""
        ...

    def documents(self) -> Sequence[Mapping[str, Any]]:
        """The accepted documents as they were written, sorted by kind and name."""
        ...

    def unready(self) -> Sequence[Unready]:
        """Why the daemon is not ready to serve; empty when it is."""
        ...

    def drivers(self) -> Sequence[str]:
        """Names of the drivers that were loaded."""
        ...

    def tally(self) -> Tally: ...

    def marks(self) -> Mapping[str, int]:
        """By region a number that moves whenever one of its figures may have."""
        ...

    def figures(self, region: str) -> Figures: ...

    def work(self) -> Work: ...

    def queue(self) -> QueueState: ...

    def backends(self) -> Sequence[BackendState]: ...
