"""
Why External Secrets is not content, read from Events; and when it is worth poking it.

Pure. A condition only says that something failed; the cause is in the newest Event about the
object, which for a cluster-scoped one lies in namespace `default`. After an outage of OpenBao the
operator comes back by itself only after up to seven minutes: the store is touched first, and what
goes through it once the store is well again, never the other way round.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from fleetd import secrets

CAUSE_MAX = 300
TOUCHED = "fleet.c5c3.io/touched"
"""Annotation; any change of one makes External Secrets look. Its value says after which recovery,
so that each recovery is answered once."""

Object = Mapping[str, Any]
_NOTHING: Object = {}


def newest(events: Iterable[Object], kind: str, name: str) -> str:
    """What the newest warning about an object says; empty if there is none."""
    told = [
        (str(event.get("lastTimestamp") or ""), str(event.get("message") or ""))
        for event in events
        if event.get("type") == "Warning"
        and inside(event, "involvedObject").get("kind") == kind
        and inside(event, "involvedObject").get("name") == name
    ]
    said = max(told, default=("", ""))[1]
    return secrets.scrub(" ".join(said.split()))[:CAUSE_MAX]


def ready(obj: Object | None) -> Object:
    """The Ready condition; empty if there is none."""
    conditions: list[Object] = inside(obj, "status").get("conditions") or []
    return next((one for one in conditions if one.get("type") == "Ready"), _NOTHING)


def is_ready(obj: Object | None) -> bool:
    return ready(obj).get("status") == "True"


def touched(obj: Object | None) -> str:
    return str(inside(obj, "metadata", "annotations").get(TOUCHED) or "")


def inside(found: Object | None, *names: str) -> Object:
    """The mapping at the end of these names; empty where there is none."""
    here: Any = found
    for name in names:
        if not isinstance(here, Mapping):
            return {}
        here = cast("Object", here).get(name)
    return cast("Object", here) if isinstance(here, Mapping) else {}
