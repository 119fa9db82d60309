"""
What the server knows of the fields of built-in kinds: read from `kind_fields`.

As messages for protobuf, and as a schema: what is of the wrong type cannot be decoded, what is not
known is dropped or, if a client asks for strictness, refused. Values are judged by nobody here but
the admission hooks.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from fleetd.sim.kube.kind_fields import FIELDS
from fleetd.sim.kube.values import Obj

Schema = Mapping[str, Any]
_TEXT: Obj = {"type": "string", "nullable": True}
_PLAIN: dict[str, Obj] = {
    "": _TEXT,
    "i": {"type": "integer", "nullable": True},
    "b": {"type": "boolean", "nullable": True},
    "d": {"type": "number", "nullable": True},
    "y": _TEXT,
    "@time": {**_TEXT, "format": "date-time"},
    "@quantity": {"nullable": True, "x-kubernetes-int-or-string": True},
    "@either": {"nullable": True, "x-kubernetes-int-or-string": True},
    "*": {"type": "array", "nullable": True, "items": _TEXT},
}


class Field(NamedTuple):
    name: str
    """Empty: what is in it stands in the holder itself."""
    many: str
    """`*` a list, `%` a map by text."""
    kind: str
    """Empty: text; a letter or @word for a plain value, otherwise a message."""
    kept: bool
    """Whether an empty value says something."""


@cache
def messages() -> dict[str, dict[int, Field]]:
    """By name, and by number."""
    made: dict[str, dict[int, Field]] = {}
    holder: dict[int, Field] = {}
    for word in FIELDS.split():
        if word.endswith(":"):
            holder = made[word[:-1]] = {}
            continue
        name, _, rest = word.removesuffix("!").partition("=")
        kind = rest.lstrip("0123456789")
        many = kind[:1] if kind[:1] in ("*", "%") else ""
        number = int(rest[: len(rest) - len(kind)])
        holder[number] = Field(name, many, kind[len(many) :], word.endswith("!"))
    return made


@cache
def schema(kind: str) -> Schema | None:
    """None: nothing is known of this kind."""
    if kind not in messages():
        return None
    return {"type": "object", "properties": _properties(kind)}


def metadata() -> Schema:
    return {"type": "object", "properties": {**_properties("ObjectMeta"), "managedFields": {}}}


@cache
def _properties(kind: str) -> Schema:
    found: Obj = {}
    for field in messages()[kind].values():
        if field.name:
            found[field.name] = _of(field)
        else:
            found |= _properties(field.kind)
    return found


def _of(field: Field) -> Schema:
    inner = _PLAIN.get(field.kind)
    if inner is None:
        inner = {"type": "object", "nullable": True, "properties": _properties(field.kind)}
    if field.many == "*":
        return {"type": "array", "nullable": True, "items": inner}
    if field.many == "%":
        return {"type": "object", "nullable": True, "additionalProperties": inner}
    return inner
