"""
A world for a topology: everything that exists in reality before fleetd comes.

The sites furnish it: the garden with its seed and profile, the metal API with its operators, the
machines with their BMCs, the Git repository. What fleetd is to make is not there.
"""

from datetime import UTC, datetime

from fleetd.sim.sites import garden, git, ironic, metal, openbao, openstack
from fleetd.sim.world import World
from topology.resource import Topology

START = datetime(2026, 3, 3, 21, 0, tzinfo=UTC)
"""A Tuesday, 22:00 in Berlin: the examples' maintenance window has just opened."""

_SITES = (metal, ironic, garden, git, openbao, openstack)


def build(topology: Topology, seed: int, start: datetime = START) -> World:
    """To be called in the running loop: the sites' controllers set timers."""
    world = World(seed, start)
    for site in _SITES:
        site.furnish(world, topology)
    return world
