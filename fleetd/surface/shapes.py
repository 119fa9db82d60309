"""
How the nouns of fleetd look as JSON: in HTTP answers and behind `fleetctl -o json`.

Field names are camelCase and stay. Plain functions from frozen data to dictionaries; no I/O. A
list that comes from a set is sorted, so that equal state gives equal bytes.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from fleetd.store.base import Recorded
from fleetd.vocabulary import Condition, Hold, Observation, Plan, Step, Wait
from topology.resource import Ref, Resource

Shape = dict[str, Any]


def moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def refs(given: Iterable[Ref]) -> list[str]:
    return [str(ref) for ref in sorted(given)]


def condition(one: Condition) -> Shape:
    return {
        "type": one.type,
        "status": one.truth.value,
        "reason": one.reason,
        "message": one.message,
        "generation": one.generation,
        "since": moment(one.since),
        "reasonSince": moment(one.reason_since),
    }


def ready(one: Condition | None) -> Shape:
    """The short form. What nobody judged is Unknown."""
    if one is None:
        return {"status": "Unknown", "reason": "NotJudged", "message": "not looked at yet"}
    return {
        "status": one.truth.value,
        "reason": one.reason,
        "message": one.message,
        "since": moment(one.since),
    }


def resource(one: Resource, judged: Condition | None, seen: Observation | None) -> Shape:
    """One line of a list."""
    return {
        "kind": one.ref.kind,
        "name": one.ref.name,
        "region": one.region,
        "driver": one.driver,
        "backend": one.backend,
        "generation": one.generation,
        "rank": one.rank,
        "owner": str(one.owner) if one.owner else None,
        "ready": ready(judged),
        "observedAt": moment(seen.at) if seen else None,
    }


def observation(one: Observation | None) -> Shape | None:
    if one is None:
        return None
    return {"at": moment(one.at), "facts": one.facts, "error": one.error or None}


def step(one: Step) -> Shape:
    return {
        "id": one.id,
        "ref": str(one.ref),
        "verb": one.verb,
        "why": one.why,
        "args": one.args,
        "deadlineSeconds": one.deadline.total_seconds(),
        "generation": one.generation,
        "disrupts": refs(one.disrupts),
        "destroys": refs(one.destroys),
        "after": sorted(one.after),
    }


def hold(one: Hold) -> Shape:
    return {
        "ref": str(one.ref),
        "reason": one.reason.value,
        "message": one.message,
        "blocker": str(one.blocker) if one.blocker else None,
        "approval": one.approval or None,
        "until": moment(one.until),
        "steps": [step(inner) for inner in one.steps],
    }


def wait(one: Wait) -> Shape:
    return {
        "ref": str(one.ref),
        "reason": one.reason,
        "message": one.message,
        "until": moment(one.until),
    }


def plan(one: Plan) -> Shape:
    return {
        "id": one.id,
        "region": one.region,
        "topology": one.topology,
        "again": moment(one.again),
        "steps": [step(inner) for inner in one.steps],
        "holds": [hold(inner) for inner in one.holds],
        "waits": [wait(inner) for inner in one.waits],
    }


def event(one: Recorded) -> Shape:
    return {
        "seq": one.seq,
        "at": moment(one.event.at),
        "ref": str(one.event.ref),
        "reason": one.event.reason,
        "message": one.event.message,
        "plan": one.event.plan,
    }


def concerning(current: Plan | None, ref: Ref) -> Shape:
    """What the plan says about one thing."""
    if current is None:
        return {"steps": [], "holds": [], "waits": []}
    return {
        "steps": [step(one) for one in current.steps if one.ref == ref],
        "holds": [hold(one) for one in current.holds if one.ref == ref],
        "waits": [wait(one) for one in current.waits if one.ref == ref],
    }


def said(current: Plan | None) -> dict[Ref, Shape]:
    """For each thing the one line of the plan about it: is it worked on, held, or at work?"""
    found: dict[Ref, Shape] = {}
    for back in current.holds if current else ():
        blocker = str(back.blocker) if back.blocker else None
        found[back.ref] = _said("held", back.reason.value, back.message, blocker)
    for one in current.waits if current else ():
        found[one.ref] = _said("waiting", one.reason, one.message)
    for act in current.steps if current else ():
        found[act.ref] = _said("step", act.verb, act.why)
    return found


def _said(state: str, reason: str, message: str, blocker: str | None = None) -> Shape:
    return {"state": state, "reason": reason, "message": message, "blocker": blocker}
