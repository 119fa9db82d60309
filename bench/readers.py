"""
What do readers cost the engine, and bad readers the good ones?

A real daemon with 1,000 clusters and 10,000 servers, wired as `fleetd serve` wires it; readers are
another process (`bench.readersof`), so that only what the daemon does for them counts. Rounds
without and with readers take turns. The engine's latency is that of a whole change, by the wall:
a server is found off, judged, planned, the step is on disk, and the driver is called.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import logging
import random
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import structlog

from bench import fleets, measure, readersof, weigh, world
from bench.measure import Sizes, Timings
from bench.readersof import Got
from bench.table import Goal, Row
from bench.world import BenchDriver
from fleetd import app, clock, settings
from fleetd.daemon.access import tokens
from fleetd.engine import queue
from fleetd.tools import MakeDriver, Tools
from fleetd.vocabulary import Driver, Observation, Outcome, Step
from tests.real.process import free_ports
from topology.resource import Ref, Resource

NOTABLE = 0.002
"""Seconds: shorter callbacks are not looked at."""
PAUSE = 0.01
"""Seconds between two changes."""
TOO_LONG = 30.0
_off: set[Ref] = set()
_told: dict[Ref, "asyncio.Future[None]"] = {}


class Switched(BenchDriver):
    """Servers that somebody switched off, until they are switched on again."""

    async def observe(self, want: Resource) -> Observation:
        seen = await super().observe(want)
        if seen.ref not in _off:
            return seen
        return dataclasses.replace(seen, facts={**(seen.facts or {}), "powerState": "Off"})

    async def apply(self, step: Step) -> Outcome:
        _off.discard(step.ref)
        waiting = _told.pop(step.ref, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        return await super().apply(step)


def _maker(name: str) -> MakeDriver:
    def make(tools: Tools) -> Driver:
        return Switched(kind=name, clock=tools.clock)

    return make


DRIVERS: dict[str, MakeDriver] = {name: _maker(name) for name in world.DRIVERS}
"""For a daemon: `--driver bench.readers`."""


def run(sizes: Sizes) -> list[Row]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with tempfile.TemporaryDirectory() as name, weigh.watching(NOTABLE) as still:
        timings, got = asyncio.run(_measured(sizes, Path(name), still))
    longest = max(still, key=lambda one: one.seconds, default=None)
    alone, read = timings["engine alone"], timings["engine with readers"]
    asked, beset = timings["asker"], timings["asker among idlers"]
    return [
        Row(
            what="99 of 100 changes, with all readers / alone",
            value=_p99(read) / max(_p99(alone), 1e-9),
            unit="×",
            goal=Goal(most=2),
            note=f"from found off to the driver called: {_p99(read) * 1e3:.0f} ms and "
            f"{_p99(alone) * 1e3:.0f} ms; {got.readers} watch, {got.asked} lists of all clusters, "
            f"{got.scraped} scrapes, {got.events:,} events sent",
            raw=timings,
        ),
        Row(
            what="longest stand-still of the loop meanwhile",
            value=longest.seconds * 1000 if longest is not None else 0.0,
            unit="ms",
            goal=Goal(most=20),
            note=f"{longest.who}, {longest.collecting * 1000:.0f} ms of it garbage; {len(still)} "
            f"longer than {NOTABLE * 1000:.0f} ms"
            if longest is not None
            else "",
        ),
        Row(
            what="a list of all clusters, by the wall, median",
            value=measure.median(got.lists) * 1000,
            unit="ms",
            goal=Goal(most=300),
            note=f"1,000 lines, {got.bytes >> 10} KB, with all readers",
            raw={"seconds": got.lists},
        ),
        Row(
            what="an event at the last of 200 readers, median",
            value=measure.median(got.spread) * 1000,
            unit="ms",
            note="after it was at the first; the daemon looks for news every 250 ms",
            raw={"seconds": got.spread},
        ),
        Row(
            what="99 of 100 answers, among idlers / without",
            value=_p99(beset) / max(_p99(asked), 1e-9),
            unit="×",
            goal=Goal(most=2),
            note=f"{_p99(beset) * 1e3:.1f} ms and {_p99(asked) * 1e3:.1f} ms; half of "
            f"{got.idle:,} idlers send a head byte by byte, half take nothing of an answer",
        ),
    ]


def _p99(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


async def _measured(sizes: Sizes, folder: Path, still: list[weigh.Still]) -> tuple[Timings, Got]:
    found: Timings = {}
    got = Got()
    async with _running(sizes, folder) as (daemon, load):
        still.clear()  # the start is another benchmark's
        refs = itertools.cycle(fleets.servers_of(daemon.state.declared))
        for number in range(sizes.rounds):
            measure.progress(f"round {number + 1} of {sizes.rounds}")
            alone = await _changes(daemon, refs, sizes.seconds)
            async with load("read") as mine:
                read = await _changes(daemon, refs, sizes.seconds)
            got.add(mine)
            async with load("ask") as plain:
                pass
            async with load("idle") as beset:
                pass
            got.idle = beset.idle
            for name, times in (
                ("engine alone", alone),
                ("engine with readers", read),
                ("asker", plain.lists),
                ("asker among idlers", beset.lists),
            ):
                found.setdefault(name, []).extend(times)
    return found, got


async def _changes(daemon: app.Daemon, refs: "itertools.cycle[Ref]", seconds: float) -> list[float]:
    took: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ref = next(refs)
        _told[ref] = asyncio.get_running_loop().create_future()
        _off.add(ref)
        began = time.monotonic()
        waiting = _told[ref]
        daemon.window.looks.add(ref, priority=queue.SOON)
        await asyncio.wait_for(waiting, TOO_LONG)
        took.append(time.monotonic() - began)
        await asyncio.sleep(PAUSE)
    return took


Load = Callable[[str], "contextlib.AbstractAsyncContextManager[Got]"]


@contextlib.asynccontextmanager
async def _running(sizes: Sizes, folder: Path) -> AsyncGenerator[tuple[app.Daemon, Load]]:
    """A daemon that has looked at everything, and a way to have it read."""
    (folder / "documents").mkdir()
    clusters = sizes.clusters
    fleets.write(folder / "documents", max(10 * clusters, sizes.servers // 10), clusters)
    made = [tokens.new() for _ in range(readersof.CALLERS)]
    (port,) = free_ports(1)
    wanted = settings.Settings(
        documents=(folder / "documents",),
        state=folder / "state",
        listen=settings.Address("127.0.0.1", port),
        drivers=("bench.readers",),
        access=settings.AccessSettings(file=_access(folder, made), rate=10_000, burst=10_000),
        observe=settings.ObserveSettings(
            interval=timedelta(hours=1), stale_after=timedelta(hours=10)
        ),
        execute=settings.ExecuteSettings(concurrency=1024, rate=weigh.QUICK, burst=weigh.QUICK),
    )
    daemon = app.Daemon(wanted, clock.SystemClock(), random.Random(1))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(daemon.run(stop), name="daemon")
        await weigh.settled(daemon.state)

        def load(what: str) -> contextlib.AbstractAsyncContextManager[Got]:
            return _read(what, port, sizes, made)

        try:
            yield daemon, load
        finally:
            stop.set()


def _access(folder: Path, made: list[str]) -> Path:
    path = folder / "access.toml"
    path.write_text(
        "".join(
            f'[[tokens]]\nname = "r{number}"\nsha256 = "{tokens.digest(one)}"\nrole = "viewer"\n'
            for number, one in enumerate(made)
        )
    )
    path.chmod(0o600)
    return path


@contextlib.asynccontextmanager
async def _read(what: str, port: int, sizes: Sizes, made: list[str]) -> AsyncGenerator[Got]:
    """While inside; how it went is known after."""
    got = Got()
    many = sizes.idle if what == "read" else sizes.clusters
    told = [what, str(port), str(sizes.seconds), str(many), *made]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.readersof", *told), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == readersof.READY
        yield got
        got.add(msgspec.json.decode(await process.stdout.read(), type=Got))
    finally:
        await process.wait()
