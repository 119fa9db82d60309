"""
How the nouns of fleetd look as JSON: in HTTP answers and behind `fleetctl -o json`.

Plain functions from frozen data to the dictionaries of `answers`; no I/O. A list that comes from a
set is sorted, so that equal state gives equal bytes.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

from fleetd.plan import words
from fleetd.plan.offline import Wave
from fleetd.plan.policy import Pause
from fleetd.plan.view import Attempt
from fleetd.plan.why import Answer
from fleetd.store.base import Recorded
from fleetd.surface import answers
from fleetd.surface.desk import Owned
from fleetd.vocabulary import (
    ABSENT,
    Condition,
    Done,
    Ending,
    Failed,
    Hold,
    Lost,
    Observation,
    Plan,
    Step,
    Truth,
    Wait,
    Waiting,
)
from topology import diff, effects
from topology.diff import Change
from topology.resource import Ref, Resource

Shape = dict[str, Any]


def moment(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def refs(given: Iterable[Ref]) -> list[str]:
    return [str(ref) for ref in sorted(given)]


def condition(one: Condition) -> answers.Condition:
    return {
        "type": one.type,
        "status": one.truth.value,
        "reason": one.reason,
        "message": one.message,
        "generation": one.generation,
        "since": moment(one.since),
        "reasonSince": moment(one.reason_since),
    }


def ready(one: Condition | None) -> answers.Ready:
    """The short form. What nobody judged is Unknown."""
    if one is None:
        return {"status": "Unknown", "reason": "NotJudged", "message": "not looked at yet"}
    return {
        "status": one.truth.value,
        "reason": one.reason,
        "message": one.message,
        "since": moment(one.since),
    }


def resource(
    one: Resource,
    judged: Condition | None,
    seen: Observation | None,
    planned: answers.Said | None,
    rests: Pause | None,
) -> answers.Resource:
    """One line of a list. `rests`: the pause that holds it."""
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
        "state": doing(judged, planned),
        "pause": pause(rests) if rests else None,
        "observedAt": moment(seen.at) if seen else None,
    }


def doing(judged: Condition | None, planned: answers.Said | None) -> answers.Doing:
    """What the plan works on is moving, whatever it looks like."""
    if judged is not None and judged.truth is Truth.TRUE:
        return "ready"
    if planned is not None and planned["state"] != "held":
        return "moving"
    if planned is not None and planned["blocker"] is not None:
        return "waiting"
    if judged is None or judged.truth is Truth.UNKNOWN:
        return "unknown"
    return "absent" if judged.reason == ABSENT else "failing"


def observation(one: Observation | None) -> answers.Observation | None:
    if one is None:
        return None
    return {"at": moment(one.at), "facts": one.facts, "error": one.error or None}


def step(one: Step, *, brief: bool = False) -> answers.Step:
    return {
        "id": one.id,
        "ref": str(one.ref),
        "verb": one.verb,
        "why": one.why,
        "args": {} if brief else one.args,
        "deadlineSeconds": one.deadline.total_seconds(),
        "generation": one.generation,
        "disrupts": refs(one.disrupts),
        "destroys": refs(one.destroys),
        "after": sorted(one.after),
    }


def hold(one: Hold, *, brief: bool = False) -> answers.Hold:
    return {
        "ref": str(one.ref),
        "reason": one.reason.value,
        "message": one.message,
        "blocker": str(one.blocker) if one.blocker else None,
        "approval": one.approval or None,
        "until": moment(one.until),
        "steps": [step(inner, brief=brief) for inner in one.steps],
    }


def wait(one: Wait) -> answers.Wait:
    return {
        "ref": str(one.ref),
        "reason": one.reason,
        "message": one.message,
        "until": moment(one.until),
    }


def plan(one: Plan, rests: Iterable[Pause], *, brief: bool = False) -> answers.Plan:
    """`brief`: without what each step would send. `rests`: the pauses of its region."""
    return {
        "id": one.id,
        "region": one.region,
        "topology": one.topology,
        "again": moment(one.again),
        "pauses": [pause(rest) for rest in rests],
        "steps": [step(inner, brief=brief) for inner in one.steps],
        "holds": [hold(inner, brief=brief) for inner in one.holds],
        "waits": [wait(inner) for inner in one.waits],
    }


def event(one: Recorded) -> answers.Event:
    return {
        "seq": one.seq,
        "at": moment(one.event.at),
        "ref": str(one.event.ref),
        "reason": one.event.reason,
        "message": one.event.message,
        "plan": one.event.plan,
    }


def concerning(current: Plan | None, ref: Ref) -> answers.Concerning:
    """What the plan says about one thing."""
    if current is None:
        return {"steps": [], "holds": [], "waits": []}
    return {
        "steps": [step(one) for one in current.steps if one.ref == ref],
        "holds": [hold(one) for one in current.holds if one.ref == ref],
        "waits": [wait(one) for one in current.waits if one.ref == ref],
    }


def said(current: Plan | None) -> dict[Ref, answers.Said]:
    """For each thing the one line of the plan about it: is it worked on, held, or at work?"""
    found: dict[Ref, answers.Said] = {}
    for back in current.holds if current else ():
        blocker = str(back.blocker) if back.blocker else None
        found[back.ref] = _said("held", back.reason.value, back.message, blocker)
    for one in current.waits if current else ():
        found[one.ref] = _said("waiting", one.reason, one.message)
    for act in current.steps if current else ():
        found[act.ref] = _said("step", act.verb, act.why)
    return found


def _said(
    state: Literal["held", "waiting", "step"], reason: str, message: str, blocker: str | None = None
) -> answers.Said:
    return {"state": state, "reason": reason, "message": message, "blocker": blocker}


def attempt(one: Attempt | None) -> answers.Attempt | None:
    if one is None:
        return None
    result, reason, message = _ending(one.ending)
    return {
        "step": one.step,
        "verb": one.verb,
        "at": moment(one.at),
        "result": result,
        "reason": reason or None,
        "message": message or None,
        "endedAt": moment(one.ended_at),
        "count": one.count,
        "notBefore": moment(one.not_before),
    }


def _ending(ending: Ending | None) -> tuple[str, str, str]:
    match ending:
        case None:
            return "InFlight", "", ""
        case Done():
            return "Done", "", ""
        case Waiting(reason=reason):
            return "Waiting", reason, ""
        case Failed(reason=reason, message=message):
            return "Failed", reason, message
        case Lost(message=message):
            return "Lost", "", message


def limits(want: Resource) -> list[answers.Limit]:
    return [
        {
            "state": state,
            "withinSeconds": one.within.total_seconds(),
            "action": words.filled(one.action, want),
        }
        for state, one in sorted(want.limits.items())
    ]


def why(one: Answer) -> answers.Why:
    return {
        "paragraph": one.paragraph,
        "ready": one.ready,
        "chain": [{"ref": str(link.ref), "text": link.text} for link in one.chain],
        "cause": str(one.cause) if one.cause else None,
        "beside": refs(one.also),
        "advice": one.advice or None,
    }


def pause(one: Pause) -> answers.Pause:
    return {"scope": one.scope, "who": one.who, "reason": one.why, "since": moment(one.since)}


def change(one: Change) -> answers.Change:
    """What becomes different, as data."""
    return {
        "added": [str(entry.ref) for entry in one.added],
        "changed": [
            {
                "ref": str(entry.ref),
                "effect": entry.effect.words,
                "nodes": entry.nodes,
                "fields": [
                    {"path": field.path, "old": _plain(field.old), "new": _plain(field.new)}
                    for field in entry.fields
                ],
                "notes": list(entry.notes),
                "refusals": list(entry.refusals),
            }
            for entry in one.changed
        ],
        "removed": [str(entry.ref) for entry in one.removed],
        "guard": [str(total) for total in one.guard if total.consent],
        "consent": one.consent,
    }


def _plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool, type(None))) else effects.shown(value)


def waves(given: Iterable[Wave]) -> list[answers.Wave]:
    return [
        {
            "number": wave.number,
            "steps": [step(one) for one in wave.steps],
            "holds": [hold(one) for one in wave.holds],
            "waits": [wait(one) for one in wave.waits],
        }
        for wave in given
    ]


def draft(
    *,
    id: str,  # noqa: A002 -- the name of the field
    digest: str,
    change: Change,
    waves: Sequence[Wave],
    documents: Sequence[str],
    fresh: Sequence[str],
    pruned: Sequence[str],
    owned: Sequence[Owned],
    consent: str,
    why: str,
) -> answers.Draft:
    """A plan for documents that were sent."""
    return {
        "id": id,
        "topology": digest,
        "documents": list(documents),
        "fresh": list(fresh),
        "pruned": list(pruned),
        "owned": [{"document": f"{o.kind}/{o.name}", "file": o.file} for o in owned],
        "change": _change(change),
        "text": diff.show(change),
        "waves": _waves(waves),
        "consent": {"id": consent, "why": why} if consent else None,
    }


_change, _waves = change, waves
