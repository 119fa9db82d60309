"""An old version goes when every target was seen with the new one, and not before."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from drivers.openbao import rotation
from fleetd.vocabulary import Done, Failed, Step, Truth
from tests.drivers.openbao.stage import Stage
from tests.drivers.openbao.test_flows import SOON, entry, held, played
from topology.resource import Resource

LAGS = ("eso", "cp-lab", "lagging")
HOUR = 3600.0
QUARTERLY = {"every": "90d", "overlap": "7d"}


def lost(there: Stage) -> list[int]:
    return [number for number, one in entry(there).versions.items() if one.destroyed]


async def settle(there: Stage, flow: Resource) -> Sequence[Step]:
    """All that needs no approval; what is left does."""
    for _ in range(20):
        steps = await there.proposed(flow)
        if all(step.destroys for step in steps):
            return steps
        for step in steps:
            assert isinstance(await there.driver(flow).apply(step), Done)
        await asyncio.sleep(30)
    return await there.proposed(flow)


async def rotated(there: Stage, flow: Resource) -> None:
    """Once, until its targets have the second version or never will."""
    await there.follow(flow)
    await asyncio.sleep(2.5 * HOUR)
    await settle(there, flow)
    assert entry(there).current == 2


def test_the_old_version_goes_last() -> None:
    """Not before both were good for the overlap; as a step of its own that says what it ends."""

    async def story(there: Stage, flow: Resource) -> None:
        await rotated(there, flow)
        run_exporters(there)
        both = await there.proposed(flow)
        await asyncio.sleep(1.6 * HOUR)
        (step,) = await there.proposed(flow)
        told = (await there.facts(flow))["observed"]["credentials"]["billing-exporter"]
        assert list(both) == []
        assert step.destroys == {flow.ref}
        assert "destroy version 1 at billing/exporter" in step.why
        assert (told["version"], told["older"], told["stillOld"]) == (2, [1], [])
        assert isinstance(await there.driver(flow).apply(step), Done)
        assert isinstance(await there.driver(flow).apply(step), Done)
        assert lost(there) == [1]
        assert held(there, "cp-lab") == entry(there).versions[2].data["value"]
        assert list(await there.proposed(flow)) == []

    played(story, rotation=SOON)


def test_while_one_target_lags_nothing_goes_and_nothing_new_comes() -> None:
    """Not after the overlap, not when the next rotation is due; it is told who it is."""

    async def story(there: Stage, flow: Resource) -> None:
        await there.follow(flow)
        there.world.mishaps.add(LAGS)
        await asyncio.sleep(2.5 * HOUR)
        await settle(there, flow)
        first = await there.ready(flow)
        await asyncio.sleep(4 * HOUR)
        later = await there.proposed(flow)
        second = await there.ready(flow)
        told = (await there.facts(flow))["observed"]["credentials"]["billing-exporter"]
        assert {step.verb for step in later} == {"poke"}
        assert (entry(there).current, lost(there)) == (2, [])
        assert first is not None
        assert second is not None
        assert (first.reason, second.reason) == ("Spreading", "OverdueRotation")
        assert "cp-lab/billing/exporter holds version 1" in first.message
        assert told["stillOld"] == ["cp-lab/billing/exporter"]
        assert told["seen"] == {"cp-prod/billing/exporter": 2, "cp-lab/billing/exporter": 1}
        there.world.mishaps.discard(LAGS)
        await asyncio.sleep(300)
        (made,) = await there.proposed(flow)
        assert (made.verb, dict(made.args)) == ("make-version", {"cas": 2, "writes": 2})

    played(story, rotation=SOON)


def test_who_goes_back_to_the_old_one_saves_it() -> None:
    """Between the look and the approval days may pass: the proof is asked for once more."""

    async def story(there: Stage, flow: Resource) -> None:
        await rotated(there, flow)
        run_exporters(there)
        await asyncio.sleep(1.6 * HOUR)
        (step,) = await there.proposed(flow)
        there.world.clusters["cp-lab"].delete(("", "Secret"), "exporter", "billing")
        outcome = await there.driver(flow).apply(step)
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.retry, lost(there)) == ("StillInUse", True, [])

    played(story, rotation=SOON)


def test_a_rotation_can_be_asked_for() -> None:
    """Once per moment, when it has come; a restart asks for nothing."""
    asked = {**QUARTERLY, "since": "2026-03-04T12:00Z"}

    async def story(there: Stage, flow: Resource) -> None:
        await there.follow(flow)
        before = await there.proposed(flow)
        await asyncio.sleep(16 * HOUR)
        await settle(there, flow)
        there.restart()
        again = await there.proposed(flow)
        assert ([*before, *again], entry(there).current) == ([], 2)

    played(story, rotation=asked)


def test_pods_that_started_before_the_value_came_use_the_old_one() -> None:
    """The Secret alone proves nothing for them; each must have started after it changed."""

    async def story(there: Stage, flow: Resource) -> None:
        cluster = there.world.clusters["cp-lab"]
        await there.follow(flow)
        await asyncio.sleep(2 * HOUR)
        run_exporter(there, "exporter-a", "exporter-b")
        await asyncio.sleep(HOUR / 2)
        await settle(there, flow)
        run_exporter(there, "exporter-c")
        old = await there.ready(flow)
        waiting = await there.proposed(flow)
        for name in ("exporter-a", "exporter-b"):
            cluster.delete(("", "Pod"), name, "billing")
        new = await there.ready(flow)
        assert held(there, "cp-lab") == entry(there).versions[2].data["value"]
        assert old is not None
        assert old.reason == "Spreading"
        assert "2 of 3 pods of Deployment exporter are older" in old.message
        assert list(waiting) == []
        assert new is not None
        assert new.truth is Truth.TRUE

    played(story, rotation=SOON)


def test_a_user_that_cannot_be_seen_keeps_the_old_version() -> None:
    """The documents name a Deployment that is not there: nobody knows what uses the Secret, so
    nothing goes, neither now nor if it vanishes after the approval; the flow itself is well."""

    async def story(there: Stage, flow: Resource) -> None:
        await rotated(there, flow)
        await asyncio.sleep(1.6 * HOUR)
        nobody = await there.proposed(flow)
        judged = await there.ready(flow)
        told = (await there.facts(flow))["targets"]["unseen"]
        run_exporters(there)
        await asyncio.sleep(60)
        (step,) = await there.proposed(flow)
        there.world.clusters["cp-lab"].delete(("apps", "Deployment"), "exporter", "billing")
        gone = await there.driver(flow).apply(step)
        assert list(nobody) == []
        assert told == [
            f"Deployment exporter of {name} is not there" for name in ("cp-prod", "cp-lab")
        ]
        assert judged is not None
        assert judged.truth is Truth.TRUE
        assert isinstance(gone, Failed)
        assert (gone.reason, lost(there)) == ("StillInUse", [])

    played(story, rotation=SOON)


def run_exporters(there: Stage) -> None:
    for cluster in ("cp-lab", "cp-prod"):
        run_exporter(there, "exporter-a", on=cluster)


def run_exporter(there: Stage, *pods: str, on: str = "cp-lab") -> None:
    """The workload that the example names, with these pods; the world's own have none."""
    named = {"namespace": "billing", "labels": {"app": "exporter"}}
    containers = {"containers": [{"name": "exporter", "image": "exporter"}]}
    template = {"metadata": {"labels": named["labels"]}, "spec": containers}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**named, "name": "exporter"},
        "spec": {"selector": {"matchLabels": named["labels"]}, "template": template},
    }
    bodies: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**named, "name": pod}, "spec": containers}
        for pod in pods
    ]
    for body in (deployment, *bodies):
        there.world.clusters[on].apply(body, manager="somebody")


