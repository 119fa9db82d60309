"""Who could not be looked at: it counts against nobody, and ends when what was missing is there."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from fleetd.sim import loop
from fleetd.vocabulary import Observation, Step
from tests import defaults
from tests.engine.stage import Scripted, Stage, fleet, thing
from topology.resource import Ref, Resource

DOOR = Ref("thing", "door")
USERS = tuple(f"user-{number}" for number in range(8))
OPENS = 1000.0
"""Seconds until the door is there. Backoffs have grown to minutes by then."""


@dataclass
class Behind(Scripted):
    """Nobody sees the users before the door is there, which comes by itself."""

    opens: float = OPENS

    async def observe(self, want: Resource) -> Observation:
        is_open = self.clock.monotonic() >= self.opens
        if is_open:
            self.made.add(DOOR)
        seen = await super().observe(want)
        if want.ref.name in USERS and not is_open:
            return replace(seen, facts=None, error="there is no way yet")
        return seen

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        return () if want.ref == DOOR else super().propose(want, seen)

    def looks(self, name: str) -> list[float]:
        return [at for at, looked in self.looked if looked == name]


def play(seconds: float, *, opens: float = OPENS) -> tuple[Behind, dict[str, str]]:
    """The driver after so many seconds, and why each user could not be looked at last."""

    async def main() -> tuple[Behind, dict[str, str]]:
        users = [thing(name, "door") for name in USERS]
        stage = Stage(fleet(thing("door", backend="near:side"), thing("neighbour"), *users))
        driver = Behind(stage.clock, made={Ref("thing", "neighbour")})
        # The loop's own time need not begin at zero.
        driver.opens = stage.clock.monotonic() + opens
        stage.driver = driver
        daemon = await stage.play(seconds)
        seen = daemon.state.view.seen
        return driver, {name: seen[Ref("thing", name)].error for name in USERS}

    return loop.run(main())


def test_who_could_not_be_looked_at_counts_against_nobody() -> None:
    """However often there is no way: what can be reached on the same backend is looked at at its
    usual pace. Only who is asked and silent is left alone, where requests leave."""
    driver, errors = play(900)
    assert set(errors.values()) == {"there is no way yet"}
    looks = driver.looks("neighbour")
    usual = defaults.TUNING.pace.steady.total_seconds()
    assert max(later - at for at, later in itertools.pairwise(looks)) < usual * 4 / 3


@pytest.mark.parametrize("opens", [200.0, OPENS])
def test_who_waited_is_looked_at_when_its_need_is_ready(opens: float) -> None:
    """Right then, and not at the end of a backoff of minutes."""
    driver, errors = play(opens + 45, opens=opens)
    ready = next(at for at in driver.looks("door") if at >= driver.opens)
    for name in USERS:
        looks = [at for at in driver.looks(name) if at >= ready]
        assert looks, name
        assert looks[0] - ready < 1, name
    assert set(errors.values()) == {""}


def test_a_backoff_alone_would_take_minutes() -> None:
    """So that the test above can fail: before the door opens, some wait for more than a minute."""
    driver, _ = play(900)
    waits = [later - at for name in USERS for at, later in itertools.pairwise(driver.looks(name))]
    assert max(waits) > 60
