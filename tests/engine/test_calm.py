"""How often a thing is looked at that is Ready or absent: what is calm more rarely, and never too
rarely."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from fleetd.engine.observer import calm_pace
from fleetd.sim import loop
from fleetd.vocabulary import Done, Observation, Outcome, Step, Waiting
from tests.engine.stage import Scripted, Stage, fleet, thing
from topology.resource import Ref, Resource

HOUR = 3600.0


@dataclass
class Half(Scripted):
    """One thing is watched, the other is polled."""

    async def observe(self, want: Resource) -> Observation:
        return replace(await super().observe(want), calm=want.ref.name == "watched")

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        """Others make what is watched."""
        return () if want.ref.name == "watched" else super().propose(want, seen)


def test_what_is_calm_is_looked_at_more_rarely() -> None:
    """While it is Ready, about a quarter as often as what is polled."""

    async def main() -> tuple[int, int]:
        stage = Stage(fleet(thing("watched"), thing("polled")))
        made = {Ref("thing", "watched"), Ref("thing", "polled")}
        driver = Half(stage.clock, made=made)
        stage.driver = driver
        await stage.play(HOUR)
        looked = [name for _, name in driver.looked]
        return looked.count("watched"), looked.count("polled")

    watched, polled = loop.run(main())
    assert watched > 3
    assert 3 <= polled / watched <= 5


def test_a_calm_thing_is_seen_again_before_its_observation_is_stale() -> None:
    """With the jitter of a tenth, whatever the settings."""
    for seconds in (1, 30, 60, 200, 280):
        pace = calm_pace(timedelta(seconds=seconds), timedelta(seconds=300))
        assert timedelta(seconds=seconds) <= pace
        assert pace * 1.1 <= timedelta(seconds=max(300, seconds * 1.1))


def test_what_is_absent_and_calm_is_looked_at_as_rarely() -> None:
    """It comes to be by our own doing, or is told by its watch; and when what it needs becomes
    Ready it is looked at at once."""

    async def main() -> tuple[int, int, float]:
        things = (thing("watched", "door"), thing("polled", "door"))
        stage = Stage(fleet(thing("door"), *things))
        driver = Half(stage.clock)
        opened: list[float] = []

        async def opening(step: Step) -> Outcome:
            if stage.clock.monotonic() < HOUR:
                return Waiting("not yet", timedelta(seconds=60))
            driver.made.add(step.ref)
            opened.append(stage.clock.monotonic())
            return Done()

        driver.on_apply = opening
        stage.driver = driver
        await stage.play(HOUR + 120)
        before = [name for at, name in driver.looked if at < HOUR]
        after = [at for at, name in driver.looked if name == "watched" and at >= opened[0]]
        return before.count("watched"), before.count("polled"), after[0] - opened[0]

    watched, polled, late = loop.run(main())
    assert watched > 3
    assert 3 <= polled / watched <= 5
    assert late < 1
