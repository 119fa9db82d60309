"""The evaluator: paths, tests, the order of rules, and many objects at once."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from topology import health, healthpath
from topology.catalogue import Health

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def rules(**lists: list[dict[str, Any]]) -> Health:
    return Health.model_validate({"object": {"kind": "Thing", "name": "x"}, **lists})


def passes(test: dict[str, Any], seen: Mapping[str, Any]) -> bool:
    """Whether one test holds for an object."""
    verdict = health.read(rules(healthy=[{"when": [test]}]), seen, now=NOW)
    return verdict.state is health.State.HEALTHY


SEEN: dict[str, Any] = {
    "metadata": {"generation": 2, "annotations": {"a.b/c": "on"}},
    "status": {
        "phase": "Ready",
        "count": 3,
        "zero": 0,
        "flag": True,
        "empty": "",
        "none": None,
        "observedGeneration": 2,
        "at": "2030-01-01T11:00:00Z",
        "every": "40m0s",
        "seldom": "25m",
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Odd", "status": "False"}],
        "services": [{"name": "a", "release": "1"}, {"name": "b", "release": "1"}],
        "nothing": [],
        "errors": [{"codes": ["X", "Y"]}, {"codes": []}],
    },
}

YES: list[dict[str, Any]] = [
    {"path": "status.phase", "in": ["Ready", "Done"]},
    {"path": "status.phase", "notIn": ["Failed"]},
    {"path": "status.phase", "prefix": "Re"},
    {"path": "status.phase", "suffix": "dy"},
    {"path": "status.flag", "in": [True]},
    {"path": "status.zero", "in": [0]},
    {"path": "status.zero", "present": True},
    {"path": "status.empty", "present": False},
    {"path": "status.none", "present": False},
    {"path": "status.gone.deeper", "present": False},
    {"path": "status.nothing", "present": False},
    {"path": "status.observedGeneration", "equalsPath": "metadata.generation"},
    {"path": "status.count", "differsFrom": "metadata.generation"},
    {"path": "status.at", "youngerThan": "2h"},
    {"path": "status.at", "olderThan": "1h"},
    {"path": "status.at", "withinTwice": "status.every"},
    {"path": "status.at", "beyondTwice": "status.seldom"},
    {"path": "status.conditions[Ready].status", "in": ["True"]},
    {"path": "status.conditions[1].status", "in": ["False"]},
    {"path": "status.conditions[?].status", "in": ["False"]},
    {"path": "status.services[*].release", "in": ["1"]},
    {"path": "status.services[b].release", "in": ["1"]},
    {"path": "status.errors[?].codes[?]", "in": ["Y"]},
    {"path": "metadata.annotations[a.b/c]", "in": ["on"]},
    {"path": "status.phase", "in": ["Ready"], "prefix": "R"},
]

NO: list[dict[str, Any]] = [
    {"path": "status.gone", "notIn": ["Failed"]},
    {"path": "status.none", "notIn": ["Failed"]},
    {"path": "status.gone", "in": ["Ready"]},
    {"path": "status.gone", "present": True},
    {"path": "status.flag", "in": [1]},
    {"path": "status.count", "in": ["3"]},
    {"path": "status.gone", "equalsPath": "status.missing"},
    {"path": "status.gone", "differsFrom": "metadata.generation"},
    {"path": "status.count", "differsFrom": "status.missing"},
    {"path": "status.at", "youngerThan": "1h"},
    {"path": "status.at", "olderThan": "61m"},
    {"path": "status.phase", "olderThan": "1s"},
    {"path": "status.at", "beyondTwice": "status.every"},
    {"path": "status.at", "withinTwice": "status.seldom"},
    {"path": "status.at", "withinTwice": "status.phase"},
    {"path": "status.at", "beyondTwice": "status.gone"},
    {"path": "status.gone", "youngerThan": "1h"},
    {"path": "status.conditions[*].status", "in": ["True"]},
    {"path": "status.conditions[Absent].status", "notIn": ["True"]},
    {"path": "status.conditions[7].status", "notIn": ["True"]},
    {"path": "status.nothing[*]", "in": ["x"]},
    {"path": "status.nothing[?]", "notIn": ["x"]},
    {"path": "status.phase.deeper", "notIn": ["x"]},
    {"path": "status.phase", "in": ["Ready"], "prefix": "X"},
]


@pytest.mark.parametrize("test", YES, ids=str)
def test_passes(test: dict[str, Any]) -> None:
    """The test holds for the object above."""
    assert passes(test, SEEN)


@pytest.mark.parametrize("test", NO, ids=str)
def test_does_not_pass(test: dict[str, Any]) -> None:
    """The test does not hold; above all, nothing missing passes."""
    assert not passes(test, SEEN)


@pytest.mark.parametrize("text", ["", ".a", "a.", "a..b", "a[", "a[]", "a]b", "a b", "[x]"])
def test_bad_path_is_refused(text: str) -> None:
    """What is not a path is refused when it is read, not when an object comes."""
    with pytest.raises(healthpath.BadPath):
        healthpath.parse(text)


BY_PHASE = rules(
    failed=[{"reason": "Broken", "when": [{"path": "a", "in": [1]}]}],
    progressing=[{"when": [{"path": "b", "in": [1]}]}],
    healthy=[{"when": [{"path": "c", "in": [1]}]}],
)


@pytest.mark.parametrize(
    ("seen", "state", "reason"),
    [
        ({"a": 1, "b": 1, "c": 1}, "failed", "Broken"),
        ({"b": 1, "c": 1}, "progressing", "Progressing"),
        ({"c": 1}, "healthy", "Healthy"),
        ({"d": 1}, "unknown", "Unrecognised"),
        ({}, "unknown", "Absent"),
        (
            {"c": 1, "metadata": {"deletionTimestamp": "2030-01-01T11:59:00Z"}},
            "progressing",
            "Deleting",
        ),
        ({"a": 1, "metadata": {"deletionTimestamp": "2030-01-01T11:59:00Z"}}, "failed", "Broken"),
    ],
)
def test_order_of_rules(seen: Mapping[str, Any], state: str, reason: str) -> None:
    """Failed before Deleting before progressing before healthy; nothing is Unknown."""
    verdict = health.read(BY_PHASE, seen, now=NOW)

    assert (verdict.state, verdict.reason) == (state, reason)


def test_message_tells_the_values_and_quotes() -> None:
    """A verdict says which tests decided, with the values found, and the object's own words."""
    tests = [
        {"path": "status.conditions[?].status", "in": ["False"]},
        {"path": "status.phase", "in": ["Ready"]},
    ]
    judged = rules(failed=[{"when": tests, "quote": "status.words"}])
    seen = {"status": {**SEEN["status"], "words": "no  such\nthing" + "x" * 300}}

    message = health.read(judged, seen, now=NOW).message

    assert message.startswith(
        "status.conditions[Odd].status is False, status.phase is Ready: no such thingxxx"
    )
    assert len(message) < 300


