"""
A region that is in use: whatever is done to its hosts, no tenant's machine is hurt.

The judge ends a run at once when a host goes with machines on it, or when a host of Ceph goes while
data is restored (I2).
"""

from collections.abc import Mapping

from fleetd.sim import loop
from fleetd.sim.services import openstack
from fleetd.sim.services.openstack_compute import Nova
from tests.twin import workflows
from tests.twin.stage import ROUNDS, Power, Region

COMPUTE = "{name: compute, pool: metal, minimum: 4, maximum: 4}"
FEWER = {COMPUTE: COMPUTE.replace("4", "3")}
IMAGE = "image: {name: gardenlinux, version: 1877.5.0}"
NEWER = {f"role: {role},": f"role: {role}, {IMAGE}," for role in ("hypervisor", "storage")}


def test_hosts_go_one_after_the_other_and_no_tenant_notices() -> None:
    """One hypervisor is given back, then every host of compute and storage is replaced: each
    machine of a tenant runs at the end, on another host than before, and none was ever cut off."""
    after = loop.run(_story())

    assert after == {"ACTIVE"}


async def _story() -> set[str]:
    """What state the tenants' machines are in at the end."""
    region = Region.of(furniture=workflows.documents(NEWER))
    assert await region.live(Power(), until=region.settled())
    end = region.world.elapsed() + ROUNDS.total_seconds()
    await region.live(Power(), until=lambda _: region.world.elapsed() >= end)
    nova = _nova(region)
    before = _where(nova)
    assert len(before) == 8

    for words, hosts in ((FEWER, 3), ({**FEWER, **NEWER}, 3)):
        nodes = _nodes(region)
        workflows.change(region, words)
        assert await region.live(Power(), until=region.settled())
        assert await region.judge(reached=True) == []
        assert len(nova.hosts) == hosts
        assert _where(nova).keys() == before.keys()
    assert not set(nodes.items()) & set(_nodes(region).items())
    moves = [move for move in nova.migrations if move.vm in before]
    assert {move.vm for move in moves} == before.keys()
    assert {move.status for move in moves} == {"completed"}
    return {vm.status for vm in nova.vms.values()}


def _nova(region: Region) -> Nova:
    cloud = openstack.of_name(region.world, "prod")
    assert cloud is not None
    return cloud.nova


def _where(nova: Nova) -> dict[str, str]:
    return {vm.id: vm.host for vm in nova.vms.values() if not vm.test}


def _nodes(region: Region) -> Mapping[str, str]:
    """The hosts of compute and storage, each with the life of its Node."""
    return {
        f"{cluster}/{node['metadata']['name']}": str(node["metadata"]["uid"])
        for cluster in ("hv", "st")
        for node in region.world.clusters[cluster].list(("", "Node"))
    }
