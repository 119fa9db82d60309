"""
From paths to a topology, or to everything that is wrong: load, check, compile.

The one rule: a set with one problem gives no topology at all. Half of what was meant is not a
smaller fleet, it is another fleet.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from topology import catalogue_load, collector, compile, graph, load  # noqa: A004
from topology.catalogue import Component
from topology.checks import run
from topology.problem import Problem
from topology.resource import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What was read. Either `topology` is there or `problems` are, never both."""

    topology: Topology | None
    bundle: load.Bundle
    catalogue: Mapping[str, Component]
    problems: tuple[Problem, ...]


def read(paths: Sequence[Path], catalogue_paths: Sequence[Path] = ()) -> Reading:
    """Documents from files and directories, with the catalogue that comes with fleetd and the
    operator's own components beside it."""
    with collector.at_rest():
        components, faults = catalogue_load.load(catalogue_paths)
        return _reading(load.load(paths), components, faults)


def read_bytes(named: Mapping[str, bytes], catalogue_paths: Sequence[Path] = ()) -> Reading:
    """The same for documents that are in memory, e.g. the body of a request."""
    with collector.at_rest():
        components, faults = catalogue_load.load(catalogue_paths)
        return _reading(load.load_bytes(named), components, faults)


def _reading(
    bundle: load.Bundle, components: Mapping[str, Component], faults: Sequence[Problem]
) -> Reading:
    problems = tuple(sorted({*bundle.problems, *run.check(bundle), *faults}))
    topology: Topology | None = None
    if not problems:
        try:
            topology = compile.compile(bundle.items, components)
        except graph.Cycle as circle:
            problems = (_circle(bundle, circle),)
    return Reading(topology=topology, bundle=bundle, catalogue=components, problems=problems)


def _circle(bundle: load.Bundle, circle: graph.Cycle) -> Problem:
    """A circle that shows only between instances: a component that needs its own kind on other
    clusters passes the checks of the catalogue, and a fleet with one such cluster has none."""
    names = {str(member).partition("/")[2] for member in circle.members}
    item = next((one for one in bundle.items if one.name in names), bundle.items[0])
    return bundle.complain(
        item,
        ("metadata", "name"),
        code="needs-in-a-circle",
        message=str(circle),
        hint="remove one of these needs from the catalogue",
    )