def test_nothing_given_away_holds_a_value() -> None:
    """Facts, steps, outcomes and conditions of a whole rotation, old values included."""

    async def story(there: Stage, flow: Resource) -> None:
        await rotated(there, flow)
        run_exporters(there)
        await asyncio.sleep(1.6 * HOUR)
        values = [str(one.data["value"]) for one in entry(there).versions.values()]
        for step in await there.proposed(flow):
            there.said.append(await there.driver(flow).apply(step))
        text = repr(there.said)
        assert len(values) == 2
        assert [value for value in values if value in text] == []

    played(story, rotation=SOON)


def known(*, destroyed: bool = False) -> dict[str, Any]:
    """What OpenBao says of a path with two versions."""
    first = {"created_time": "2026-01-01T00:00:00Z", "deletion_time": "", "destroyed": destroyed}
    second = {"created_time": "2026-03-01T00:00:00Z", "deletion_time": "", "destroyed": False}
    return {"current_version": 2, "versions": {"1": first, "2": second}}


@pytest.mark.parametrize(
    ("day", "rule", "state", "old"),
    [
        ("2026-03-01", QUARTERLY, "fresh", []),
        ("2026-03-08", QUARTERLY, "fresh", [1]),
        ("2026-05-30", QUARTERLY, "due", [1]),
        ("2026-06-06", QUARTERLY, "overdue", [1]),
        ("2026-03-02", {**QUARTERLY, "since": "2026-03-02T00:00Z"}, "due", []),
        ("2026-03-02", {**QUARTERLY, "since": "2026-03-03T00:00Z"}, "fresh", []),
        ("2026-03-02", {**QUARTERLY, "since": "2026-02-01T00:00Z"}, "fresh", []),
        ("2026-06-06", None, "none", []),
    ],
)
def test_dates(day: str, rule: dict[str, str] | None, state: str, old: list[int]) -> None:
    """Age, or the moment that was asked for, makes it due; the overlap makes it overdue."""
    now = datetime.fromisoformat(f"{day}T00:00:00Z")
    assert rotation.state(rule, known(), now) == state
    assert list(rotation.retirable(rule, known(), now)) == old


def test_what_was_destroyed_is_not_there() -> None:
    """It is not retired again, and a path without any version has none."""
    assert rotation.lying(known(destroyed=True)) == [2]
    assert rotation.lying(None) == []
