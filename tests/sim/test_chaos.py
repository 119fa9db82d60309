"""Chaos by seed: dealt from one deck, over in time, and honest about what was never met."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from fleetd.sim import build, chaos, loop
from fleetd.sim.faults import Cell, Climate
from fleetd.sim.ledger import Ledger
from fleetd.sim.mishaps import Mishaps
from fleetd.sim.script import Line
from tests.twin import stage


def within(ask: "Callable[[Climate, Mishaps], list[str]]") -> list[str]:
    async def run() -> list[str]:
        topology = stage.reading().topology
        assert topology is not None
        world = build.build(topology, 1)
        climate = Climate(world, Ledger())
        return ask(climate, Mishaps(world, climate, stage.clusters(topology)))

    return loop.run(run())


def drawn(seed: int, **options: Any) -> list[Line]:
    found: list[Line] = []
    until = options.pop("until", chaos.UNTIL)

    def ask(_: Climate, mishaps: Mishaps) -> list[str]:
        topology = stage.reading().topology
        assert topology is not None
        found.extend(chaos.lines(seed, mishaps, topology, until, **options))
        mishaps.check(found)
        return []

    within(ask)
    return found


def test_seeds_of_one_deck_meet_everything_that_can_happen() -> None:
    """Each cell once, and no two seeds the same."""
    dealt = [(line.what, line.how) for seed in stage_deck() for line in drawn(seed)]
    cells = within(lambda _, mishaps: [" ".join(cell) for cell in sorted(chaos.cells(mishaps))])

    assert sorted(" ".join(cell) for cell in dealt) == cells
    assert len(cells) > 40


def stage_deck() -> range:
    return range(2 * chaos.SHARES, 3 * chaos.SHARES)


def test_all_of_it_is_over_in_time() -> None:
    """Every line names something that is there, and ends before the calm."""
    for seed in range(6):
        lines = drawn(seed)
        assert lines == drawn(seed)
        assert all(line.span and line.at + line.span <= chaos.UNTIL for line in lines)


def test_what_begins_in_the_middle_lies_between_its_bounds() -> None:
    """And a deck may be dealt to more seeds."""
    since, until = timedelta(hours=1), timedelta(minutes=66)
    hands = [drawn(seed, since=since, until=until, shares=12) for seed in range(12)]
    lines = [line for hand in hands for line in hand]

    assert all(line.span and since <= line.at < line.at + line.span <= until for line in lines)
    assert len({(line.what, line.how) for line in lines}) == len(lines) > 40


def test_what_was_never_met_is_named() -> None:
    """A cell of requests as well as a cell of scripts."""

    def ask(climate: Climate, mishaps: Mishaps) -> list[str]:
        for cell in Cell:
            climate.hits[cell] = 1
        del climate.hits[Cell.GONE]
        mishaps.begin(Line(at=chaos.UNTIL, what="bmc", whom="metal-01", how="lies"))
        return chaos.never_met([(climate, mishaps)])

    missing = within(ask)
    assert "watch gone" in missing
    assert "bmc hangs" in missing
    assert "bmc lies" not in missing
    assert "requests 429" not in missing
