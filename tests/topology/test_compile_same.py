"""Equal documents give an equal topology: on any machine, in any order, with any hash seed."""

import os
import random
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.topology import fleets, generated
from topology.resource import Ref

PROGRAM = """
import random, sys
from tests.topology import fleets
items = fleets.small()
random.Random(int(sys.argv[1])).shuffle(items)
topology = fleets.topology(items)
print(topology.digest)
for resource in topology.resources.values():
    print(resource.ref, resource.generation, resource.rank)
for edge in topology.edges:
    print(edge)
print(topology.needed_by)
"""


def run(seed: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(seed)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_hash_seed_and_order_of_files_do_not_show() -> None:
    """Three processes with other seeds and shuffled documents print the same, line by line."""
    first, second, third = (run(seed) for seed in (0, 1, 4711))

    assert first == second == third
    assert len(first.splitlines()) > 50


def test_generation_moves_with_the_spec_and_only_then() -> None:
    """A changed label of one pool moves its servers and itself, and nothing else."""
    items = fleets.small()
    other = fleets.with_(items, fleets.pool("general", 12, labels={"gen": "4"}))

    before, after = fleets.topology(items), fleets.topology(other)

    moved = {
        ref.kind
        for ref, one in after.resources.items()
        if before.resources[ref].generation != one.generation
    }
    assert moved == {"server", "serverpool"}
    assert before.digest != after.digest


def test_generation_fits_a_json_number() -> None:
    """52 bits: no reader of JSON loses a digit."""
    resources = fleets.topology().resources.values()

    assert all(0 <= one.generation < 2**52 for one in resources)
    assert max(one.generation for one in resources) > 2**44


def test_a_changed_need_changes_the_digest() -> None:
    """A catalogue that orders things otherwise gives another topology."""
    later = fleets.component(
        "ceph", "cluster", "cluster", roles=["storage"], install={"by": "apply"}
    )
    needy = fleets.component(
        "ceph",
        "cluster",
        "cluster",
        roles=["storage"],
        install={"by": "apply"},
        needs=[("store", "same")],
    )

    assert fleets.topology(None, later).digest != fleets.topology(None, needy).digest


def test_a_changed_limit_changes_the_digest() -> None:
    """Plans depend on limits, so limits are part of what a plan answers."""
    limits = [{"state": "*", "within": "2h", "action": "look at store"}]
    store = fleets.component("metal", "region", "metal", limits=limits)

    assert fleets.topology().digest != fleets.topology(None, store).digest


@settings(max_examples=40, deadline=None)
@given(generated.fleets(), st.randoms(use_true_random=False))
def test_any_fleet_compiles_the_same_in_any_order(
    items: list[fleets.Item], chance: random.Random
) -> None:
    """Order of resources respects needs, and shuffled documents give the same digest."""
    topology = fleets.topology(items)
    shuffled = list(items)
    chance.shuffle(shuffled)

    again = fleets.topology(shuffled)

    assert again.digest == topology.digest
    assert list(again.resources) == list(topology.resources)
    assert again.edges == topology.edges
    place = {ref: number for number, ref in enumerate(topology.resources)}
    for ref, resource in topology.resources.items():
        assert all(place[need] < place[ref] for need in resource.needs)
        assert all(topology.resources[need].rank < resource.rank for need in resource.needs)


@settings(max_examples=40, deadline=None)
@given(generated.fleets(), st.data())
def test_removing_a_document_removes_only_its_own(
    items: list[fleets.Item], data: st.DataObject
) -> None:
    """A removed Cloud or ServerPool takes only what was compiled from it."""
    removable = [one for one in items if type(one.document).__name__ in ("Cloud", "ServerPool")]
    if not removable:
        return
    gone = data.draw(st.sampled_from(removable))
    owner = Ref(type(gone.document).__name__.lower(), gone.document.metadata.name)

    before = fleets.topology(items).resources
    after = fleets.topology([one for one in items if one is not gone]).resources

    assert {one.owner for ref, one in before.items() if ref not in after} == {owner}
    assert set(after) <= set(before)
