"""Reading objects and bodies whose shape nobody vouches for: what is not there is empty."""

from collections.abc import Mapping
from typing import Any, cast

from fleetd.sim.kube import values

Obj = Mapping[str, Any]


def part(obj: Obj | None, path: str) -> dict[str, Any]:
    """The mapping at a dotted path; empty if there is none."""
    found = values.at(obj, path) if obj else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def members(obj: Obj | None, path: str) -> list[dict[str, Any]]:
    """The list of mappings at a dotted path; empty if there is none."""
    found = values.at(obj, path) if obj else None
    return cast("list[dict[str, Any]]", found) if isinstance(found, list) else []


def conditions(obj: Obj | None) -> list[dict[str, Any]]:
    return members(obj, "status.conditions")


def condition(obj: Obj | None, kind: str) -> str:
    """The status of one condition; empty if there is none."""
    return next((str(one["status"]) for one in conditions(obj) if one["type"] == kind), "")
