"""Daemons on the toy world, one after another, with changing documents and commands of people."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from fleetd.clock import LoopClock
from fleetd.engine import acceptance, records, recovery
from fleetd.engine.commands import Commands
from fleetd.engine.core import Core
from fleetd.engine.state import State
from fleetd.gate import Gates
from fleetd.reads import Reads
from fleetd.store.memory import MemoryStore
from tests import defaults
from tests.toy.driver import ToyDriver
from tests.toy.universe import START, Fault, InProcessWire, Power, PowerCut, PoweredStore
from tests.toy.world import World
from topology.resource import EMPTY, Topology


@dataclass
class Daemon:
    core: Core
    commands: Commands
    store: PoweredStore

    @property
    def state(self) -> State:
        return self.core.state

    async def take(self, topology: Topology) -> None:
        """New documents, as `fleetd.daemon.documents` takes them."""
        old = self.state.declared
        rows = await self.store.load(records.ACCEPTED)
        consents = {acceptance.consent_id(topology)}
        offer = acceptance.offer(old if old.resources else EMPTY, topology, rows, consents)
        await acceptance.accept(self.state, self.store, offer)
        self.core.supervisor.look_at_everything()

    async def until(self, reached: Callable[[], bool], within: timedelta) -> bool:
        """Wait for it, in virtual time."""
        for _ in range(int(within.total_seconds())):
            if reached():
                return True
            await asyncio.sleep(1)
        return reached()


@dataclass
class Life:
    """One world and one store; `daemon()` runs a daemon on them while inside."""

    world: World = field(default_factory=World)
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        self.clock = LoopClock(START)
        self.rng = random.Random(1)
        self.asked = ""

    @contextlib.asynccontextmanager
    async def daemon(self, power: Power | None = None) -> AsyncGenerator[Daemon]:
        """What is still under way at the end is cut off, as a kill would do it."""
        power = power or Power()
        if self.store.broken:
            await self.store.open()
        wire = InProcessWire(self.world, self.clock, power, Fault(self.rng))
        store = PoweredStore(self.store, power)
        tuning = defaults.tuning(workers=16)
        core = Core(
            drivers={"toy": ToyDriver(wire, self.clock)},
            store=store,
            clock=self.clock,
            rng=self.rng,
            tuning=tuning,
            reads=Reads(),
            gates=Gates(tuning.gates, self.clock),
        )
        commands = Commands(
            core.state,
            store,
            self.clock,
            wake=core.wake,
            asked=lambda: self.asked,
            nudge=lambda: None,
        )
        old = records.decode_topology(await store.load(records.ACCEPTED))
        await acceptance.restore(core.state, store, old)
        await commands.restore()
        await recovery.recover(core.state, store, self.clock, tuning.backoff, self.rng)
        running = asyncio.create_task(core.supervisor.run(asyncio.Event()), name="daemon")
        try:
            yield Daemon(core, commands, store)
        finally:
            power.on = False
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError, PowerCut, BaseExceptionGroup):
                await running
