"""
Ids: of a step from what it does, of a plan from what it says. Pure digests.

A plan's id covers its steps, holds and waits and nothing of the moment it was made at, so that the
same situation has the same id tomorrow. `again` is left out: it moves with every look.
"""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import datetime

from fleetd.vocabulary import Hold, Plan, PlanId, Step, Wait
from fleetd.vocabulary import step_id as step_id
from topology.resource import Ref

_GAP = "\x1f"
_SIZE = 16


def faults(step: Step) -> Iterator[str]:
    """What is wrong with a step by itself."""
    expected = step_id(step.ref, step.verb, step.args, step.generation, step.destroys)
    if step.id != expected:
        yield f"its id is {step.id}, but what it does gives {expected}"
    if not step.verb.strip():
        yield "has no verb"
    if not step.why.strip():
        yield "does not say why"
    if step.deadline.total_seconds() <= 0:
        yield f"its deadline {step.deadline} leaves no time"


def plan_id(region: str, topology: str, *parts: Iterable[bytes]) -> PlanId:
    """From the marks of steps, holds and waits, in this order."""
    total = hashlib.blake2b(f"{region}{_GAP}{topology}".encode(), digest_size=10)
    for part in parts:
        text = b"".join(part)
        total.update(len(text).to_bytes(8, "big"))
        total.update(text)
    return PlanId(total.hexdigest())


def id_of(plan: Plan) -> PlanId:
    """The id that a plan with these contents must have."""
    return plan_id(
        plan.region,
        plan.topology,
        map(mark_step, plan.steps),
        map(mark_hold, plan.holds),
        map(mark_wait, plan.waits),
    )


def mark_step(step: Step) -> bytes:
    """The step's id stands for ref, verb, args, generation and what it destroys."""
    return _mark(
        step.id,
        step.why,
        str(step.deadline),
        _refs(step.disrupts),
        _refs(step.destroys),
        ",".join(sorted(step.after)) if step.after else "",
    )


def mark_hold(hold: Hold) -> bytes:
    return _mark(
        hold.ref.kind,
        hold.ref.name,
        hold.reason,
        hold.message,
        ",".join([step.id for step in hold.steps]) if hold.steps else "",
        f"{hold.blocker.kind}/{hold.blocker.name}" if hold.blocker else "",
        hold.approval,
        _moment(hold.until),
    )


def mark_wait(wait: Wait) -> bytes:
    return _mark(wait.ref.kind, wait.ref.name, wait.reason, wait.message, _moment(wait.until))


def _mark(*parts: str) -> bytes:
    return hashlib.blake2b(_GAP.join(parts).encode(), digest_size=_SIZE).digest()


def _refs(refs: frozenset[Ref]) -> str:
    return ",".join(sorted(map(str, refs))) if refs else ""


def _moment(at: datetime | None) -> str:
    return at.isoformat() if at else ""
