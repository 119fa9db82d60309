"""Reading objects whose parts may be missing; whether a change was meant, and which nodes work."""

from typing import Any

from fleetd.sim.controllers.base import Obj
from fleetd.sim.kube.cluster import Change
from fleetd.sim.kube.store import DELETED

_MEANT = ("labels", "annotations", "deletionTimestamp")


def part(obj: Obj | None, name: str) -> dict[str, Any]:
    """A mapping inside an object, empty where there is none. Never change it."""
    found: Any = obj.get(name) if obj is not None else None
    return found or {}


def members(obj: Obj | None, name: str) -> list[dict[str, Any]]:
    """A list of mappings inside an object, empty where there is none. Never change it."""
    found: Any = obj.get(name) if obj is not None else None
    return found or []


def conditions(obj: Obj | None) -> list[dict[str, Any]]:
    return members(part(obj, "status"), "conditions")


def condition(obj: Obj | None, kind: str) -> str:
    """The status of one condition; empty if there is none."""
    found = (one for one in conditions(obj) if one["type"] == kind)
    return next((str(one["status"]) for one in found), "")


def usable(node: Obj | None) -> bool:
    """Whether pods can run on it."""
    if node is None or "deletionTimestamp" in node["metadata"]:
        return False
    return condition(node, "Ready") == "True"


def meant(change: Change) -> bool:
    """Whether somebody wants something: not a status, which is what controllers write."""
    old, new = change.old, change.object
    if old is None or change.type == DELETED:
        return True
    if any(old.get(name) != new.get(name) for name in ("spec", "data")):
        return True
    return any(old["metadata"].get(name) != new["metadata"].get(name) for name in _MEANT)
