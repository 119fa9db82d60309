"""From what a driver thinks to the condition everybody reads."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fleetd import conditions
from fleetd.vocabulary import Condition, Observation, Truth
from tests.plan import fleets
from tests.plan.fleets import NOW, thing

SECOND = timedelta(seconds=1)
GRACE = 30 * SECOND
WANT = thing("agent/a")


def judged(type_: str, truth: Truth, reason: str, message: str = "") -> Condition:
    return replace(fleets.condition(truth, reason, message=message or reason.lower()), type=type_)


def look(
    old: Condition | None,
    seconds: int,
    *thought: Condition,
    facts: dict[str, object] | str | None = "some",
    generation: int = 1,
    blind: str = "NotObserved",
) -> Condition:
    seen = {"there": 1} if isinstance(facts, str) else facts
    at = NOW + seconds * SECOND
    observation = Observation(ref=WANT.ref, at=at, facts=seen, error="no route", blind=blind)
    want = replace(WANT, generation=generation)
    return conditions.of(want, observation, thought, old, grace=GRACE)


GOOD = judged("Ready", Truth.TRUE, "Fine")
BAD = judged("Ready", Truth.FALSE, "Broken")
WORSE = judged("Ready", Truth.FALSE, "Melting")


@pytest.mark.parametrize(
    ("thought", "truth", "reason", "message"),
    [
        ([], Truth.UNKNOWN, "NotJudged", "nothing was reported"),
        ([judged("A", Truth.TRUE, "Fine", "all well")], Truth.TRUE, "Ready", "all well"),
        (
            [judged("A", Truth.TRUE, "Fine"), judged("B", Truth.UNKNOWN, "Silent")],
            Truth.UNKNOWN,
            "Silent",
            "B: silent",
        ),
        (
            [judged("A", Truth.UNKNOWN, "Silent"), judged("B", Truth.FALSE, "Broken")],
            Truth.FALSE,
            "Broken",
            "B: broken; A: silent",
        ),
        (
            [judged(name, Truth.FALSE, "Broken") for name in "EDCBA"],
            Truth.FALSE,
            "Broken",
            "A: broken; B: broken; C: broken; and 2 more",
        ),
    ],
)
def test_one_out_of_many(
    thought: Sequence[Condition], truth: Truth, reason: str, message: str
) -> None:
    """Any False wins, else any Unknown, else True; the worst is named first; silence is Unknown."""
    found = conditions.summarise(thought, into="Ready", generation=1, now=NOW)

    assert (found.truth, found.reason, found.message) == (truth, reason, message)


def test_unknown_is_not_absent() -> None:
    """Could not look is Unknown with the error; looked and not there is False at once."""
    blind = look(None, 0, facts=None)
    gone = look(look(None, 0, GOOD), 1, facts={})

    assert (blind.truth, blind.reason, blind.message) == (Truth.UNKNOWN, "NotObserved", "no route")
    assert (gone.truth, gone.reason) == (Truth.FALSE, "Absent")


def test_why_nobody_could_look_is_the_reason() -> None:
    """The newest cause, from when it began; a state that was seen outlives it for a while."""
    silent = look(look(None, 0, GOOD), 10, facts=None, blind="NoAnswer")
    refused = look(silent, 20, facts=None, blind="NotLetIn")
    broken = look(look(None, 0, BAD), 10, facts=None, blind="NoAnswer")

    assert (silent.reason, silent.reason_since) == ("NoAnswer", NOW + 10 * SECOND)
    assert (refused.reason, refused.reason_since) == ("NotLetIn", NOW + 20 * SECOND)
    assert (refused.truth, refused.since) == (Truth.UNKNOWN, NOW + 10 * SECOND)
    assert broken.reason == "Broken"


def test_a_failure_is_doubted_first() -> None:
    """True, then Unknown for the grace period, then False; one state with one beginning."""
    good = look(None, 0, GOOD)
    first = look(good, 10, BAD)
    still = look(first, 39, BAD)
    sure = look(still, 40, BAD)

    assert [one.truth for one in (good, first, still, sure)] == [
        Truth.TRUE,
        Truth.UNKNOWN,
        Truth.UNKNOWN,
        Truth.FALSE,
    ]
    assert still is first
    assert sure.since == NOW + 40 * SECOND
    assert sure.reason_since == NOW + 10 * SECOND


def test_changing_reasons_do_not_hide_a_failure() -> None:
    """The grace period counts from the last time it was True."""
    doubted = look(look(look(None, 0, GOOD), 10, BAD), 20, WORSE)

    assert doubted.truth is Truth.UNKNOWN
    assert look(doubted, 40, BAD).truth is Truth.FALSE


def test_not_being_able_to_look_is_part_of_the_doubt() -> None:
    """A lost look between True and the failure neither shortens nor lengthens the period."""
    blind = look(look(None, 0, GOOD), 10, facts=None)

    assert look(blind, 20, BAD).truth is Truth.UNKNOWN
    assert look(blind, 40, BAD).truth is Truth.FALSE


def test_a_lost_look_does_not_end_a_state() -> None:
    """Otherwise a thing that installs behind a bad cable would never be overdue."""
    bad = look(None, 0, BAD)
    blind = look(bad, 600, facts=None)
    back = look(blind, 630, BAD)

    assert (blind.truth, blind.reason, blind.message) == (Truth.UNKNOWN, "Broken", "no route")
    assert [one.reason_since for one in (bad, blind, back)] == [NOW] * 3


def test_a_state_ends_when_it_was_not_seen_for_the_grace_period() -> None:
    """From then on not being seen is the state."""
    blind = look(look(None, 0, BAD), 600, facts=None)

    assert look(blind, 629, facts=None).reason == "Broken"
    gone = look(blind, 630, facts=None)
    assert (gone.reason, gone.reason_since) == ("NotObserved", NOW + 630 * SECOND)


def test_absence_is_not_kept_in_the_dark() -> None:
    """Others act on a thing's absence, so it holds only as long as it is seen."""
    assert look(look(None, 0, facts={}), 5, facts=None).reason == "NotObserved"
    assert look(look(None, 0, GOOD), 5, facts=None).reason == "NotObserved"
    assert look(look(None, 0, BAD), 5, facts=None, generation=2).reason == "NotObserved"


