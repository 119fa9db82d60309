"""
Seeds on a region that is at work: a daemon dies, and the next one lives in bad weather.

A seed draws a workflow, a moment of it, and what goes wrong then: faults of requests, mishaps, and
how long everything takes. All seeds share one run of each workflow, which forks at their moments;
a child's power goes off there, at the next write, or it begins at rest where nothing is written any
more. After some minutes the weather is fair again, and the child must end like the run without a
fault, with every invariant kept. The same seed is the same story in every process.
"""

import os
import random
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from fleetd.sim import chaos, loop
from fleetd.sim.invariants import Deeds, same_deeds
from fleetd.sim.twin import Twin
from tests.twin import oracles, points, workflows
from tests.twin.points import Run, Say, Workflow
from tests.twin.stage import Power, Region

CHANCE = 0.04
"""Of a fault, per request: twice that of whole seeds, which are longer."""
SHARES = 12
"""So many seeds meet each mishap once."""
STORM = timedelta(minutes=6)
_SPANS = {
    "bring-up": (1, 3600.0),
    "add-a-rack": (4, 400.0),
    "upgrade": (4, 600.0),
    "replace-a-server": (4, 400.0),
    "decommission": (4, 1200.0),
    "rotate": (6, 400.0),
}
"""How many seeds in 23 a workflow gets, and seconds within which they strike: about as long as it
takes, and a little longer, for a region at rest is a moment too. A bring-up is long, and whole
seeds begin with it."""
_RETIRING = (workflows.decommission, workflows.replace_a_server)


@dataclass(frozen=True, kw_only=True)
class Told:
    """What became of one seed."""

    seed: int
    point: str
    broken: list[str]
    met: list[str]
    """Cells of the matrix that it hit."""
    trace: list[str]
    """All that happened, if it was asked for."""


@dataclass(frozen=True)
class Moment:
    workflow: str
    after: float
    """Seconds after the workflow's start."""

    @classmethod
    def of(cls, seed: int) -> "Moment":
        rng = random.Random(f"moment/{seed}")
        weights = [weight for weight, _ in _SPANS.values()]
        (name,) = rng.choices(list(_SPANS), weights)
        return cls(name, rng.uniform(0, _SPANS[name][1]))


class Storm(Run):
    """One run of a workflow; its children are seeds."""

    def __init__(self, region: Region, folder: Path, due: Mapping[int, float]) -> None:
        """`due`: when each seed strikes, in seconds of the world."""
        super().__init__(region, folder, None)
        self.seed = 0
        self.retired = False
        """Whether things are deleted on purpose."""
        self.tell_all = False
        self._due = sorted(due.items(), key=lambda one: (one[1], one[0]))

    def at(self, side: str, what: str) -> bool:
        while self._due and self._due[0][1] <= self.region.world.elapsed():
            if self._struck(f"{side} of {what}"):
                return True
        return False

    async def finish(self) -> None:
        """Seeds whose moment is after the last write begin at rest."""
        while self._due and not self.point:
            if self._struck("at rest"):
                reached = await self.go_on(None)
                await self.end(await self.region.judge(reached=reached))

    def _struck(self, where: str) -> bool:
        seed, _ = self._due.pop(0)
        self.seed = seed
        return self.fork(f"seed {seed}, {where}, at {self.region.world.elapsed():.0f} s")

    async def go_on(self, say: Say | None) -> bool:
        region = self.region
        world = region.world
        world.luck = f"storm/{self.seed}"
        region.climate.turn(CHANCE)
        since = timedelta(seconds=world.elapsed())
        region.mishaps.plan(
            chaos.lines(
                self.seed,
                region.mishaps,
                region.topology,
                since + STORM,
                since=since,
                shares=SHARES,
            )
        )
        settled = region.settled()

        def until(twin: Twin) -> bool:
            if world.elapsed() < (since + STORM).total_seconds():
                return False
            region.climate.chance = 0.0
            return settled(twin)

        return await region.live(Power(), until=until, say=say)

    async def end(self, broken: list[str]) -> None:
        if self.point:
            broken = [*broken, *await oracles.found(self.region, retired=self.retired)]
        await super().end(broken)

    def report(self, broken: list[str]) -> None:
        region = self.region
        mine = region.watch.deeds
        told: dict[str, Any] = {
            "point": self.point,
            "seed": self.seed,
            "broken": broken,
            "picture": region.picture(),
            "deeds": [dict(mine.made), dict(mine.gone)],
            "undone": sorted(region.mishaps.undone),
            "met": sorted(chaos.met(region.climate, region.mishaps)),
            "trace": trace(region) if self.tell_all else [],
        }
        points.write(self.folder / f"{os.getpid()}.json", told)


