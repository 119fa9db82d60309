"""
The forms in which objects go out: whole, only their metadata, or as rows of a table.

Which one is asked for stands in the Accept header, as `application/json;as=Table;v=v1`. Whole
objects are the common case and go out as the bytes they are kept in.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from fleetd.sim.kube import refusal
from fleetd.sim.kube.definitions import Column, Definition
from fleetd.sim.kube.store import Row
from fleetd.sim.kube.values import Obj, at, encode, is_list, is_map, moment

_META = "meta.k8s.io/v1"
_CONDITION = re.compile(r"^(.*)\[([A-Za-z0-9]+)\]$")
_FILTER = re.compile(r"""^(.*?)\[\?\(@\.(\w+)\s*==\s*["']([^"']*)["']\)\](?:\.(.*))?$""")


@lru_cache(maxsize=256)
def wanted(accept: str) -> str:
    """The form an Accept header asks for: empty, `Table`, `PartialObjectMetadata` and its list."""
    if not accept:
        return ""
    for part in accept.split(","):
        kind, *parameters = (piece.strip() for piece in part.split(";"))
        if kind not in ("application/json", "*/*", "application/*", "text/*"):
            continue
        return next((piece[3:] for piece in parameters if piece.startswith("as=")), "")
    raise refusal.Refused(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml",
    )


class Form:
    """How one request's answer is written."""

    def __init__(self, definition: Definition, version: str, accept: str, now: datetime) -> None:
        self._definition = definition
        self._version = version
        self._native = version in ("", definition.version)
        self._as = wanted(accept)
        self._now = now

    def one(self, row: Row) -> bytes:
        if self._as == "Table":
            return encode(self._table([row]))
        if self._as.startswith("PartialObjectMetadata"):
            return encode(_partial(row.obj))
        if self._native:
            return row.body
        return encode(self._in_version(row.obj))

    def _in_version(self, obj: Obj) -> Obj:
        return {**obj, "apiVersion": self._definition.api_version(self._version)}

    def many(self, rows: Sequence[Row], metadata: Obj) -> bytes:
        if self._as == "Table":
            return encode({**self._table(rows), "metadata": metadata})
        head: Obj = {
            "kind": f"{self._definition.kind}List",
            "apiVersion": self._definition.api_version(self._version),
            "metadata": metadata,
        }
        if self._as.startswith("PartialObjectMetadata"):
            head["kind"] = "PartialObjectMetadataList"
            head["apiVersion"] = _META
            return encode({**head, "items": [_partial(row.obj) for row in rows]})
        if self._definition.typed:
            bodies = [row.bare for row in rows]
        elif self._native:
            bodies = [row.body for row in rows]
        else:
            bodies = [encode(self._in_version(row.obj)) for row in rows]
        return encode(head)[:-1] + b',"items":[' + b",".join(bodies) + b"]}"

    def bookmark(self, version: int) -> Obj:
        metadata: Obj = {"resourceVersion": str(version), "creationTimestamp": None}
        if self._as == "Table":
            return {"kind": "Table", "apiVersion": _META, "metadata": metadata, "rows": []}
        if self._as.startswith("PartialObjectMetadata"):
            return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": metadata}
        api_version = self._definition.api_version(self._version)
        return {"kind": self._definition.kind, "apiVersion": api_version, "metadata": metadata}

    def _table(self, rows: Sequence[Row]) -> Obj:
        columns = [
            {
                "name": "Name",
                "type": "string",
                "format": "name",
                "description": "Name must be unique within a namespace.",
                "priority": 0,
            },
            *(
                {
                    "name": column.name,
                    "type": "integer" if column.type == "count" else column.type,
                    "format": "",
                    "description": column.path,
                    "priority": column.priority,
                }
                for column in self._definition.columns
            ),
            {
                "name": "Age",
                "type": "string",
                "format": "",
                "description": "Time since it was created.",
                "priority": 0,
            },
        ]
        metadata = {"resourceVersion": rows[0].obj["metadata"]["resourceVersion"]} if rows else {}
        return {
            "kind": "Table",
            "apiVersion": _META,
            "metadata": metadata,
            "columnDefinitions": columns,
            "rows": [self._cells(row.obj) for row in rows],
        }

    def _cells(self, obj: Obj) -> Obj:
        metadata = obj["metadata"]
        return {
            "cells": [
                metadata["name"],
                *(self._cell(obj, column) for column in self._definition.columns),
                _age(self._now, metadata["creationTimestamp"]),
            ],
            "object": _partial(obj),
        }

    def _cell(self, obj: Obj, column: Column) -> object:
        value = lookup(obj, column.path)
        if column.type == "count":
            return len(value) if is_map(value) else 0
        if column.type == "date" and isinstance(value, str):
            return _age(self._now, value)
        if column.type == "integer":
            return value if isinstance(value, int) else 0
        return (
            "" if value is None else value if isinstance(value, str | int | float) else str(value)
        )


def lookup(obj: Obj, path: str) -> Any:  # noqa: ANN401 - any JSON value
    """A dotted path; a step `conditions[Ready]` is the status of that condition, and
    `conditions[?(@.type=="Ready")].status` is the same as printer columns write it."""
    if found := _FILTER.match(path):
        where, name, value, rest = found.groups()
        items = at(obj, where)
        for item in items if is_list(items) else ():
            if is_map(item) and item.get(name) == value:
                return at(item, rest) if rest else item
        return None
    if found := _CONDITION.match(path):
        return lookup(obj, f'{found[1]}[?(@.type=="{found[2]}")].status')
    return at(obj, path)


def _partial(obj: Obj) -> Obj:
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": _META,
        "metadata": obj["metadata"],
    }


def _age(now: datetime, created: str) -> str:
    seconds = max(int((now - moment(created)).total_seconds()), 0)
    for unit, size, up_to in (("s", 1, 120), ("m", 60, 7200), ("h", 3600, 172800)):
        if seconds < up_to:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86400}d"
