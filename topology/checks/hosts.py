"""
Names of hypervisors in one cloud: none is part of another.

Nova's search by name matches parts of names. With `node-1` and `node-10` in one cloud the
hypervisor operator finds two hosts for the first, and it never leaves the cloud.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from topology.checks import index as indexes
from topology.checks import machines
from topology.checks.index import Finding, Index, Path
from topology.documents.cloud import Cloud
from topology.documents.cluster import Cluster
from topology.documents.pool import ServerPool

NAME_MAX = 63


class Host(NamedTuple):
    pool: ServerPool
    path: Path


def distinct(fleet: Index) -> Iterator[Finding]:
    told: set[tuple[str, str]] = set()
    for cloud in fleet.clouds.values():
        hosts: dict[str, Host] = {}
        for pool in _pools(fleet, cloud):
            made = pool.spec.range is not None
            for number, name in enumerate(machines.names_of(pool)):
                path: Path = ("spec", "range") if made else ("spec", "servers", number, "name")
                hosts.setdefault(name, Host(pool, path))
        for name, others in contained(list(hosts)):
            pool = hosts[name].pool
            # Of a range the first name tells all.
            key = (pool.metadata.name, "" if pool.spec.range is not None else name)
            if key not in told:
                told.add(key)
                yield _complain(fleet, cloud, hosts, name, others)


def contained(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each name that is part of others, with them. A place inside a name is looked at only if
    some name begins like it, so names of one length cost nothing and others little."""
    known = frozenset(names)
    lengths = sorted({len(name) for name in known})
    if len(lengths) < 2:
        return []
    shortest = lengths[0]
    beginnings = {name[:shortest] for name in known}
    found: dict[str, list[str]] = {}
    for name in names:
        size = len(name)
        parts: dict[str, None] = {}
        for at in range(size - shortest + 1):
            if name[at : at + shortest] in beginnings:
                ends = (at + length for length in lengths if length < size and at + length <= size)
                parts.update((part, None) for end in ends if (part := name[at:end]) in known)
        for part in parts:
            found.setdefault(part, []).append(name)
    return list(found.items())


def _pools(fleet: Index, cloud: Cloud) -> list[ServerPool]:
    clusters = [fleet.clusters[name] for name in cloud.spec.hypervisors if name in fleet.clusters]
    names = {worker.pool: None for one in clusters for worker in one.spec.workers if worker.pool}
    return [fleet.pools[name] for name in names if name in fleet.pools]


def _complain(
    fleet: Index, cloud: Cloud, hosts: dict[str, Host], name: str, others: list[str]
) -> Finding:
    other = hosts[others[0]]
    return fleet.complain(
        *hosts[name],
        code="host-name-contained",
        message=f"hypervisor {name!r} is part of the name {indexes.listed(map(repr, others), 3)} "
        f"(ServerPool {other.pool.metadata.name!r} at {fleet.place(*other)}) in Cloud "
        f"{cloud.metadata.name!r}: Nova would find both, and the host could never be taken out",
        hint="use names of one length, such as node-01 and node-10",
    )


def aggregates(fleet: Index) -> Iterator[Finding]:
    """A host joins the aggregate of its zone by itself, and Nova refuses a host in two zones."""
    for cluster in fleet.every(Cluster):
        region = fleet.regions.get(cluster.spec.region)
        if region is None or cluster.spec.hypervisor is None:
            continue
        for number, name in enumerate(cluster.spec.hypervisor.aggregates):
            if name not in region.spec.zones:
                continue
            yield fleet.complain(
                cluster,
                ("spec", "hypervisor", "aggregates", number),
                code="aggregate-reserved",
                message=f"{name!r} is a zone of Region {region.metadata.name!r}; each host joins "
                "the aggregate of its own zone by itself, and Nova refuses a host in two",
                hint="remove it; name only aggregates of your own",
            )


def lengths(fleet: Index) -> Iterator[Finding]:
    """Names made from a range are host names, too."""
    for pool in fleet.every(ServerPool):
        if pool.spec.range is None:
            continue
        size = len(machines.names_of(pool)[-1])
        if size > NAME_MAX:
            yield fleet.complain(
                pool,
                ("spec", "range"),
                code="server-name-too-long",
                message=f"the range makes server names of {size} characters, more than {NAME_MAX}",
                hint="add a short prefix, e.g. prefix: r1-s",
            )
