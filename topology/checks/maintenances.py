"""Maintenances: the region, and the host, rack or zone in it."""

from collections.abc import Iterator

from topology.checks import machines, references
from topology.checks.index import Finding, Index, Path
from topology.documents.maintenance import Maintenance
from topology.documents.pool import ServerPool


def targets(fleet: Index) -> Iterator[Finding]:
    found = list(fleet.every(Maintenance))
    if not found:
        return
    hosts = {name: pool for pool in fleet.pools.values() for name in machines.names_of(pool)}
    racks = _racks(fleet)
    for maintenance in found:
        spec = maintenance.spec
        region = fleet.regions.get(spec.region)
        if region is None:
            at: Path = ("spec", "region")
            yield from fleet.unknown(maintenance, at, "Region", spec.region, fleet.regions)
            continue
        if spec.zone is not None and spec.zone not in region.spec.zones:
            yield references.zone(fleet, maintenance, ("spec", "zone"), spec.zone, region)
        known = racks.get(spec.region, set())
        if spec.rack is not None and spec.rack not in known and _all_known(fleet):
            yield _missing(fleet, maintenance, "rack", spec.rack, known)
        if spec.host is not None:
            yield from _host(fleet, maintenance, spec.host, hosts)


def _all_known(fleet: Index) -> bool:
    """Whether every pool was read and stands in a region that exists."""
    regions = {pool.spec.region for pool in fleet.pools.values()}
    return fleet.whole("ServerPool") and regions <= fleet.regions.keys()


def _racks(fleet: Index) -> dict[str, set[str]]:
    """The racks of each region."""
    racks: dict[str, set[str]] = {}
    for pool in fleet.pools.values():
        span = pool.spec.range
        for one in pool.spec.servers if span is None else [span]:
            if one.rack is not None:
                racks.setdefault(pool.spec.region, set()).add(one.rack)
    return racks


def _host(
    fleet: Index, maintenance: Maintenance, name: str, hosts: dict[str, ServerPool]
) -> Iterator[Finding]:
    region = maintenance.spec.region
    pool = hosts.get(name)
    if pool is None and not fleet.whole("ServerPool"):
        return
    if pool is None:
        near = {host for host, found in hosts.items() if found.spec.region == region}
        yield _missing(fleet, maintenance, "host", name, near)
    elif pool.spec.region != region:
        yield from references.abroad(fleet, maintenance, ("spec", "host"), pool, meant="server")


def _missing(
    fleet: Index, maintenance: Maintenance, field: str, name: str, known: set[str]
) -> Finding:
    what = "server" if field == "host" else field
    return fleet.complain(
        maintenance,
        ("spec", field),
        code="unknown-server" if field == "host" else "unknown-rack",
        message=f"no ServerPool of Region {maintenance.spec.region!r} has a {what} {name!r}",
        hint=fleet.speller.hint(name, known, f"add the {what} to a pool, or correct the name"),
    )
