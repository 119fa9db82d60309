"""
One thing in a process of its own, weighed: `python -m bench.weigh daemon|dicts|parts SERVERS`.

A process that has done something else before holds memory that is nobody's; so each weight gets a
fresh one. It prints a `Weight` as JSON.
"""

import asyncio
import contextlib
import gc
import logging
import random
import sys
import tempfile
import time
import tracemalloc
from asyncio import events
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import structlog
import yaml

from bench import fleets, measure, world
from bench.fleets import World
from fleetd import app, clock, settings
from fleetd.engine.state import State
from fleetd.plan.policy import Policy

DAEMON, DICTS, PARTS = "daemon", "dicts", "parts"
NOTABLE = 0.02
"""Seconds: shorter callbacks are not worth a line."""
PATIENCE = 300.0
"""Seconds after which a daemon that has not looked at everything never will."""
QUICK = 10_000
"""Calls a second that each backend allows here: the far side is not what is measured."""


class Still(msgspec.Struct, frozen=True, kw_only=True):
    """One callback that held the loop."""

    who: str
    seconds: float
    collecting: float
    """Of these, garbage collection."""


class Weight(msgspec.Struct, kw_only=True):
    memory: int = 0
    """Bytes the process holds."""
    cpu: float = 0.0
    things: int = 0
    parts: dict[str, int] = {}
    still: list[Still] = []


def main(what: str, servers: int) -> None:
    act = {DAEMON: _daemon, DICTS: _dicts, PARTS: _parts}[what]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "documents"
        folder.mkdir()
        if servers:
            fleets.write(folder, servers)
        found = act(folder, servers)
    sys.stdout.buffer.write(msgspec.json.encode(found))


def _daemon(folder: Path, servers: int) -> Weight:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    wanted = settings.Settings(
        documents=(folder,),
        state=folder.parent / "state",
        listen=settings.Address("127.0.0.1", 0),
        drivers=("bench.world",),
        observe=settings.ObserveSettings(
            interval=timedelta(hours=1), stale_after=timedelta(hours=10)
        ),
        execute=settings.ExecuteSettings(concurrency=1024, rate=QUICK, burst=QUICK),
    )
    with watching() as still:
        weight = asyncio.run(_bring_up(wanted, servers))
    weight.still = still
    return weight


async def _bring_up(wanted: settings.Settings, servers: int) -> Weight:
    """Start, wait until everything was seen and planned, weigh, stop."""
    daemon = app.Daemon(wanted, clock.SystemClock(), random.Random(1))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(daemon.run(stop), name="daemon")
        if servers:
            await settled(daemon.state)
        else:
            await asyncio.sleep(1)  # an empty one has nothing to wait for but its own start
        weight = Weight(
            memory=measure.resident(),
            cpu=time.process_time(),
            things=len(daemon.state.view.seen),
        )
        stop.set()
    return weight


async def settled(state: State) -> None:
    """Wait until a daemon has looked at everything and planned every region."""
    began, view = time.monotonic(), state.view
    while (
        not view.seen
        or len(view.seen) < len(view.topology.resources)
        or len(state.plans) < len(view.topology.regions)
    ):
        if time.monotonic() - began > PATIENCE:
            raise TimeoutError(f"{len(view.seen)} things seen, then no more")
        await asyncio.sleep(0.2)


@contextlib.contextmanager
def watching(notable: float = NOTABLE) -> Generator[list[Still]]:
    """Times every callback of every loop, and the garbage collection in it."""
    found: list[Still] = []
    collecting = [0.0, 0.0]
    run = events.Handle._run  # noqa: SLF001 - the one place through which every callback goes

    def timed(self: events.Handle) -> None:
        before = collecting[1]
        began = time.thread_time()
        run(self)
        seconds = time.thread_time() - began
        if seconds >= notable:
            garbage = collecting[1] - before
            found.append(Still(who=_who(self), seconds=seconds, collecting=garbage))

    def collected(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            collecting[0] = time.thread_time()
        else:
            collecting[1] += time.thread_time() - collecting[0]

    events.Handle._run = timed  # noqa: SLF001
    gc.callbacks.append(collected)
    try:
        yield found
    finally:
        gc.callbacks.remove(collected)
        events.Handle._run = run  # noqa: SLF001


def _who(handle: events.Handle) -> str:
    owner = getattr(handle._callback, "__self__", None)  # noqa: SLF001
    if isinstance(owner, asyncio.Task):
        return owner.get_name().rstrip("0123456789 ")
    return getattr(handle._callback, "__qualname__", "a callback")  # noqa: SLF001


def _dicts(folder: Path, servers: int) -> Weight:
    """The peer: what a script would hold that reads the documents and the far side's answers."""
    held: list[Any] = []
    for file in sorted(folder.iterdir()):
        held.extend(yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader))
    for pool in [document for document in held if document["kind"] == "ServerPool"]:
        named: list[dict[str, str]] = pool["spec"]["servers"]
        held.extend([world.server_facts(server["name"], server["bmc"]) for server in named])
    # As many other things as a real fleet of this size has.
    held.extend([world.thing_facts(f"thing-{number}") for number in range(servers * 23 // 100)])
    gc.collect()
    return Weight(memory=measure.resident(), things=len(held))


def _parts(_folder: Path, servers: int) -> Weight:
    """Python's own count, part by part, in the world in which most is kept: all held."""
    parts: dict[str, int] = {}
    tracemalloc.start()
    last = 0

    def weigh(part: str) -> None:
        nonlocal last
        gc.collect()
        now, _ = tracemalloc.get_traced_memory()
        parts[part] = now - last
        last = now

    topology = fleets.compiled(servers)
    weigh("topology")
    known = State(fleets.drivers(topology), Policy())
    known.accept(topology, {})
    weigh("tables")
    held = {ref: world.facts_of(want) for ref, want in topology.resources.items()}
    weigh("facts")
    for want in topology.resources.values():
        fleets.show(known, want, fleets.facts_in(want, World.EMPTY), fleets.NOW)
    weigh("observations and conditions")
    for region in topology.regions:
        now = fleets.NOW
        known.planned(known.planner.plan(known.view, known.policy, region=region, now=now))
    weigh("plans and proposals")
    return Weight(memory=measure.resident(), things=len(held), parts=parts)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
