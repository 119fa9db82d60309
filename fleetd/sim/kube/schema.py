"""
Objects held against the schema of their kind: what is unknown is dropped, what has a default is
filled in, what does not fit is a problem.

The structural part of OpenAPI as API servers use it. Expressions (`x-kubernetes-validations`) are
not evaluated. Below `x-kubernetes-preserve-unknown-fields` nothing is dropped.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fleetd.sim.kube.values import Obj, encode, is_list, is_map

Schema = Mapping[str, Any]
Problem = tuple[str, str, str]
"""Reason of the cause, field, message: as `refusal.invalid` takes them."""

_OPEN = "x-kubernetes-preserve-unknown-fields"
_TOP = ("apiVersion", "kind", "metadata")


def pruned(obj: Obj, schema: Schema, dropped: list[str]) -> Obj:
    """The object without what the schema does not know; what was dropped is noted by its place."""
    rest = {name: value for name, value in obj.items() if name not in _TOP}
    made = _prune(rest, {**schema, "properties": _rest(schema)}, "", dropped)
    return {**{name: obj[name] for name in _TOP if name in obj}, **made}


def defaulted(obj: Obj, schema: Schema) -> Obj:
    """The object with the defaults of its schema."""
    return _default(obj, schema)


def _rest(schema: Schema) -> Schema:
    properties: Schema = schema.get("properties") or {}
    return {name: inner for name, inner in properties.items() if name not in _TOP}


def _prune(value: Any, schema: Schema, place: str, dropped: list[str]) -> Any:  # noqa: ANN401
    if is_map(value):
        return _prune_map(value, schema, place, dropped)
    items: Schema | None = schema.get("items")
    if is_list(value) and items:
        return [
            _prune(one, items, f"{place}[{number}]", dropped) for number, one in enumerate(value)
        ]
    return value


def _default(value: Any, schema: Schema) -> Any:  # noqa: ANN401
    if is_list(value):
        items: Schema | None = schema.get("items")
        return [_default(one, items) for one in value] if items else value
    if not is_map(value):
        return value
    properties: Schema = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    made: Obj = {
        name: _default(one, inner) if is_map(inner := properties.get(name, more)) else one
        for name, one in value.items()
    }
    for name, inner in properties.items():
        if "default" in inner and made.get(name) is None and not inner.get("nullable"):
            made[name] = _default(inner["default"], inner)
    return made


def _prune_map(value: Obj, schema: Schema, place: str, dropped: list[str]) -> Obj:
    properties: Schema = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    if schema.get("x-kubernetes-embedded-resource"):
        return value
    made: Obj = {}
    for name, inner in value.items():
        here = f"{place}.{name}" if place else name
        if name in properties:
            made[name] = _prune(inner, properties[name], here, dropped)
        elif is_map(more):
            made[name] = _prune(inner, more, here, dropped)
        elif more or schema.get(_OPEN):
            made[name] = inner
        else:
            dropped.append(here)
    return made


def problems(obj: Obj, schema: Schema) -> list[Problem]:
    rest = {name: value for name, value in obj.items() if name not in _TOP}
    return list(_problems(rest, {**schema, "properties": _rest(schema)}, ""))


def _problems(value: Any, schema: Schema, place: str) -> Iterator[Problem]:  # noqa: ANN401
    if value is None and schema.get("nullable"):
        return
    wrong = _wrong_type(value, schema)
    if wrong:
        shown = encode(_type(value)).decode()
        yield (
            "FieldValueTypeInvalid",
            place,
            f"Invalid value: {shown}: {place} in body must be of type {wrong}: {shown}",
        )
        return
    allowed = schema.get("enum")
    if allowed and value not in allowed:
        listed = ", ".join(encode(one).decode() for one in allowed)
        text = encode(value).decode()
        yield (
            "FieldValueNotSupported",
            place,
            f"Unsupported value: {text}: supported values: {listed}",
        )
    for keyword, (holds, words) in _LIMITS.items():
        limit = schema.get(keyword)
        if limit is not None and not holds(value, limit):
            text = encode(value).decode()
            yield (
                "FieldValueInvalid",
                place,
                f"Invalid value: {text}: {place} in body {words.format(limit)}",
            )
    yield from _below(value, schema, place)


def _below(value: Any, schema: Schema, place: str) -> Iterator[Problem]:  # noqa: ANN401
    if is_list(value):
        items: Schema | None = schema.get("items")
        for number, one in enumerate(value if items else ()):
            yield from _problems(one, items or {}, f"{place}[{number}]")
        return
    if not is_map(value):
        return
    dot = f"{place}." if place else ""
    for name in schema.get("required") or ():
        if value.get(name) is None:
            yield "FieldValueRequired", dot + name, "Required value"
    properties: Schema = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    for name, one in value.items():
        inner: Any = properties.get(name, more)
        if is_map(inner):
            yield from _problems(one, inner, dot + name)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": is_map,
    "array": is_list,
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def _wrong_type(value: Any, schema: Schema) -> str:  # noqa: ANN401
    """The type it should have; empty if it has it."""
    if schema.get("x-kubernetes-int-or-string"):
        return "" if _TYPES["string"](value) or _TYPES["integer"](value) else "integer,string"
    wanted = schema.get("type", "")
    test = _TYPES.get(wanted)
    return "" if test is None or test(value) else wanted


def _type(value: Any) -> str:  # noqa: ANN401
    return next((name for name, test in _TYPES.items() if test(value)), "null")


_LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (lambda value, limit: value >= limit, "should be greater than or equal to {}"),
    "maximum": (lambda value, limit: value <= limit, "should be less than or equal to {}"),
    "minLength": (lambda value, limit: len(value) >= limit, "should be at least {} chars long"),
    "maxLength": (lambda value, limit: len(value) <= limit, "should be at most {} chars long"),
    "minItems": (lambda value, limit: len(value) >= limit, "should have at least {} items"),
    "maxItems": (lambda value, limit: len(value) <= limit, "should have at most {} items"),
    "minProperties": (
        lambda value, limit: len(value) >= limit,
        "should have at least {} properties",
    ),
    "pattern": (
        lambda value, limit: not isinstance(value, str) or re.search(limit, value) is not None,
        "should match '{}'",
    ),
}
