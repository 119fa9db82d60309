"""
Storage clusters that would lose data or never form: too few nodes, too many copies, a stretched
cluster without a third place.

The arbiter is an external monitor of a cluster in normal mode, because Rook ignores external
monitors in its own stretch mode; so two copies per zone come from pools of four copies, and the
arbiter has to stand where neither half of the data is.
"""

from collections.abc import Iterator

from topology.checks import index as indexes
from topology.checks.index import Finding, Index, Path
from topology.documents.cluster import Ceph, Cluster, Role, Stretch

NODES_MIN = 3
"""Three monitors on three nodes: the fewest that outlive one."""
NODES_ZONE_MIN = 2
"""Two copies per zone, on two nodes."""
COPIES_STRETCHED = 4


def nodes(fleet: Index) -> Iterator[Finding]:
    """Enough nodes for the monitors and for the copies."""
    for cluster in fleet.every(Cluster):
        if cluster.spec.role is not Role.STORAGE or cluster.spec.adopted is not None:
            continue
        if not any(worker.minimum for worker in cluster.spec.workers):
            # No node at all is told for clusters of every role.
            continue
        if cluster.spec.ceph is not None and cluster.spec.ceph.stretch is not None:
            yield from _nodes_by_zone(fleet, cluster, cluster.spec.ceph.stretch)
            continue
        least = sum(worker.minimum for worker in cluster.spec.workers)
        if least < NODES_MIN:
            yield fleet.complain(
                cluster,
                _minimum(cluster),
                code="storage-too-few-nodes",
                message=f"the storage cluster starts with {indexes.count(least, 'node')}, fewer "
                f"than {NODES_MIN}; Ceph could not keep a majority when one fails",
                hint=f"raise minimum so that the workers have {NODES_MIN} or more together",
            )
            continue
        yield from _copies(fleet, cluster, least)


def _copies(fleet: Index, cluster: Cluster, least: int) -> Iterator[Finding]:
    for number, pool in enumerate((cluster.spec.ceph or Ceph()).pools):
        if pool.size is not None and pool.size > least:
            yield fleet.complain(
                cluster,
                ("spec", "ceph", "pools", number, "size"),
                code="copies-above-nodes",
                message=f"{pool.size} copies do not fit on {indexes.count(least, 'node')}; each "
                "copy needs a node of its own",
                hint=f"lower it to {least}, or raise minimum of the workers to {pool.size}",
            )


def _nodes_by_zone(fleet: Index, cluster: Cluster, stretch: Stretch) -> Iterator[Finding]:
    region = fleet.regions.get(cluster.spec.region)
    named = {zone for worker in cluster.spec.workers for zone in worker.zones} | {*stretch.zones}
    if region is None or not named <= set(region.spec.zones):
        # A zone that does not exist is told already.
        return
    for zone in dict.fromkeys(stretch.zones):
        least = sum(
            indexes.share_of_zone(worker.minimum, indexes.zones_of(worker, region), zone)
            for worker in cluster.spec.workers
        )
        if least < NODES_ZONE_MIN:
            yield fleet.complain(
                cluster,
                _minimum(cluster),
                code="stretch-too-few-nodes",
                message=f"zone {zone!r} of the stretched cluster starts with "
                f"{indexes.count(least, 'node')}, fewer than {NODES_ZONE_MIN}",
                hint=f"each of the zones {' and '.join(stretch.zones)} needs {NODES_ZONE_MIN} or "
                "more nodes: raise minimum, or name the zones of the workers",
            )
    for number, worker in enumerate(cluster.spec.workers):
        outside = [z for z in indexes.zones_of(worker, region) if z not in stretch.zones]
        if outside:
            at: Path = ("spec", "workers", number)
            yield fleet.complain(
                cluster,
                (*at, "zones") if worker.zones else at,
                code="stretch-worker-outside",
                message=f"worker {worker.name!r} has nodes in zone {', '.join(outside)}, outside "
                f"the data zones {' and '.join(stretch.zones)}",
                hint=f"write zones: [{', '.join(stretch.zones)}] for this worker",
            )


def stretched(fleet: Index) -> Iterator[Finding]:
    """The third place of a stretched cluster, and its copies."""
    for cluster in fleet.every(Cluster):
        ceph = cluster.spec.ceph
        if ceph is None or ceph.stretch is None:
            continue
        yield from _arbiter(fleet, cluster, ceph.stretch)
        for number, pool in enumerate(ceph.pools):
            if pool.size is not None and pool.size != COPIES_STRETCHED:
                yield fleet.complain(
                    cluster,
                    ("spec", "ceph", "pools", number, "size"),
                    code="stretch-copies",
                    message=f"{pool.size} copies in a stretched cluster do not give two in each "
                    "zone",
                    hint=f"write {COPIES_STRETCHED}, or leave it out",
                )


def _arbiter(fleet: Index, cluster: Cluster, stretch: Stretch) -> Iterator[Finding]:
    arbiter = fleet.clusters.get(stretch.arbiter)
    if arbiter is None or arbiter.spec.role is not Role.ARBITER:
        return
    shared = [zone for zone in stretch.zones if zone in _zones(fleet, arbiter)]
    if shared:
        yield fleet.complain(
            cluster,
            ("spec", "ceph", "stretch", "arbiter"),
            code="arbiter-in-data-zone",
            message=f"arbiter {stretch.arbiter!r} has nodes in zone {' and '.join(shared)}, which "
            "holds data: when that zone fails, both are gone and no majority is left",
            hint="name a third zone in zones of the arbiter's workers at "
            f"{fleet.place(arbiter, ('spec', 'workers'))}",
        )


def _zones(fleet: Index, cluster: Cluster) -> set[str]:
    """Zones of a cluster, as far as they are known: an adopted one may stand anywhere."""
    region = fleet.regions.get(cluster.spec.region)
    if cluster.spec.adopted is not None or region is None:
        return set(cluster.spec.zones)
    return {zone for worker in cluster.spec.workers for zone in indexes.zones_of(worker, region)}


def _minimum(cluster: Cluster) -> Path:
    if len(cluster.spec.workers) == 1:
        return ("spec", "workers", 0, "minimum")
    return ("spec", "workers")
