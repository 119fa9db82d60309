"""
A daemon on a simulated world: the same planner, executor, drivers and clients, in virtual time.

What is missing is what virtual time has no use for: files, HTTP, signals. Whoever rehearses a
change and whoever sweeps crash points runs this. The world and the store outlive a daemon; the
next one is started on them (`live` again).
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetd.engine import acceptance, loading, queue, records, recovery
from fleetd.engine.commands import Commands
from fleetd.engine.core import Core, Tuning
from fleetd.engine.observer import Pace, calm_pace
from fleetd.engine.supervisor import Upkeep
from fleetd.gate import GateLimits, Gates
from fleetd.kube.clusters import Clusters
from fleetd.net import Network, Ways
from fleetd.plan.policy import Policy
from fleetd.sim.keys import Keys
from fleetd.sim.world import World
from fleetd.store.base import Store
from fleetd.tools import Rules, Tools
from fleetd.vocabulary import Condition, Driver, Truth
from topology.catalogue import Component
from topology.resource import EMPTY, Ref, Topology

WORKERS = 32
"""Looks at once. Each is a task, and a seed has thousands of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a daemon works towards."""

    topology: Topology
    catalogue: Mapping[str, Component]
    policy: Policy


def tuning(policy: Policy) -> Tuning:
    """As a daemon has them by default, with fewer workers."""
    return Tuning(
        pace=Pace(
            steady=timedelta(seconds=60),
            calm=calm_pace(timedelta(seconds=60), policy.stale_after),
            moving=timedelta(seconds=5),
            deadline=timedelta(seconds=20),
            grace=timedelta(seconds=90),
        ),
        gates=GateLimits(concurrency=8, rate=20.0, burst=40),
        backoff=queue.Backoff(),
        upkeep=Upkeep(workers=WORKERS),
        stale_after=policy.stale_after,
        consents=policy.consents,
    )


class WallClock:
    """The daemon's: that of the world, but for what is wrong with it. Monotonic time never is."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> datetime:
        return self._world.now() + self._world.skew

    def monotonic(self) -> float:
        return self._world.elapsed()


class Twin:
    """One daemon's life on a world."""

    def __init__(
        self, world: World, net: Network, store: Store, wanted: Wanted, modules: Sequence[str]
    ) -> None:
        self.world = world
        self.store = store
        self.wanted = wanted
        self.clock = WallClock(world)
        rng = world.stream("daemon")
        self._rng: random.Random = rng
        tuned = tuning(wanted.policy)
        gates = Gates(tuned.gates, self.clock)
        self.clusters = Clusters(net.kube, gates=gates, clock=self.clock, rng=rng, wake=self._wake)
        self._rules = rules = Rules()
        rules.take(wanted.catalogue)
        self._keys = Keys(world, wanted.topology)
        tools = Tools(
            clock=self.clock,
            clusters=self.clusters,
            net=Ways(net, gates, self.clock),
            secrets=self._keys,
            rules=rules,
            fleet=self,
        )
        self.drivers: Mapping[str, Driver] = loading.load(modules, tools)
        self.core = Core(
            drivers=self.drivers,
            store=store,
            clock=self.clock,
            rng=rng,
            tuning=tuned,
            gates=gates,
            reads=rules.reads,
        )
        self.core.state.set_policy(wanted.policy)
        self.commands = Commands(
            self.core.state,
            store,
            self.clock,
            wake=self._wake,
            asked=lambda: "",
            nudge=lambda: None,
        )

    def _wake(self, ref: Ref) -> None:
        """The core is made of drivers, drivers of tools, and tools wake the core."""
        self.core.wake(ref)

    def topology(self) -> Topology:
        self._rules.reads.note()
        return self.core.state.view.topology

    def everything(self) -> Topology:
        self._rules.reads.note()
        return self.core.state.everything

    def ready(self, ref: Ref) -> Condition | None:
        return self.core.state.view.ready.get(ref)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; as `fleetd.app.Daemon.run` does it."""
        state = self.core.state
        rows = await self.store.load(records.ACCEPTED)
        old = records.decode_topology(rows) or EMPTY
        orphans = records.decode_orphans(await self.store.load(records.ORPHANS))
        retired = await self.store.load(records.RETIRED)
        state.retired = frozenset(records.parse_ref(name) for name in retired)
        state.accept(old, {ref: one for ref, one in orphans.items() if ref not in old.resources})
        await self.commands.restore()
        backoff = self.core.tuning.backoff
        await recovery.recover(state, self.store, self.clock, backoff, self._rng)
        # Whoever runs a twin on these documents has agreed to them.
        offered = acceptance.offer(old, self.wanted.topology, rows, state.policy.consents)
        await acceptance.accept(state, self.store, offered)
        if state.everything is not self.wanted.topology:
            self._keys.also(state.everything)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self.clusters.run(), name="clusters")
            await self.core.supervisor.run(stop)
            watching.cancel()

    def all_ready(self) -> bool:
        view = self.core.state.view
        return bool(view.topology.resources) and all(
            self._is_ready(ref) for ref in view.topology.resources
        )

    def quiet(self) -> bool:
        """Everything is Ready, and nothing is planned or under way."""
        state = self.core.state
        return (
            self.all_ready()
            and not state.dirty
            and self.core.executor.running == 0
            and all(not plan.steps for plan in state.plans.values())
        )

    def unready(self) -> list[tuple[Ref, Condition | None]]:
        view = self.core.state.view
        return [
            (ref, view.ready.get(ref)) for ref in view.topology.resources if not self._is_ready(ref)
        ]

    def _is_ready(self, ref: Ref) -> bool:
        view = self.core.state.view
        ready = view.ready.get(ref)
        return ready is not None and ref in view.seen and ready.truth is Truth.TRUE


async def live(
    twin: Twin, *, until: Callable[[], bool], within: timedelta, every: float = 1.0
) -> bool:
    """Run one daemon until `until` holds or time is up. True if it came to hold."""
    stop = asyncio.Event()
    deadline = twin.world.elapsed() + within.total_seconds()
    reached = False
    async with asyncio.TaskGroup() as group:
        task = group.create_task(twin.run(stop), name="daemon")
        while not task.done() and twin.world.elapsed() < deadline and not twin.world.failures:
            reached = until()
            if reached:
                break
            await asyncio.sleep(every)
        stop.set()
    return reached
