"""
What the engine keeps in the store beside the journal, and how it is written there.

Conditions keep their `since` over a restart. The accepted topology is kept whole, per region, so
that a daemon started with shorter documents knows what became an orphan, and one started with
documents it refuses goes on with what it had.
"""

import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fleetd.errors import StoreCorrupt
from fleetd.vocabulary import Condition
from topology.resource import Edge, Ref, Resource, Topology

CONDITIONS = "conditions"
ACCEPTED = "accepted"
ORPHANS = "orphans"
REGIONS = "regions"
PAUSES = "pauses"
APPROVALS = "approvals"
RETIRED = "retired"

_encoder = msgspec.json.Encoder(order="sorted")


def encode(condition: Condition) -> bytes:
    return _encoder.encode(condition)


def decode_conditions(rows: Mapping[str, bytes]) -> dict[Ref, Condition]:
    decoder = msgspec.json.Decoder(Condition)
    return {parse_ref(key): _read(decoder, value, key) for key, value in rows.items()}


def parse_ref(text: str) -> Ref:
    kind, _, name = text.partition("/")
    return Ref(kind, name)


DIGEST = "*"
"""The record that holds the digest of the whole; no region can have this name."""


class _Region(msgspec.Struct, frozen=True):
    resources: list[Resource]
    edges: list[Edge]


def encode_topology(topology: Topology) -> dict[str, bytes]:
    """One record per region, so that a change in one rewrites one."""
    edges: dict[str, list[Edge]] = {region: [] for region in topology.regions}
    for edge in topology.edges:
        edges[topology.resources[edge.source].region].append(edge)
    rows = {
        region: zlib.compress(
            _encoder.encode(_Region([topology.resources[ref] for ref in refs], edges[region])),
            level=1,
        )
        for region, refs in topology.regions.items()
    }
    rows[DIGEST] = topology.digest.encode()
    return rows


def decode_topology(rows: Mapping[str, bytes]) -> Topology | None:
    """None if there is none yet."""
    if not rows:
        return None
    decoder = msgspec.json.Decoder(_Region)
    names = sorted(rows.keys() - {DIGEST})
    regions = [_read(decoder, _inflate(rows[name], name), name) for name in names]
    resources = sorted(
        (resource for region in regions for resource in region.resources),
        key=lambda resource: (resource.rank, resource.ref),
    )
    place = {resource.ref: number for number, resource in enumerate(resources)}
    edges = [edge for region in regions for edge in region.edges]
    # Stable: the edges of one thing stay in the order in which they were compiled.
    edges.sort(key=lambda edge: place[edge.source])
    return Topology(
        digest=rows[DIGEST].decode(),
        resources={resource.ref: resource for resource in resources},
        edges=tuple(edges),
    )


def encode_orphans(orphans: Iterable[Resource]) -> dict[str, bytes]:
    return {str(orphan.ref): _encoder.encode(orphan) for orphan in orphans}


def decode_orphans(rows: Mapping[str, bytes]) -> dict[Ref, Resource]:
    decoder = msgspec.json.Decoder(Resource)
    return {parse_ref(key): _read(decoder, rows[key], key) for key in sorted(rows)}


def _inflate(value: bytes, key: str) -> bytes:
    try:
        return zlib.decompress(value)
    except zlib.error as cause:
        raise StoreCorrupt(
            f"record {key} cannot be unpacked; restore the state directory"
        ) from cause


def _read(decoder: msgspec.json.Decoder[Any], value: bytes, key: str) -> Any:  # noqa: ANN401
    try:
        return decoder.decode(value)
    except msgspec.MsgspecError as cause:
        raise StoreCorrupt(f"record {key} cannot be read; restore the state directory") from cause
