"""
A world for a topology: everything that exists in reality before fleetd comes.

The sites furnish it: the garden with its seed and profile, the metal API with its operators, the
machines with their BMCs, the Git repository. What fleetd is to make is not there.
"""

from datetime import UTC, datetime

from fleetd.sim import recent
from fleetd.sim.faults import Climate
from fleetd.sim.ledger import Ledger
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


def lasting(world: World) -> Climate:
    """The weather of a world that goes on for as long as a daemon does: of what happened and was
    asked it remembers the latest."""
    ledger = Ledger()
    world.trace.most = ledger.deeds.most = recent.MOST
    return Climate(world, ledger)
