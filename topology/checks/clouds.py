"""Clouds that cannot work: clusters shared where they may not be, services without what they
stand on. Names and roles of their clusters are looked at in `checks.references`."""

from collections.abc import Iterator

from topology.checks import index as indexes
from topology.checks import references
from topology.checks.index import Finding, Index, Path
from topology.documents.cloud import Cloud, Service
from topology.documents.cluster import Ceph, Role

NEEDS: dict[Service, tuple[Service, ...]] = {
    Service.GLANCE: (Service.KEYSTONE,),
    Service.PLACEMENT: (Service.KEYSTONE,),
    Service.NOVA: (Service.KEYSTONE, Service.PLACEMENT, Service.GLANCE, Service.NEUTRON),
    Service.NEUTRON: (Service.KEYSTONE,),
    Service.CINDER: (Service.KEYSTONE,),
    Service.HORIZON: (Service.KEYSTONE,),
    Service.BARBICAN: (Service.KEYSTONE,),
}
POOLS: dict[Service, str] = {Service.NOVA: "vms", Service.CINDER: "volumes"}
"""The RBD pool without which a service cannot start."""


def shared(fleet: Index) -> Iterator[Finding]:
    """Only storage may be shared between clouds: a namespace holds one ControlPlane, and a host
    answers to one Nova."""
    taken: dict[tuple[str, Role], tuple[Cloud, Path]] = {}
    for cloud in fleet.clouds.values():
        for path, name, role in references.parts(cloud):
            first, there = taken.setdefault((name, role), (cloud, path))
            if first is cloud or role is Role.STORAGE:
                continue
            what = "the control plane" if role is Role.CONTROL_PLANE else "among the hypervisors"
            yield fleet.complain(
                cloud,
                path,
                code="cluster-in-two-clouds",
                message=f"Cluster {name!r} is already {what} of Cloud "
                f"{first.metadata.name!r} at {fleet.place(first, there)}",
                hint=f"give this cloud a {role} cluster of its own; only storage may be shared",
            )


def complete(fleet: Index) -> Iterator[Finding]:
    """A cloud has hypervisors, and storage where a service needs it."""
    for cloud in fleet.every(Cloud):
        spec = cloud.spec
        if not spec.hypervisors:
            yield fleet.complain(
                cloud,
                ("spec", "hypervisors"),
                code="cloud-without-hypervisors",
                message="the list is empty, so no virtual machine could ever run",
                hint="name at least one Cluster with role: hypervisor",
            )
        needy = [service for service in (Service.NOVA, Service.CINDER) if service in spec.services]
        if not spec.storage and needy:
            yield fleet.complain(
                cloud,
                ("spec", "storage"),
                code="cloud-without-storage",
                message=f"no storage is named, but {' and '.join(needy)} keep their disks in Ceph",
                hint="add storage: [<a Cluster with role: storage>]; a shared one will do",
            )


def services(fleet: Index) -> Iterator[Finding]:
    """Each service has the services it talks to, and the hypervisors have Nova."""
    for cloud in fleet.every(Cloud):
        given = cloud.spec.services
        if cloud.spec.hypervisors and Service.NOVA not in given:
            names = indexes.listed(cloud.spec.hypervisors)
            yield fleet.complain(
                cloud,
                ("spec", "services"),
                code="service-missing",
                message=f"nova is not in the list, so the hosts of {names} could never join",
                hint="add nova and what it needs: keystone, glance, placement, neutron",
            )
        for number, service in enumerate(given):
            missing = [need for need in NEEDS.get(service, ()) if need not in given]
            if missing:
                names = " and ".join(missing)
                yield fleet.complain(
                    cloud,
                    ("spec", "services", number),
                    code="service-missing",
                    message=f"{service} cannot work without {names}",
                    hint=f"add {names} to services, or take {service} out",
                )


def ceph_pools(fleet: Index) -> Iterator[Finding]:
    """One of the cloud's storage clusters has the pool that a service needs."""
    for cloud in fleet.every(Cloud):
        found = [fleet.clusters.get(name) for name in cloud.spec.storage]
        clusters = [one for one in found if one is not None and one.spec.role is Role.STORAGE]
        if not clusters or len(clusters) != len(found):
            continue
        have = {pool.name for one in clusters for pool in (one.spec.ceph or Ceph()).pools}
        for service, pool in POOLS.items():
            if service in cloud.spec.services and pool not in have:
                one = clusters[0]
                yield fleet.complain(
                    cloud,
                    ("spec", "storage"),
                    code="ceph-pool-missing",
                    message=f"{service} needs a Ceph pool {pool!r}, but the storage has only "
                    f"{', '.join(sorted(have))}",
                    hint=f"add {{name: {pool}}} to ceph.pools of Cluster {one.metadata.name!r} at "
                    f"{fleet.place(one, ('spec', 'ceph', 'pools'))}",
                )
