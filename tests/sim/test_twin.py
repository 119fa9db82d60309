"""The documents of a twin go through the same door as those of a daemon."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fleetd.daemon.assembly import Door
from fleetd.engine.state import State
from fleetd.plan.policy import Policy
from fleetd.sim import build
from fleetd.sim.keys import Keys
from fleetd.sim.twin import Given, Wanted
from fleetd.store.memory import MemoryStore
from tests.tidy import files
from topology import read
from topology.resource import Topology

EXAMPLE = files.ROOT / "topology" / "examples" / "minimal" / "region.yaml"


@dataclass
class Taken:
    documents: Given
    state: State


def compiled(tmp: Path, change: Callable[[str], str] = str) -> read.Reading:
    path = tmp / "region.yaml"
    path.write_text(change(EXAMPLE.read_text()))
    found = read.read([path])
    assert found.topology is not None, found.problems
    return found


def topology(reading: read.Reading) -> Topology:
    assert reading.topology is not None
    return reading.topology


def offered_after(first: read.Reading, then: read.Reading) -> Taken:
    """What a second daemon makes of other documents than those that are in force."""

    async def main() -> Taken:
        store = MemoryStore()
        await store.open()
        for reading in (first, then):
            state = State({}, Policy())
            wanted = Wanted(
                topology=topology(reading), catalogue=reading.catalogue, policy=Policy()
            )
            keys = Keys(build.build(topology(reading), 1), topology(reading))
            door = Door(state=state, store=store, surrounded=lambda _: None, taken=lambda: None)
            given = Given(wanted, keys, door)
            await given.restore()
            await given.run()
        return Taken(given, state)

    return asyncio.run(main())


def test_what_a_daemon_refuses_a_twin_does_not_take(tmp_path: Path) -> None:
    """An older Kubernetes: the old documents stay in force, and it is said why."""
    first = compiled(tmp_path)
    then = compiled(tmp_path, lambda text: text.replace('"1.33.4"', '"1.32.4"'))

    found = offered_after(first, then)

    assert "kubernetes" in found.documents.complaint
    assert found.state.declared.digest == topology(first).digest


def test_what_needs_consent_is_tried_and_named(tmp_path: Path) -> None:
    """Ten servers are gone from the documents: a twin shows what that does, and says what a daemon
    would ask for."""

    def wide(text: str) -> str:
        return text.replace("last: 192.0.2.24", "last: 192.0.2.34")

    first, then = compiled(tmp_path, wide), compiled(tmp_path)

    found = offered_after(first, then)

    assert found.documents.complaint == ""
    assert found.documents.consent == f"accept-{topology(then).digest[:12]}"
    assert found.state.declared.digest == topology(then).digest
