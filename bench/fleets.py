"""The fleets that are measured: written as documents, compiled, and seen in one of three worlds."""

import contextlib
import enum
import tempfile
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench import world
from bench.world import BenchDriver
from fleetd import conditions
from fleetd.engine import fingerprint
from fleetd.engine.state import State
from fleetd.plan.policy import Policy, mass_consent
from fleetd.vocabulary import Driver, Observation
from topology import catalogue_load, compile, load  # noqa: A004
from topology.examples import large
from topology.resource import Facts, Ref, Resource, Topology

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
SERVERS_EACH = 100
"""Servers of a cluster on average."""


class World(enum.Enum):
    """What is seen of the fleet."""

    EMPTY = "nothing exists yet"
    RUNNING = "everything runs"
    OFF = "all servers off, the rest runs"
    OLD = "all servers to be flashed"


@contextlib.contextmanager
def written(
    servers: int, clusters: int | None = None, *, split: bool = False
) -> Generator[list[Path]]:
    """The files of a fleet, for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as name:
        yield write(Path(name), servers, clusters, split=split)


def write(
    folder: Path, servers: int, clusters: int | None = None, *, split: bool = False
) -> list[Path]:
    """One file a region, or `split` one a document, for regions that no file could hold."""
    clusters = clusters or max(servers // SERVERS_EACH, large.CLUSTERS_MIN)
    if not split:
        return large.write(folder, clusters, servers)
    files: list[Path] = []
    for plan in large.plans(clusters, servers):
        for number, text in enumerate(large.documents(plan)):
            files.append(folder / f"{plan.name}-{number:03}.yaml")
            files[-1].write_text(text, encoding="utf-8")
    return files


def compiled(servers: int, clusters: int | None = None) -> Topology:
    with written(servers, clusters) as files:
        bundle = load.load(files)
    assert not bundle.problems
    components, _ = catalogue_load.load(())
    return compile.compile(bundle.items, components)


def drivers(topology: Topology) -> dict[str, Driver]:
    names = {resource.driver for resource in topology.resources.values()}
    return {name: BenchDriver(kind=name) for name in sorted(names)}


def state(topology: Topology, seen: World) -> State:
    """A daemon's knowledge of a fleet that was looked at once, and planned never."""
    consents = frozenset(mass_consent(region, topology.digest) for region in topology.regions)
    found = State(drivers(topology), Policy(consents=consents))
    found.accept(topology, {})
    for want in topology.resources.values():
        show(found, want, facts_in(want, seen), NOW)
    return found


def facts_in(want: Resource, seen: World) -> Facts:
    if seen is World.EMPTY:
        return world.ABSENT
    power = "Off" if seen is World.OFF else "On"
    return world.facts_of(want, power=power, bios="2.0.0" if seen is World.OLD else world.BIOS)


def show(known: State, want: Resource, facts: Facts, at: datetime) -> None:
    """Let it be seen as the observer would: fingerprinted, judged, settled, taken in."""
    seen = Observation(ref=want.ref, at=at, facts=facts, digest=fingerprint.of(facts))
    judged = known.drivers[want.driver].judge(want, seen) if facts else ()
    old = known.view.ready.get(want.ref)
    known.saw(seen, conditions.of(want, seen, judged, old, grace=timedelta()))


def servers_of(topology: Topology) -> list[Ref]:
    return [ref for ref in topology.resources if ref.kind == world.SERVER]
