"""
Crash points of workflows on a simulated region, by forking at each of them.

A workflow is run once to count its points, and once to fork at them: the child's power goes off
right there, it starts a new daemon on what is left, runs to the end and reports; the parent goes
on as if nothing had happened. Nothing is replayed, so each point costs only what is left of the
workflow after it, and all workflows that begin with a region at rest share one bring-up. Points
are told apart by workflow, verb, kind of object, kind of backend and side, where these make a
difference (`_group`); of each class the last is tried, which has the least left to do, or every
single one.
"""

import asyncio
import gc
import json
import os
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetd.sim import loop
from fleetd.sim.twin import Twin
from tests.twin.stage import LOOKED_AT, Power, Region

SIDES = ("intent", "before", "inside", "after")

Workflow = Callable[["Run"], Coroutine[Any, Any, None]]
Say = Callable[[Twin], Awaitable[None]]
Class = tuple[str, str]
"""Side, and what is written."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What one workflow's sweep came to."""

    name: str
    classes: int
    points: int
    broken: list[str]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class How:
    every: bool = False
    """Each write, not one of each class."""
    at_once: int = 2
    nth: int = 1
    """Only each n-th class."""
    tell: Callable[[str], None] = lambda _: None


class Ended(BaseException):
    """A child has said what it had to say."""


class Run:
    """What a workflow is given: a region, and a way to have daemons live on it."""

    def __init__(self, region: Region, folder: Path, wanted: "Counter[Class] | None") -> None:
        """`wanted` is how often each class comes, from a run that counted; None: count."""
        self.region = region
        self.point = ""
        """Where this child's power went; empty in the parent."""
        self.points = 0
        self.met: Counter[Class] = Counter()
        self.folder = folder
        self._wanted = wanted
        self._children: list[int] = []
        self.how = How()

    async def reach(self, *, hunt: bool = True, say: Say | None = None) -> None:
        """Have a daemon live until all is as it should be. With `hunt`, fork at each side of each
        write on the way; in a child the power is cut there and another daemon goes on. `say` is
        what a person keeps telling it."""
        power = Power(at=self.at if hunt and not self.point else lambda _side, _what: False)
        reached = await self.region.live(power, until=self.region.settled(), say=say)
        if self.point and not reached:
            reached = await self.go_on(say)
        broken = await self.region.judge(reached=reached)
        if broken:
            await self.end(broken)

    async def go_on(self, say: Say | None) -> bool:
        """The life of the daemon that comes after the one that died."""
        return await self.region.live(Power(), until=self.region.settled(), say=say)

    async def end(self, broken: list[str]) -> None:
        """In a child the report; in the parent nothing may be broken."""
        if not self.point:
            raise AssertionError(f"the run without a fault is broken: {broken}")
        self.report(broken)
        raise Ended

    def report(self, broken: list[str]) -> None:
        told = {"point": self.point, "broken": broken, "picture": self.region.picture()}
        write(self.folder / f"{os.getpid()}.json", told)

    def at(self, side: str, what: str) -> bool:
        """The parent never loses its power; its children do."""
        key = (side, _group(side, what))
        self.met[key] += 1
        if self._wanted is None or not self._chosen(key):
            return False
        return self.fork(f"{side} of {what}, at {self.region.world.elapsed():.0f} s")

    def fork(self, point: str) -> bool:
        """True in the child."""
        self.points += 1
        self.wait(self.how.at_once - 1)
        running = asyncio.get_running_loop()
        child = os.fork()
        if child == 0:
            _begin(running)
            self.point = point
            self._children = []
            return True
        self._children.append(child)
        if self.points % 10 == 0:
            self.how.tell(f"{self.points} points")
        return False

    def _chosen(self, key: Class) -> bool:
        if self.how.every:
            return True
        assert self._wanted is not None
        number = sorted(self._wanted).index(key)
        return number % self.how.nth == 0 and self.met[key] == self._wanted[key]

    def wait(self, most: int) -> None:
        while len(self._children) > most:
            gone, _ = os.wait()
            if gone in self._children:
                self._children.remove(gone)


def _begin(running: asyncio.AbstractEventLoop) -> None:
    """What a child does first."""
    # asyncio remembers the loop together with the process that runs it.
    asyncio.events._set_running_loop(running)  # pyright: ignore[reportAttributeAccessIssue]
    # What it inherits is not looked through again and again, which would also copy it.
    gc.freeze()


def write(path: Path, found: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(found), "utf-8")


