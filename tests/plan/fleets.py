"""
Small fleets for the planner's tests: resources, what was seen of them, and a driver that is data.

The driver proposes what the facts say under `todo`, so a test writes the world and nothing else.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fleetd.plan import planner
from fleetd.plan.policy import Policy
from fleetd.plan.view import Attempt, View
from fleetd.vocabulary import (
    ABSENT,
    READY,
    Condition,
    Ending,
    Observation,
    Outcome,
    Plan,
    Step,
    StepId,
    Truth,
    make_step,
)
from topology.resource import Edge, EdgeKind, Limit, Ref, Resource, Topology

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
"""A Wednesday."""
EU = "eu-1"


def ref(text: str) -> Ref:
    kind, _, name = text.partition("/")
    return Ref(kind, name)


def thing(
    name: str,
    *needs: str,
    domains: Sequence[str] = (),
    limits: Mapping[str, timedelta] | None = None,
    region: str = EU,
    driver: str = "data",
    generation: int = 1,
    spec: Mapping[str, Any] | None = None,
) -> Resource:
    return Resource(
        ref=ref(name),
        driver=driver,
        region=region,
        spec=spec or {},
        generation=generation,
        needs=frozenset(map(ref, needs)),
        domains=tuple(domains),
        limits={
            state: Limit(within=within, action=f"look after {state}")
            for state, within in (limits or {}).items()
        },
    )


def topology(things: Iterable[Resource], *, digest: str = "0123456789abcdef") -> Topology:
    """In order, with ranks; things may be given in any order."""
    left = {one.ref: one for one in things}
    known = frozenset(left)
    done: dict[Ref, Resource] = {}
    rank = 0
    while left:
        free = sorted(
            name
            for name, one in left.items()
            if all(n in done or n not in known for n in one.needs)
        )
        if not free:
            raise ValueError("things wait for each other")
        done |= {name: replace(left.pop(name), rank=rank) for name in free}
        rank += 1
    edges = [Edge(one.ref, EdgeKind.NEEDS, n) for one in done.values() for n in sorted(one.needs)]
    return Topology(digest=digest, resources=done, edges=tuple(edges))


@dataclass
class DataDriver:
    """Creates what is absent; otherwise does what the facts have under `todo`."""

    kind: str = "data"
    asked: list[Ref] = field(default_factory=list[Ref])

    def check(self, want: Resource) -> Sequence[str]:
        return ()

    async def observe(self, want: Resource) -> Observation:
        raise NotImplementedError

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        self.asked.append(want.ref)
        assert seen.facts is not None
        if not seen.facts:
            return (step(want, "create"),)
        proposed = [step(want, **todo) for todo in seen.facts.get("todo", ())]
        if fault := seen.facts.get("fault"):
            proposed.extend(FAULTS[fault](want, step(want, "spoil")))
        return proposed

    async def apply(self, step: Step) -> Outcome:
        raise NotImplementedError

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        return ()


def _raises(want: Resource, _: Step) -> Sequence[object]:
    raise KeyError(f"a fact of {want.ref} that is not there")


_NOWHERE = ref("server/nowhere-else")

FAULTS: Mapping[str, Callable[[Resource, Step], Any]] = {
    "raises": _raises,
    "nothing at all": lambda _, __: None,
    "no step": lambda _, __: ["reboot"],
    "another thing": lambda want, _: [step(replace(want, ref=ref("agent/n00x")), "spoil")],
    "another generation": lambda want, _: [step(replace(want, generation=77), "spoil")],
    "made-up id": lambda _, first: [replace(first, id=StepId("mine"))],
    "no words": lambda _, first: [replace(first, why="")],
    "no time": lambda _, first: [replace(first, deadline=timedelta())],
    "twice": lambda _, first: [first, first],
    "out of order": lambda _, first: [replace(first, after=frozenset({StepId("later")}))],
    "unknown disrupted": lambda _, first: [replace(first, disrupts=frozenset({_NOWHERE}))],
    "unknown destroyed": lambda want, _: [step(want, "spoil", destroys=[str(_NOWHERE)])],
}
"""What bad drivers propose, given a good step of the thing."""


def step(
    want: Resource, verb: str, *, disrupts: Iterable[str] = (), destroys: Iterable[str] = ()
) -> Step:
    return make_step(
        want,
        verb,
        {},
        why=f"{verb} it",
        deadline=timedelta(minutes=5),
        disrupts=map(ref, disrupts),
        destroys=map(ref, destroys),
    )


def todo(
    verb: str, *, disrupts: Iterable[str] = (), destroys: Iterable[str] = ()
) -> dict[str, Any]:
    return {"verb": verb, "disrupts": tuple(disrupts), "destroys": tuple(destroys)}


def condition(
    truth: Truth, reason: str, *, generation: int = 1, since: datetime = NOW, message: str = ""
) -> Condition:
    return Condition(
        type=READY,
        truth=truth,
        reason=reason,
        message=message or f"it is {reason}",
        generation=generation,
        since=since,
        reason_since=since,
    )


@dataclass
class World:
    """A view under construction, with the words tests need."""

    view: View
    driver: DataDriver = field(default_factory=DataDriver)

    @classmethod
    def of(cls, *things: Resource, digest: str = "0123456789abcdef") -> "World":
        made = topology(things, digest=digest)
        return cls(View(topology=made, seen={}, ready={}, attempts={}, orphans={}))

    def saw(
        self, name: str, facts: Mapping[str, Any] | None, *, at: datetime = NOW, error: str = ""
    ) -> None:
        digest = hash_facts(facts)
        self.view.seen[ref(name)] = Observation(
            ref=ref(name), at=at, facts=facts, error=error, digest=digest
        )

    def absent(self, *names: str, at: datetime = NOW) -> None:
        for name in names:
            self.saw(name, {}, at=at)
            self.judged(name, Truth.FALSE, ABSENT, since=at)

    def up(self, *names: str, todo: Sequence[Mapping[str, Any]] = (), at: datetime = NOW) -> None:
        for name in names:
            self.saw(name, {"there": True, "todo": list(todo)}, at=at)
            self.judged(name, Truth.TRUE, "Ready", since=at)

    def broken(
        self,
        *names: str,
        reason: str = "Broken",
        todo: Sequence[Mapping[str, Any]] = (),
        since: datetime = NOW,
    ) -> None:
        for name in names:
            self.saw(name, {"there": True, "todo": list(todo)})
            self.judged(name, Truth.FALSE, reason, since=since)

    def blind(self, *names: str, error: str = "no route", since: datetime = NOW) -> None:
        for name in names:
            self.saw(name, None, error=error)
            self.judged(name, Truth.UNKNOWN, "NotObserved", since=since)

    def judged(self, name: str, truth: Truth, reason: str, *, since: datetime = NOW) -> None:
        generation = self.view.topology.resources[ref(name)].generation
        self.view.ready[ref(name)] = condition(truth, reason, generation=generation, since=since)

    def tried(
        self,
        name: str,
        step_id: StepId | str,
        ending: Ending | None,
        *,
        at: datetime = NOW - timedelta(minutes=1),
        ended_at: datetime | None = None,
        not_before: datetime | None = None,
        count: int = 1,
        verb: str = "",
        disrupts: frozenset[Ref] | None = None,
    ) -> None:
        self.view.attempts[ref(name)] = Attempt(
            step=StepId(step_id),
            at=at,
            ending=ending,
            ended_at=ended_at or (None if ending is None else at),
            count=count,
            not_before=not_before,
            verb=verb,
            disrupts=disrupts,
        )

    def want(self, name: str) -> Resource:
        return self.view.topology.resources[ref(name)]

    def plan(self, policy: Policy | None = None, *, now: datetime = NOW, region: str = EU) -> Plan:
        proposed = planner.proposals(self.view, {"data": self.driver}, region=region)
        return planner.plan(self.view, policy or Policy(), proposed, region=region, now=now)


def hash_facts(facts: Mapping[str, Any] | None) -> int:
    """Equal facts, equal digest; never 0, which means that nobody made one."""
    if facts is None:
        return 0
    text = repr(sorted(facts.items())).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big") + 1


def told(plan: Plan) -> dict[str, list[str]]:
    """Everything a plan says, by thing: `+verb`, a hold's reason, `~` and a wait's reason."""
    found: dict[str, list[str]] = {}
    for one in plan.steps:
        found.setdefault(str(one.ref), []).append(f"+{one.verb}")
    for hold in plan.holds:
        found.setdefault(str(hold.ref), []).append(str(hold.reason))
    for wait in plan.waits:
        found.setdefault(str(wait.ref), []).append(f"~{wait.reason}")
    return found
