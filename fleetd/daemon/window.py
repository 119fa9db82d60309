"""The window through which HTTP and metrics read the engine: `surface.panel.Panel`, from memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fleetd.clock import Clock
from fleetd.daemon.documents import Documents
from fleetd.engine import answers, stats
from fleetd.engine.executor import Executor
from fleetd.engine.queue import Queue
from fleetd.engine.state import State
from fleetd.gate import Gates
from fleetd.plan import incidents, why
from fleetd.plan.capacity import Capacity
from fleetd.plan.incidents import Report
from fleetd.plan.policy import Pause
from fleetd.plan.view import Attempt
from fleetd.store.base import Recorded, Store
from fleetd.surface.panel import (
    BackendState,
    Figures,
    Held,
    Histogram,
    QueueState,
    Slot,
    Tally,
    Unready,
    Work,
)
from fleetd.tools import Rules
from fleetd.vocabulary import Condition, Observation, Plan, Truth
from topology.catalogue import Component
from topology.resource import Ref, Resource, Topology

FRESH = 1.0
"""Seconds for which a report of incidents is good, though something changed meanwhile."""
STALE = 5.0
"""Seconds after which time alone may have made it another."""


@dataclass
class Window:
    """Implements `Panel`."""

    state: State
    store: Store
    clock: Clock
    gates: Gates
    looks: Queue[Ref]
    executor: Executor
    stats: stats.Stats
    documents_source: Documents
    rules: Rules
    grace: timedelta
    """How long a thing may fail before it counts."""

    def __post_init__(self) -> None:
        self._report = Report()
        self._reported: tuple[int, float] = (-1, float("-inf"))

    def now(self) -> datetime:
        return self.clock.now()

    def topology(self) -> Topology:
        return self.state.view.topology

    def ready(self, ref: Ref) -> Condition | None:
        return self.state.view.ready.get(ref)

    def conditions(self, ref: Ref) -> Sequence[Condition]:
        """Worked out on demand: they follow from what was seen, so there is nothing to keep."""
        want, seen = self.state.want(ref), self.state.view.seen.get(ref)
        driver = self.state.drivers.get(want.driver) if want is not None else None
        if want is None or seen is None or driver is None or not seen.facts:
            return ()
        try:
            return answers.conditions(driver.judge(want, seen))
        except Exception as cause:  # noqa: BLE001 - a driver's fault is its own, not the reader's
            return (answers.fault(want, seen.at, cause),)

    def seen(self, ref: Ref) -> Observation | None:
        return self.state.view.seen.get(ref)

    def plan(self, region: str) -> Plan | None:
        return self.state.plans.get(region)

    def orphans(self) -> Mapping[Ref, Resource]:
        return self.state.view.orphans

    def pauses(self) -> Mapping[str, Pause]:
        return self.state.policy.pauses

    def retired(self) -> frozenset[Ref]:
        return self.state.retired

    def attempt(self, ref: Ref) -> Attempt | None:
        return self.state.view.attempts.get(ref)

    def component(self, kind: str) -> Component | None:
        try:
            return self.rules.component(kind)
        except KeyError:
            return None

    def why(self, ref: Ref) -> why.Answer:
        state = self.state
        return why.why(
            ref,
            state.view,
            state.plans,
            now=self.clock.now(),
            because=self.because,
            policy=state.policy,
        )

    def incidents(self) -> Report:
        state, (version, at) = self.state, self._reported
        age = self.clock.monotonic() - at
        if age >= STALE or (age >= FRESH and version != state.troubles.version):
            self._reported = state.troubles.version, self.clock.monotonic()
            self._report = incidents.incidents(
                state.view, state.troubles, now=self.clock.now(), grace=self.grace
            )
        return self._report

    def capacity(self) -> Capacity:
        return self.state.capacity

    def because(self, source: Ref, target: Ref) -> str:
        """The catalogue's words for the need."""
        component = self.component(source.kind)
        links = component.spec.needs if component is not None else ()
        return next((link.why for link in links if link.component == target.kind), "")

    async def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        ref: Ref | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[Recorded]:
        return await self.store.events(
            after=after, before=before, ref=ref, limit=limit, newest=newest
        )

    def documents(self) -> Sequence[Mapping[str, Any]]:
        return self.documents_source.accepted

    def unready(self) -> Sequence[Unready]:
        found: list[Unready] = []
        if complaint := self.documents_source.complaint:
            found.append(Unready("documents", complaint))
        if self.store.broken:
            found.append(Unready("store", self.store.broken))
        if self.state.stopping:
            found.append(Unready("daemon", "it was told to stop"))
        for region, fault in sorted(self.state.faulty.items()):
            found.append(Unready("planner", f"refused its own plan for {region}: {fault}"))
        unseen = len(self.state.view.topology.resources) - len(self.state.view.seen)
        if unseen > self.state.undriven:
            count = unseen - self.state.undriven
            found.append(Unready("observer", f"{count} things were not looked at yet"))
        return found

    def drivers(self) -> Sequence[str]:
        return sorted(self.state.drivers)

    def tally(self) -> Tally:
        plans = self.state.plans
        return Tally(
            resources={
                Slot(*key): count for key, count in sorted(self.state.counts.items()) if count
            },
            held={
                Held(region, reason): count
                for region, reasons in self.state.held.items()
                for reason, count in reasons.items()
            },
            waiting={region: len(plan.waits) for region, plan in plans.items()},
            planned={region: len(plan.steps) for region, plan in plans.items()},
        )

    def marks(self) -> Mapping[str, int]:
        return self.state.marks

    def figures(self, region: str) -> Figures:
        state = self.state
        kinds = sorted(state.kinds.get(region, ()))
        plan, whole = state.plans.get(region), self.ready(Ref("region", region))
        bad = whole is None or whole.truth is not Truth.TRUE
        return Figures(
            kinds=kinds,
            resources={
                (kind, truth): state.counts[kind, region, truth]
                for kind in kinds
                for truth in Truth
            },
            held=state.held.get(region, {}),
            waiting=len(plan.waits) if plan is not None else 0,
            planned=len(plan.steps) if plan is not None else 0,
            places=state.capacity.regions.get(region, {}),
            clusters={ref.name: self._good(ref) for ref in state.clusters.get(region, ())},
            not_ready=(whole.since if whole is not None else self.now()) if bad else None,
            changing=state.changing.get(region),
        )

    def _good(self, ref: Ref) -> bool:
        found = self.ready(ref)
        return found is not None and found.truth is Truth.TRUE

    def work(self) -> Work:
        return Work(
            looks={by: _histogram(times) for by, times in self.stats.looks.items()},
            steps={by: _histogram(times) for by, times in self.stats.steps.items()},
            outcomes=dict(self.stats.outcomes),
            plans=_histogram(self.stats.plans),
            plans_refused=self.stats.plans_refused,
            abandoned=self.stats.abandoned,
            commits=self.store.commits,
            store_bytes=self.store.size,
            looked=dict(self.stats.looked_at),
            writes=_histogram(self.stats.writes),
            lag=_histogram(self.stats.lag),
            queued=_histogram(self.stats.waits),
        )

    def queue(self) -> QueueState:
        due = self.looks.due()
        return QueueState(ready=due, delayed=len(self.looks) - due, working=self.looks.working)

    def backends(self) -> Sequence[BackendState]:
        return [
            BackendState(
                name=gate.backend,
                breaker=gate.breaker,
                in_flight=gate.in_flight,
                waited_seconds=gate.waited,
                failures=gate.failures,
                calls=gate.calls,
                unanswered=gate.unanswered,
                called_seconds=gate.called,
            )
            for gate in self.gates.all()
        ]


def _histogram(times: stats.Durations) -> Histogram:
    return Histogram(stats.BUCKETS, tuple(times.counts), times.total)
