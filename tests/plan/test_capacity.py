"""Servers are counted by what holds them and how they are."""

from collections.abc import Mapping
from typing import Any

from fleetd.plan.capacity import Capacity, Count, Place
from tests.plan.fleets import World, thing

IRONCORE = {"status": {"state": "Available"}, "spec": {}}


def claimed(by: str) -> dict[str, Any]:
    return {"status": {"state": "Reserved"}, "spec": {"serverClaimRef": {"name": by}}}


def counted(servers: Mapping[str, Mapping[str, Any] | None], *broken: str) -> Capacity:
    """Servers with what was seen of them; None: never looked at."""
    spec = {"pool": "p", "class": "big", "zone": "a"}
    world = World.of(
        thing("cluster/hv"),
        thing("cluster/hv-a"),
        *(thing(f"server/{name}", spec=spec) for name in servers),
    )
    for name, facts in servers.items():
        if facts is not None:
            world.up(f"server/{name}")
            world.saw(f"server/{name}", facts)
    world.broken(*(f"server/{name}" for name in broken))
    view = world.view
    found = Capacity()
    found.reset(view.topology, view.ready, view.seen)
    return found


PLACE = Place("eu-1", "p", "big", "a")


def test_free_used_and_neither() -> None:
    """Ready and unclaimed is free; claimed is used; broken or never seen is neither."""
    found = counted({"a": IRONCORE, "b": claimed("x"), "c": IRONCORE, "d": None}, "c")

    assert found.places == {PLACE: Count(total=4, free=1, used=1)}
    assert found.places[PLACE].unavailable == 2


def test_used_servers_are_put_down_to_their_cluster() -> None:
    """By the name that Gardener gives a machine; of two clusters the longer name wins."""
    found = counted(
        {
            "a": claimed("shoot--cobalt--hv-compute-z1-5632b-1d3f1"),
            "b": claimed("shoot--cobalt--hv-a-compute-z1-5632b-1d3f2"),
            "c": claimed("somebody"),
        }
    )

    assert found.clusters == {("eu-1", ""): 1, ("eu-1", "hv"): 1, ("eu-1", "hv-a"): 1}


def test_ironic_nodes_count_as_well() -> None:
    """What is being installed is used already."""
    found = counted(
        {
            "a": {"provision_state": "available"},
            "b": {"provision_state": "active", "instance_info": {"display_name": "hv-1"}},
            "c": {"provision_state": "deploying", "instance_info": {}},
        }
    )

    assert found.places == {PLACE: Count(total=3, free=1, used=2)}
    assert found.clusters == {("eu-1", ""): 1, ("eu-1", "hv"): 1}