def test_recovery_is_believed_at_once() -> None:
    """One good look is enough."""
    assert look(look(look(None, 0, GOOD), 10, BAD), 11, GOOD).truth is Truth.TRUE


def test_what_was_never_true_is_not_doubted() -> None:
    """A thing that is being made is False from the first look."""
    assert look(None, 0, BAD).truth is Truth.FALSE
    assert look(look(None, 0, facts={}), 5, BAD).truth is Truth.FALSE


def test_a_new_generation_is_not_doubted() -> None:
    """That new documents are not carried out yet is no failure."""
    assert look(look(None, 0, GOOD), 1, BAD, generation=2).truth is Truth.FALSE


def test_what_served_and_failed_is_told_from_what_never_came_up() -> None:
    """It stays so whatever else is found out, until it is True or asked for in another way."""
    up = look(None, 0, GOOD)
    down = look(look(up, 1, BAD), 2, facts=None)
    asked_anew = look(down, 3, BAD, generation=2)

    assert [look(None, 0, BAD).served, up.served, look(up, 1, GOOD).served] == [False] * 3
    assert [down.served, asked_anew.served, look(down, 3, GOOD).served] == [True, False, False]


def test_without_a_grace_period_nothing_is_doubted() -> None:
    """Zero means zero."""
    good = look(None, 0, GOOD)
    observation = Observation(ref=WANT.ref, at=NOW, facts={"there": 1})

    assert conditions.of(WANT, observation, [BAD], good, grace=timedelta()).truth is Truth.FALSE


@pytest.mark.parametrize(
    ("change", "since", "reason_since"),
    [
        ({}, NOW, NOW),
        ({"message": "other words"}, NOW, NOW),
        ({"reason": "Slow"}, NOW, NOW + SECOND),
        ({"truth": Truth.TRUE}, NOW + SECOND, NOW),
        ({"truth": Truth.TRUE, "reason": "Fine"}, NOW + SECOND, NOW + SECOND),
    ],
)
def test_times_move_only_with_what_they_time(
    change: dict[str, object], since: datetime, reason_since: datetime
) -> None:
    """`since` moves with truth, `reason_since` with reason."""
    old = fleets.condition(Truth.FALSE, "Broken")
    later = replace(old, since=NOW + SECOND, reason_since=NOW + SECOND, **change)  # pyright: ignore[reportArgumentType]

    settled = conditions.settle(old, later)

    assert (settled.since, settled.reason_since) == (since, reason_since)
    assert settled.message == later.message
    assert (settled is old) == (not change)
