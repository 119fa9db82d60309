"""Names that are taken twice: documents, servers, and members of lists that are sets."""

from collections.abc import Iterator, Sequence

from topology.checks import machines
from topology.checks.index import Finding, Index, Path
from topology.documents import base
from topology.documents.cloud import Cloud
from topology.documents.cluster import Cluster
from topology.documents.pool import ServerPool
from topology.documents.region import Region


def documents(fleet: Index) -> Iterator[Finding]:
    """A name is taken once per kind in the whole fleet."""
    for first, second in fleet.repeated:
        kind, name = type(second).__name__, second.metadata.name
        yield fleet.complain(
            second,
            ("metadata", "name"),
            code="name-taken",
            message=f"another {kind} {name!r} stands at {fleet.place(first, ('metadata', 'name'))}",
            hint="names are unique per kind in the whole fleet: rename one or remove one",
        )


def servers(fleet: Index) -> Iterator[Finding]:
    """A server's name is taken once in the whole fleet, also by the servers of a range."""
    taken: dict[str, tuple[ServerPool, Path]] = {}
    for pool in fleet.pools.values():
        for number, server in enumerate(pool.spec.servers):
            path: Path = ("spec", "servers", number, "name")
            first = taken.setdefault(server.name, (pool, path))
            if first != (pool, path) and _bmc(*first) != server.bmc:
                yield _taken(fleet, pool, path, server.name, first)
        if pool.spec.range is not None:
            path = ("spec", "range")
            for name in machines.names_of(pool):
                first = taken.setdefault(name, (pool, path))
                if first[0] is not pool:
                    yield _taken(fleet, pool, path, name, first)
                    break


def _bmc(pool: ServerPool, path: Path) -> str | None:
    """Address of a server that is listed. The same name at the same address is one entry that
    was copied: `checks.addresses` tells it."""
    number = path[2] if len(path) > 2 else None
    return pool.spec.servers[number].bmc if isinstance(number, int) else None


def _taken(
    fleet: Index, pool: ServerPool, path: Path, name: str, first: tuple[ServerPool, Path]
) -> Finding:
    owner, there = first
    made = path[-1] == "range"
    return fleet.complain(
        pool,
        path,
        code="server-name-taken",
        message=f"{'the range makes a server ' if made else ''}{name!r}"
        f"{', a name that' if made else ' is the name that'} ServerPool {owner.metadata.name!r} "
        f"uses already at {fleet.place(owner, there)}",
        hint="give the range another prefix"
        if made
        else "server names are unique in the whole fleet: rename one, or remove the copy",
    )


def lists(fleet: Index) -> Iterator[Finding]:
    """Lists in which saying something twice is a slip of the pen."""
    for region in fleet.every(Region):
        yield from _twice(fleet, region, ("spec", "zones"), region.spec.zones)
        for number, window in enumerate(region.spec.windows):
            yield from _twice(fleet, region, ("spec", "windows", number, "days"), window.days)
    for cloud in fleet.every(Cloud):
        yield from _twice(fleet, cloud, ("spec", "hypervisors"), cloud.spec.hypervisors)
        yield from _twice(fleet, cloud, ("spec", "storage"), cloud.spec.storage)
        yield from _twice(fleet, cloud, ("spec", "services"), cloud.spec.services)
    for cluster in fleet.every(Cluster):
        yield from _of_cluster(fleet, cluster)


def _of_cluster(fleet: Index, cluster: Cluster) -> Iterator[Finding]:
    spec = cluster.spec
    yield from _twice(fleet, cluster, ("spec", "zones"), spec.zones)
    for number, worker in enumerate(spec.workers):
        at: Path = ("spec", "workers", number)
        yield from _twice(fleet, cluster, (*at, "zones"), worker.zones)
        yield from _twice(fleet, cluster, (*at, "taints"), worker.taints)
    if spec.ceph is not None:
        names = [pool.name for pool in spec.ceph.pools]
        yield from _twice(fleet, cluster, ("spec", "ceph", "pools"), names, "name")
        if spec.ceph.stretch is not None:
            at = ("spec", "ceph", "stretch", "zones")
            yield from _twice(fleet, cluster, at, spec.ceph.stretch.zones)
    if spec.hypervisor is not None:
        at = ("spec", "hypervisor")
        yield from _twice(fleet, cluster, (*at, "aggregates"), spec.hypervisor.aggregates)
        yield from _twice(fleet, cluster, (*at, "traits"), spec.hypervisor.traits)


def _twice(
    fleet: Index, document: base.Document, path: Path, values: Sequence[str], below: str = ""
) -> Iterator[Finding]:
    if len(set(values)) == len(values):
        return
    seen: dict[str, int] = {}
    for number, value in enumerate(values):
        first = seen.setdefault(value, number)
        if first != number:
            yield fleet.complain(
                document,
                (*path, number, below) if below else (*path, number),
                code="listed-twice",
                message=f"{str(value)!r} is in the list already, as number {first + 1}",
                hint="remove it, or write the other one that was meant",
            )
