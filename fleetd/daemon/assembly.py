"""
One daemon, put together: clients, gates, tools, drivers, engine, commands, and its documents.

`Assembly` is the only wiring there is. The daemon (`fleetd.app`), the twin on which changes are
rehearsed and crashes swept (`fleetd.sim.twin`), and every test of a whole region run it;
they differ in what they hand in: the network, the store, the clock, chance, where secrets and
documents come from, and the settings. All defaults are those of `fleetd.settings`.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

from fleetd.clock import Clock
from fleetd.engine import loading, queue, recovery
from fleetd.engine.commands import Commands
from fleetd.engine.core import Core, Tuning
from fleetd.engine.observer import Pace, calm_pace
from fleetd.engine.records import Surroundings
from fleetd.engine.state import State
from fleetd.engine.supervisor import Upkeep
from fleetd.gate import GateLimits, Gates
from fleetd.kube.clusters import Clusters
from fleetd.net import Network, Ways
from fleetd.polls import Polls
from fleetd.settings import Settings
from fleetd.store.base import Store
from fleetd.tools import Rules, SecretKeeper, Tools
from fleetd.vocabulary import Condition
from topology.resource import Ref, Topology

CLOSING = timedelta(seconds=2)
"""Kept back from the drain for closing the store and the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Where documents come in: what whoever brings them works on."""

    state: State
    store: Store
    surrounded: Callable[[Surroundings], None]
    """To be called with the catalogue and the folders of what is about to be in force."""
    taken: Callable[[], None]
    """To be called when new documents are in force."""


class Source(Protocol):
    """Where documents come from."""

    @property
    def asks(self) -> str:
        """The consent that the newest documents wait for; empty if none."""
        ...

    def nudge(self) -> None:
        """Look at once."""
        ...

    async def restore(self) -> None:
        """Take up what was in force when the daemon ended."""
        ...

    async def run(self) -> None:
        """Bring new ones for as long as the daemon runs, or until there are no more."""
        ...


S = TypeVar("S", bound=Source)


class Assembly(Generic[S]):
    """A daemon without its faces. It is the `Fleet` of its own tools."""

    def __init__(
        self,
        settings: Settings,
        *,
        net: Network,
        store: Store,
        clock: Clock,
        rng: random.Random,
        keeper: Callable[[Clusters], SecretKeeper],
        source: Callable[[Door], S],
    ) -> None:
        self.store = store
        self.clock = clock
        self._rng = rng
        tuned = tuning(settings)
        gates = Gates(tuned.gates, clock)
        self.clusters = Clusters(
            net.kube,
            gates=gates,
            clock=clock,
            rng=rng,
            wake=self._wake,
            kept=settings.network.kept,
        )
        self.keeper = keeper(self.clusters)
        self.rules = Rules()
        tools = Tools(
            clock=clock,
            clusters=self.clusters,
            net=Ways(net, gates, clock),
            polls=Polls(clock),
            secrets=self.keeper,
            rules=self.rules,
            fleet=self,
        )
        self.drivers = loading.load(settings.drivers, tools)
        self.core = Core(
            drivers=self.drivers,
            store=store,
            clock=clock,
            rng=rng,
            tuning=tuned,
            gates=gates,
            reads=self.rules.reads,
        )
        self.state = self.core.state
        self.state.troubles.failed = self.rules.failed
        self.documents = source(
            Door(state=self.state, store=store, surrounded=self._surrounded, taken=self._taken)
        )
        self.commands = Commands(
            self.state,
            store,
            clock,
            wake=self._wake,
            asked=lambda: self.documents.asks,
            nudge=self.documents.nudge,
        )

    def topology(self) -> Topology:
        self.rules.reads.note()
        return self.state.view.topology

    def everything(self) -> Topology:
        self.rules.reads.note()
        return self.state.everything

    def ready(self, ref: Ref) -> Condition | None:
        return self.state.view.ready.get(ref)

    async def restore(self) -> int:
        """From a store that is open. Returns how many steps were cut off."""
        await self.documents.restore()
        await self.commands.restore()
        backoff = self.core.tuning.backoff
        return await recovery.recover(self.state, self.store, self.clock, backoff, self._rng)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set, or a loop fails."""
        async with asyncio.TaskGroup() as group:
            helpers = [
                group.create_task(self.documents.run(), name="documents"),
                group.create_task(self.commands.run(), name="commands"),
                group.create_task(self.clusters.run(), name="clusters"),
            ]
            await self.core.supervisor.run(stop)
            for helper in helpers:
                helper.cancel()

    def _wake(self, ref: Ref) -> None:
        """The core is made of drivers, drivers of tools, and tools wake the core."""
        self.core.wake(ref)

    def _surrounded(self, surroundings: Surroundings) -> None:
        self.rules.take(surroundings.catalogue)
        self.keeper.take(surroundings.folders)

    def _taken(self) -> None:
        self.commands.moved.set()
        self.core.supervisor.look_at_everything()


def tuning(settings: Settings) -> Tuning:
    """How fast, how much at once, how long, as the settings have it."""
    execute, breaker, observe = settings.execute, settings.breaker, settings.observe
    return Tuning(
        pace=Pace(
            steady=observe.interval,
            calm=calm_pace(observe.interval, observe.stale_after),
            moving=min(observe.moving, observe.interval),
            deadline=observe.deadline,
            grace=settings.grace,
        ),
        gates=GateLimits(
            concurrency=execute.concurrency,
            rate=execute.rate,
            burst=execute.burst,
            failures_max=breaker.failures,
            open_for=breaker.cooldown,
            open_max=breaker.cooldown_max,
        ),
        backoff=queue.Backoff(base=settings.backoff.base, maximum=settings.backoff.max),
        upkeep=Upkeep(
            events_max=settings.retention.events_max,
            journal_max=settings.retention.journal_max,
            drain=max(execute.drain - CLOSING, timedelta(0)),
            workers=observe.workers,
        ),
        stale_after=observe.stale_after,
        consents=frozenset(settings.consents),
    )
