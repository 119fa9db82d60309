"""
Random faults by seed: whatever the region is at, it ends as it should, and nothing is broken.

Most seeds strike in the middle of a workflow, which all of them share (`tests.twin.storms`); a few
whole ones begin with nothing. `make sweep` runs more of both.
"""

import subprocess
import sys
from functools import lru_cache

import pytest

from fleetd.sim import chaos, invariants, loop
from tests.twin import points, storms
from tests.twin.stage import ROOT, Power, Region

CALM_AFTER = chaos.UNTIL.total_seconds()
"""Seconds of weather and mishaps; then it must come to rest."""
STORMY = (105, 106, 107)
"""One whole deck of mishaps."""
WHOLE = (0, 1)
SEEDS = 48
"""Four decks of mishaps; `make sweep` runs 200."""
TRACED = 3


async def story(seed: int, chance: float = chaos.CHANCE) -> tuple[list[str], Region]:
    region = Region.of("minimal", seed=seed, chance=chance)
    region.mishaps.plan(chaos.lines(seed, region.mishaps, region.topology, chaos.UNTIL))

    def until(twin: object) -> bool:
        if region.world.elapsed() > CALM_AFTER:
            region.climate.chance = 0.0
        return (
            region.twin is not None and region.world.elapsed() > CALM_AFTER and region.twin.quiet()
        )

    try:
        reached = await region.live(Power(), until=until)
        broken = [*await region.judge(reached=reached), *await region.rest()]
    except invariants.Breach as breach:
        return [str(breach)], region
    mine, undone = region.watch.deeds, region.mishaps.undone
    return [*broken, *invariants.same_deeds(mine, fair(), undone)], region


@lru_cache
def fair() -> invariants.Deeds:
    """I8: what is done where nothing goes wrong."""

    async def run() -> invariants.Deeds:
        region = Region.of("minimal")
        assert await region.live(Power(), until=lambda twin: twin.quiet())
        return region.watch.deeds

    return loop.run(run())


@pytest.mark.parametrize("shard", range(2))
def test_seeds_keep_every_invariant(shard: int) -> None:
    """Each seed draws another moment, other faults, other mishaps and other durations; none breaks
    anything."""
    told = storms.sweep(range(shard, SEEDS, 2), points.How(at_once=1))

    assert {one.point: one.broken for one in told if one.broken} == {}
    assert len(told) == SEEDS // 2


@pytest.mark.parametrize("seed", WHOLE)
def test_whole_seeds_keep_every_invariant(seed: int) -> None:
    """From nothing to a region at rest, in two hours of faults."""
    fair()

    assert loop.run(story(seed))[0] == []


def test_every_fault_is_met() -> None:
    """A cell of the matrix, of requests or of scripts, that never fires proves nothing; and in a
    storm of all of them nothing is broken either."""
    fair()
    stormy = [loop.run(story(seed, chance=0.08)) for seed in STORMY]

    assert [broken for broken, _ in stormy] == [[], [], []]
    assert chaos.never_met((region.climate, region.mishaps) for _, region in stormy) == []


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    """Byte for byte, under different hash seeds."""
    traces = {
        subprocess.run(
            [sys.executable, "-m", "tests.twin.trace", str(TRACED)],
            cwd=ROOT,
            env={"PYTHONHASHSEED": hash_seed, "PATH": ""},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1", "77")
    }

    assert len(traces) == 1
    assert len(next(iter(traces))) > 10_000