def reports(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]


def _answer(child: int, path: Path) -> dict[str, Any]:
    os.waitpid(child, 0)
    return json.loads(path.read_text("utf-8"))


def _group(side: str, what: str) -> str:
    """Which of the points on a side are alike. An object is applied or deleted by the same lines
    whatever its kind; only once it is there or gone does it matter what it is. Before its intent
    is on disk nothing has happened, whatever was meant; and after its last answer the world is as
    it was inside, and only the engine's own lines are left."""
    verb = what.partition(" ")[0]
    if side == "inside" or (side == "before" and verb not in ("apply", "delete")):
        return what
    return verb if verb in ("apply", "delete") else "a driver's own verb"


def sweep(
    workflows: Mapping[str, Workflow],
    make: Callable[[], Region],
    start: Workflow,
    how: How | None = None,
) -> list[Sweep]:
    """Sweeps each of `workflows`; `start` brings the region to where all but itself begin."""
    return loop.run(_sweep_all(workflows, make, start, how or How()))


async def _sweep_all(
    workflows: Mapping[str, Workflow], make: Callable[[], Region], start: Workflow, how: How
) -> list[Sweep]:
    region = make()
    done: list[Sweep] = []
    first = next((name for name, one in workflows.items() if one is start), None)
    if first is not None:
        done.append(Sweep(**await branch(_swept(first, start, region, how))))
    if any(one is not start for one in workflows.values()):
        await start(Run(region, Path(), None))
    for name, workflow in workflows.items():
        if workflow is not start:
            done.append(Sweep(**await branch(_swept(name, workflow, region, how))))
    return done


async def _swept(name: str, workflow: Workflow, region: Region, how: How) -> dict[str, Any]:
    """Runs in a process of its own, which may spoil its copy of the region."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fleetd-points-") as where:
        folder = Path(where)
        counted = await branch(_counted(workflow, Run(region, folder, None)))
        wanted = Counter({(side, what): count for side, what, count in counted["met"]})
        run = Run(region, folder, wanted)
        run.how = how
        how.tell(f"{name}: {len(wanted)} classes, {wanted.total()} points")
        mine = await lived(workflow, run)
        if run.met != wanted:
            mine.append("the two runs without a fault differ: their points are not the same")
        run.wait(0)
        told = reports(folder)
    return {
        "name": name,
        "classes": len(wanted),
        "points": run.points,
        "broken": [*mine, *judge(run, told)],
        "seconds": time.monotonic() - began,
    }


async def lived(workflow: Workflow, run: Run) -> list[str]:
    """The workflow and a rest after it. A child says how it was and does not come back."""
    try:
        await workflow(run)
        mine = await run.region.rest(LOOKED_AT)
        if run.point:
            await run.end([*mine, *await run.region.judge(reached=True)])
    except Ended:
        os._exit(0)
    except BaseException:
        if not run.point:
            raise
        run.report([f"raised: {traceback.format_exc(limit=-4)}"])
        os._exit(0)
    return mine


async def _counted(workflow: Workflow, run: Run) -> dict[str, Any]:
    await workflow(run)
    return {"met": [[side, what, count] for (side, what), count in run.met.items()]}


async def branch(story: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Goes on in a copy of this process, and returns what it came to."""
    running = asyncio.get_running_loop()
    with tempfile.NamedTemporaryFile(prefix="fleetd-branch-") as file:
        child = os.fork()
        if child == 0:
            _begin(running)
            try:
                found: dict[str, Any] = {"found": await story}
            except BaseException:  # noqa: BLE001 - it must not go on as a second parent
                found = {"raised": traceback.format_exc(limit=-6)}
            write(Path(file.name), found)
            os._exit(0)
        story.close()
        told = _answer(child, Path(file.name))
    if "raised" in told:
        raise AssertionError(told["raised"])
    return told["found"]


def judge(run: Run, told: list[dict[str, Any]]) -> list[str]:
    """All that is broken, in children too."""
    broken = [f"{one['point']}: {words}" for one in told for words in one["broken"]]
    if len(told) != run.points:
        broken.append(f"{run.points - len(told)} of {run.points} points did not report")
    wanted = run.region.picture()
    for one in told:
        if one["broken"]:
            continue
        found: dict[str, str] = one["picture"]
        other = {key for key in {*wanted, *found} if wanted.get(key) != found.get(key)}
        if other:
            broken.append(f"{one['point']}: I8 another end: {', '.join(sorted(other)[:4])}")
    return broken
