"""
Where settings come from: flags, then environment, then a TOML file, then the default.

Reads everything once and complains about everything at once, with the place of each complaint.
Something unknown is an error, never ignored: a misspelt limit is a limit that is not there.
"""

import dataclasses
import difflib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fleetd import errors, settings
from fleetd.cli import values
from fleetd.cli.schema import FIELDS, Field

PREFIX = "FLEETD_"
CONFIG = "FLEETD_CONFIG"
OTHERS = frozenset({CONFIG, "FLEETD_PARTS", "FLEETD_REQUIRE_REAL"})
"""Variables with our prefix that are not settings: the file itself; the cache of `make parts`;
whether a missing real server fails the tests. A shell that has them set also starts daemons."""
INJECTED = re.compile(
    r"FLEETD_(\w+_)?("
    r"SERVICE_HOST=.*|SERVICE_PORT(_\w+)?=\d+|PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://.*"
    r"|PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)=.*)"
)
"""Kubernetes gives these to every pod beside a Service whose name begins with fleetd. The value is
looked at too, so that a misspelt FLEETD_LISTEN_PORT is still found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    settings: settings.Settings
    sources: Mapping[str, str]
    """By field: `flag --listen`, `FLEETD_LISTEN`, `fleetd.toml:12` or `default`."""


@dataclass(frozen=True, slots=True)
class _Found:
    value: object
    source: str


def load(flags: Mapping[str, object], environ: Mapping[str, str], config: Path | None) -> Loaded:
    """`flags` are by field name, as text or a sequence of texts. Raises SettingsError."""
    complaints: list[str] = []
    found: dict[str, _Found] = {}
    for source in (
        _from_file(config, complaints),
        _from_environment(environ, complaints),
        _from_flags(flags, complaints),
    ):
        found.update(source)
    if not complaints:
        tree = _build({name: one.value for name, one in found.items()})
        sources = {
            field.name: found[field.name].source if field.name in found else "default"
            for field in FIELDS.values()
        }
        complaints = [
            f"{sources[name]}: {name}: {text}" for name, text in settings.contradictions(tree)
        ]
        if not complaints:
            return Loaded(settings=tree, sources=sources)
    raise errors.SettingsError("\n".join(complaints))


def _from_flags(flags: Mapping[str, object], complaints: list[str]) -> Iterator[tuple[str, _Found]]:
    for name, raw in flags.items():
        yield from _parsed(FIELDS[name], raw, f"flag {FIELDS[name].flag}", Path(), complaints)


def _from_environment(
    environ: Mapping[str, str], complaints: list[str]
) -> Iterator[tuple[str, _Found]]:
    by_variable = {field.variable: field for field in FIELDS.values()}
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in OTHERS:
            continue
        if INJECTED.fullmatch(f"{variable}={environ[variable]}"):
            continue
        field = by_variable.get(variable)
        if field is None:
            hint = _did_you_mean(variable, by_variable)
            complaints.append(f"{variable}: there is no such setting; {hint}")
            continue
        yield from _parsed(field, environ[variable], variable, Path(), complaints)


def _from_file(path: Path | None, complaints: list[str]) -> Iterator[tuple[str, _Found]]:
    if path is None:
        return
    try:
        text = path.read_text("utf-8")
        tree = tomllib.loads(text)
    except OSError as cause:
        complaints.append(f"{path}: cannot be read: {cause.strerror}")
        return
    except UnicodeDecodeError:
        complaints.append(f"{path}: is not text in UTF-8")
        return
    except tomllib.TOMLDecodeError as cause:
        complaints.append(f"{path}: is not TOML: {cause}")
        return
    lines = _lines(text)

    def place(name: str) -> str:
        known = next((lines[part] for part in _parents(name) if part in lines), 1)
        return f"{path}:{known}"

    for name, raw in _leaves(tree, "", place, complaints):
        yield from _parsed(FIELDS[name], raw, place(name), path.parent, complaints)


def _leaves(
    table: Mapping[str, Any], prefix: str, place: Callable[[str], str], complaints: list[str]
) -> Iterator[tuple[str, object]]:
    for key, raw in table.items():
        name = f"{prefix}{key}"
        inside = any(other.startswith(f"{name}.") for other in FIELDS)
        if name in FIELDS:
            yield name, raw
        elif inside and isinstance(raw, dict):
            yield from _leaves(cast("dict[str, Any]", raw), f"{name}.", place, complaints)
        elif inside:
            complaints.append(f"{place(name)}: {name}: is a table; write [{name}] and keys below")
        else:
            complaints.append(
                f"{place(name)}: {name}: there is no such setting; {_did_you_mean(name, FIELDS)}"
            )


def _parsed(
    field: Field, raw: object, source: str, folder: Path, complaints: list[str]
) -> Iterator[tuple[str, _Found]]:
    try:
        yield field.name, _Found(values.parse(field, raw, folder), source)
    except values.Wrong as wrong:
        complaints.append(f"{source}: {field.name}: {wrong}")


def _build(found: Mapping[str, object]) -> settings.Settings:
    sections: dict[str, dict[str, object]] = {}
    for name, value in found.items():
        section, _, key = name.rpartition(".")
        sections.setdefault(section, {})[key] = value
    top = sections.pop("", {})
    for section, inner in sections.items():
        top[section] = dataclasses.replace(getattr(settings.Settings(), section), **inner)
    return settings.Settings(**top)  # pyright: ignore[reportArgumentType] -- parsed by field type


def _did_you_mean(name: str, known: Mapping[str, object]) -> str:
    # The right key in the wrong table first: no spelling is nearer than the same.
    tail = name.rpartition(".")[2]
    moved = [other for other in known if other.rpartition(".")[2] == tail]
    tables = {other.rpartition(".")[0] for other in known if "." in other}
    close = moved or difflib.get_close_matches(name, [*known, *sorted(tables)], n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else "see `fleetd config`"


def _parents(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition(".")[0]


_HEADER = re.compile(r"\s*\[\s*([\w.\s\"'-]+?)\s*\]")
_KEY = re.compile(r"\s*([\w.\"'-]+(?:\s*\.\s*[\w\"'-]+)*)\s*=")


def _lines(text: str) -> dict[str, int]:
    """The line of each table and key. tomllib keeps no positions; a look at the beginnings of
    lines finds them wherever people put them."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _plain(header[1])
            found.setdefault(table, number)
        elif key := _KEY.match(line):
            found.setdefault(f"{table}.{_plain(key[1])}".lstrip("."), number)
    return found


def _plain(key: str) -> str:
    return re.sub(r"[\s\"']", "", key)
