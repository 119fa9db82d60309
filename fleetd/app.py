"""
The composition root: settings become objects, objects become a running daemon.

The only place that wires, that starts from the real clock and real chance, and that handles
signals. Everything below gets what it needs as arguments.
"""

import asyncio
import contextlib
import faulthandler
import functools
import gc
import os
import random
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from pathlib import Path

import structlog

from fleetd import clock, errors, secrets
from fleetd.daemon import window
from fleetd.daemon.desk import FrontDesk
from fleetd.daemon.documents import Documents
from fleetd.daemon.drafts import Source
from fleetd.daemon.handed import Handed
from fleetd.daemon.keeper import Keeper
from fleetd.engine import loading, queue, recovery
from fleetd.engine.commands import Commands
from fleetd.engine.core import Core, Tuning
from fleetd.engine.observer import Pace, calm_pace
from fleetd.engine.records import Surroundings
from fleetd.engine.supervisor import Upkeep
from fleetd.gate import GateLimits, Gates
from fleetd.kube.clusters import Clusters
from fleetd.net import Network, Passage, RealNetwork, Ways
from fleetd.settings import Settings, StoreKind
from fleetd.sim import build
from fleetd.sim.faults import Climate
from fleetd.sim.keys import Keys
from fleetd.sim.ledger import Ledger
from fleetd.sim.loop import PacedLoop
from fleetd.sim.net import SimNetwork
from fleetd.store import memory, runner, sqlite
from fleetd.store.base import Store
from fleetd.surface import http
from fleetd.tools import Rules, SecretKeeper, Tools
from fleetd.vocabulary import Condition
from topology import read
from topology.resource import Ref, Topology

_log = structlog.stdlib.get_logger("fleetd")

CLOSING = timedelta(seconds=2)
"""Kept back from the drain for closing the store and the server."""


