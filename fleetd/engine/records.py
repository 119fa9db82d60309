"""
What the engine keeps in the store beside the journal, and how it is written there.

Conditions keep their `since` over a restart. The accepted topology is kept whole, per region, so
that a daemon started with shorter documents knows what became an orphan, and one started with
documents it refuses goes on with what it had.
"""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pydantic

from fleetd.errors import StoreCorrupt
from fleetd.vocabulary import Condition
from topology.catalogue import Component
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
"""The record that holds the digest of the whole. No region has a name that begins like this."""
CATALOGUE = "*catalogue"
FOLDERS = "*folders"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What drivers need to know of the documents beside the topology. It is kept in the same table,
    so that the two are always of the same documents."""

    catalogue: Mapping[str, Component]
    folders: Mapping[Ref, Path]
    """By document: where its relative files start."""


def encode_surroundings(around: Surroundings) -> dict[str, bytes]:
    components = {
        kind: one.model_dump(mode="json", by_alias=True, exclude_unset=True)
        for kind, one in around.catalogue.items()
    }
    folders = {str(ref): str(folder) for ref, folder in around.folders.items()}
    return {
        CATALOGUE: zlib.compress(_encoder.encode(components), level=1),
        FOLDERS: _encoder.encode(folders),
    }


def decode_surroundings(rows: Mapping[str, bytes]) -> Surroundings | None:
    """None if there are none yet, or if an older fleetd wrote a catalogue that is none any more."""
    if CATALOGUE not in rows or FOLDERS not in rows:
        return None
    kinds = msgspec.json.Decoder(dict[str, Any])
    components = _read(kinds, _inflate(rows[CATALOGUE], CATALOGUE), CATALOGUE)
    folders = _read(msgspec.json.Decoder(dict[str, str]), rows[FOLDERS], FOLDERS)
    try:
        catalogue = {kind: Component.model_validate(one) for kind, one in components.items()}
    except pydantic.ValidationError:
        return None
    return Surroundings(
        catalogue=catalogue,
        folders={parse_ref(name): Path(folder) for name, folder in folders.items()},
    )


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
    names = sorted(name for name in rows if not name.startswith(DIGEST))
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
