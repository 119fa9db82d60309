"""
One machine, one entry: BMC addresses and system UUIDs over all pools and regions.

The metal operator claims a machine twice if two BMC objects lead to it, and the release of one
claim then shuts down the machine of the other. The rule of this file: every address is read
once, and overlaps are found in one pass over the sorted intervals.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from socket import AF_INET, AF_INET6, inet_pton

from topology.checks.index import Finding, Index, Path
from topology.documents.pool import ServerPool

_MAPPED = 0xFFFF << 32
_RANGE = -1

Owner = tuple[ServerPool, int]
"""A pool, and the number of one of its servers or `_RANGE`."""


def unique(fleet: Index) -> Iterator[Finding]:
    """No address belongs to two entries. Of two the later one is complained about."""
    owners: list[Owner] = []
    spans: list[tuple[int, int, int]] = []
    for pool in fleet.every(ServerPool):
        for number, server in enumerate(pool.spec.servers):
            at = as_number(server.bmc)
            spans.append((at, at, len(owners)))
            owners.append((pool, number))
        if pool.spec.range is not None:
            first, last = pool.spec.range.first, pool.spec.range.last
            spans.append((as_number(first), as_number(last), len(owners)))
            owners.append((pool, _RANGE))
    spans.sort()
    reach = (-1, -1, -1)
    for span in spans:
        if span[0] <= reach[1]:
            early, late = sorted((span, reach), key=lambda one: one[2])
            if not _same_document_twice(owners[early[2]], owners[late[2]]):
                shared = (span[0], min(span[1], reach[1]))
                yield _overlap(fleet, owners[early[2]], owners[late[2]], shared)
        if span[1] > reach[1]:
            reach = span


def as_number(text: str) -> int:
    """The address as one number: IPv6 as it is, IPv4 at the place of its IPv4-mapped IPv6 form,
    so that `192.0.2.1` and `::ffff:192.0.2.1` are seen to be one machine. `inet_pton` touches no
    network and is ten times faster than `ipaddress`; the text was found good before."""
    if ":" in text:
        return int.from_bytes(inet_pton(AF_INET6, text), "big")
    return int.from_bytes(inet_pton(AF_INET, text), "big") | _MAPPED


def uuids(fleet: Index) -> Iterator[Finding]:
    """No system UUID belongs to two entries."""
    taken: dict[str, Owner] = {}
    for pool in fleet.every(ServerPool):
        for number, server in enumerate(pool.spec.servers):
            if server.uuid is None:
                continue
            first = taken.setdefault(server.uuid, (pool, number))
            if first == (pool, number) or _same_document_twice(first, (pool, number)):
                continue
            if first[0].spec.servers[first[1]].bmc == server.bmc:
                # An entry that was copied whole is told by its address.
                continue
            yield fleet.complain(
                pool,
                ("spec", "servers", number, "uuid"),
                code="uuid-taken",
                message=f"{server.uuid} is also the UUID of {_name(fleet, first)}: two entries "
                "for one machine, which would be claimed twice",
                hint="remove one of the two, or copy the right UUID from the BMC",
            )


def _same_document_twice(first: Owner, second: Owner) -> bool:
    """A copy of a whole pool is complained about by its name; not again for each server."""
    return first[0] is not second[0] and first[0].metadata.name == second[0].metadata.name


def _overlap(fleet: Index, early: Owner, late: Owner, shared: tuple[int, int]) -> Finding:
    pool = late[0]
    other = _name(fleet, early)
    first, last = map(_as_text, shared)
    if first != last:
        message = f"{first} - {last} are also in {other}"
    elif early[1] == _RANGE:
        message = f"{first} is also in {other}"
    else:
        message = f"{first} is also the BMC of {other}"
    return fleet.complain(
        pool,
        _path(late),
        code="bmc-address-taken",
        message=f"{message}: two entries for one machine, which would be claimed twice",
        hint="correct one of the two addresses, or remove the entry that is too much",
    )


def _name(fleet: Index, owner: Owner) -> str:
    pool, number = owner
    place = fleet.place(pool, _path(owner))
    if number != _RANGE:
        server = pool.spec.servers[number].name
        return f"server {server!r} of ServerPool {pool.metadata.name!r} at {place}"
    span = pool.spec.range
    text = f"{span.first} - {span.last}" if span else ""
    return f"the range {text} of ServerPool {pool.metadata.name!r} at {place}"


def _path(owner: Owner) -> Path:
    number = owner[1]
    return ("spec", "range", "first") if number == _RANGE else ("spec", "servers", number, "bmc")


def _as_text(number: int) -> str:
    if number >> 32 == _MAPPED >> 32:
        return str(IPv4Address(number & 0xFFFFFFFF))
    return str(IPv6Address(number))
