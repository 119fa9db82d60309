"""Links that lead nowhere, and the memory that a large fleet costs."""

import gc
import tracemalloc

from tests.topology import fleets
from topology import compile as compiler
from topology.resource import Ref, Topology


def test_a_link_to_what_is_not_placed_is_found() -> None:
    """compile leaves it out; unresolved names the instance and the link."""
    lonely = fleets.component(
        "lonely", "cluster", "cluster", roles=["hypervisor"], needs=[("ceph", "same")]
    )

    found = compiler.unresolved(fleets.small(), fleets.components(lonely))

    assert [(str(ref), link.component) for ref, link in found] == [("lonely/hv", "ceph")]


def test_optional_links_may_lead_nowhere() -> None:
    """An optional link is no fault, and neither is a first one of its own kind."""
    link = {"component": "ceph", "on": "same", "why": "because", "optional": True}
    maybe = fleets.component("maybe", "cluster", roles=["hypervisor"])
    maybe = fleets.changed(maybe, needs=[link])
    first = fleets.component("first", "cluster", roles=["management"], needs=[("first", "same")])

    assert compiler.unresolved(fleets.small(), fleets.components(maybe, first)) == []


def measured(servers: int) -> tuple[int, Topology]:
    """Bytes that the compiled topology keeps."""
    items = [fleets.region(), *_pools(servers)]
    catalogue = fleets.components()
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    topology = compiler.compile(items, catalogue)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before, topology


def _pools(servers: int) -> list[fleets.Item]:
    return [fleets.pool(f"p{number:02d}", 100, net=number) for number in range(servers // 100)]


def test_a_server_costs_less_than_one_and_a_half_kilobytes() -> None:
    """Resource and edges of one more server, measured between two sizes of fleet."""
    small, _ = measured(500)
    large, topology = measured(2500)

    assert Ref("server", "p24-s99") in topology.resources
    assert (large - small) / 2000 < 1500
