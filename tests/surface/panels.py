"""A panel with state in it: what a small daemon would show, built by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fleetd.plan import why
from fleetd.plan.capacity import Capacity
from fleetd.plan.incidents import Report
from fleetd.plan.policy import Pause, Policy
from fleetd.plan.view import Attempt, View
from fleetd.store.base import Recorded
from fleetd.surface import panel
from fleetd.surface.panel import BackendState, Figures, Histogram, QueueState, Tally, Unready, Work
from fleetd.vocabulary import (
    Condition,
    Event,
    Hold,
    HoldReason,
    Observation,
    Plan,
    PlanId,
    Step,
    StepId,
    Truth,
    Wait,
)
from topology.catalogue import Component
from topology.resource import EMPTY, Edge, EdgeKind, Ref, Resource, Topology

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BOUNDS = (0.1, 1.0, 10.0)
NO_TIMES = Histogram(BOUNDS, (0, 0, 0, 0), 0.0)


@dataclass(kw_only=True)
class FakePanel:
    """Implements `fleetd.surface.panel.Panel` from plain fields."""

    want: Topology = EMPTY
    judged: dict[Ref, Condition] = field(default_factory=dict[Ref, Condition])
    looked: dict[Ref, Observation] = field(default_factory=dict[Ref, Observation])
    plans: dict[str, Plan] = field(default_factory=dict[str, Plan])
    history: list[Recorded] = field(default_factory=list[Recorded])
    accepted: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    missing: list[Unready] = field(default_factory=list[Unready])
    done: Work = Work(looks={}, steps={}, outcomes={}, plans=NO_TIMES)  # noqa: RUF009 -- frozen
    far_sides: list[BackendState] = field(default_factory=list[BackendState])
    left: dict[Ref, Resource] = field(default_factory=dict[Ref, Resource])
    going: frozenset[Ref] = frozenset()
    resting: dict[str, Pause] = field(default_factory=dict[str, Pause])
    attempts: dict[Ref, Attempt] = field(default_factory=dict[Ref, Attempt])
    catalogue: Mapping[str, Component] = field(default_factory=dict[str, Component])
    asked: int = 0
    failures: Report = Report()  # noqa: RUF009 -- frozen
    reasons: dict[tuple[Ref, Ref], str] = field(default_factory=dict[tuple[Ref, Ref], str])
    changing: dict[str, datetime] = field(default_factory=dict[str, datetime])

    def now(self) -> datetime:
        return NOW

    def topology(self) -> Topology:
        return self.want

    def ready(self, ref: Ref) -> Condition | None:
        return self.judged.get(ref)

    def conditions(self, ref: Ref) -> Sequence[Condition]:
        return [self.judged[ref]] if ref in self.judged else []

    def seen(self, ref: Ref) -> Observation | None:
        return self.looked.get(ref)

    def plan(self, region: str) -> Plan | None:
        return self.plans.get(region)

    def orphans(self) -> Mapping[Ref, Resource]:
        return self.left

    def pauses(self) -> Mapping[str, Pause]:
        return self.resting

    def retired(self) -> frozenset[Ref]:
        return self.going

    def attempt(self, ref: Ref) -> Attempt | None:
        return self.attempts.get(ref)

    def component(self, kind: str) -> Component | None:
        return self.catalogue.get(kind)

    def why(self, ref: Ref) -> why.Answer:
        view = View(
            topology=self.want,
            seen=self.looked,
            ready=self.judged,
            attempts=self.attempts,
            orphans=self.left,
        )
        policy = Policy(pauses=self.resting)
        return why.why(ref, view, self.plans, now=NOW, because=self.because, policy=policy)

    def incidents(self) -> Report:
        return self.failures

    def capacity(self) -> Capacity:
        counted = Capacity()
        counted.reset(self.want, self.judged, self.looked)
        return counted

    def because(self, source: Ref, target: Ref) -> str:
        return self.reasons.get((source, target), "")

    async def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        ref: Ref | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[Recorded]:
        found = [
            one
            for one in self.history
            if after < one.seq < (before or 2**62) and ref in {None, one.event.ref}
        ]
        return (found[::-1] if newest else found)[:limit]

    def documents(self) -> Sequence[Mapping[str, Any]]:
        return self.accepted

    def unready(self) -> Sequence[Unready]:
        return self.missing

    def drivers(self) -> Sequence[str]:
        return ["gardener"]

    def tally(self) -> Tally:
        counts = panel.Counts()
        for ref, resource in self.want.resources.items():
            judged = self.judged.get(ref)
            truth = judged.truth if judged else Truth.UNKNOWN
            counts.move(ref.kind, resource.region, None, truth)
        held: dict[panel.Held, int] = {}
        for plan in self.plans.values():
            for hold in plan.holds:
                key = panel.Held(plan.region, hold.reason)
                held[key] = held.get(key, 0) + 1
        return Tally(
            resources=counts.slots,
            held=held,
            waiting={region: len(plan.waits) for region, plan in self.plans.items()},
            planned={region: len(plan.steps) for region, plan in self.plans.items()},
        )

    def marks(self) -> Mapping[str, int]:
        """Always another: whatever a test changed is to be seen."""
        self.asked += 1
        return dict.fromkeys([*self.want.regions, *self.plans], self.asked)

    def figures(self, region: str) -> Figures:
        tally = self.tally()
        here = {one: n for one, n in tally.resources.items() if one.region == region}
        whole = self.judged.get(Ref("region", region))
        return Figures(
            kinds=sorted({one.kind for one in here}),
            resources={(one.kind, one.truth): n for one, n in here.items()},
            held={one.reason: n for one, n in tally.held.items() if one.region == region},
            waiting=tally.waiting.get(region, 0),
            planned=tally.planned.get(region, 0),
            places=self.capacity().regions.get(region, {}),
            clusters={
                ref.name: ref in self.judged and self.judged[ref].truth is Truth.TRUE
                for ref in self.want.kinds.get("cluster", ())
            },
            not_ready=whole.since if whole and whole.truth is not Truth.TRUE else None,
            changing=self.changing.get(region),
        )

    def work(self) -> Work:
        return self.done

    def queue(self) -> QueueState:
        return QueueState(ready=1, delayed=2, working=3)

    def backends(self) -> Sequence[BackendState]:
        return self.far_sides


def ready(truth: Truth, reason: str = "Ready", message: str = "") -> Condition:
    return Condition(
        type="Ready",
        truth=truth,
        reason=reason,
        message=message,
        generation=7,
        since=NOW - timedelta(hours=3),
        reason_since=NOW - timedelta(hours=3),
    )


def resource(
    kind: str, name: str, *needs: Ref, owner: Ref | None = None, rank: int = 0, **more: Any
) -> Resource:
    ref = Ref(kind, name)
    return Resource(
        ref=ref,
        driver="gardener",
        region="eu-1",
        spec={"name": name},
        generation=7,
        needs=frozenset(needs),
        owner=owner or ref,
        rank=rank,
        **more,
    )


def topology(*resources: Resource, digest: str = "0123456789abcdef0123") -> Topology:
    return Topology(
        digest=digest,
        resources={one.ref: one for one in resources},
        edges=tuple(
            Edge(one.ref, EdgeKind.NEEDS, need) for one in resources for need in sorted(one.needs)
        ),
    )


POOL = Ref("serverpool", "compute")
CLUSTER = Ref("cluster", "hv")
FLUX = Ref("flux", "hv")
REGION = Ref("region", "eu-1")


def small(message: str = "the shoot is being made") -> FakePanel:
    """A pool that is Ready, a cluster that is not, Flux that waits for it. `message` is told
    wherever something from outside is told."""
    step = Step(
        id=StepId("step-1"),
        ref=CLUSTER,
        verb="create",
        args={"note": message},
        why=message,
        deadline=timedelta(minutes=5),
        generation=7,
        disrupts=frozenset({Ref("server", "b"), Ref("server", "a")}),
    )
    hold = Hold(
        ref=FLUX,
        reason=HoldReason.DEPENDENCY,
        message=message,
        blocker=CLUSTER,
        until=NOW + timedelta(hours=1),
    )
    return FakePanel(
        want=topology(
            resource("serverpool", "compute"),
            resource("cluster", "hv", POOL, rank=1, domains=("cluster:hv",)),
            resource("flux", "hv", CLUSTER, owner=CLUSTER, rank=2, backend="cluster:hv"),
            resource("region", "eu-1", FLUX, rank=3),
        ),
        judged={
            POOL: ready(Truth.TRUE),
            CLUSTER: ready(Truth.FALSE, "Progressing", message),
            REGION: ready(Truth.UNKNOWN, "Progressing", message),
        },
        looked={
            POOL: Observation(ref=POOL, at=NOW, facts={"servers": 2}),
            CLUSTER: Observation(ref=CLUSTER, at=NOW, facts={"status": message, "at": NOW}),
            FLUX: Observation(ref=FLUX, at=NOW, facts=None, error=message),
        },
        plans={
            "eu-1": Plan(
                id=PlanId("plan-1"),
                region="eu-1",
                topology="0123456789abcdef0123",
                steps=(step,),
                holds=(hold,),
                waits=(Wait(ref=POOL, reason="Settling", message=message),),
            )
        },
        history=_history(message),
        accepted=[
            {"kind": "Cluster", "metadata": {"name": "hv"}, "spec": {"note": message}},
            {"kind": "Region", "metadata": {"name": "eu-1"}, "spec": {}},
        ],
        done=Work(
            looks={("gardener", "garden"): Histogram(BOUNDS, (3, 2, 1, 0), 4.5)},
            steps={},
            outcomes={("gardener", "Done"): 2},
            plans=Histogram(BOUNDS, (9, 0, 0, 1), 60.0),
            commits=5,
        ),
        far_sides=[
            BackendState(name="garden:eu-1", breaker="closed", in_flight=1, waited_seconds=0.5),
            BackendState(name="cluster:hv", breaker="open", in_flight=0, waited_seconds=0.0),
        ],
    )


def _history(message: str) -> list[Recorded]:
    return [
        Recorded(
            seq=seq,
            event=Event(
                at=NOW + timedelta(seconds=seq),
                ref=CLUSTER if seq % 2 else FLUX,
                reason="Done",
                message=message,
                plan=PlanId("plan-1"),
            ),
        )
        for seq in range(1, 6)
    ]