def trace(region: Region) -> list[str]:
    return [*map(str, region.ledger.deeds), *map(str, region.world.trace)]


def sweep(seeds: Sequence[int], how: points.How, *, tell_all: bool = False) -> list[Told]:
    """All of these seeds, in order."""
    with points.Slots(how.at_once) as slots:
        found = loop.run(_sweep(seeds, (how, slots), tell_all=tell_all))
    return sorted(found, key=lambda one: one.seed)


async def _sweep(seeds: Sequence[int], rules: points.Rules, *, tell_all: bool) -> list[Told]:
    region = workflows.region()
    moments = {seed: Moment.of(seed) for seed in seeds}
    done: list[points.Answer] = []
    for name, workflow in workflows.WORKFLOWS.items():
        mine = {seed: one.after for seed, one in moments.items() if one.workflow == name}
        first = workflow is workflows.bring_up
        if mine:
            story = _swept(workflow, region, mine, rules, tell_all=tell_all)
            done.append(await points.split(story))
        if first and any(one.workflow != name for one in moments.values()):
            await workflow(Run(region, Path(), None))
    return [Told(**one) for told in points.every(done) for one in told["told"]]


async def _swept(
    workflow: Workflow,
    region: Region,
    after: Mapping[int, float],
    rules: points.Rules,
    *,
    tell_all: bool,
) -> dict[str, Any]:
    """Runs in a process of its own, which may spoil its copy of the region."""
    began = region.world.elapsed()
    with tempfile.TemporaryDirectory(prefix="fleetd-storms-") as where:
        run = Storm(region, Path(where), {seed: began + at for seed, at in after.items()})
        run.how, run.slots = rules
        run.tell_all, run.retired = tell_all, workflow in _RETIRING

        async def whole(run: Run) -> None:
            await workflow(run)
            if isinstance(run, Storm):
                await run.finish()

        mine = await points.lived(whole, run)
        assert mine == []
        run.wait()
        told = points.reports(run.folder)
    assert len(told) == run.points == len(after), "a seed did not report"
    return {"told": [_judged(one, run.region) for one in told]}


def _judged(one: dict[str, Any], fair: Region) -> dict[str, Any]:
    """I8: against the run without a fault."""
    broken: list[str] = one["broken"]
    if not broken:
        made, gone = one["deeds"]
        mine = Deeds(made=Counter(made), gone=Counter(gone))
        broken = same_deeds(mine, fair.watch.deeds, one["undone"])
        wanted, found = fair.picture(), one["picture"]
        other = {key for key in {*wanted, *found} if wanted.get(key) != found.get(key)}
        broken += [f"I8 another end: {', '.join(sorted(other)[:4])}"] if other else []
    return {
        "seed": one["seed"],
        "point": one["point"],
        "broken": broken,
        "met": one["met"],
        "trace": one["trace"],
    }


def never_met(told: Sequence[Told]) -> list[str]:
    """Cells of the matrix that none of these seeds hit. A bad image is met by whoever is installed
    just then: by whole seeds."""
    had = {"image bad", *(cell for one in told for cell in one.met)}

    async def could() -> set[str]:
        return chaos.wanted(workflows.region().mishaps)

    return sorted(loop.run(could()) - had)
