"""
Fields of the documents that a catalogue may name: `cloud.services`, `{region.git.path}`.

A misspelt field in a `when` would not fail: the component would stand nowhere, and nobody would
miss it. So each is looked up here in the schemas of the documents, which know every field, and
in the few facts that fleetd fills in beside them.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from topology.catalogue import Scope, Told
from topology.documents.cloud import CloudSpec
from topology.documents.cluster import CephPool, ClusterSpec, Role
from topology.documents.pool import ServerPoolSpec
from topology.documents.region import Garden, RegionSpec

Schema = Mapping[str, Any]

_ANY: Schema = {"type": "object", "additionalProperties": {}}
_TEXT: Schema = {"type": "string"}
_LIST: Schema = {"type": "array", "items": _TEXT}
_HEAD: Schema = {"name": _TEXT, "labels": _ANY}
_OPENED = ("name", "region", "class", "servers", "wanted", "access", "redfish", "labels")
"""What is known of a server pool; its servers are a number here."""


_OF_CLOUD = (Told.RELEASE, Told.SERVICES, Told.SIZE, Told.STORAGE, Told.GIT)
_TOLD = {
    Scope.REGION: (Told.GIT,),
    Scope.CLUSTER: (Told.HOSTS, Told.GIT, Told.TRUST),
    Scope.CLOUD: _OF_CLOUD,
    Scope.CLOUD_HYPERVISOR: (Told.HYPERVISOR, Told.HOSTS, *_OF_CLOUD),
    Scope.CLOUD_STORAGE: (Told.CEPH, *_OF_CLOUD),
    Scope.CEPH_POOL: (Told.CEPH, Told.GIT),
}
_TOLD_OF_ROLE = {
    Role.STORAGE: Told.CEPH,
    Role.HYPERVISOR: Told.HYPERVISOR,
    Role.CONTROL_PLANE: Told.SIZE,
}


class Unknown(ValueError):
    """There is no such field. `part` is the word that leads nowhere, `known` what could stand
    in its place."""

    def __init__(self, part: str, known: tuple[str, ...]) -> None:
        self.part = part
        self.known = known
        super().__init__(part)


def told(scope: Scope, roles: Sequence[Role]) -> tuple[Told, ...]:
    """What a component can be told that stands there. What only clusters of one role have, only
    those can be told that stand on no others."""
    own = [_TOLD_OF_ROLE[role] for role in roles if len(roles) == 1 and role in _TOLD_OF_ROLE]
    return (*own, *_TOLD.get(scope, ()))


def values(field: str, scope: Scope) -> tuple[object, ...] | None:
    """The values a field can have, where there are few; None where anything is possible. Raises
    `Unknown`. `field` is dotted, with the word it starts from: `cluster.ceph.stretch`."""
    head, _, path = field.partition(".")
    root = _root(head, scope)
    found = root
    for part in path.split("."):
        found = _plain(found, root)
        fields: Mapping[str, Any] = found.get("properties", {})
        if part in fields:
            found = fields[part]
        elif isinstance(found.get("additionalProperties"), Mapping):
            return None
        else:
            raise Unknown(part, tuple(fields))
    found = _plain(found, root)
    if "items" in found:
        found = _plain(found["items"], root)
    if "const" in found:
        return (found["const"],)
    if found.get("type") == "boolean":
        return (True, False)
    return tuple(found["enum"]) if "enum" in found else None


def _root(head: str, scope: Scope) -> Schema:
    if head == "pool":
        return _schema("pool" if scope is Scope.CEPH_POOL else "serverpool")
    return _schema("cluster" if head == "storage" else head)


@lru_cache
def _schema(head: str) -> Schema:
    match head:
        case "region":
            return _with(RegionSpec.model_json_schema(), {})
        case "cloud":
            return _with(CloudSpec.model_json_schema(), dict.fromkeys(_CLOUD, _LIST))
        case "pool":
            return CephPool.model_json_schema()
        case "serverpool":
            whole = ServerPoolSpec.model_json_schema()
            fields = _HEAD | whole["properties"] | {"wanted": {"type": "integer"}}
            return whole | {"properties": {name: fields[name] for name in _OPENED}}
        case _:
            garden = Garden.model_json_schema()
            kept = {k: v for k, v in garden["properties"].items() if k != "access"}
            filled = {"garden": garden | {"properties": kept}, "provider": _TEXT}
            return _with(ClusterSpec.model_json_schema(), filled)


_CLOUD = ("aggregates", "traits", "zones")
"""Of all hypervisors of a cloud together."""


def _with(whole: Schema, more: Schema) -> Schema:
    return {**whole, "properties": {**_HEAD, **whole["properties"], **more}}


def _plain(schema: Schema, root: Schema) -> Schema:
    """Without references, and without the null that an optional field may be."""
    while True:
        if "$ref" in schema:
            schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
            continue
        options = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
        if len(options) != 1:
            return schema
        schema = options[0]
