"""
World, store and daemon together in virtual time, with a switch that ends the daemon at once.

`Power` is the switch. When it goes off, nothing that the daemon still does reaches the world or
the store: that is what `kill -9` means, and what cancelling tasks does not give. The world and
the store live on, and the next daemon is started on them.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from fleetd.clock import LoopClock
from fleetd.engine import recovery
from fleetd.engine.core import Core
from fleetd.engine.state import State
from fleetd.gate import Gates
from fleetd.plan.policy import Policy
from fleetd.reads import Reads
from fleetd.store.base import Entry, Intent, Recorded, Store
from fleetd.vocabulary import Driver, Ending, Event
from tests import defaults
from tests.toy.driver import ToyDriver
from tests.toy.world import World
from topology.resource import Ref, Topology

WORKERS = 16
START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


class PowerCut(BaseException):
    """The daemon is dead. Not an Exception: nothing in the daemon may catch it."""


@dataclass
class Power:
    """Goes off at one chosen moment; everything after it is as if it had not been done."""

    cut_at: tuple[int, str] | None = None
    """The n-th write and its side: intent, before, inside, after."""
    on: bool = True
    was_cut: bool = False
    writes: int = 0
    """Intents so far; the write that follows an intent has its number."""
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    """Number of the newest write of each step."""

    def check(self) -> None:
        if not self.on:
            raise PowerCut

    def side(self, number: int, side: str) -> None:
        self.check()
        if self.cut_at == (number, side):
            self.on = False
            self.was_cut = True
            raise PowerCut


@dataclass
class Fault:
    """Chances, per call, of each way in which a far side can fail."""

    rng: random.Random
    chance: float = 0.0

    def strikes(self) -> bool:
        return self.chance > 0 and self.rng.random() < self.chance


@dataclass
class InProcessWire:
    """Calls the world directly; each call takes a moment of virtual time."""

    world: World
    clock: LoopClock
    power: Power
    fault: Fault

    async def read(self, ref: Ref) -> dict[str, Any]:
        self.power.check()
        await asyncio.sleep(0.05)
        self.power.check()
        if self.fault.strikes():
            raise ConnectionError("reset by peer")
        return self.world.read(ref, self.clock.now())

    async def write(self, ref: Ref, verb: str, args: Mapping[str, Any], step: str) -> str:
        self.power.check()
        number = self.power.numbers[step]
        self.power.side(number, "before")
        await asyncio.sleep(0.1)
        self.power.check()
        if self.fault.strikes():
            raise ConnectionError("refused")
        effect = self.world.write(ref, verb, dict(args), step, self.clock.now())
        self.power.side(number, "inside")
        if self.fault.strikes():
            raise ConnectionError("reset by peer after the request was taken")
        if self.fault.strikes():
            await asyncio.sleep(3600)  # the answer never comes; the deadline ends it
        await asyncio.sleep(0.1)
        return effect


@dataclass
class PoweredStore:
    """The store as the daemon has it: dead when the power is off, and cut on demand around the
    intent (nothing sent yet) and before the ending is on disk."""

    inner: Store
    power: Power
    entries: dict[int, int] = field(default_factory=dict[int, int])

    async def open(self) -> None:
        await self.inner.open()

    async def close(self) -> None:
        await self.inner.close()

    @property
    def broken(self) -> str:
        return self.inner.broken

    @property
    def size(self) -> int:
        return self.inner.size

    @property
    def commits(self) -> int:
        return self.inner.commits

    async def intend(self, intent: Intent) -> int:
        number = self.power.writes
        self.power.side(number, "intent")
        self.power.writes += 1
        self.power.numbers[intent.step] = number
        seq = await self.inner.intend(intent)
        self.entries[seq] = number
        return seq

    async def conclude(self, seq: int, ending: Ending, at: datetime) -> None:
        self.power.check()
        if seq in self.entries:
            self.power.side(self.entries[seq], "after")
        await self.inner.conclude(seq, ending, at)

    async def unfinished(self) -> Sequence[Entry]:
        self.power.check()
        return await self.inner.unfinished()

    async def journal(self, *, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        self.power.check()
        return await self.inner.journal(after=after, limit=limit)

    async def put(self, table: str, values: Mapping[str, bytes | None]) -> None:
        self.power.check()
        await self.inner.put(table, values)

    async def load(self, table: str) -> Mapping[str, bytes]:
        self.power.check()
        return await self.inner.load(table)

    async def record(self, events: Sequence[Event]) -> None:
        self.power.check()
        await self.inner.record(events)

    async def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        ref: Ref | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[Recorded]:
        self.power.check()
        return await self.inner.events(
            after=after, before=before, ref=ref, limit=limit, newest=newest
        )

    async def trim(self, *, events_max: int, journal_max: int) -> None:
        self.power.check()
        await self.inner.trim(events_max=events_max, journal_max=journal_max)


@dataclass
class Daemon:
    """The engine's parts as `fleetd.app` wires them, on a given world, store and clock."""

    driver: Driver
    store: Store
    clock: LoopClock
    topology: Topology
    policy: Policy
    rng: random.Random
    state: State = field(init=False)

    def __post_init__(self) -> None:
        tuning = defaults.tuning(workers=WORKERS)
        self._core = Core(
            drivers={"toy": self.driver},
            store=self.store,
            clock=self.clock,
            rng=self.rng,
            tuning=tuning,
            reads=Reads(),
            gates=Gates(tuning.gates, self.clock),
        )
        self.state = self._core.state
        self.executor = self._core.executor
        self.supervisor = self._core.supervisor
        self.state.set_policy(self.policy)

    async def run(self, stop: asyncio.Event) -> None:
        backoff = self._core.tuning.backoff
        await recovery.recover(self.state, self.store, self.clock, backoff, self.rng)
        self.state.accept(self.topology, {})
        await self._core.supervisor.run(stop)


