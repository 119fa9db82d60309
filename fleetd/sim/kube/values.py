"""
JSON values and the few things done to them everywhere.

One rule: an object that has been stored is never changed, it is replaced; so whoever wants to
change something takes a `clone` first.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeGuard

import msgspec

Obj = dict[str, Any]
GK = tuple[str, str]
"""Group and kind: `("apps", "Deployment")`; the core group is the empty text."""

encode: Callable[[object], bytes] = msgspec.json.Encoder().encode
decode: Callable[[bytes], Any] = msgspec.json.Decoder().decode


def clone(value: Any) -> Any:  # noqa: ANN401 - any JSON value goes in and comes out
    """A deep copy, through the encoder: several times faster than walking in Python, and what is
    not JSON is refused here instead of surfacing in a response."""
    return decode(encode(value))


def is_map(value: Any) -> TypeGuard[Obj]:  # noqa: ANN401
    return type(value) is dict


def is_list(value: Any) -> TypeGuard[list[Any]]:  # noqa: ANN401
    return type(value) is list


def stamp(at: datetime) -> str:
    """The form of all times in objects: UTC, whole seconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def at(obj: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401
    """The value at a dotted path, or None."""
    value: Any = obj
    for name in path.split("."):
        if not is_map(value) or name not in value:
            return None
        value = value[name]
    return value


def name_of(obj: Mapping[str, Any]) -> str:
    return obj["metadata"].get("name", "")


def namespace_of(obj: Mapping[str, Any]) -> str:
    return obj["metadata"].get("namespace", "")


def gk_of(obj: Mapping[str, Any]) -> GK:
    group, _, _ = obj["apiVersion"].rpartition("/")
    return group, obj["kind"]
