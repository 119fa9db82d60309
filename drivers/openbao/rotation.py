"""
When a flow's value is replaced, and which old versions may go. Pure.

All of it follows from the dates that OpenBao keeps with each version, so a restart changes
nothing. The one rule: an old version goes only when every target was seen with the newest, and not
before both were good for as long as the document says.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from topology.documents import maintenance
from topology.documents.base import parse_duration
from topology.resource import Facts

NONE, FRESH, DUE, OVERDUE = "none", "fresh", "due", "overdue"


def newest(known: Facts | None) -> int:
    """The version that is the value now; 0: there is none."""
    return int((known or {}).get("current_version") or 0)


def made(known: Facts, version: int) -> datetime:
    return datetime.fromisoformat(str(known["versions"][str(version)]["created_time"]))


def lying(known: Facts | None) -> list[int]:
    """The versions whose value can still be read, newest first."""
    versions: Mapping[str, Facts] = (known or {}).get("versions") or {}
    there = [
        int(number)
        for number, one in versions.items()
        if not one.get("destroyed") and not one.get("deletion_time")
    ]
    return sorted(there, reverse=True)


def due_at(rule: Facts | None, known: Facts | None) -> datetime | None:
    """When the newest version is to be replaced; None: never."""
    version = newest(known)
    if not rule or known is None or not version:
        return None
    born = made(known, version)
    by_age = born + duration(rule["every"])
    asked = maintenance.parse_moment(str(rule.get("since") or ""))
    return by_age if asked is None or asked <= born else min(by_age, asked)


def state(rule: Facts | None, known: Facts | None, now: datetime) -> str:
    due = due_at(rule, known)
    if not rule or due is None:
        return NONE
    if now < due:
        return FRESH
    return DUE if now < due + duration(rule["overlap"]) else OVERDUE


def retirable(rule: Facts | None, known: Facts | None, now: datetime) -> Sequence[int]:
    """Old versions whose time is over, oldest first; whether somebody uses them is asked before."""
    version = newest(known)
    if not rule or known is None or version not in lying(known):
        return ()
    if now < made(known, version) + duration(rule["overlap"]):
        return ()
    return sorted(number for number in lying(known) if number < version)


def duration(given: Any) -> timedelta:  # noqa: ANN401 - text in a spec
    if isinstance(given, timedelta):
        return given
    return parse_duration(str(given)) or timedelta(0)
