"""
What a region is put through to see whether its code is sound: a rest, a crash, a seed, a script.

A trial begins at a moment (`tests.twin.moments`), has daemons live on the region while something
happens to it, and says what is broken at the end. None of them breaks anything that is sound: each
is run on the code as it is, too.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from fleetd.sim import mishaps
from fleetd.sim import script as scripts
from fleetd.sim.twin import Twin
from tests.twin import moments, oracles
from tests.twin.moments import Story
from tests.twin.stage import Power, Region
from topology.resource import Ref

Patch = Callable[[pytest.MonkeyPatch], None]
Deed = Callable[[Region], None]
Until = Callable[[Twin], bool]
Oracle = Callable[[Region], Coroutine[Any, Any, list[str]]]


def nothing(_: pytest.MonkeyPatch) -> None:
    """Leaves the code as it is."""


@dataclass(frozen=True)
class Trial:
    name: str
    """As the table of planted bugs calls it."""
    moment: str
    story: Story
    ground: Patch = nothing
    """What is the same for sound code and for bugs: small pages, short lives."""

    def __str__(self) -> str:
        return f"{self.moment}: {self.name}"

    def run(self, patch: Patch = nothing) -> list[str]:
        """What is broken in the end, with `patch` in force from the moment on."""
        with pytest.MonkeyPatch.context() as planted:

            def prepare() -> None:
                self.ground(planted)
                patch(planted)

            return moments.held(self.moment).fork(prepare, self.story)


def quiet(twin: Twin) -> bool:
    return twin.quiet()


def ready(*names: str) -> Until:
    """These things are Ready, and no step is under way."""
    refs = [Ref(*name.split("/")) for name in names] or [Ref("nothing", "ever")]

    def until(twin: Twin) -> bool:
        view = twin.core.state.view
        good = all(
            ref in view.seen and (known := twin.ready(ref)) is not None and known.truth == "True"
            for ref in refs
        )
        return good and twin.core.executor.running == 0

    return until


async def _end(region: Region, *, reached: bool) -> list[str]:
    return [*await region.judge(reached=reached), *await oracles.found(region)]


def _other(before: dict[str, str], after: dict[str, str]) -> list[str]:
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    return [f"I8 another end: {', '.join(changed[:4])}"] if changed else []


# -- No fault --------------------------------------------------------------------------------


async def _restart(region: Region) -> list[str]:
    before = region.picture()
    broken = await region.rest()
    reached = region.twin is not None and region.twin.all_ready()
    return [*broken, *await _end(region, reached=reached), *_other(before, region.picture())]


RESTART = Trial("rest", moments.HEALTHY, _restart)
"""A new daemon on a region that is as it should be."""


def come_up(moment: str, *names: str, minutes: int = 10) -> Trial:
    """Go on without a fault until these things are Ready, and start again."""
    until = ready(*names)

    async def story(region: Region) -> list[str]:
        reached = await region.live(Power(), until=until, within=timedelta(minutes=minutes))
        if reached:
            reached = await region.live(Power(), until=until, within=timedelta(minutes=10))
        return [
            *await _end(region, reached=reached),
            *await oracles.repeated(region),
            *await oracles.ordered(region),
        ]

    return Trial(f"no fault until {names[-1]} is Ready, and a restart", moment, story)


# -- Crashes ---------------------------------------------------------------------------------


def crash(moment: str, side: str, what: str, *names: str, nth: int = 1, minutes: int = 30) -> Trial:
    """The power goes at one side of one write; the next daemon has these things Ready in time. No
    names: a person is needed, and nothing may happen meanwhile."""

    async def story(region: Region) -> list[str]:
        met = 0

        def at(here: str, about: str) -> bool:
            nonlocal met
            met += here == side and moments.is_about(about, what)
            return met == nth

        power = Power(at=at)
        within = timedelta(minutes=minutes)
        await region.live(power, until=lambda _: False, within=within)
        if met < nth:
            return [f"nothing was proven: there was no {side} of {what}"]
        reached = await region.live(Power(), until=ready(*names), within=within)
        return await _end(region, reached=reached or not names)

    place = f"{side} of {what}" + (f", write {nth}" if nth > 1 else "")
    return Trial(f"crash {place}", moment, story)


# -- Seeds -----------------------------------------------------------------------------------


def seed(number: int, *, chance: float = 0.05, minutes: int = 15) -> Trial:
    """Bad weather over a region at rest. It changes nothing of the region, so nothing is to be
    done about it, then or later."""

    async def story(region: Region) -> list[str]:
        before, deeds = region.picture(), len(region.ledger.deeds)
        reached = await _storm(region, number, chance, minutes, quiet)
        # A BMC that did not answer may be quarantined, and released when it does.
        new = [one for one in region.ledger.since(deeds) if "/bmcs/" not in one.path]
        broken = [f"I8 nothing was undone, and yet: {one}" for one in new[:3]]
        return [*await _end(region, reached=reached), *broken, *_other(before, region.picture())]

    return Trial(f"seed {number}", moments.HEALTHY, story)


def stormy(moment: str, number: int, *names: str, chance: float = 0.08) -> Trial:
    """Bad weather while the region comes up; when it is over these things become Ready."""

    async def story(region: Region) -> list[str]:
        reached = await _storm(region, number, chance, 5, ready(*names))
        return await _end(region, reached=reached)

    return Trial(f"seed {number} until {names[-1]} is Ready", moment, story)


async def _storm(region: Region, number: int, chance: float, minutes: int, until: Until) -> bool:
    climate = region.climate
    climate._rng.seed(number)
    climate.chance = chance
    end = region.world.elapsed() + minutes * 60

    def over(twin: Twin) -> bool:
        if region.world.elapsed() < end:
            return False
        climate.chance = 0.0
        return until(twin)

    return await region.live(Power(), until=over, within=timedelta(minutes=minutes + 15))


# -- Scripts ---------------------------------------------------------------------------------


def script(
    name: str,
    deeds: Sequence[tuple[float, Deed]],
    *,
    minutes: float = 15,
    least: float = 0,
    same: bool = True,
    also: Sequence[Oracle] = (),
    until: Until = quiet,
    first: Deed = lambda _: None,
    ground: Patch = nothing,
) -> Trial:
    """These deeds, so many seconds after the daemon's start, befall a region at rest; `first`
    before it. After `minutes` at the latest, and `least` at the earliest, `until` holds and, with
    `same`, all is as it was."""

    async def story(region: Region) -> list[str]:
        before, world = region.picture(), region.world
        first(region)
        for at, deed in deeds:
            world.after(at, lambda deed=deed: deed(region))
        end = world.elapsed() + max(least * 60, *(at + 1 for at, _ in deeds), 0)
        reached = await region.live(
            Power(),
            until=lambda twin: world.elapsed() >= end and until(twin),
            within=timedelta(minutes=minutes),
        )
        broken = await _end(region, reached=reached)
        for oracle in also:
            broken += await oracle(region)
        return [*broken, *(_other(before, region.picture()) if same else ())]

    return Trial(name, moments.HEALTHY, story, ground)


def mishap(line: str) -> Deed:
    def deed(region: Region) -> None:
        known = [ref.name for ref in region.topology.resources if ref.kind == "cluster"]
        mishaps.Mishaps(region.world, region.climate, known).begin(scripts.read(f"at 0: {line}"))

    return deed


def deleted(cluster: str, gk: tuple[str, str], name: str, namespace: str = "") -> Deed:
    """By the hand of a stranger."""

    def deed(region: Region) -> None:
        assert region.world.clusters[cluster].delete(gk, name, namespace) is not None

    return deed


def edited(
    cluster: str, gk: tuple[str, str], name: str, namespace: str, change: Callable[[Any], None]
) -> Deed:
    def deed(region: Region) -> None:
        made = region.world.clusters[cluster].edit(gk, name, namespace, change, manager="stranger")
        assert made is not None

    return deed
