"""
What people allowed, and why it is over: a grant is for one thing, and does not outlive it.

Three kinds. A *step* may be done once; the executor uses the grant up when it begins. *Mass* is one
region's way to one topology; it is over when that way has been gone, or leads elsewhere. *Accept*
lets documents in; it is over when they are in force. What nobody asks for any more lapses too, but
not at once: a thing that could not be looked at for a moment asks again. Pure.
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from fleetd.engine import acceptance
from fleetd.engine.state import State
from fleetd.plan.policy import mass_consent
from topology.resource import Ref

UNASKED_MAX = timedelta(hours=1)
"""Longer than a daemon takes to look at everything after a start, and than an API server is away
for its own upgrade; short enough that nobody has forgotten what he approved."""
_encoder = msgspec.json.Encoder(order="sorted")


class Kind(enum.StrEnum):
    STEP = "step"
    MASS = "mass"
    ACCEPT = "accept"


_CONSENT = re.compile(r"(mass|accept)-[a-z0-9.-]+")


def kind_of(given: str) -> Kind:
    """What an id that was made by `step_id`, `mass_consent` or `consent_id` is for."""
    found = _CONSENT.fullmatch(given)
    return Kind(found[1]) if found else Kind.STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    id: str
    kind: Kind
    who: str
    at: datetime
    refs: tuple[Ref, ...] = ()
    """What waited for it."""


def encode(grant: Grant) -> bytes:
    return _encoder.encode(grant)


def decode(rows: Mapping[str, bytes], now: datetime) -> dict[str, Grant]:
    """Of a record that an older fleetd wrote only the name of the person is known; it counts as
    given now."""
    decoder = msgspec.json.Decoder(Grant)
    found: dict[str, Grant] = {}
    for name, row in sorted(rows.items()):
        try:
            found[name] = decoder.decode(row)
        except msgspec.MsgspecError:
            who = row.decode(errors="replace")
            found[name] = Grant(id=name, kind=kind_of(name), who=who, at=now)
    return found


def regions(grant: Grant, state: State) -> list[str]:
    """Those whose way to what is wanted now a mass consent is for; of other grants none."""
    topology = state.view.topology
    return [name for name in topology.regions if mass_consent(name, topology.digest) == grant.id]


def over(grant: Grant, state: State) -> str:
    """Why it can never count again; empty if it can."""
    match grant.kind:
        case Kind.STEP:
            known = state.view.topology.resources
            gone = bool(grant.refs) and not any(ref in known for ref in grant.refs)
            return "what it was for is gone" if gone else ""
        case Kind.MASS:
            return "" if regions(grant, state) else "what is wanted has changed since"
        case Kind.ACCEPT:
            mine = acceptance.consent_id(state.declared) if state.declared.resources else ""
            return "it is used: these documents are in force" if grant.id == mine else ""


def asked_for(grant: Grant, state: State, door: str) -> bool:
    """Whether anything waits for it or rests on it; `door` is what documents wait for. What cannot
    be looked at may: nobody knows."""
    match grant.kind:
        case Kind.STEP:
            return any(_may_propose(ref, grant.id, state) for ref in grant.refs) or _in_plans(
                grant.id, state
            )
        case Kind.MASS:
            return any(state.planner.grave(region) for region in regions(grant, state))
        case Kind.ACCEPT:
            return grant.id == door


def _may_propose(ref: Ref, step: str, state: State) -> bool:
    seen = state.view.seen.get(ref)
    if seen is None or seen.facts is None:
        return ref in state.view.topology.resources
    return any(one.id == step for one in state.planner.proposes(state.view, ref))


def _in_plans(step: str, state: State) -> bool:
    """For a grant that does not say what it is about."""
    return any(
        hold.approval == step or any(one.id == step for one in hold.steps)
        for plan in state.plans.values()
        for hold in plan.holds
    ) or any(one.id == step for plan in state.plans.values() for one in plan.steps)
