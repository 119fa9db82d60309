"""Enough servers: what the clusters ask of a ServerPool against what it has, in all and by zone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address

from topology.checks import index as indexes
from topology.checks.index import Finding, Index, Path
from topology.documents.cluster import Cluster, Worker
from topology.documents.pool import ServerPool


@dataclass(frozen=True, slots=True)
class Ask:
    """A worker that takes its machines from the pool."""

    cluster: Cluster
    number: int
    worker: Worker


def enough(fleet: Index) -> Iterator[Finding]:
    asks: dict[str, list[Ask]] = {}
    for cluster in fleet.clusters.values():
        for number, worker in enumerate(cluster.spec.workers):
            if worker.pool is not None and worker.pool in fleet.pools:
                asks.setdefault(worker.pool, []).append(Ask(cluster, number, worker))
    for name, wanted in asks.items():
        pool = fleet.pools[name]
        yield from _in_all(fleet, pool, wanted)
        yield from _by_zone(fleet, pool, wanted)


def size_of(pool: ServerPool) -> int:
    span = pool.spec.range
    if span is None:
        return len(pool.spec.servers)
    return int(ip_address(span.last)) - int(ip_address(span.first)) + 1


def names_of(pool: ServerPool) -> list[str]:
    """Names of the servers, those of a range as `topology.fleet.servers` makes them."""
    span = pool.spec.range
    if span is None:
        return [server.name for server in pool.spec.servers]
    size = size_of(pool)
    prefix = f"{pool.metadata.name}-" if span.prefix is None else span.prefix
    width = len(str(size))
    return [f"{prefix}{number:0{width}d}" for number in range(1, size + 1)]


def by_zone(pool: ServerPool) -> Mapping[str, int]:
    """How many servers of the pool stand in each zone."""
    if pool.spec.range is not None:
        return {pool.spec.range.zone: size_of(pool)}
    found: dict[str, int] = {}
    for server in pool.spec.servers:
        found[server.zone] = found.get(server.zone, 0) + 1
    return found


def _in_all(fleet: Index, pool: ServerPool, asks: list[Ask]) -> Iterator[Finding]:
    sums: dict[str, int] = {}
    for ask in asks:
        name = ask.cluster.metadata.name
        sums[name] = sums.get(name, 0) + ask.worker.maximum
    total, have = sum(sums.values()), size_of(pool)
    if total <= have:
        return
    yield fleet.complain(
        pool,
        _path(pool),
        code="pool-too-small",
        message=f"its clusters may ask for {_sum(sums)}, but it has {have}",
        hint=f"add {indexes.count(total - have, 'server')}, or lower the maximum of a worker, "
        f"e.g. at {_where(fleet, asks[-1], 'maximum')}",
    )


def _by_zone(fleet: Index, pool: ServerPool, asks: list[Ask]) -> Iterator[Finding]:
    region = fleet.regions.get(pool.spec.region)
    if region is None or len(set(region.spec.zones)) == 1:
        # Of one zone the sum of all tells everything.
        return
    have = by_zone(pool)
    if not have.keys() <= set(region.spec.zones):
        # A zone that does not exist is told already; the servers stand in one of the others.
        return
    for zone in region.spec.zones:
        sums: dict[str, int] = {}
        last = asks[0]
        for ask in asks:
            zones = indexes.zones_of(ask.worker, region)
            # A minimum above the maximum has its own complaint.
            least = min(ask.worker.minimum, ask.worker.maximum)
            share = indexes.share_of_zone(least, zones, zone)
            if share and ask.cluster.spec.region == pool.spec.region:
                name = ask.cluster.metadata.name
                sums[name] = sums.get(name, 0) + share
                last = ask
        total = sum(sums.values())
        if total <= have.get(zone, 0):
            continue
        missing = total - have.get(zone, 0)
        yield fleet.complain(
            pool,
            _path(pool),
            code="pool-zone-too-small",
            message=f"in zone {zone!r} its clusters need {_sum(sums)}, but it has "
            f"{have.get(zone, 0)} there",
            hint=f"minimum is dealt out over the zones of a worker in turn: add "
            f"{indexes.count(missing, 'server')} in zone {zone!r}, lower minimum, or name other "
            f"zones, e.g. at {_where(fleet, last, 'minimum')}",
        )


def _sum(sums: Mapping[str, int]) -> str:
    """`5 servers (hv 3 + st 2)`; the many clusters of a large pool are cut."""
    parts = [f"{name} {number}" for name, number in sums.items()]
    shown = " + ".join(parts[:8]) + (f" + {len(parts) - 8} more" if len(parts) > 8 else "")
    return f"{indexes.count(sum(sums.values()), 'server')} ({shown})"


def _path(pool: ServerPool) -> Path:
    return ("spec", "range") if pool.spec.range is not None else ("spec", "servers")


def _where(fleet: Index, ask: Ask, field: str) -> str:
    return fleet.place(ask.cluster, ("spec", "workers", ask.number, field))
