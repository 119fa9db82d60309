"""What was judged once is not judged again, as long as nothing that it depends on has moved."""

from datetime import UTC, datetime, timedelta
from typing import Any

from fleetd.engine import fingerprint
from fleetd.tools import Rules
from fleetd.vocabulary import Observation
from topology import catalogue_load, health
from topology.catalogue import Component
from topology.resource import Ref

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
THING = Ref("nova", "prod")
SHIPPED, _ = catalogue_load.load()


def component(*healthy: dict[str, Any]) -> Component:
    """One that is shipped, with other rules of health."""
    shipped = SHIPPED[THING.kind]
    rules = health.Health.model_validate(
        {"object": {"kind": "Thing", "name": "x"}, "healthy": [{"when": list(healthy)}]}
    )
    return shipped.model_copy(update={"spec": shipped.spec.model_copy(update={"health": rules})})


def judged(rules: Rules, facts: Any, at: datetime = NOW, wanted: int = 0) -> str:
    digest = fingerprint.of(facts)
    seen = Observation(ref=THING, at=at, facts=facts, digest=digest)
    return rules.verdict(THING, seen, wanted).state.value


def test_other_facts_another_number_and_other_rules_are_judged_anew() -> None:
    """And what came back is judged as at first."""
    rules = Rules()
    rules.take({THING.kind: component({"path": "status.phase", "in": ["Ready"]})})
    good, bad = {"status": {"phase": "Ready"}}, {"status": {"phase": "Odd"}}

    assert [judged(rules, one) for one in (good, good, bad, bad, good)] == [
        *("healthy", "healthy", "unknown", "unknown", "healthy")
    ]
    all_of_them = {"objects": [good]}
    assert [judged(rules, all_of_them, wanted=number) for number in (1, 2, 1)] == [
        *("healthy", "progressing", "healthy")
    ]
    assert judged(rules, good) == "healthy"
    rules.take({THING.kind: component({"path": "status.phase", "in": ["Odd"]})})
    assert judged(rules, good) == "unknown"


def test_what_asks_for_the_time_is_judged_at_every_look() -> None:
    """The same facts are fine today and too old tomorrow."""
    rules = Rules()
    rules.take({THING.kind: component({"path": "status.at", "youngerThan": "2h"})})
    seen = {"status": {"at": "2030-01-01T11:00:00Z"}}

    assert judged(rules, seen) == "healthy"
    assert judged(rules, seen, NOW + timedelta(hours=2)) == "unknown"


def test_facts_without_a_fingerprint_are_judged_as_they_are() -> None:
    """Whoever makes facts up by hand has none."""
    rules = Rules()
    rules.take({THING.kind: component({"path": "status.phase", "in": ["Ready"]})})
    found = [
        rules.verdict(THING, Observation(ref=THING, at=NOW, facts={"status": {"phase": phase}}), 0)
        for phase in ("Ready", "Odd")
    ]

    assert [one.state for one in found] == [health.State.HEALTHY, health.State.UNKNOWN]
