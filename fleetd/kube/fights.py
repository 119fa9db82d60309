"""
When somebody else keeps changing what fleetd wrote: put it right a few times, then stop and say so.

Two controllers that each insist rewrite an object for ever, load its server and hide who is right.
So fleetd counts on the object itself, where a restart does not forget: `MOST` rewrites, and if it
is changed once more, a condition that names the other manager. After `PEACE` it tries again. Pure;
who wrote what is read from `managedFields`. What nobody else has touched is no fight.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from fleetd.kube import facts
from fleetd.vocabulary import Condition, Observation, Truth
from topology.resource import Facts, Resource

REWRITES = "fleet.c5c3.io/rewrites"
"""Annotation: how often fleetd has put this object right against somebody."""
REWRITTEN = "fleet.c5c3.io/rewritten"
"""Annotation: when it did so last."""
MOST = 3
PEACE = timedelta(minutes=30)
"""So long after the last rewrite the count begins anew."""
UNCONTESTED = "Uncontested"
FOUGHT_OVER = "FoughtOver"
OWNED = "OwnedByAnother"


def opponent(live: Facts, differs: Sequence[str], made: str, digest: str) -> str:
    """The manager who owns what is not as fleetd wrote it; empty if nobody but fleetd does. `live`
    with its managedFields."""
    wrong = [_split(path) for path in differs]
    if made != digest:
        wrong.append(("metadata", "annotations", facts.GENERATION))
    fields: list[dict[str, Any]] = live["metadata"].get("managedFields") or []
    others = [
        (str(entry.get("time", "")), str(entry.get("manager", "")))
        for entry in fields
        if entry.get("manager") != facts.MANAGER
        and any(_owns(entry.get("fieldsV1") or {}, path) for path in wrong)
    ]
    return max(others)[1] if others else ""


def count(live: Facts, now: datetime) -> int:
    """Rewrites that still count. A clock that was put back does not make them count for longer."""
    notes: Mapping[str, str] = live["metadata"].get("annotations") or {}
    try:
        last = datetime.fromisoformat(notes[REWRITTEN])
        return int(notes[REWRITES]) if abs(now - last) < PEACE else 0
    except (KeyError, ValueError, TypeError):
        return 0


def given_up(part: Mapping[str, Any]) -> bool:
    return bool(part.get("by")) and int(part.get("rewrites", 0)) >= MOST


def against(body: Facts, part: Mapping[str, Any] | None) -> tuple[Facts, bool]:
    """The manifest to write, and whether to take fields from their owner: with the next number on
    it where somebody else stands against it."""
    if part is None or not part.get("by"):
        return body, False
    made = facts.copy(body)
    made["metadata"].setdefault("annotations", {})[REWRITES] = str(int(part["rewrites"]) + 1)
    return made, True


def stamp(body: dict[str, Any], now: datetime) -> None:
    """When it is written: the time of this rewrite."""
    notes: dict[str, str] = body["metadata"].get("annotations") or {}
    if REWRITES in notes:
        notes[REWRITTEN] = now.isoformat(timespec="seconds")


def judged(want: Resource, seen: Observation) -> tuple[Condition, ...]:
    """One condition if fleetd does not insist, or not any more; none otherwise."""
    parts: Mapping[str, Any] = (seen.facts or {}).get("parts", {})
    lost: list[str] = []
    others: list[str] = []
    for key, told in parts.items():
        # Beside parts there may be numbers that a driver sums up.
        part: Mapping[str, Any] = cast("Any", told) if isinstance(told, Mapping) else {}
        if part.get("taken"):
            others.append(f"{key} belongs to {part['taken']} by now")
        elif given_up(part):
            changed = ", ".join(part["differs"]) or "the marks"
            lost.append(f"{part['by']} keeps changing {changed} of {key}")
    if others:
        said = "fleetd leaves it alone: retire one of the two, or give one another name"
        return (_condition(want, seen, OWNED, f"{'; '.join(others)}; {said}"),)
    if not lost:
        return ()
    minutes = PEACE // timedelta(minutes=1)
    said = f"{'; '.join(lost)}; fleetd put it right {MOST} times within {minutes} minutes and waits"
    advice = "end the other writer, or declare what it wants"
    return (_condition(want, seen, FOUGHT_OVER, f"{said}: {advice}"),)


def _condition(want: Resource, seen: Observation, reason: str, message: str) -> Condition:
    return Condition(
        type=UNCONTESTED,
        truth=Truth.FALSE,
        reason=reason,
        message=message,
        generation=want.generation,
        since=seen.at,
        reason_since=seen.at,
    )


def _split(path: str) -> tuple[str, ...]:
    """Down to the first list: how its members are keyed is the server's business."""
    return tuple(path.partition("[")[0].split("."))


def _owns(tree: Mapping[str, Any], path: Sequence[str]) -> bool:
    for name in path:
        inner = tree.get(f"f:{name}")
        if not isinstance(inner, Mapping):
            return False
        tree = inner  # pyright: ignore[reportUnknownVariableType]
    return True
