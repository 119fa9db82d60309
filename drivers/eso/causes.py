"""
Why External Secrets is not content, read from Events; and when it is worth poking it.

Pure. A condition only says that something failed; the cause is in the newest Event about the
object, which for a cluster-scoped one lies in namespace `default`. After an outage of OpenBao the
operator comes back by itself only after up to seven minutes: the store is touched first, and what
goes through it once the store is well again, never the other way round.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fleetd import secrets
from fleetd.kube import facts

CAUSE_MAX = 300
TOUCHED = "fleet.c5c3.io/touched"
"""Annotation; any change of one makes External Secrets look. Its value says after which recovery,
so that each recovery is answered once."""

Object = Mapping[str, Any]


def newest(events: Iterable[Object], kind: str, name: str) -> str:
    """What the newest warning about an object says; empty if there is none."""
    told = [
        (str(event.get("lastTimestamp") or ""), str(event.get("message") or ""))
        for event in events
        if event.get("type") == "Warning"
        and facts.part(event, "involvedObject").get("kind") == kind
        and facts.part(event, "involvedObject").get("name") == name
    ]
    said = max(told, default=("", ""))[1]
    return secrets.scrub(" ".join(said.split()))[:CAUSE_MAX]


def ready(obj: Object | None) -> Object:
    """The Ready condition; empty if there is none."""
    return facts.condition(obj, "Ready")


def is_ready(obj: Object | None) -> bool:
    return ready(obj).get("status") == "True"


def touched(obj: Object | None) -> str:
    return str(facts.part(obj, "metadata", "annotations").get(TOUCHED) or "")
