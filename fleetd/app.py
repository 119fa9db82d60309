"""
The composition root: settings become objects, objects become a running daemon.

The only place that wires, that starts from the real clock and real chance, and that handles
signals. Everything below gets what it needs as arguments.
"""

import asyncio
import contextlib
import faulthandler
import gc
import importlib
import os
import random
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog

from fleetd import clock, errors, secrets, window
from fleetd.documents import Documents
from fleetd.engine import observer, queue, recovery
from fleetd.engine.executor import Executor
from fleetd.engine.gate import GateLimits, Gates
from fleetd.engine.observer import Observer, Pace
from fleetd.engine.planning import Planning
from fleetd.engine.state import State
from fleetd.engine.stats import Stats
from fleetd.engine.supervisor import Supervisor, Upkeep
from fleetd.plan.policy import Policy
from fleetd.settings import Settings, StoreKind
from fleetd.store import memory, runner, sqlite
from fleetd.store.base import Store
from fleetd.surface import http
from fleetd.vocabulary import Driver, MakeDriver, Tools
from topology.resource import Ref

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


def serve(settings: Settings) -> int:
    """Run until told to stop. Returns the exit code."""
    last_resort = _LastResort()
    try:
        asyncio.run(_serve(settings, last_resort))
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


async def _serve(settings: Settings, last_resort: _LastResort) -> None:
    stop = asyncio.Event()
    rng = random.Random(os.urandom(16))  # noqa: S311 - spreads retries, guards nothing
    daemon = Daemon(settings, clock.SystemClock(), rng)
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
        drivers = load_drivers(settings.drivers, Tools(clock=time))
        self.store = _store(settings, time)
        self.state = State(
            drivers,
            Policy(stale_after=settings.observe.stale_after, consents=frozenset(settings.consents)),
        )
        self._gates = Gates(_gate_limits(settings), time)
        self._backoff = queue.Backoff(base=settings.backoff.base, maximum=settings.backoff.max)
        self._looks: queue.Queue[Ref] = queue.Queue(
            self._backoff,
            rng,
            lanes=observer.lanes(self.state, self._gates, settings.observe.workers),
        )
        self._stats = Stats()
        shared: dict[str, Any] = {
            "state": self.state,
            "drivers": drivers,
            "clock": time,
            "stats": self._stats,
        }
        hands: dict[str, Any] = {
            "gates": self._gates,
            "store": self.store,
            "looks": self._looks,
            "rng": rng,
        }
        self._executor = Executor(**shared, **hands, backoff=self._backoff)
        looking = Observer(**shared, **hands, pace=_pace(settings))
        planning = Planning(**shared, submit=self._executor.submit)
        self._supervisor = Supervisor(
            state=self.state,
            observer=looking,
            planning=planning,
            executor=self._executor,
            looks=self._looks,
            store=self.store,
            upkeep=_upkeep(settings),
        )
        self.documents = Documents(
            paths=settings.documents,
            catalogue=settings.catalogue,
            consents=frozenset(settings.consents),
            state=self.state,
            store=self.store,
            every=settings.reload,
            taken=self._taken,
        )
        self.window = window.Window(
            state=self.state,
            store=self.store,
            clock=time,
            gates=self._gates,
            looks=self._looks,
            executor=self._executor,
            stats=self._stats,
            documents_source=self.documents,
            lag=lambda: self._lag,
        )

    def _taken(self) -> None:
        """New documents are in force. What they became stays until the next ones: the collector
        need not walk over it again and again, which at 100,000 servers stops the loop each time."""
        gc.freeze()
        self._supervisor.look_at_everything()

    async def run(self, stop: asyncio.Event) -> None:
        await self.store.open()
        try:
            await self.documents.restore()
            cut_off = await recovery.recover(
                self.state, self.store, self._clock, self._backoff, self._rng
            )
            async with self._listening() as server, asyncio.TaskGroup() as group:
                _log.info("serving", address=server.url, cut_off=cut_off)
                helpers = [
                    group.create_task(self.documents.run(), name="documents"),
                    group.create_task(self._measure_lag(), name="lag"),
                ]
                await self._supervisor.run(stop)
                for helper in helpers:
                    helper.cancel()
        finally:
            await self.store.close()
        _log.info("stopped")

    @contextlib.asynccontextmanager
    async def _listening(self) -> AsyncGenerator[http.Server]:
        access = self._settings.metrics.token
        token = secrets.resolve(access, Path.cwd(), os.environ) if access is not None else None
        async with http.serving(self.window, self._settings.listen, metrics_token=token) as server:
            yield server

    async def _measure_lag(self) -> None:
        """How late a timer of one second is: the time that something held the loop."""
        while True:
            before = self._clock.monotonic()
            await asyncio.sleep(1)
            self._lag = max(self._clock.monotonic() - before - 1, 0.0)


def load_drivers(modules: Sequence[str], tools: Tools) -> dict[str, Driver]:
    """The drivers that the settings name, made."""
    makers: dict[str, MakeDriver] = {}
    for name in modules:
        try:
            module = importlib.import_module(name)
        except ImportError as cause:
            raise errors.SettingsError(
                f"drivers: {name} cannot be imported ({cause}); check the name and the path"
            ) from cause
        found: Mapping[str, MakeDriver] | None = getattr(module, "DRIVERS", None)
        single: MakeDriver | None = getattr(module, "DRIVER", None)
        if found is None and single is None:
            raise errors.SettingsError(
                f"drivers: {name} has neither DRIVER nor DRIVERS; name the module of a driver"
            )
        makers.update(found or {name.rpartition(".")[2]: single} if single else found or {})
    return {name: make(tools) for name, make in makers.items()}


def _store(settings: Settings, time: clock.Clock) -> Store:
    if settings.store is StoreKind.MEMORY:
        return memory.MemoryStore()
    return sqlite.SqliteStore(settings.state, runner.ThreadRunner(time))


def _gate_limits(settings: Settings) -> GateLimits:
    return GateLimits(
        concurrency=settings.execute.concurrency,
        rate=settings.execute.rate,
        burst=settings.execute.burst,
        failures_max=settings.breaker.failures,
        open_for=settings.breaker.cooldown,
        open_max=settings.breaker.cooldown_max,
    )


def _pace(settings: Settings) -> Pace:
    return Pace(
        steady=settings.observe.interval,
        moving=min(settings.observe.moving, settings.observe.interval),
        deadline=settings.observe.deadline,
        grace=settings.grace,
    )


def _upkeep(settings: Settings) -> Upkeep:
    return Upkeep(
        events_max=settings.retention.events_max,
        journal_max=settings.retention.journal_max,
        drain=max(settings.execute.drain - CLOSING, timedelta(0)),
        workers=settings.observe.workers,
    )


def _first(group: BaseExceptionGroup[errors.FleetError] | None) -> BaseException | None:
    fault: BaseException | None = group
    while isinstance(fault, BaseExceptionGroup):
        inner: Sequence[BaseException] = fault.exceptions  # pyright: ignore[reportUnknownMemberType]
        fault = inner[0]
    return fault
