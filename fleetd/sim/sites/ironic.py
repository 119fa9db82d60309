"""
The Ironic of each region whose provider it is: an API that answers, with no node in it.

The machines and their BMCs are the business of `sites.metal`, whoever owns them.
"""

from urllib.parse import urlsplit

from fleetd.sim.services.ironic import Ironic
from fleetd.sim.world import World
from topology.resource import Topology


def furnish(world: World, topology: Topology) -> None:
    for resource in topology.resources.values():
        if resource.ref.kind != "region" or resource.spec["metal"]["provider"] != "ironic":
            continue
        name = f"ironic-{resource.ref.name}"
        if name not in world.services:
            world.services[name] = Ironic(world, resource.ref.name)
            world.hosts[urlsplit(str(resource.spec["metal"]["url"])).hostname or ""] = name
