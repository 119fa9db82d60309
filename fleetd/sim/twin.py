"""
A daemon on a simulated world: the same as any other (`fleetd.daemon.assembly`), in virtual time.

What is missing is what virtual time has no use for: files, HTTP, signals. Whoever rehearses a
change and whoever sweeps crash points runs this. The world and the store outlive a daemon; the
next one is started on them (`live` again).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from fleetd.daemon.assembly import Assembly, Door
from fleetd.engine import acceptance, records
from fleetd.engine.records import Surroundings
from fleetd.net import Network
from fleetd.plan.policy import Policy
from fleetd.settings import ObserveSettings, Settings
from fleetd.sim.keys import Keys
from fleetd.sim.world import World
from fleetd.store.base import Store
from fleetd.vocabulary import Condition, Truth
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


class WallClock:
    """The daemon's: that of the world, but for what is wrong with it. Monotonic time never is."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> datetime:
        return self._world.now() + self._world.skew

    def monotonic(self) -> float:
        return self._world.elapsed()


class Given:
    """Documents that were never files: those that a twin was made for, brought once."""

    def __init__(self, wanted: Wanted, keys: Keys, door: Door) -> None:
        self._wanted = wanted
        self._keys = keys
        self._door = door
        self._rows: Mapping[str, bytes] = {}
        self.asks = ""
        """Nothing: see `run`."""
        self.consent = ""
        """What a daemon would have asked for; empty if nothing."""
        self.complaint = ""
        """Why they are not taken; empty if they are."""

    def nudge(self) -> None:
        """They are brought once; looking again finds the same."""

    async def restore(self) -> None:
        door, policy = self._door, self._wanted.policy
        self._rows = await door.store.load(records.ACCEPTED)
        door.surrounded(Surroundings(catalogue=self._wanted.catalogue, folders={}))
        await acceptance.restore(door.state, door.store, records.decode_topology(self._rows))
        door.state.set_policy(replace(policy, stale_after=door.state.policy.stale_after))

    async def run(self) -> None:
        """What needs consent is consented to: whoever has it tried wants to see what it does."""
        state = self._door.state
        old = state.declared if state.declared.resources else EMPTY
        consents = set(state.policy.consents)
        offered = acceptance.offer(old, self._wanted.topology, self._rows, consents)
        if offered.asks:
            self.consent = offered.asks
            consents.add(self.consent)
            offered = acceptance.offer(old, self._wanted.topology, self._rows, consents)
        if offered.refused:
            self.complaint = offered.refused
            return
        await acceptance.accept(state, self._door.store, offered)
        self._keys.also(state.everything)
        self._door.taken()


class Twin(Assembly[Given]):
    """One daemon's life on a world."""

    def __init__(
        self, world: World, net: Network, store: Store, wanted: Wanted, modules: Sequence[str]
    ) -> None:
        self.world = world
        keys = Keys(world, wanted.topology)
        super().__init__(
            Settings(drivers=tuple(modules), observe=ObserveSettings(workers=WORKERS)),
            net=net,
            store=store,
            clock=WallClock(world),
            rng=world.stream("daemon"),
            keeper=lambda _: keys,
            source=lambda door: Given(wanted, keys, door),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """On a store that is open, until `stop` is set."""
        await self.restore()
        await super().run(stop)

    def all_ready(self) -> bool:
        view = self.core.state.view
        return bool(view.topology.resources) and all(
            self._is_ready(ref) for ref in view.topology.resources
        )

    def quiet(self) -> bool:
        """At rest, and nothing was seen that is not planned yet."""
        return self.at_rest() and not self.core.state.dirty

    def at_rest(self) -> bool:
        """Everything is Ready, and nothing is planned or under way. News such as a minute's look
        of Ceph at itself disturb no rest; a step that comes of them does."""
        return (
            self.all_ready()
            and self.core.executor.running == 0
            and all(not plan.steps for plan in self.core.state.plans.values())
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
