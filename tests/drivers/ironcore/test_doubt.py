"""The ironcore driver when a BMC, an object or somebody else is not as the last look saw them."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from drivers.ironcore.driver import IroncoreDriver
from fleetd.kube import facts
from fleetd.sim import loop
from fleetd.vocabulary import Failed
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed
from tests.drivers.ironcore.test_servers import BMC, ONE, _bmc, _claim, _enrolled, _steps

OTHER_UUID = "38947555-7742-3448-3784-823347823834"


@pytest.mark.parametrize(
    "ip", ["::ffff:192.0.2.11", "::FFFF:C000:20B", "0:0:0:0:0:ffff:192.0.2.11"]
)
def test_a_machine_that_is_spelled_otherwise_is_the_same(ip: str) -> None:
    """Somebody enrolled it by its IPv4 address inside of IPv6 (danger 2)."""

    async def act(region: Region) -> None:
        driver = IroncoreDriver(region.tools)
        _bmc(region, "twin", ip)
        await asyncio.sleep(60)
        assert await region.reason(driver, ONE) == "SameMachineTwice"
        assert list(await _steps(driver, ONE)) == []

    loop.run(place.play(act))


@pytest.mark.parametrize("known", ["by the documents", "by its Server"])
def test_another_machine_behind_the_bmc_is_held(known: str) -> None:
    """It is neither enrolled nor told anything more; what it is, is said."""

    async def act(region: Region) -> None:
        machine = region.world.truth.machines["metal-01"]
        if known == "by the documents":
            driver, want = IroncoreDriver(region.tools), changed(ONE, uuid=OTHER_UUID)
        else:
            driver, want = await _enrolled(region, ONE), ONE
            machine.uuid = OTHER_UUID
            await asyncio.sleep(200)
        seen = await driver.observe(want)
        assert [one.reason for one in driver.judge(want, seen)] == ["OtherMachine"]
        assert machine.uuid in driver.judge(want, seen)[0].message
        assert list(driver.propose(want, seen)) == []

    loop.run(place.play(act))


def test_a_server_that_was_claimed_since_the_look_is_not_removed() -> None:
    """The approval was for a free one; deleting it now would boot a machine in use (danger 8)."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)
        steps = await _steps(driver, replace(ONE, absent=True))
        (step,) = [one for one in steps if one.args["kind"] == "BMC"]
        _claim(region, "c")
        await asyncio.sleep(30)
        outcome = await driver.apply(step)
        assert isinstance(outcome, Failed)
        assert (outcome.reason, outcome.retry) == ("Claimed", True)
        assert "claimed by mine/c" in outcome.message
        assert region.metal.get(BMC, ONE.ref.name) is not None

    loop.run(place.play(act))


@pytest.mark.parametrize("kind", ["BMC", "BMCSecret"])
def test_what_another_owner_has_by_now_stays(kind: str) -> None:
    """Its mark changed between the approval and the deed."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)
        steps = await _steps(driver, replace(ONE, absent=True))
        (step,) = [one for one in steps if one.args["kind"] == kind]

        def take(new: dict[str, Any]) -> None:
            new["metadata"]["labels"][facts.OWNER] = "server.somebody-elses"

        region.metal.edit((BMC[0], kind), ONE.ref.name, "", take, manager="somebody")
        outcome = await driver.apply(step)
        assert isinstance(outcome, Failed)
        assert outcome.reason == "OwnedByAnother"
        assert region.metal.get((BMC[0], kind), ONE.ref.name) is not None

    loop.run(place.play(act))


def test_release_takes_back_only_fleetds_own_word() -> None:
    """Somebody else told metal-operator something of this BMC meanwhile; that stays."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)
        machine = region.world.truth.machines["metal-01"]
        machine.bmc = "hangs"
        for _ in range(8):
            await asyncio.sleep(40)
            for step in await _steps(driver, ONE):
                await driver.apply(step)
        live = region.metal.get(BMC, ONE.ref.name)
        assert live is not None
        assert "fleet.c5c3.io/quarantine" in live["metadata"]["annotations"]

        def command(new: dict[str, Any]) -> None:
            new["metadata"]["annotations"]["metal.ironcore.dev/operation"] = "reset"

        region.metal.edit(BMC, ONE.ref.name, "", command, manager="somebody")
        machine.bmc = "answers"
        for _ in range(8):
            await asyncio.sleep(40)
            for step in await _steps(driver, ONE):
                await driver.apply(step)
        after = region.metal.get(BMC, ONE.ref.name)
        assert after is not None
        assert "fleet.c5c3.io/quarantine" not in after["metadata"]["annotations"]
        assert after["metadata"]["annotations"]["metal.ironcore.dev/operation"] == "reset"

    loop.run(place.play(act))
