"""
Names that lead somewhere: regions, pools, clusters, zones. A name leads to a document of the
same region only, because a region must live when another one is dead.
"""

from collections.abc import Iterator

from topology.checks import accesses
from topology.checks.index import Finding, Index, Path
from topology.documents import base
from topology.documents.cloud import Cloud
from topology.documents.cluster import Cluster, Role
from topology.documents.pool import ServerPool
from topology.documents.region import Region


def regions(fleet: Index) -> Iterator[Finding]:
    for kind in (ServerPool, Cluster, Cloud):
        for document in fleet.every(kind):
            if document.spec.region not in fleet.regions:
                yield from fleet.unknown(
                    document, ("spec", "region"), "Region", document.spec.region, fleet.regions
                )


def pools(fleet: Index) -> Iterator[Finding]:
    """The ServerPool of each worker."""
    for cluster in fleet.every(Cluster):
        for number, worker in enumerate(cluster.spec.workers):
            if worker.pool is None:
                continue
            path: Path = ("spec", "workers", number, "pool")
            pool = fleet.pools.get(worker.pool)
            if pool is None:
                near = (n for n, p in fleet.pools.items() if p.spec.region == cluster.spec.region)
                yield from fleet.unknown(cluster, path, "ServerPool", worker.pool, near)
            elif pool.spec.region != cluster.spec.region:
                yield from abroad(fleet, cluster, path, pool)


def clusters(fleet: Index) -> Iterator[Finding]:
    """The clusters of each Cloud, and the arbiter of each stretched one."""
    for cloud in fleet.every(Cloud):
        for path, name, role in parts(cloud):
            yield from cluster(fleet, cloud, path, name, role)
    for storage in fleet.every(Cluster):
        if storage.spec.ceph is not None and storage.spec.ceph.stretch is not None:
            path: Path = ("spec", "ceph", "stretch", "arbiter")
            arbiter = storage.spec.ceph.stretch.arbiter
            yield from cluster(fleet, storage, path, arbiter, Role.ARBITER)


def parts(cloud: Cloud) -> Iterator[tuple[Path, str, Role]]:
    """The clusters a cloud names, where, and the role they must have there."""
    spec = cloud.spec
    yield ("spec", "controlPlane"), spec.control_plane, Role.CONTROL_PLANE
    for number, name in enumerate(spec.hypervisors):
        yield ("spec", "hypervisors", number), name, Role.HYPERVISOR
    for number, name in enumerate(spec.storage):
        yield ("spec", "storage", number), name, Role.STORAGE


def secrets(fleet: Index) -> Iterator[Finding]:
    """The cluster of each `access: {secret: {cluster}}`."""
    for document, path, access in accesses.of(fleet):
        if access.secret is not None:
            at = (*path, "secret", "cluster")
            yield from cluster(fleet, document, at, access.secret.cluster)


def zones(fleet: Index) -> Iterator[Finding]:
    """Zones are those of the region."""
    for pool in fleet.every(ServerPool):
        region = fleet.regions.get(pool.spec.region)
        if region is None:
            continue
        known = frozenset(region.spec.zones)
        for number, server in enumerate(pool.spec.servers):
            if server.zone not in known:
                path: Path = ("spec", "servers", number, "zone")
                yield zone(fleet, pool, path, server.zone, region)
        if pool.spec.range is not None and pool.spec.range.zone not in known:
            yield zone(fleet, pool, ("spec", "range", "zone"), pool.spec.range.zone, region)
    for document in fleet.every(Cluster):
        region = fleet.regions.get(document.spec.region)
        if region is not None:
            yield from _zones_of_cluster(fleet, document, region)


def _zones_of_cluster(fleet: Index, document: Cluster, region: Region) -> Iterator[Finding]:
    named: list[tuple[Path, list[str]]] = [(("spec", "zones"), document.spec.zones)]
    for number, worker in enumerate(document.spec.workers):
        named.append((("spec", "workers", number, "zones"), worker.zones))
    if document.spec.ceph is not None and document.spec.ceph.stretch is not None:
        named.append((("spec", "ceph", "stretch", "zones"), document.spec.ceph.stretch.zones))
    for path, names in named:
        for number, name in enumerate(names):
            if name not in region.spec.zones:
                yield zone(fleet, document, (*path, number), name, region)


def zone(fleet: Index, document: base.Document, path: Path, name: str, region: Region) -> Finding:
    return fleet.complain(
        document,
        path,
        code="unknown-zone",
        message=f"Region {region.metadata.name!r} has no zone {name!r}",
        hint=fleet.speller.hint(
            name,
            region.spec.zones,
            f"add it to zones at {fleet.place(region, ('spec', 'zones'))}",
        ),
    )


def cluster(
    fleet: Index, document: base.Document, path: Path, name: str, role: Role | None = None
) -> Iterator[Finding]:
    """The complaint about the name of a cluster that leads nowhere, abroad, or to a cluster of
    another role than the one given."""
    found = fleet.clusters.get(name)
    home = region_of(document)
    near = (
        other
        for other, one in fleet.clusters.items()
        if home in {"", one.spec.region} and role in {None, one.spec.role}
    )
    if found is None:
        yield from fleet.unknown(document, path, "Cluster", name, near)
        return
    if home not in {"", found.spec.region}:
        yield from abroad(fleet, document, path, found)
    elif role not in {None, found.spec.role}:
        yield fleet.complain(
            document,
            path,
            code="wrong-role",
            message=f"Cluster {name!r} is a {found.spec.role} cluster "
            f"({fleet.place(found, ('spec', 'role'))}), but a cluster of role {role} is needed "
            "here",
            hint=fleet.speller.hint(name, near, f"add a Cluster with role: {role}"),
        )


def region_of(document: base.Document) -> str:
    """The region a document belongs to; empty if it belongs to none."""
    if isinstance(document, Region):
        return document.metadata.name
    return str(getattr(getattr(document, "spec", None), "region", None) or "")


def abroad(
    fleet: Index,
    document: base.Document,
    path: Path,
    found: ServerPool | Cluster,
    *,
    meant: str = "",
) -> Iterator[Finding]:
    """The complaint about something in another region. Where one of the two regions does not
    exist, that is told already and explains this."""
    kind, name = type(found).__name__, found.metadata.name
    mine = region_of(document)
    if not {mine, found.spec.region} <= fleet.regions.keys():
        return
    yield fleet.complain(
        document,
        path,
        code="other-region",
        message=f"{kind} {name!r} is in Region {found.spec.region!r} "
        f"({fleet.place(found, ('spec', 'region'))}), not in {mine!r}",
        hint=f"name a {meant or kind} of Region {mine!r}; a region must work when another is down",
    )
