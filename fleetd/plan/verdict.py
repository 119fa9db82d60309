"""
What is to be said of one resource, before the region's gates (consent, approval, window, budget).

Pure: everything it depends on is in `Case`. Nothing is silent: whoever is not Ready leaves here
with a step, a hold or a wait. The order of the questions is the order in which an operator would
want the answers; the first that applies is told.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple, assert_never

from fleetd.plan import standing, steps, words
from fleetd.plan.policy import Pause
from fleetd.plan.view import Attempt
from fleetd.vocabulary import (
    Condition,
    Done,
    Failed,
    Hold,
    HoldReason,
    Lost,
    Observation,
    Step,
    Truth,
    Wait,
    Waiting,
)
from topology import blind
from topology.resource import Limit, Ref, Resource


class Fault(NamedTuple):
    """In place of proposals: what the driver did wrong."""

    message: str
    """`could not decide: ...`; the driver's name goes before it."""


Proposed = tuple[Step, ...] | Fault


@dataclass(slots=True, kw_only=True)
class Case:
    """One resource and all that is known of it. Made for one decision, then dropped."""

    want: Resource
    driven: bool
    seen: Observation | None
    condition: Condition | None
    ready: bool
    stale: bool
    attempt: Attempt | None
    proposed: Proposed
    blocked: tuple[Ref, int, standing.Cause] | None
    needs_since: datetime | None
    """When the last of its needs became Ready."""
    pause: Pause | None
    approvals: frozenset[str]
    stale_after: timedelta
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    steps: tuple[Step, ...] = ()
    """To be done, if the gates let them."""
    rest: tuple[Step, ...] = ()
    """What follows `steps` and is held already, by one of `holds`."""
    holds: tuple[Hold, ...] = ()
    waits: tuple[Wait, ...] = ()
    again: datetime | None = None
    """When time alone may change this verdict."""

    def marks(self) -> tuple[bytes, bytes, bytes]:
        return (
            b"".join(map(steps.mark_step, self.steps)),
            b"".join(map(steps.mark_hold, self.holds)),
            b"".join(map(steps.mark_wait, self.waits)),
        )


def decide(case: Case) -> Verdict | None:
    """None: it is quiet, Ready and as it should be."""
    unsure = _look_first(case)
    if unsure is not None:
        return unsure
    if case.ready and not case.proposed:
        return None
    if case.pause is not None:
        return _hold(case, HoldReason.PAUSED, str(case.pause))
    if case.blocked is not None:
        return _dependency(case, case.blocked)
    if isinstance(case.proposed, Fault):
        message = f"its driver {case.want.driver} {case.proposed.message}"
        return _hold(case, HoldReason.STUCK, message)
    backoff = _backoff(case)
    if backoff is not None:
        return _with_overdue(case, Verdict(waits=(backoff,), again=backoff.until))
    if case.proposed:
        return _with_overdue(case, _act(case, case.proposed))
    return _watch(case)


def _look_first(case: Case) -> Verdict | None:
    """Where what is known is not enough to decide from."""
    attempt, seen = case.attempt, case.seen
    if not case.driven:
        return _hold(case, HoldReason.NO_DRIVER, f"no driver is called {case.want.driver!r}")
    if attempt is not None and attempt.ending is None:
        return _with_overdue(case, Verdict(waits=(_in_flight(case, attempt),)))
    if seen is None:
        return Verdict(waits=(_wait(case, blind.NOT_OBSERVED, "it was not looked at yet"),))
    if seen.facts is None or case.stale:
        return _unseen(case, seen)
    if attempt is not None and attempt.ended_at is not None and seen.at < attempt.ended_at:
        message = f"{_verb(case, attempt)} ended {words.moment(attempt.ended_at)}; "
        return Verdict(waits=(_wait(case, "LookingAgain", message + "what it did is looked at"),))
    return None


def _in_flight(case: Case, attempt: Attempt) -> Wait:
    tries = f", try {attempt.count}" if attempt.count > 1 else ""
    message = f"{_verb(case, attempt)} is in flight since {words.moment(attempt.at)}{tries}"
    return _wait(case, "InFlight", message)


def _unseen(case: Case, seen: Observation) -> Verdict:
    """Nobody knows how it is. Where something it needs is not Ready, that is why."""
    if case.blocked is not None:
        return _dependency(case, case.blocked)
    if seen.facts is None:
        message = f"it {standing.could_not_look(seen, case.condition)}"
        return _with_overdue(case, _hold(case, HoldReason.STALE, message))
    message = (
        f"it was last seen {words.moment(seen.at)}, more than {words.span(case.stale_after)} ago; "
        "nothing is decided from what is so old"
    )
    return _hold(case, HoldReason.STALE, message)


def _dependency(case: Case, blocked: tuple[Ref, int, standing.Cause]) -> Verdict:
    hold = Hold(
        ref=case.want.ref,
        reason=HoldReason.DEPENDENCY,
        message=_waits_for(*blocked),
        steps=_steps(case),
        blocker=blocked[2].ref,
    )
    return Verdict(holds=(hold,))


@lru_cache(maxsize=4096)
def _waits_for(first: Ref, count: int, cause: standing.Cause) -> str:
    """Kept, because all servers of a region wait with the same words."""
    more = f" and {count - 1} more" if count > 1 else ""
    if cause.ref == first:
        return f"waits for {first}{more}; {first} {cause.text}"
    return f"waits for {first}{more}; cause: {cause.ref} {cause.text}"


