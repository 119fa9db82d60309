"""
Does twice the fleet cost twice the time?

Fleets from 1,000 to 16,000 servers, each twice the one before, all in the same rounds. They grow in
two ways: by more regions of the same size, and within one region, where everything that compares
things of a region with each other would show. The figure is time(2N) / time(N); 2.0 is linear. The
best of the rounds counts here, not the median: noise only ever adds, and it hits a short run and a
long one differently. The catalogue, which is the same for every fleet, is read outside the clock.
"""

import contextlib
import itertools
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from bench import fleets, measure, plans
from bench.fleets import World
from bench.measure import Sizes, Timings
from bench.table import Goal, Row
from topology import catalogue_load, compile, load  # noqa: A004
from topology.catalogue import Component
from topology.checks import run as checks
from topology.examples import large
from topology.resource import Topology

LINEAR = Goal(least=1.8, most=2.2)
WITHIN = Goal(most=2.2)
"""In one region the clusters stay as many as they are, so less than twice is no wonder."""


def run(sizes: Sizes) -> list[Row]:
    return [
        *_shape(sizes, "more regions", None, World.EMPTY),
        *_shape(sizes, "one region", large.CLUSTERS_PER_REGION, World.OFF),
    ]


def _shape(sizes: Sizes, shape: str, clusters: int | None, seen: World) -> list[Row]:
    components, _ = catalogue_load.load(())
    reading: dict[str, Callable[[], object]] = {}
    planning: dict[str, Callable[[], object]] = {}
    with contextlib.ExitStack() as stack:
        for servers in sizes.growth:
            files = stack.enter_context(
                fleets.written(servers, clusters, split=clusters is not None)
            )
            reading[f"{servers:,}"] = partial(_read, files, components)
            known = fleets.state(_read(files, components), seen)
            planning[f"{servers:,}"] = partial(plans.first, known)
        measure.progress(f"{shape}: load, check and compile")
        read = measure.in_turn(reading, sizes.rounds, apart=True)
        measure.progress(f"{shape}: first plan, {seen.value}")
        planned = measure.in_turn(planning, sizes.rounds, apart=True)
    goal = LINEAR if clusters is None else WITHIN
    return [
        _row(f"load, check, compile: {shape}", read, goal),
        _row(f"first plan: {shape}", planned, goal),
    ]


def _read(files: list[Path], components: Mapping[str, Component]) -> Topology:
    bundle = load.load(files)
    assert not bundle.problems
    assert not checks.check(bundle)
    return compile.compile(bundle.items, components)


def _row(what: str, timings: Timings, goal: Goal) -> Row:
    best = {size: min(seconds) for size, seconds in timings.items()}
    sizes = list(best)
    doublings = [best[b] / max(best[a], 1e-9) for a, b in itertools.pairwise(sizes)]
    spread = ", ".join(f"{found:.2f}" for found in doublings)
    mean = statistics.geometric_mean(doublings)
    far = max(doublings) if goal.least is None else max(doublings, key=lambda by: abs(by - 2))
    first, last = sizes[0], sizes[-1]
    return Row(
        what=f"{what}, doubled",
        value=far,
        unit="×",
        goal=goal,
        note=f"the worst of {spread}; mean {mean:.2f}; {first} servers {best[first]:.3f} s, "
        f"{last} servers {best[last]:.3f} s",
        raw=timings,
    )
