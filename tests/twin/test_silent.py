"""A far side of a region is silent: one incident, of that one, from the first word to the last."""

from datetime import timedelta

import pytest

from fleetd.plan import incidents
from fleetd.sim import script
from fleetd.sim.twin import Twin
from tests.twin import moments
from tests.twin.stage import Power, Region

GRACE = timedelta(seconds=90)
LASTS = timedelta(minutes=15)
MENDED = timedelta(minutes=10)
"""The longest that a breaker waits, and as much again."""


def told(*faults: str, rested: timedelta = timedelta(0)) -> list[str]:
    """Each change of what is told while a region that has `rested` so long has these faults, and
    after them."""

    async def story(region: Region) -> list[str]:
        found: list[str] = []
        quiet: list[float] = []
        begun: list[float] = []

        def until(twin: Twin) -> bool:
            state, world = twin.core.state, region.world
            if not begun:
                if twin.quiet():
                    quiet.append(world.elapsed())
                if quiet and world.elapsed() >= quiet[0] + rested.total_seconds():
                    begun.append(world.elapsed())
                    for fault in faults:
                        region.mishaps.begin(script.read(f"at 0: {fault}"))
                return False
            now = incidents.incidents(state.view, state.troubles, now=world.now(), grace=GRACE)
            causes = " and ".join(sorted(str(one.cause.ref) for one in now.items))
            if causes != (found[-1] if found else ""):
                found.append(causes)
            passed = timedelta(seconds=world.elapsed() - begun[0])
            if passed >= LASTS:
                region.mishaps.mend()
            return passed >= LASTS + MENDED

        await region.live(Power(), until=until)
        return found

    return moments.held(moments.HEALTHY).fork(lambda: None, story)


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("metal eu-1 unreachable", "metal/eu-1"),
        ("metal eu-1 frozen", "metal/eu-1"),
        ("metal eu-1 failing", "metal/eu-1"),
        ("garden eu-1 unreachable", "garden/eu-1"),
        ("garden eu-1 frozen", "garden/eu-1"),
        ("garden eu-1 busy", "garden/eu-1"),
        ("cluster cp unreachable", "access/cp"),
        ("cluster cp busy", "access/cp"),
        ("partition mgmt one-way", "access/mgmt"),
        ("openstack prod unreachable", "openstack/prod"),
        ("partition hv full", "access/hv"),
    ],
)
def test_a_silent_far_side_is_one_incident(fault: str, cause: str) -> None:
    """Never told as another one, nor as two; and over soon after it answers again."""
    assert told(fault) == [cause, ""]


@pytest.mark.parametrize("seconds", range(23, 140, 23))
def test_whatever_is_looked_at_first(seconds: int) -> None:
    """What asks two servers and runs out of time tells of the one that did not answer."""
    assert told("metal eu-1 frozen", rested=timedelta(seconds=seconds)) == ["metal/eu-1", ""]


def test_two_silent_far_sides_are_two_incidents() -> None:
    """Each has its own, and neither takes the other along."""
    found = told("metal eu-1 unreachable", "openstack prod unreachable")
    assert "metal/eu-1 and openstack/prod" in found
    assert {one for line in found for one in line.split(" and ")} == {
        "metal/eu-1",
        "openstack/prod",
        "",
    }