def test_a_rule_in_words_with_values_and_names() -> None:
    """A path in braces is the value; one with [?] the names of the members that passed, and a
    quote of theirs is the first one's."""
    rule = {
        "says": "{status.count} of 5, not in order: {status.conditions[?].status}",
        "when": [{"path": "status.conditions[?].status", "in": ["False"]}],
        "quote": "status.conditions[?].message",
    }
    conditions = [
        {"type": name, "status": status, "message": f"about {name}"}
        for name, status in zip("abcdef", ("True", *["False"] * 5), strict=True)
    ]
    seen = {"status": {"count": 3, "conditions": conditions}}

    message = health.read(rules(failed=[rule]), seen, now=NOW).message

    assert message == "3 of 5, not in order: b, c, d and 2 more: about b"


def test_unknown_says_what_is_missing() -> None:
    """When no rule holds, the message says what kept it from being healthy."""
    judged = rules(healthy=[{"when": [{"path": "status.phase", "in": ["Up"]}]}])

    message = health.read(judged, {"status": {"phase": "Odd"}}, now=NOW).message

    assert message == ("its state is none that the catalogue knows: status.phase is Odd (not Up)")


def thing(name: str, **fields: int) -> dict[str, Any]:
    return {"metadata": {"name": name}, **fields}


def test_worst_of_many_wins_and_is_counted() -> None:
    """One failed object of four decides; the message counts all and names the failed one."""
    seen = [thing("d", c=1), thing("b", b=1), thing("a", c=1), thing("c", a=1)]

    verdict = health.read(BY_PHASE, seen, now=NOW)

    assert (verdict.state, verdict.reason) == ("failed", "Broken")
    assert verdict.message == "of 4: 1 failed, 1 progressing, 2 healthy; failed: c (a is 1)"


def test_order_of_many_does_not_matter() -> None:
    """The same objects in another order give the same verdict."""
    seen = [thing("b", b=1), thing("a", b=1), thing("c", d=1)]

    assert health.read(BY_PHASE, seen, now=NOW) == health.read(BY_PHASE, seen[::-1], now=NOW)


def test_none_of_many_is_absent() -> None:
    """To have looked and found none is Absent, not healthy."""
    assert health.read(BY_PHASE, [], now=NOW).reason == "Absent"


def test_all_of_many_healthy() -> None:
    """All healthy is healthy, with the number."""
    verdict = health.read(BY_PHASE, [thing("a", c=1), thing("b", c=1)], now=NOW)

    assert (verdict.state, verdict.message) == ("healthy", "of 2: 2 healthy")


def test_fewer_than_wanted_is_not_healthy() -> None:
    """Three healthy hosts of four are no healthy cluster; a fault among them still comes first."""
    reader = health.Reader(
        rules(
            healthy=[{"when": [{"path": "ok", "in": [True]}]}],
            failed=[{"reason": "Bad", "when": [{"path": "ok", "in": [False]}]}],
        )
    )
    good, bad = {"name": "a", "ok": True}, {"name": "b", "ok": False}

    short = reader.read([good] * 3, now=NOW, wanted=4)

    assert (short.state, short.reason) == (health.State.PROGRESSING, "Incomplete")
    assert short.message.startswith("3 of 4 are there")
    assert reader.read([good] * 4, now=NOW, wanted=4).state is health.State.HEALTHY
    assert reader.read([good] * 5, now=NOW, wanted=4).state is health.State.HEALTHY
    assert reader.read([good, bad], now=NOW, wanted=4).reason == "Bad"
    assert reader.read([], now=NOW, wanted=4).reason == "Absent"
