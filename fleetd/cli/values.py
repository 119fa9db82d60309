"""
One setting as text or TOML, to its value and back. `parse(show(value)) == value`.

A complaint says what would be right. It quotes what was given, except where that may be a secret
typed into the wrong place.
"""

import enum
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pydantic

from fleetd import settings
from fleetd.cli.schema import Field
from topology.documents import base


class Wrong(Exception):
    """What is wrong with a value, and what to do."""


def parse(field: Field, raw: object, folder: Path) -> object:
    """`folder` is what a relative path is relative to. Raises Wrong."""
    if field.is_list:
        return _list(field, raw, folder)
    if field.kind == base.Access | None:
        return _access(raw, folder)
    if field.kind in _ENUMS:
        return _enum(field.kind, raw)
    parser = _PARSERS[field.kind]
    value = parser(raw, folder)
    return _bounded(field, value)


def show(value: object) -> str:
    """For a person, and as text that `parse` reads."""
    match value:
        case None:
            return ""
        case timedelta():
            return show_duration(value)
        case base.Access():
            return f"file:{value.file}" if value.file is not None else f"env:{value.env}"
        case enum.Enum():
            return str(value.value)
        case settings.Address():
            return str(value)
        case tuple():
            return ",".join(str(one) for one in cast("Sequence[object]", value))
        case _:
            return str(value)


def show_plain(value: object) -> object:
    """A value that JSON and TOML have: text, number, list."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, tuple) and not isinstance(value, settings.Address):
        return [str(one) for one in cast("Sequence[object]", value)]
    return None if value is None else show(value)


def show_duration(value: timedelta) -> str:
    if value.microseconds:
        return f"{round(value.total_seconds() * 1000)}ms"
    return base.show_duration(value)


def _list(field: Field, raw: object, folder: Path) -> object:
    if isinstance(raw, str):
        raw = [part.strip() for part in raw.split(",") if part.strip()]
    if not isinstance(raw, (list, tuple)):
        raise Wrong(f"{_quote(raw)} is not a list; write e.g. [{_EXAMPLES[field.name]}]")
    found: list[object] = []
    for one in cast("Sequence[object]", raw):
        if not isinstance(one, str) or not one:
            raise Wrong(f"{_quote(one)} is not text; write e.g. [{_EXAMPLES[field.name]}]")
        found.append(_member(field.name, one, folder))
    return tuple(found)


_EXAMPLES = {
    "documents": '"fleet/"',
    "catalogue": '"components/"',
    "drivers": '"drivers.gardener"',
    "consents": '"mass-eu-1-0123456789ab"',
    "network.direct": '"127.0.0.1"',
}


def _member(name: str, text: str, folder: Path) -> object:
    match name:
        case "drivers":
            return _module(text)
        case "consents" | "network.direct":
            return text
        case _:
            return folder / text


def _module(text: str) -> str:
    if not all(part.isidentifier() for part in text.split(".")):
        raise Wrong(f"{_quote(text)} is not a Python module; write e.g. drivers.gardener")
    return text


def _enum(kind: type[enum.Enum], raw: object) -> enum.Enum:
    allowed = [str(member.value) for member in kind]
    if isinstance(raw, str) and raw.lower() in allowed:
        return kind(raw.lower())
    if kind is settings.StoreKind and raw == "kubernetes":
        raise Wrong("the kubernetes store is not yet in this version; use sqlite")
    raise Wrong(f"{_quote(raw)} is not one of {', '.join(allowed)}")


def _access(raw: object, folder: Path) -> base.Access:
    """`file:PATH`, `env:NAME`, or the same as a table. What was given is never repeated: it may
    be the token itself."""
    table: object = raw
    if isinstance(raw, str):
        kind, _, rest = raw.partition(":")
        table = {kind: rest} if kind in {"file", "env"} else None
    try:
        access = base.Access.model_validate(table)
    except pydantic.ValidationError:
        access = None
    if access is None or (access.file is None and access.env is None):
        raise Wrong("this names where a secret is found, it is not the secret; use file: or env:")
    if access.file is not None:
        return base.Access(file=str(folder / access.file))
    return access


def _text_path(raw: object, folder: Path) -> Path:
    if not isinstance(raw, str) or not raw:
        raise Wrong(f"{_quote(raw)} is not a path")
    return folder / raw


def _proxy(raw: object, _folder: Path) -> str:
    """What was given is not repeated: it may hold a password."""
    if re.fullmatch(r"https?://[^/@\s]+/?", str(raw)) is None:
        raise Wrong("this is not a proxy; write http://HOST:PORT, without a password")
    return str(raw)


def _address(raw: object, _folder: Path) -> settings.Address:
    found = re.fullmatch(r"(\[(?P<six>[^\]]+)\]|(?P<host>[^:\[\]]+)):(?P<port>\d{1,5})", str(raw))
    if not found or int(found["port"]) > 65535:
        raise Wrong(f"{_quote(raw)} is not HOST:PORT; write e.g. 127.0.0.1:8440 or [::1]:8440")
    return settings.Address(found["six"] or found["host"], int(found["port"]))


_MILLISECONDS = re.compile(r"(\d{1,9})ms")


def _duration(raw: object, _folder: Path) -> timedelta:
    if isinstance(raw, str):
        if found := _MILLISECONDS.fullmatch(raw):
            return timedelta(milliseconds=int(found[1]))
        duration = base.parse_duration(raw)
        if duration is not None:
            return duration
    if isinstance(raw, (int, float)) or (isinstance(raw, str) and raw.isdigit()):
        raise Wrong(f'{raw} has no unit; write "{raw}s" for seconds')
    raise Wrong(f"{_quote(raw)} is not a duration; write e.g. 500ms, 45s, 30m, 2h or 1h30m")


def _int(raw: object, _folder: Path) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and re.fullmatch(r"-?\d{1,18}", raw):
        return int(raw)
    raise Wrong(f"{_quote(raw)} is not a whole number")


def _float(raw: object, _folder: Path) -> float:
    if isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return float(raw)
    if isinstance(raw, str) and re.fullmatch(r"-?\d{1,18}(\.\d{1,18})?", raw):
        return float(raw)
    raise Wrong(f"{_quote(raw)} is not a number")


_PARSERS: dict[Any, Callable[[object, Path], object]] = {
    Path: _text_path,
    Path | None: _text_path,
    str | None: _proxy,
    settings.Address: _address,
    timedelta: _duration,
    int: _int,
    int | None: _int,
    float: _float,
}


_ENUMS = (settings.StoreKind, settings.LogFormat, settings.LogLevel)


def _bounded(field: Field, value: object) -> object:
    if field.bounds is None:
        return value
    low, high = field.bounds
    size = value.total_seconds() if isinstance(value, timedelta) else cast("float", value)
    if low <= size <= high:
        return value
    raise Wrong(f"{show(value)} is out of range; choose {_span(field)}")


def _span(field: Field) -> str:
    low, high = field.bounds or (0, 0)
    if field.kind is timedelta:
        ends = [show_duration(timedelta(seconds=end)) for end in (low, high)]
    else:
        ends = [f"{int(end) if end == int(end) else end}" for end in (low, high)]
    return " to ".join(ends)


def _quote(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
