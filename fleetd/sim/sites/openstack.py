"""
Clouds before they exist: the address of each API is known, and nobody answers there yet.

What answers later is decided by what runs on the control plane (`services.openstack.Cloud.up`).
"""

from fleetd.sim.services import openstack
from fleetd.sim.services.cinder import CinderApi
from fleetd.sim.services.glance import GlanceApi
from fleetd.sim.services.keystone import Keystone
from fleetd.sim.services.neutron import NeutronApi
from fleetd.sim.services.nova import NovaApi
from fleetd.sim.services.placement import Placement
from fleetd.sim.services.tenants import Tenants
from fleetd.sim.world import World
from topology.resource import Topology

_APIS = (Keystone, NovaApi, Placement, NeutronApi, CinderApi, GlanceApi)


def furnish(world: World, topology: Topology) -> None:
    for ref, resource in topology.resources.items():
        if ref.kind == "cloud":
            spec = resource.spec
            cloud = add(world, ref.name, str(spec["controlPlane"]), tuple(spec["hypervisors"]))
            cloud.tenants = Tenants(cloud.nova)


def add(
    world: World, name: str, control_plane: str, hypervisors: tuple[str, ...]
) -> openstack.Cloud:
    cloud = openstack.Cloud(world, name, control_plane, hypervisors)
    for api in _APIS:
        world.services[f"{api.service}-{name}"] = api(cloud)
    return cloud