class _LastResort:
    """Ends the process when it cannot end by itself: a driver that does not let go, a thread that
    waits for a file server. A kill loses nothing, so waiting longer would gain nothing. Needs
    neither the loop nor the interpreter, and prints where every thread stands."""

    def __init__(self) -> None:
        self._set = False

    def within(self, limit: timedelta) -> None:
        if not self._set:
            self._set = True
            faulthandler.dump_traceback_later(
                limit.total_seconds(), exit=True, file=sys.__stderr__ or sys.stderr
            )

    def cancel(self) -> None:
        faulthandler.cancel_dump_traceback_later()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed: an idle watch over TLS holds a fifth of the memory on it."""
    try:
        import uvloop  # noqa: PLC0415 -- it need not be there
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def serve(settings: Settings) -> int:
    """Run until told to stop. Returns the exit code."""
    last_resort = _LastResort()
    began = settings.pace_since or clock.SystemClock().now().timestamp()

    def make_loop() -> asyncio.AbstractEventLoop:
        return PacedLoop(settings.pace, began) if settings.pace != 1 else new_event_loop()

    time = clock.LoopClock(clock.LoopClock.moment(began))
    try:
        with asyncio.Runner(loop_factory=make_loop) as runner_:
            runner_.run(
                _serve(settings, last_resort, time if settings.pace != 1 else clock.SystemClock())
            )
    except errors.FleetError as fault:
        _log.error("cannot go on", why=str(fault))
        return 1
    except BaseExceptionGroup as group:
        known, rest = group.split(errors.FleetError)
        if rest is not None:
            raise
        _log.error("cannot go on", why=str(_first(known)))
        return 1
    finally:
        last_resort.cancel()
    return 0


async def _serve(settings: Settings, last_resort: _LastResort, time: clock.Clock) -> None:
    stop = asyncio.Event()
    rng = random.Random(os.urandom(16))  # noqa: S311 - spreads retries, guards nothing
    daemon = Daemon(settings, time, rng)
    loop = asyncio.get_running_loop()

    def told_to_stop(*_: object) -> None:
        # Not by way of the loop, which may be what does not go on.
        last_resort.within(max(settings.execute.drain, CLOSING))
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(stop.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told_to_stop)
    loop.add_signal_handler(signal.SIGHUP, daemon.documents.nudged.set)
    try:
        await daemon.run(stop)
    finally:
        # What is left is cleaning up, of calls that were given up and of threads.
        last_resort.within(CLOSING)


class Daemon:
    """One fleetd, wired. `run` is all there is to call."""

    def __init__(self, settings: Settings, time: clock.Clock, rng: random.Random) -> None:
        self._settings = settings
        self._clock = time
        self._rng = rng
        self._lag = 0.0
        tuning = _tuning(settings)
        gates = Gates(tuning.gates, time)
        self._net, keeper = _outside(settings, time)
        self._clusters = Clusters(self._net.kube, gates=gates, clock=time, rng=rng, wake=self._wake)
        self._keeper = keeper or Keeper(self._clusters, os.environ, Path.cwd())
        self._rules = Rules()
        self.store = _store(settings)
        self._core = Core(
            drivers=loading.load(settings.drivers, self._tools(gates)),
            store=self.store,
            clock=time,
            rng=rng,
            tuning=tuning,
            gates=gates,
            reads=self._rules.reads,
        )
        self.state = self._core.state
        durable = settings.store is not StoreKind.MEMORY
        handed = Handed(settings.state)
        self.documents = Documents(
            paths=settings.documents,
            catalogue=settings.catalogue,
            consents=frozenset(settings.consents),
            state=self.state,
            store=self.store,
            every=settings.reload,
            surrounded=self._surrounded,
            taken=self._taken,
            handed=handed.folder if durable else None,
        )
        self.commands = Commands(
            self.state,
            self.store,
            time,
            wake=self._wake,
            asked=lambda: self.documents.asks,
            nudge=self.documents.nudged.set,
        )
        self.desk = FrontDesk(
            state=self.state,
            store=self.store,
            clock=time,
            commands=self.commands,
            documents=self.documents,
            source=Source(paths=settings.documents, catalogue=settings.catalogue, handed=handed),
            make=functools.partial(loading.load, settings.drivers),
            durable=durable,
        )
        self.window = window.Window(
            state=self.state,
            store=self.store,
            clock=time,
            gates=self._core.gates,
            looks=self._core.looks,
            executor=self._core.executor,
            stats=self._core.stats,
            documents_source=self.documents,
            rules=self._rules,
            lag=lambda: self._lag,
        )

    def _tools(self, gates: Gates) -> Tools:
        return Tools(
            clock=self._clock,
            clusters=self._clusters,
            net=Ways(self._net, gates, self._clock),
            secrets=self._keeper,
            rules=self._rules,
            fleet=self,
        )

    def _wake(self, ref: Ref) -> None:
        """The core is made of drivers, drivers of tools, and tools wake the core."""
        self._core.wake(ref)

    def topology(self) -> Topology:
        self._rules.reads.note()
        return self.state.view.topology

    def everything(self) -> Topology:
        self._rules.reads.note()
        return self.state.everything

    def ready(self, ref: Ref) -> Condition | None:
        return self.state.view.ready.get(ref)

    def _surrounded(self, surroundings: Surroundings) -> None:
        self._rules.take(surroundings.catalogue)
        self._keeper.take(surroundings.folders)

    def _taken(self) -> None:
        """New documents are in force. What they became stays until the next ones: the collector
        need not walk over it again and again, which at 100,000 servers stops the loop each time."""
        self.commands.moved.set()
        gc.freeze()
        self._core.supervisor.look_at_everything()

    async def run(self, stop: asyncio.Event) -> None:
        await self.store.open()
        try:
            await self.documents.restore()
            await self.commands.restore()
            cut_off = await recovery.recover(
                self.state, self.store, self._clock, self._core.tuning.backoff, self._rng
            )
            async with self._listening() as server, asyncio.TaskGroup() as group:
                _log.info("serving", address=server.url, cut_off=cut_off)
                helpers = [
                    group.create_task(self.documents.run(), name="documents"),
                    group.create_task(self._measure_lag(), name="lag"),
                    group.create_task(self.commands.run(), name="commands"),
                    group.create_task(self._clusters.run(), name="clusters"),
                ]
                await self._core.supervisor.run(stop)
                for helper in helpers:
                    helper.cancel()
        finally:
            await self._net.close()
            await self.store.close()
        _log.info("stopped")

    @contextlib.asynccontextmanager
    async def _listening(self) -> AsyncGenerator[http.Server]:
        access = self._settings.metrics.token
        token = secrets.resolve(access, Path.cwd(), os.environ) if access is not None else None
        async with http.serving(
            self.window, self._settings.listen, desk=self.desk, metrics_token=token
        ) as server:
            yield server

    async def _measure_lag(self) -> None:
        """How late a timer of one second is: the time that something held the loop."""
        while True:
            before = self._clock.monotonic()
            await asyncio.sleep(1)
            self._lag = max(self._clock.monotonic() - before - 1, 0.0)


def _outside(settings: Settings, time: clock.Clock) -> tuple[Network, SecretKeeper | None]:
    """The ways out, and what reads secrets if that is not the documents' own files: into the real
    world, or into a simulated one that is made here, of the documents as they are now."""
    if settings.sim is None:
        way = settings.network
        return RealNetwork(
            Passage(proxy=way.proxy, direct=way.direct, authorities=way.authorities)
        ), None
    topology = read.read(settings.documents, settings.catalogue).topology
    if topology is None:
        raise errors.SettingsError(
            "sim: a simulated world is made of the documents, and these have problems; see "
            "`fleetctl validate`"
        )
    world = build.build(topology, settings.sim, time.now())
    return SimNetwork(world, Climate(world, Ledger())), Keys(world, topology)


def _store(settings: Settings) -> Store:
    if settings.store is StoreKind.MEMORY:
        return memory.MemoryStore()
    # The disk is measured by the clock on the wall, in a thread, whatever time the daemon lives in.
    return sqlite.SqliteStore(settings.state, runner.ThreadRunner(clock.SystemClock()))


def _tuning(settings: Settings) -> Tuning:
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


def _first(group: BaseExceptionGroup[errors.FleetError] | None) -> BaseException | None:
    fault: BaseException | None = group
    while isinstance(fault, BaseExceptionGroup):
        inner: Sequence[BaseException] = fault.exceptions  # pyright: ignore[reportUnknownMemberType]
        fault = inner[0]
    return fault
