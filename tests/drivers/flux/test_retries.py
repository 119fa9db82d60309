"""A release that Flux gave up: tried anew when it may succeed, and never in a hot loop."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drivers.flux import retries
from fleetd.sim import loop
from fleetd.sim.controllers.workloads_look import conditions
from fleetd.vocabulary import Truth
from tests.drivers.flux import stage as stages
from tests.drivers.flux.stage import RELEASE, SYSTEM, Stage, want

ONE = want("cert-manager")
BAD = ("image", "hv/cert-manager", "bad")
SINCE = datetime(2026, 3, 3, 12, 0, tzinfo=UTC)


def tell(stage: Stage) -> None:
    for listener in stage.world.listeners:
        listener(BAD)


def given_up(stage: Stage) -> bool:
    live = stage.mgmt.get(RELEASE, "hv-cert-manager", SYSTEM)
    return any(one["type"] == "Stalled" and one["status"] == "True" for one in conditions(live))


def test_a_release_that_was_given_up_is_reset_once_its_pods_come_up() -> None:
    """Not while they do not, however long that lasts; and one reset is enough."""

    async def script(stage: Stage) -> None:
        stage.world.mishaps.add(BAD)
        await stage.do(ONE)
        await asyncio.sleep(3600)
        assert given_up(stage)
        for _ in range(12):
            assert await stage.proposed(ONE) == ()
            await asyncio.sleep(3600)
            stage.admit("mgmt")
            stage.admit("hv")
        judged = await stage.ready(ONE)
        assert judged is not None
        assert "Flux gave up on it, and these are not up: cert-manager" in judged.message

        stage.world.mishaps.discard(BAD)
        tell(stage)
        await asyncio.sleep(120)
        (step,) = await stage.do(ONE)
        assert step.why == "reset the release hv-cert-manager: its retries are used up"
        await asyncio.sleep(120)
        assert await stage.proposed(ONE) == ()
        judged = await stage.ready(ONE)
        assert judged is not None
        assert judged.truth is Truth.TRUE

    async def main() -> None:
        async with stages.opened("mgmt", "hv") as stage:
            await stage.flux("hv")
            await script(stage)

    loop.run(main())


def release(count: str = "", **more: str) -> dict[str, Any]:
    notes = {retries.COUNT: count} if count else {}
    stalled = {"type": "Stalled", "status": "True", "reason": "RetriesExceeded"}
    ready = {"type": "Ready", "status": "False", "reason": more.get("ready", "InstallFailed")}
    return {
        "metadata": {"name": "r", "generation": 2, "annotations": notes},
        "status": {
            "lastAttemptedReleaseAction": more.get("action", "install"),
            "conditions": [
                ready,
                {
                    **stalled,
                    "reason": more.get("why", "RetriesExceeded"),
                    "lastTransitionTime": SINCE.isoformat(),
                },
            ],
        },
    }


def workload(ready: int) -> dict[str, Any]:
    return {
        "metadata": {"name": "d", "generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "readyReplicas": ready, "updatedReplicas": 1},
    }


def due(live: dict[str, Any], brought: list[dict[str, Any]] | None, minutes: float) -> bool:
    told = retries.state(live, brought, SINCE + timedelta(minutes=minutes))
    return bool(told.get("due"))


@pytest.mark.parametrize(
    ("count", "minutes"), [("", 10), ("2/1", 20), ("2/2", 40), ("2/9", 240), ("1/7", 10)]
)
def test_where_nothing_can_be_seen_patience_doubles(count: str, minutes: int) -> None:
    """Up to a limit, and anew for each generation."""
    assert not due(release(count), [], minutes - 1)
    assert due(release(count), [], minutes)


def test_what_is_up_says_nothing_of_an_upgrade_or_the_second_time() -> None:
    """After a rollback it is the old version that is up."""
    assert due(release(), [workload(1)], 0)
    assert not due(release(action="upgrade"), [workload(1)], 0)
    assert not due(release("2/1"), [workload(1)], 0)


@pytest.mark.parametrize(
    ("live", "brought"),
    [
        (release(), [workload(1), workload(0)]),
        (release(), None),
        (release(ready="DependencyNotReady"), []),
        (release(why="InvalidChartReference"), []),
    ],
)
def test_while_the_cause_is_seen_it_is_not_reset(
    live: dict[str, Any], brought: list[dict[str, Any]] | None
) -> None:
    """Whatever it is: pods, the cluster, another release, or the release itself."""
    assert not due(live, brought, 10_000)


def test_each_reset_has_a_token_of_its_own() -> None:
    """Flux does nothing for a token that it has met."""
    tokens = [retries.state(release(count), [], SINCE)["token"] for count in ("", "2/1", "2/2")]
    assert len(set(tokens)) == 3
