"""
Crash points of workflows on a simulated region, by forking at each of them.

A workflow is run once to count its points, and once to fork at them: the child's power goes off
right there, it starts a new daemon on what is left, runs to the end and reports; the parent goes
on as if nothing had happened. Nothing is replayed, so each point costs only what is left of the
workflow after it, and all workflows that begin with a region at rest share one bring-up. They run
side by side, and share the slots for their children (`Slots`), so that no core waits for the last
child of one of them. Points
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
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

from fleetd.sim import loop
from fleetd.sim.twin import Twin
from tests.twin.stage import LOOKED_AT, Power, Region

SIDES = ("intent", "before", "inside", "after")

Workflow = Callable[["Run"], Coroutine[Any, Any, None]]
Say = Callable[[Twin], Awaitable[None]]
Answer = Callable[[], dict[str, Any]]
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
    tell: Callable[[str], None] = lambda _: None


class Slots:
    """So many children at once, of all processes that inherit this: a pipe with a byte for each."""

    def __init__(self, count: int) -> None:
        self._reading, self._writing = os.pipe()
        os.write(self._writing, b"." * count)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._reading)
        os.close(self._writing)

    def take(self) -> None:
        os.read(self._reading, 1)

    def give(self) -> None:
        os.write(self._writing, b".")


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
        self.slots: Slots | None = None
        """None: it does not fork."""

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
        assert self.slots is not None
        self.points += 1
        self._reap(os.WNOHANG)
        self.slots.take()
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

    def leave(self) -> NoReturn:
        """The end of a child, after its report."""
        assert self.slots is not None
        self.slots.give()
        os._exit(0)

    def _chosen(self, key: Class) -> bool:
        if self.how.every:
            return True
        assert self._wanted is not None
        return self.met[key] == self._wanted[key]

    def wait(self) -> None:
        """Until all children have ended."""
        self._reap(0)

    def _reap(self, how: int) -> None:
        for child in list(self._children):
            gone, status = os.waitpid(child, how)
            if gone:
                self._children.remove(child)
                if status and self.slots is not None:
                    self.slots.give()  # it could not


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
    how = how or How()
    with Slots(how.at_once) as slots:
        return loop.run(_sweep_all(workflows, make, start, (how, slots)))


Rules = tuple[How, Slots]


async def _sweep_all(
    workflows: Mapping[str, Workflow], make: Callable[[], Region], start: Workflow, rules: Rules
) -> list[Sweep]:
    region = make()
    done: list[Answer] = []
    first = next((name for name, one in workflows.items() if one is start), None)
    if first is not None:
        done.append(await split(_swept(first, start, region, rules)))
    if any(one is not start for one in workflows.values()):
        await start(Run(region, Path(), None))
    for name, workflow in workflows.items():
        if workflow is not start:
            done.append(await split(_swept(name, workflow, region, rules)))
    return [Sweep(**told) for told in every(done)]


async def _swept(name: str, workflow: Workflow, region: Region, rules: Rules) -> dict[str, Any]:
    """Runs in a process of its own, which may spoil its copy of the region."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fleetd-points-") as where:
        folder = Path(where)
        counted = (await split(_counted(workflow, Run(region, folder, None))))()
        wanted = Counter({(side, what): count for side, what, count in counted["met"]})
        run = Run(region, folder, wanted)
        run.how, run.slots = rules
        run.how.tell(f"{name}: {len(wanted)} classes, {wanted.total()} points")
        mine = await lived(workflow, run)
        if run.met != wanted:
            mine.append("the two runs without a fault differ: their points are not the same")
        run.wait()
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
        run.leave()
    except BaseException:
        if not run.point:
            raise
        run.report([f"raised: {traceback.format_exc(limit=-4)}"])
        run.leave()
    return mine


async def _counted(workflow: Workflow, run: Run) -> dict[str, Any]:
    await workflow(run)
    return {"met": [[side, what, count] for (side, what), count in run.met.items()]}


async def split(story: Coroutine[Any, Any, dict[str, Any]]) -> Answer:
    """Goes on with `story` in a copy of this process. What it returns waits for the copy and tells
    what it came to."""
    running = asyncio.get_running_loop()
    handle, name = tempfile.mkstemp(prefix="fleetd-branch-")
    os.close(handle)
    child = os.fork()
    if child == 0:
        _begin(running)
        try:
            found: dict[str, Any] = {"found": await story}
        except BaseException:  # noqa: BLE001 - it must not go on as a second parent
            found = {"raised": traceback.format_exc(limit=-6)}
        write(Path(name), found)
        os._exit(0)
    story.close()

    def answer() -> dict[str, Any]:
        os.waitpid(child, 0)
        told = json.loads(Path(name).read_text("utf-8"))
        Path(name).unlink()
        if "raised" in told:
            raise AssertionError(told["raised"])
        return told["found"]

    return answer


def every(answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """All of them, also where one raises: nobody is left running."""
    told: list[dict[str, Any]] = []
    raised: list[AssertionError] = []
    for answer in answers:
        try:
            told.append(answer())
        except AssertionError as cause:
            raised.append(cause)
    if raised:
        raise raised[0]
    return told


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
