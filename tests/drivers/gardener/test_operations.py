"""What a Shoot is asked to do: try again, be gone over, renew its authority in phases."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from drivers.gardener import operations
from drivers.gardener.access import AccessDriver
from drivers.gardener.driver import GardenerDriver
from fleetd.sim import loop
from fleetd.vocabulary import Step
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, want
from tests.drivers.gardener.test_clusters import SHOOT, proposed, up
from topology.resource import Ref, Resource

HV = want("cluster", "hv")
DAY = 86400
START = operations.start(list(operations.PHASED))


def _shoot(region: Region) -> dict[str, Any]:
    found = region.garden.get(SHOOT, "hv", "garden-cobalt")
    assert found is not None
    return found


def _fail(region: Region, *codes: str) -> None:
    """As if Gardener had given up."""
    status = _shoot(region)["status"]
    last = {**status["lastOperation"], "state": "Failed", "description": "no"}
    errors = [{"description": "no", "codes": list(codes)}]
    region.garden.set_status(
        SHOOT,
        "hv",
        "garden-cobalt",
        {**status, "lastOperation": last, "lastErrors": errors},
        manager="t",
    )


def _since(region: Region, field: str) -> Resource:
    """The document asks for it now."""
    return changed(HV, **{field: {"since": region.world.now().isoformat(timespec="seconds")}})


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ERR_INFRA_RATE_LIMITS_EXCEEDED", ["retry"]),
        ("ERR_INFRA_RESOURCES_DEPLETED", ["retry"]),
        ("ERR_CONFIGURATION_PROBLEM", []),
        ("ERR_INFRA_UNAUTHENTICATED", []),
    ],
)
def test_what_may_pass_is_tried_again_and_what_a_person_must_mend_is_not(
    code: str, expected: list[str]
) -> None:
    """Infrastructure gets another try after Gardener gave up; an error of a user does not."""

    async def act(region: Region) -> None:
        driver = await up(region)
        _fail(region, code)
        await asyncio.sleep(1)
        steps = await proposed(region, driver, HV)
        assert [step.args["operation"] for step in steps] == expected
        await region.carry_out(driver, steps)
        await asyncio.sleep(1200)
        state = _shoot(region)["status"]["lastOperation"]["state"]
        assert (state == "Succeeded") == bool(expected)

    loop.run(place.play(act))


def test_a_person_who_mended_it_asks_for_another_try() -> None:
    """The document says since when; a moment that was answered is not answered again."""

    async def act(region: Region) -> None:
        driver = await up(region)
        _fail(region, "ERR_CONFIGURATION_PROBLEM")
        await asyncio.sleep(60)
        asked = _since(region, "reconcile")
        steps = await proposed(region, driver, asked)
        assert [step.args["operation"] for step in steps] == ["retry"]
        await region.carry_out(driver, steps)
        assert await region.road(driver, asked) == "Ready"
        assert await proposed(region, driver, asked) == ()

    loop.run(place.play(act))


def test_a_healthy_cluster_is_gone_over_when_it_is_asked_for() -> None:
    """Once, and nothing goes down; asked for tomorrow, it waits until then."""

    async def act(region: Region) -> None:
        driver = await up(region)
        await asyncio.sleep(60)
        before = _shoot(region)["metadata"]["generation"]
        asked = _since(region, "reconcile")
        (step,) = await proposed(region, driver, asked)
        assert (step.args["operation"], step.disrupts, step.destroys) == (
            "reconcile",
            frozenset(),
            frozenset(),
        )
        await region.carry_out(driver, [step, step])
        assert _shoot(region)["metadata"]["generation"] == before + 1
        assert await region.road(driver, asked) == "Ready"
        assert await proposed(region, driver, asked) == ()
        later = changed(HV, reconcile={"since": "2099-01-01T00:00Z"})
        assert await proposed(region, driver, later) == ()

    loop.run(place.play(act))


def test_authority_and_keys_are_renewed_in_phases() -> None:
    """Old and new are good; the pool is rolled once, by a step that budgets see; what only the
    garden uses is renewed in one go; the old authority ends a day later and the key that signs
    tokens a month later, by steps that a person approves. Never two nodes are away, and fleetd is
    never locked out."""

    async def act(region: Region) -> None:
        driver, access = await up(region), AccessDriver(region.tools)
        assert await region.road(access, want("access", "hv")) == "Ready"
        asked, began = _since(region, "rotation"), region.world.now()
        done: list[tuple[Step, float]] = []
        fewest, reasons = 4, set[str]()
        for number in range(40 * 24 * 2):
            steps = await proposed(region, driver, asked)
            await region.carry_out(driver, steps)
            days = (region.world.now() - began).total_seconds() / DAY
            done += [(step, days) for step in steps]
            fewest = min(fewest, len(region.world.clusters["hv"].list(("", "Node"))))
            if number % 8 == 0:
                reasons.add(await region.reason(access, want("access", "hv")))
            if len(done) == 7 and not steps:
                break
            await asyncio.sleep(1800)
        assert [step.args["operation"] for step, _ in done] == [
            START,
            f"{operations.ROLL}=compute",
            *operations.AT_ONCE.values(),
            "rotate-ca-complete",
            "rotate-serviceaccount-key-complete",
        ]
        (start, _), (roll, _), *others, (authority, day), (key, month) = done
        assert not start.disrupts | start.destroys
        assert not any(step.disrupts | step.destroys for step, _ in others)
        assert sorted(ref.kind for ref in roll.disrupts) == ["cluster", "server"]
        assert authority.destroys == key.destroys == {Ref("access", "hv")}
        assert (1 < day < 2, 31 < month < 32) == (True, True)
        assert fewest == 3
        assert await region.road(driver, asked) == "Ready"
        reasons.add(await region.reason(access, want("access", "hv")))
        assert reasons == {"Healthy"}

    loop.run(place.play(act))


def test_of_two_only_what_is_due_is_renewed() -> None:
    """The authority was renewed by hand since it was asked for; the key was not."""
    status = {
        "lastOperation": {"state": "Succeeded", "lastUpdateTime": "2026-03-03T00:00:00Z"},
        "credentials": {
            "rotation": {
                "certificateAuthorities": {
                    "phase": "Completed",
                    "lastInitiationTime": "2026-03-02T00:00:00Z",
                }
            }
        },
    }
    asked = changed(HV, rotation={"since": "2026-03-01T00:00:00+00:00"})
    found = operations.due(asked, {"status": status}, datetime(2026, 3, 4, tzinfo=UTC))

    assert found["operation"] == "rotate-serviceaccount-key-start-without-workers-rollout"


def test_a_renewal_that_nobody_asked_for_is_left_alone() -> None:
    """Somebody began one by hand: fleetd neither rolls nor completes it."""

    async def act(region: Region) -> None:
        driver = await up(region)
        notes = {"gardener.cloud/operation": START}

        def begin(live: dict[str, Any]) -> None:
            live["metadata"].setdefault("annotations", {}).update(notes)

        region.garden.edit(SHOOT, "hv", "garden-cobalt", begin, manager="t")
        for _ in range(3 * 24):
            await asyncio.sleep(3600)
            assert await proposed(region, driver, HV) == ()
        phase = _shoot(region)["status"]["credentials"]["rotation"]["certificateAuthorities"]
        assert phase["phase"] == "WaitingForWorkersRollout"

    loop.run(place.play(act))


def test_nothing_is_changed_while_a_control_plane_is_moved() -> None:
    """Migration is for who runs the garden: it is told, and every change is held with that."""

    async def act(region: Region) -> None:
        driver = await up(region)
        status = _shoot(region)["status"]
        last = {**status["lastOperation"], "type": "Migrate", "state": "Processing", "progress": 5}

        region.world.mishaps.add(("shoot", "hv", "stuck"))
        region.garden.set_status(
            SHOOT, "hv", "garden-cobalt", {**status, "lastOperation": last}, manager="t"
        )
        await asyncio.sleep(1)
        assert await region.reason(driver, HV) == "Migrating"
        other = changed(HV, kubernetes="1.33.5")
        (step,) = await _steps(region, driver, other)
        assert step.verb == "refuse"
        assert "moved to another seed" in step.why

    loop.run(place.play(act))


async def _steps(region: Region, driver: GardenerDriver, one: Resource) -> Sequence[Step]:
    return await proposed(region, driver, one)
