"""Clusters whose roles do not add up to a region: no management, two of them, an idle arbiter."""

from collections.abc import Iterator

from topology.checks import index as indexes
from topology.checks.index import Finding, Index
from topology.documents.cluster import Cluster, Role


def management(fleet: Index) -> Iterator[Finding]:
    """A region with clusters has exactly one management cluster."""
    by_region: dict[str, list[Cluster]] = {}
    lost = False
    for cluster in fleet.clusters.values():
        by_region.setdefault(cluster.spec.region, []).append(cluster)
        # One that names a region that does not exist may be the one that is missing elsewhere.
        lost |= cluster.spec.role is Role.MANAGEMENT and cluster.spec.region not in fleet.regions
    for name, clusters in by_region.items():
        region = fleet.regions.get(name)
        found = [cluster for cluster in clusters if cluster.spec.role is Role.MANAGEMENT]
        if region is not None and not found and not lost and fleet.whole("Cluster"):
            names = indexes.listed(cluster.metadata.name for cluster in clusters)
            yield fleet.complain(
                region,
                ("metadata", "name"),
                code="management-missing",
                message=f"the region has {indexes.count(len(clusters), 'cluster')} ({names}) but "
                "none of role management",
                hint="add a Cluster with role: management; Flux and OpenBao run there",
            )
        for cluster in found[1:]:
            first = found[0]
            place = fleet.place(first, ("spec", "role"))
            yield fleet.complain(
                cluster,
                ("spec", "role"),
                code="management-twice",
                message=f"{first.metadata.name!r} ({place}) is already the management cluster of "
                f"Region {name!r}",
                hint="a region has exactly one: give one of them another role",
            )


def openbao(fleet: Index) -> Iterator[Finding]:
    """Each member of a managed OpenBao has a node of its own; two never share one."""
    for cluster in fleet.clusters.values():
        region = fleet.regions.get(cluster.spec.region)
        if region is None or cluster.spec.role is not Role.MANAGEMENT or cluster.spec.adopted:
            continue
        least = sum(worker.minimum for worker in cluster.spec.workers)
        replicas = region.spec.secrets.replicas
        if region.spec.secrets.address == "managed" and 0 < least < replicas:
            alone = len(cluster.spec.workers) == 1
            yield fleet.complain(
                cluster,
                ("spec", "workers", 0, "minimum") if alone else ("spec", "workers"),
                code="openbao-too-few-nodes",
                message=f"the management cluster starts with {indexes.count(least, 'node')}, and "
                f"OpenBao has {replicas} replicas, each on a node of its own",
                hint=f"raise minimum to {replicas}, or lower secrets.replicas at "
                f"{fleet.place(region, ('spec', 'secrets', 'replicas'))}",
            )


def arbiters(fleet: Index) -> Iterator[Finding]:
    """An arbiter cluster breaks ties for some storage cluster."""
    used = {
        cluster.spec.ceph.stretch.arbiter
        for cluster in fleet.every(Cluster)
        if cluster.spec.ceph is not None and cluster.spec.ceph.stretch is not None
    }
    if not used <= fleet.clusters.keys() or not fleet.whole("Cluster"):
        # Somebody names an arbiter that does not exist, and that is told: it may be this one.
        return
    for cluster in fleet.clusters.values():
        if cluster.spec.role is Role.ARBITER and cluster.metadata.name not in used:
            name = cluster.metadata.name
            yield fleet.complain(
                cluster,
                ("spec", "role"),
                code="arbiter-unused",
                message=f"no storage cluster names {name!r} as its arbiter, so it would stand idle",
                hint=f"add ceph: {{stretch: {{zones: [..., ...], arbiter: {name}}}}} to a storage "
                "cluster, or remove this cluster",
            )
