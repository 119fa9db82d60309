"""Crash safety: the power may go at any write, on any side of it; nothing is lost or doubled."""

import pytest

from tests.crash import sweep

SHARDS = 4
"""The points are dealt out so that test workers share them."""


@pytest.mark.parametrize("shard", range(SHARDS))
@pytest.mark.parametrize("workflow", sweep.WORKFLOWS.values(), ids=lambda workflow: workflow.name)
def test_every_crash_point_keeps_every_invariant(workflow: sweep.Workflow, shard: int) -> None:
    """100 % of the writes, each cut at four sides: converged, stable, same deeds, accounted for."""
    known = sweep.reference(workflow)
    points = [(number, side) for number in range(known.writes) for side in sweep.SIDES]

    broken = {
        point: found
        for point in points[shard::SHARDS]
        if (found := sweep.crash(workflow, point, known))
    }

    assert broken == {}


def test_the_bring_up_is_as_large_as_promised() -> None:
    """24 things, and at least as many writes: a sweep over nothing would pass too."""
    known = sweep.reference(sweep.BRING_UP)

    assert len(sweep.BRING_UP.fleets[0].resources) == 24
    assert known.writes >= 24
    assert len({ref for ref, _, _ in known.deeds}) == 24


def test_ten_crashes_at_the_same_point_still_end() -> None:
    """A daemon that dies again and again at one place gets past it in the end."""
    known = sweep.reference(sweep.BRING_UP)

    assert sweep.crash_again_and_again(sweep.BRING_UP, (7, "inside"), known, times=10) == []
