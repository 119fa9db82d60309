"""
Whether an object can be an object: the types and names of its metadata, and of what the server
itself reads of it.

A value of the wrong type is what a real server cannot even decode (400); a value of the right
type that is not allowed is invalid (422).
"""

import re
from collections.abc import Iterator
from typing import Any

from fleetd.sim.kube import known, refusal, schema
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.refusal import Refused
from fleetd.sim.kube.values import Obj, encode, is_map

_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_LABEL = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")
_RFC1123 = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    "for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_SHAPES: dict[str, type] = {
    "name": str,
    "namespace": str,
    "generateName": str,
    "uid": str,
    "resourceVersion": str,
    "labels": dict,
    "annotations": dict,
    "finalizers": list,
    "ownerReferences": list,
}
_LEFT_OUT = ("labels", "annotations", "finalizers", "ownerReferences", "namespace")
"""Where empty."""
_OWNER = ("apiVersion", "kind", "name", "uid")


def bad(path: str, value: Any, why: str) -> schema.Problem:  # noqa: ANN401
    return "FieldValueInvalid", path, f"Invalid value: {encode(value).decode()}: {why}"


def undecodable(definition: Definition, place: str) -> Refused:
    return refusal.bad_request(
        f'{definition.kind} in version "{definition.version}" cannot be handled as a '
        f"{definition.kind}: json: cannot unmarshal into Go struct field {place}"
    )


_KNOWN = frozenset(known.metadata()["properties"])


def known_part(metadata: Obj, dropped: list[str]) -> Obj:
    """Without what metadata cannot have; that is noted by its place."""
    dropped.extend(f"metadata.{name}" for name in metadata if name not in _KNOWN)
    return {name: value for name, value in metadata.items() if name in _KNOWN}


def typed(definition: Definition, obj: Obj) -> None:
    """Raises if a field of a built-in kind is of another type than the kind has it."""
    if definition.known is None:
        return
    rest = {name: value for name, value in obj.items() if value is not None}
    found = schema.problems(rest, definition.known)
    if found:
        raise undecodable(definition, f"{definition.kind}.{found[0][1]}")


def decode(definition: Definition, obj: Obj) -> None:
    """Raises if the object is not made of the right types."""
    metadata = obj.get("metadata")
    if metadata is not None and not is_map(metadata):
        raise undecodable(definition, "metadata")
    for name, kind in _SHAPES.items():
        value = (metadata or {}).get(name)
        if value is not None and type(value) is not kind:
            raise undecodable(definition, f"ObjectMeta.metadata.{name}")
    for part in ("spec", "status"):
        if obj.get(part) is not None and not is_map(obj[part]):
            raise undecodable(definition, f"{definition.kind}.{part}")
    if definition.decodes is not None:
        found = schema.problems(obj, definition.decodes)
        if found:
            raise undecodable(definition, f"{definition.kind}.{found[0][1]}")


def check(definition: Definition, obj: Obj) -> None:
    """Raises if the metadata is not allowed. What is empty is left out; the metadata is ours."""
    metadata: Obj = obj["metadata"]
    for name in _LEFT_OUT:
        if name in metadata and not metadata[name]:
            del metadata[name]
    name = metadata["name"]
    _check_texts(definition, metadata)
    problems: list[schema.Problem] = []
    if not definition.free_names and (len(name) > 253 or not _NAME.match(name)):
        problems.append(bad("metadata.name", name, _RFC1123))
    problems.extend(_labels(definition, metadata))
    problems.extend(_owners(definition, metadata))
    if problems:
        raise refusal.invalid(definition, name, *problems)


def _check_texts(definition: Definition, metadata: Obj) -> None:
    for key, value in metadata.get("annotations", {}).items():
        if not isinstance(value, str):
            raise undecodable(definition, f"ObjectMeta.metadata.annotations of type string: {key}")
    if not all(isinstance(one, str) for one in metadata.get("finalizers", ())):
        raise undecodable(definition, "ObjectMeta.metadata.finalizers of type string")


def _labels(definition: Definition, metadata: Obj) -> Iterator[schema.Problem]:
    for key, value in metadata.get("labels", {}).items():
        if not isinstance(value, str):
            raise undecodable(definition, f"ObjectMeta.metadata.labels of type string: {key}")
        if len(value) > 63 or not _LABEL.match(value):
            yield bad("metadata.labels", value, f"a valid label must be given: {key}")


def _owners(definition: Definition, metadata: Obj) -> Iterator[schema.Problem]:
    for owner in metadata.get("ownerReferences", ()):
        if not is_map(owner):
            raise undecodable(definition, "ObjectMeta.metadata.ownerReferences")
        for part in _OWNER:
            if not owner.get(part) or not isinstance(owner[part], str):
                yield bad(f"metadata.ownerReferences.{part}", "", "must not be empty")
