"""
From what a driver thinks of a thing to the conditions people and the planner read. Pure.

`settle` keeps the times of the last change; `summarise` makes one Ready out of many: any False
wins, else any Unknown, else True, and the message names the worst first. A failure first passes
through a grace period as Unknown, so that one lost packet does not page anybody.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from fleetd.vocabulary import ABSENT, READY, Condition, Observation, Truth
from topology import blind
from topology.resource import Resource

GONE = "Gone"
RETIRING = "Retiring"
_ORDER = {Truth.FALSE: 0, Truth.UNKNOWN: 1, Truth.TRUE: 2}


def settle(old: Condition | None, new: Condition) -> Condition:
    """Keep the time of the last change when only the words have changed. What did not change at
    all comes back as the same object, so that nobody writes it again."""
    if old is None:
        return new
    served = old.generation == new.generation and (old.served or old.truth is Truth.TRUE)
    settled = replace(
        new,
        served=served and new.truth is not Truth.TRUE,
        since=old.since if old.truth is new.truth else new.since,
        # A failure that was doubted first and believed later is one state, with one beginning.
        reason_since=old.reason_since if old.reason == new.reason else new.reason_since,
    )
    return old if settled == old else settled


def summarise(
    conditions: Sequence[Condition], *, into: str, generation: int, now: datetime
) -> Condition:
    """One condition out of many. None at all is Unknown: silence is not health."""
    worst = sorted(conditions, key=lambda condition: (_ORDER[condition.truth], condition.type))
    if not worst:
        return Condition(
            type=into,
            truth=Truth.UNKNOWN,
            reason="NotJudged",
            message="nothing was reported",
            generation=generation,
            since=now,
            reason_since=now,
        )
    first = worst[0]
    bad = [condition for condition in worst if condition.truth is not Truth.TRUE]
    message = "; ".join(_say(condition) for condition in bad[:3])
    if len(bad) > 3:
        message += f"; and {len(bad) - 3} more"
    return Condition(
        type=into,
        truth=first.truth,
        reason=(first.reason or "NotReady") if bad else "Ready",
        message=message or first.message,
        generation=generation,
        since=now,
        reason_since=now,
    )


def of(
    want: Resource,
    seen: Observation,
    judged: Sequence[Condition],
    old: Condition | None,
    *,
    grace: timedelta,
) -> Condition:
    """The Ready condition of a resource after a look."""
    if seen.facts is None:
        reason = _blind(want, seen, old, grace)
        fresh = _ready(want, seen.at, Truth.UNKNOWN, reason, seen.error or "could not look")
    elif want.absent:
        fresh = _going(want, seen, judged)
    elif not seen.facts:
        fresh = _ready(want, seen.at, Truth.FALSE, ABSENT, "it is not there")
    else:
        fresh = summarise(judged, into=READY, generation=want.generation, now=seen.at)
    fresh = _damp(old, fresh, seen.at, grace)
    return settle(old, fresh)


def _going(want: Resource, seen: Observation, judged: Sequence[Condition]) -> Condition:
    """Of what was retired: it is as it should be when it is not there, and nothing is that stood
    on it."""
    if not seen.facts and not want.needs:
        return _ready(want, seen.at, Truth.TRUE, GONE, "it was retired and is gone")
    told = "; ".join(_say(condition) for condition in judged[:1])
    message = f"it was retired and is still there{': ' + told if told else ''}"
    return _ready(want, seen.at, Truth.FALSE, RETIRING, message)


def _blind(want: Resource, seen: Observation, old: Condition | None, grace: timedelta) -> str:
    """The reason when we could not look. A state outlives a few lost looks: if each of them ended
    it, a thing that installs for a day behind a bad cable would never be overdue."""
    if old is None or old.truth is Truth.TRUE or old.reason in blind.REASONS | {ABSENT}:
        return seen.blind
    if old.generation != want.generation:
        return seen.blind
    brief = old.truth is Truth.FALSE or seen.at - old.since < grace
    return old.reason if brief and grace else seen.blind


def _damp(old: Condition | None, new: Condition, now: datetime, grace: timedelta) -> Condition:
    """What was True turns Unknown first, and False only when it was not True for the whole grace
    period, whatever the reasons in between. A thing that is gone is gone at once, and a new
    generation is a new thing: its being unfinished is no failure to doubt."""
    if old is None or new.truth is not Truth.FALSE or new.reason == ABSENT:
        return new
    if old.generation != new.generation:
        return new
    left_true = now if old.truth is Truth.TRUE else old.since
    doubted = old.truth is not Truth.FALSE and now - left_true < grace
    return replace(new, truth=Truth.UNKNOWN) if doubted else new


def _ready(want: Resource, at: datetime, truth: Truth, reason: str, message: str) -> Condition:
    return Condition(
        type=READY,
        truth=truth,
        reason=reason,
        message=message,
        generation=want.generation,
        since=at,
        reason_since=at,
    )


def _say(condition: Condition) -> str:
    if condition.type == READY:
        return condition.message or condition.reason
    return f"{condition.type}: {condition.message or condition.reason}"
