"""What a Shoot is asked to do: try again, be gone over, renew its authority in phases."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from drivers.gardener import operations
from drivers.gardener.driver import GardenerDriver
from fleetd.sim import loop
from fleetd.vocabulary import Step
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, want
from tests.drivers.gardener.test_clusters import SHOOT, proposed, up
from topology.resource import Ref, Resource

HV = want("cluster", "hv")
DAY = 86400


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


def test_an_authority_is_renewed_in_phases() -> None:
    """Both are good; the pool is rolled by a step that budgets see; the old one ends a day later,
    by a step that a person approves; then the keys. Never two nodes are away."""

    async def act(region: Region) -> None:
        driver = await up(region)
        await asyncio.sleep(60)
        asked = _since(region, "rotation")
        done: list[Step] = []
        fewest = 4
        for _ in range(8 * 24 * 12):
            steps = await proposed(region, driver, asked)
            await region.carry_out(driver, steps)
            done += steps
            fewest = min(fewest, len(region.world.clusters["hv"].list(("", "Node"))))
            if len(done) == 4 and not steps:
                break
            await asyncio.sleep(300)
        assert [step.args["operation"] for step in done] == [
            operations.START,
            f"{operations.ROLL}=compute",
            operations.COMPLETE,
            operations.KEYS,
        ]
        start, roll, complete, keys = done
        assert not start.disrupts | start.destroys | keys.disrupts | keys.destroys
        assert sorted(ref.kind for ref in roll.disrupts) == ["cluster", "server"]
        assert complete.destroys == {Ref("access", "hv")}
        assert fewest == 3
        assert await region.road(driver, asked) == "Ready"

    loop.run(place.play(act))


def test_a_renewal_that_nobody_asked_for_is_left_alone() -> None:
    """Somebody began one by hand: fleetd neither rolls nor completes it."""

    async def act(region: Region) -> None:
        driver = await up(region)
        notes = {"gardener.cloud/operation": operations.START}

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
