"""
The engine, put together: state, queues, gates, observer, planner, executor, supervisor.

Drivers, clock, store and chance come in as arguments; a daemon around it is
`fleetd.daemon.assembly`.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from fleetd.clock import Clock
from fleetd.engine import observer, queue
from fleetd.engine.executor import Executor
from fleetd.engine.observer import Observer, Pace, Widths
from fleetd.engine.planning import Planning
from fleetd.engine.state import State
from fleetd.engine.stats import Stats
from fleetd.engine.supervisor import Supervisor, Upkeep
from fleetd.gate import GateLimits, Gates
from fleetd.plan.policy import Policy
from fleetd.reads import Reads
from fleetd.store.base import Store
from fleetd.vocabulary import Driver
from topology.resource import Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """How fast, how much at once, how long. All defaults stand in `fleetd.settings`."""

    pace: Pace
    gates: GateLimits
    backoff: queue.Backoff
    upkeep: Upkeep
    stale_after: timedelta
    consents: frozenset[str]


class Core:
    def __init__(
        self,
        *,
        drivers: Mapping[str, Driver],
        store: Store,
        clock: Clock,
        rng: random.Random,
        tuning: Tuning,
        reads: Reads,
        gates: Gates,
    ) -> None:
        """`reads` is that of the drivers' tools, `gates` are those that their requests pass."""
        self.tuning = tuning
        self.state = State(
            drivers,
            Policy(stale_after=tuning.stale_after, consents=tuning.consents),
            reads,
        )
        self.gates = gates
        widths = Widths(tuning.gates.concurrency, tuning.upkeep.workers)
        self.stats = Stats()
        self.looks: queue.Queue[Ref] = queue.Queue(
            tuning.backoff,
            rng,
            lanes=observer.lanes(self.state, widths),
            waited=self.stats.waits.add,
        )
        self.executor = Executor(
            state=self.state,
            drivers=drivers,
            gates=self.gates,
            store=store,
            clock=clock,
            looks=self.looks,
            backoff=tuning.backoff,
            rng=rng,
            stats=self.stats,
        )
        looking = Observer(
            state=self.state,
            drivers=drivers,
            widths=widths,
            store=store,
            clock=clock,
            looks=self.looks,
            pace=tuning.pace,
            rng=rng,
            stats=self.stats,
        )
        planning = Planning(
            state=self.state,
            drivers=drivers,
            clock=clock,
            submit=self.executor.submit,
            stats=self.stats,
        )
        self.supervisor = Supervisor(
            state=self.state,
            observer=looking,
            planning=planning,
            executor=self.executor,
            looks=self.looks,
            store=store,
            upkeep=tuning.upkeep,
        )

    def wake(self, ref: Ref) -> None:
        """Something that was read for this thing has changed: look again soon."""
        if self.state.want(ref) is not None:
            self.looks.add(ref, priority=queue.SOON)