@dataclass
class Universe:
    """One world and one store, and as many daemons one after the other as it takes."""

    topology: Topology
    store: Store
    seed: int = 0
    chance: float = 0.0
    policy: Policy = field(default_factory=Policy)
    world: World = field(default_factory=World)
    make_driver: Callable[["InProcessWire", LoopClock], Driver] = ToyDriver
    cut_off: set[int] = field(default_factory=set[int])
    """Journal entries that were open when a daemon died: only these may end as lost."""
    cut_before_last: set[int] = field(default_factory=set[int])
    """The same, without the last daemon."""

    def __post_init__(self) -> None:
        self.clock = LoopClock(START)
        self.rng = random.Random(self.seed)
        self.fault = Fault(random.Random(self.seed + 1), self.chance)
        self.want(self.topology)

    def want(self, topology: Topology) -> None:
        """From the next daemon on, this is asked for. Everything may be changed at once: the
        guard against mass changes is not what these runs are about."""
        self.topology = topology
        consent = f"mass-toy-{topology.digest[:12]}"
        self.policy = replace(self.policy, consents=self.policy.consents | {consent})
        for ref, resource in self.topology.resources.items():
            self.world.needs[ref] = resource.needs
            if resource.domains:
                self.world.domains[ref] = resource.domains[0]

    async def live(self, power: Power, *, until: Callable[[], bool], within: timedelta) -> bool:
        """Run one daemon until the world is as `until` wants it, time is up, or the power is cut.
        True if `until` came true."""
        wire = InProcessWire(self.world, self.clock, power, self.fault)
        store = PoweredStore(self.store, power)
        driver = self.make_driver(wire, self.clock)
        daemon = Daemon(driver, store, self.clock, self.topology, self.policy, self.rng)
        stop = asyncio.Event()
        task = asyncio.create_task(daemon.run(stop), name="daemon")
        deadline = self.clock.now() + within
        reached = False
        while power.on and not task.done() and self.clock.now() < deadline:
            reached = until()
            if reached:
                break
            await asyncio.sleep(1)
        power.on = False
        await bury(task)
        self.cut_before_last = set(self.cut_off)
        self.cut_off |= {entry.seq for entry in await self.store.unfinished()}
        return reached

    def all_ready(self) -> bool:
        now = self.clock.now()
        return all(
            self.world.is_ready(ref, now)
            and self.world.things[ref].version == resource.spec.get("version", 1)
            for ref, resource in self.topology.resources.items()
        )


async def bury(task: "asyncio.Task[None]") -> None:
    """End what is left of a dead daemon. Its last words are of no interest, but a programming
    error is."""
    task.cancel()
    try:
        await task
    except BaseExceptionGroup as group:
        rest = group.split((PowerCut, asyncio.CancelledError))[1]
        if rest is not None:
            raise rest from None
    except (PowerCut, asyncio.CancelledError):
        pass