def _backoff(case: Case) -> Wait | None:
    """The wait that the last attempt asks for, if its time has not come."""
    attempt = case.attempt
    if attempt is None or attempt.not_before is None or attempt.not_before <= case.now:
        return None
    verb, until = _verb(case, attempt), attempt.not_before
    if isinstance(attempt.ending, Waiting):
        reason = attempt.ending.reason or "Working"
        return _wait(case, reason, f"{verb} was taken; {reason}", until)
    if not case.proposed:
        # Nothing would be repeated: the state of the thing itself says more.
        return None
    match attempt.ending:
        case Failed(reason=reason, message=message):
            text = f"try {attempt.count} of {verb} failed: {reason}: {message}"
        case Done():
            text = f"{verb} was done {attempt.count} times and is still to be done"
        case Lost(message=message):
            text = f"nobody knows how {verb} ended: {message}"
        case None:
            text = verb
        case _:
            assert_never(attempt.ending)
    return _wait(case, "Backoff", text, until)


def _act(case: Case, proposed: tuple[Step, ...]) -> Verdict:
    """Its steps; from one on that failed for good they are held."""
    attempt = case.attempt
    if attempt is None or not isinstance(attempt.ending, Failed) or attempt.ending.retry:
        return Verdict(steps=proposed)
    at = next((n for n, step in enumerate(proposed) if step.id == attempt.step), None)
    if at is None or attempt.step in case.approvals:
        return Verdict(steps=proposed)
    failed = attempt.ending
    hold = Hold(
        ref=case.want.ref,
        reason=HoldReason.FAILED,
        message=f"{proposed[at].verb} failed and will not mend by itself: {failed.reason}: "
        f"{failed.message}; approve {attempt.step} to try again",
        steps=proposed[at:],
        approval=attempt.step,
    )
    return Verdict(steps=proposed[:at], rest=proposed[at:], holds=(hold,))


def _watch(case: Case) -> Verdict:
    """Not Ready, and there is nothing to do but wait, for as long as its state may last."""
    condition = case.condition
    if condition is None or condition.generation != case.want.generation:
        return Verdict(waits=(_wait(case, "NotJudged", "the next look decides what it is"),))
    found = _limit(case)
    if found is None:
        message = (
            f"{condition.reason}: {condition.message}; its driver proposes nothing, "
            "and no time limit is set for this state"
        )
        return _hold(case, HoldReason.STUCK, message)
    overdue, limit = found
    if overdue <= case.now:
        return Verdict(holds=(_overdue(case, condition, overdue, limit),))
    wait = _wait(case, condition.reason, condition.message or condition.reason, overdue)
    return Verdict(waits=(wait,), again=overdue)


def _with_overdue(case: Case, verdict: Verdict) -> Verdict:
    """Add the hold that says a state lasts too long, or the moment at which it will."""
    found = _limit(case)
    if found is None or case.condition is None:
        return verdict
    overdue, limit = found
    holds, again = verdict.holds, verdict.again
    if overdue <= case.now:
        holds = (*holds, _overdue(case, case.condition, overdue, limit))
    else:
        again = overdue if again is None else min(again, overdue)
    return Verdict(
        steps=verdict.steps, rest=verdict.rest, holds=holds, waits=verdict.waits, again=again
    )


def _limit(case: Case) -> tuple[datetime, Limit] | None:
    """When its state is overdue, and by which limit. The clock starts when it could have been
    worked on: not before the last of its needs was Ready."""
    condition = case.condition
    if case.ready or condition is None or case.blocked is not None or case.pause is not None:
        return None
    if condition.truth is Truth.TRUE or condition.generation != case.want.generation:
        # That it was well for three days, or ill with an older document, is no delay.
        return None
    limit = case.want.limits.get(condition.reason) or case.want.limits.get("*")
    if limit is None:
        return None
    start = condition.reason_since
    if case.needs_since is not None and case.needs_since > start:
        start = case.needs_since
    return start + limit.within, limit


def _overdue(case: Case, condition: Condition, overdue: datetime, limit: Limit) -> Hold:
    since = overdue - limit.within
    return Hold(
        ref=case.want.ref,
        reason=HoldReason.OVERDUE,
        message=f"{condition.reason} since {words.moment(since)}, longer than "
        f"{words.span(limit.within)}; {words.filled(limit.action, case.want)}",
    )


def _hold(case: Case, reason: HoldReason, message: str) -> Verdict:
    hold = Hold(ref=case.want.ref, reason=reason, message=message, steps=_steps(case))
    return Verdict(holds=(hold,))


def _wait(case: Case, reason: str, message: str, until: datetime | None = None) -> Wait:
    return Wait(ref=case.want.ref, reason=reason, message=message, until=until)


def _steps(case: Case) -> tuple[Step, ...]:
    """What would be done, for a hold to show; not where it is not known how the thing is."""
    unseen = case.seen is None or case.seen.facts is None or case.stale
    return () if unseen or isinstance(case.proposed, Fault) else case.proposed


def _verb(case: Case, attempt: Attempt) -> str:
    if attempt.verb:
        return attempt.verb
    found = next((step for step in _steps(case) if step.id == attempt.step), None)
    return found.verb if found else f"step {attempt.step}"
