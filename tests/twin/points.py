"""
Crash points of a workflow on a simulated region, by forking at each of them.

One run goes through the workflow. Whenever it comes to a side of a write, the process is forked:
the child's power goes off right there, it starts a new daemon on what is left, runs to the end and
reports; the parent goes on as if nothing had happened. Nothing is replayed, so each point costs
only what is left of the workflow after it. Points are told apart by verb, kind of object and side
(before an object is there, its kind does not matter); `every` takes all instead of one of each.
"""

import asyncio
import json
import os
import tempfile
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fleetd.sim import loop
from tests.twin.stage import Power, Region

SIDES = ("intent", "before", "inside", "after")

Workflow = Callable[["Run"], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class Report:
    point: str
    broken: list[str]
    picture: dict[str, str] = field(default_factory=dict[str, str])


class Ended(BaseException):
    """A child has said what it had to say."""


class Run:
    """What a workflow is given: a region, and a way to have daemons live on it."""

    def __init__(
        self, region: Region, folder: Path, *, every: bool, at_once: int, nth: int
    ) -> None:
        self.region = region
        self._folder = folder
        self._every = every
        self._at_once = at_once
        self._nth = nth
        self._seen: set[tuple[str, str]] = set()
        self._children: list[int] = []
        self.point = ""
        """Where this child's power went; empty in the parent."""
        self.points = 0

    async def reach(self, *, hunt: bool) -> None:
        """Have a daemon live until all is as it should be. With `hunt`, fork at each side of each
        write on the way; in a child the power is cut there and another daemon goes on."""
        power = Power(at=self._at if hunt and not self.point else lambda _side, _what: False)
        reached = await self.region.live(power, until=lambda twin: twin.quiet())
        if self.point and not reached:
            reached = await self.region.live(Power(), until=lambda twin: twin.quiet())
        broken = await self.region.judge(reached=reached)
        if broken:
            await self._tell(broken)

    async def finish(self) -> list[str]:
        """At the end of a workflow: rest, and in a child the report."""
        broken = [*await self.region.judge(reached=True), *await self.region.rest()]
        if self.point:
            await self._tell(broken)
        return broken

    async def _tell(self, broken: list[str]) -> None:
        if not self.point:
            raise AssertionError(f"the run without a fault is broken: {broken}")
        report = {"point": self.point, "broken": broken, "picture": self.region.picture()}
        (self._folder / f"{os.getpid()}.json").write_text(json.dumps(report), "utf-8")
        raise Ended

    def _at(self, side: str, what: str) -> bool:
        """The parent never loses its power; its children do."""
        key = (side, what if side == "inside" else _group(what))
        if not self._every and key in self._seen:
            return False
        self._seen.add(key)
        if not self._every and len(self._seen) % self._nth:
            return False
        self.points += 1
        self._wait(self._at_once - 1)
        running = asyncio.get_running_loop()
        child = os.fork()
        if child == 0:
            # asyncio remembers the loop together with the process that runs it.
            asyncio.events._set_running_loop(running)  # pyright: ignore[reportAttributeAccessIssue]
            self.point = f"{side} of {what}, at {self.region.world.elapsed():.0f} s"
            self._children = []
            return True
        self._children.append(child)
        return False

    def _wait(self, most: int) -> None:
        while len(self._children) > most:
            gone, _ = os.wait()
            if gone in self._children:
                self._children.remove(gone)

    def reports(self) -> list[Report]:
        self._wait(0)
        found = [
            json.loads(path.read_text("utf-8")) for path in sorted(self._folder.glob("*.json"))
        ]
        return [Report(one["point"], one["broken"], one["picture"]) for one in found]


def _group(what: str) -> str:
    """An object is applied by the same lines whatever its kind; only once it is there does it
    matter what it is."""
    return "apply" if what.startswith("apply ") else what


def sweep(
    workflow: Workflow,
    make: Callable[[], Region],
    *,
    every: bool = False,
    at_once: int = 2,
    nth: int = 1,
) -> tuple[int, list[str]]:
    """How many points were tried, and what is broken. `nth`: only each n-th class of points."""
    with tempfile.TemporaryDirectory(prefix="fleetd-points-") as folder:

        def run() -> Run:
            return Run(make(), Path(folder), every=every, at_once=at_once, nth=nth)

        return loop.run(_sweep(workflow, run, Path(folder)))


async def _sweep(
    workflow: Workflow, begin: Callable[[], Run], folder: Path
) -> tuple[int, list[str]]:
    run = begin()
    try:
        await workflow(run)
        mine = await run.finish()
    except (Ended, asyncio.CancelledError):
        os._exit(0)
    except BaseException:
        if not run.point:
            raise
        words = traceback.format_exc(limit=-4)
        report: dict[str, Any] = {"point": run.point, "broken": [f"raised: {words}"], "picture": {}}
        (folder / f"{os.getpid()}.json").write_text(json.dumps(report), "utf-8")
        os._exit(0)
    if run.point:
        os._exit(0)
    return run.points, [*mine, *_judge(run)]


def _judge(run: Run) -> list[str]:
    reports = run.reports()
    broken = [f"{one.point}: {words}" for one in reports for words in one.broken]
    if len(reports) != run.points:
        broken.append(f"{run.points - len(reports)} of {run.points} points did not report")
    wanted = run.region.picture()
    for one in reports:
        if one.broken:
            continue
        other = {key for key in {*wanted, *one.picture} if wanted.get(key) != one.picture.get(key)}
        if other:
            broken.append(f"{one.point}: I8 another end: {', '.join(sorted(other)[:4])}")
    return broken
