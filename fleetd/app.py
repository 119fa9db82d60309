"""
The composition root: settings become objects, objects become a running daemon.

What a daemon is made of is `fleetd.daemon.assembly`; here it gets the real clock, real chance, its
faces and signals, or a simulated world if the settings say so.
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
from fleetd.daemon import audit, window
from fleetd.daemon.access.entrance import entering
from fleetd.daemon.assembly import CLOSING, Assembly, Door
from fleetd.daemon.desk import FrontDesk
from fleetd.daemon.documents import Documents
from fleetd.daemon.drafts import Source
from fleetd.daemon.handed import Handed
from fleetd.daemon.keeper import Keeper
from fleetd.doctor import Doctor, Files, Finding
from fleetd.engine import loading
from fleetd.net import Network, Passage, RealNetwork
from fleetd.notify import Manager
from fleetd.settings import Settings, StoreKind
from fleetd.sim import build, pace
from fleetd.sim.keys import Keys
from fleetd.sim.net import SimNetwork
from fleetd.store import memory, runner, sqlite
from fleetd.store.base import Store
from fleetd.surface import http
from fleetd.tools import SecretKeeper
from topology import read

_log = structlog.stdlib.get_logger("fleetd")

COLLECT_EVERY = timedelta(hours=1)
"""Between two walks of the collector over everything."""
NEVER = 1_000_000
"""Collections of the young before one of the old."""
LAG_EVERY = 0.25
"""Seconds between two looks at how late the loop is."""


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
    course = pace.Shared(settings.pace_with) if settings.pace_with is not None else None
    began = course.began if course is not None else clock.SystemClock().now().timestamp()

    def make_loop() -> asyncio.AbstractEventLoop:
        if settings.pace == 1:
            return new_event_loop()
        return pace.PacedLoop(settings.pace, course)

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
    loop.add_signal_handler(signal.SIGHUP, daemon.documents.nudge)
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
        self._manager = Manager(os.environ)
        self._net, keys = outside(settings, time)
        self.store = _store(settings)
        durable = settings.store is not StoreKind.MEMORY
        handed = Handed(settings.state)
        self._body = body = Assembly(
            settings,
            net=self._net,
            store=self.store,
            clock=time,
            rng=rng,
            keeper=lambda clusters: keys or Keeper(clusters, os.environ, Path.cwd()),
            source=lambda door: Documents(
                paths=settings.documents,
                catalogue=settings.catalogue,
                consents=frozenset(settings.consents),
                state=door.state,
                store=door.store,
                every=settings.reload,
                surrounded=door.surrounded,
                taken=functools.partial(_taken, door),
                handed=handed.folder if durable else None,
            ),
        )
        self.state, self.documents, self.commands = body.state, body.documents, body.commands
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
            gates=body.core.gates,
            looks=body.core.looks,
            executor=body.core.executor,
            stats=body.core.stats,
            documents_source=self.documents,
            rules=body.rules,
            grace=settings.grace,
        )

    async def run(self, stop: asyncio.Event) -> None:
        await self.store.open()
        usual = gc.get_threshold()
        gc.set_threshold(*usual[:2], NEVER)
        try:
            cut_off = await self._body.restore()
            async with self._listening() as server, asyncio.TaskGroup() as group:
                _log.info("serving", address=server.url, cut_off=cut_off)
                self._manager.ready(f"serves {server.url}")
                beside = [
                    group.create_task(self._measure_lag(), name="lag"),
                    group.create_task(self._sign_of_life(stop), name="sign of life"),
                    group.create_task(self._collect(), name="collector"),
                ]
                await self._body.run(stop)
                for one in beside:
                    one.cancel()
        finally:
            gc.set_threshold(*usual)
            await self._net.close()
            await self.store.close()
        _log.info("stopped")

    @contextlib.asynccontextmanager
    async def _listening(self) -> AsyncGenerator[http.Server]:
        chosen, access = self._settings, self._settings.metrics.token
        token = secrets.resolve(access, Path.cwd(), os.environ) if access is not None else None
        async with contextlib.AsyncExitStack() as stack:
            entrance = await stack.enter_async_context(entering(chosen.access, chosen.tls))
            yield await stack.enter_async_context(
                http.serving(
                    self.window,
                    chosen.listen,
                    desk=self.desk,
                    metrics_token=token,
                    door=entrance.door,
                    tls=entrance.tls.context if entrance.tls is not None else None,
                    rate=http.Rate(chosen.access.rate, chosen.access.burst),
                    audit=await self._audit(),
                )
            )

    async def _audit(self) -> audit.Log | None:
        """Beside the store, on the clock on the wall; a daemon that keeps nothing keeps none."""
        if self._settings.store is StoreKind.MEMORY:
            return None
        folder = self._settings.state / audit.FOLDER
        return await asyncio.to_thread(audit.Log, folder, clock.SystemClock())

    async def _sign_of_life(self, stop: asyncio.Event) -> None:
        """By the loop itself: one that stands still gives none, and is started again."""
        while self._manager.watch is not None:
            resources = len(self.state.view.topology.resources)
            self._manager.alive(f"looks after {resources} things")
            with contextlib.suppress(TimeoutError):
                # The manager's time is that of the wall.
                await asyncio.wait_for(stop.wait(), self._manager.watch * self._settings.pace)
                self._manager.stopping()
                return

    async def _collect(self) -> None:
        """What the collector finds among the old is little, and looking stops the loop for as long
        as the fleet is large: 0.1 s at 30,000 things, and by itself it looks after some lists."""
        while True:
            await asyncio.sleep(COLLECT_EVERY.total_seconds())
            gc.collect()

    async def _measure_lag(self) -> None:
        """How late a short timer is: the time that something held the loop."""
        stats = self._body.core.stats
        while True:
            before = self._clock.monotonic()
            await asyncio.sleep(LAG_EVERY)
            stats.lag.add(max(self._clock.monotonic() - before - LAG_EVERY, 0.0))


def _taken(door: Door) -> None:
    """New documents are in force. What they became stays until the next ones: the collector need
    not walk over it again and again, which at 100,000 servers stops the loop each time."""
    gc.freeze()
    door.taken()


def outside(settings: Settings, time: clock.Clock) -> tuple[Network, SecretKeeper | None]:
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
    return SimNetwork(world, build.lasting(world)), Keys(world, topology)


def examine(settings: Settings) -> Sequence[Finding]:
    """What `fleetd doctor` finds."""
    time = clock.SystemClock()

    async def look() -> Sequence[Finding]:
        net, keys = outside(settings, time)
        files = Files(os.environ, Path.cwd())
        try:
            doctor = Doctor(settings=settings, net=net, clock=time, keeper=keys or files)
            return await doctor.look()
        finally:
            await net.close()

    return asyncio.run(look())


def _store(settings: Settings) -> Store:
    if settings.store is StoreKind.MEMORY:
        return memory.MemoryStore()
    # The disk is measured by the clock on the wall, in a thread, whatever time the daemon lives in.
    return sqlite.SqliteStore(settings.state, runner.ThreadRunner(clock.SystemClock()))


def _first(group: BaseExceptionGroup[errors.FleetError] | None) -> BaseException | None:
    fault: BaseException | None = group
    while isinstance(fault, BaseExceptionGroup):
        inner: Sequence[BaseException] = fault.exceptions  # pyright: ignore[reportUnknownMemberType]
        fault = inner[0]
    return fault
