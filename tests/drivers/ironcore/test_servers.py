"""Servers by their BMCs: enrolment, what fleetd finds out by itself, and what it never does."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from drivers.ironcore import manifests
from drivers.ironcore.driver import IroncoreDriver
from fleetd.sim import loop
from fleetd.vocabulary import Failed, Step
from tests.conformance.driver import suite
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, want
from topology.resource import Resource

BMC = ("metal.ironcore.dev", "BMC")
SERVER = ("metal.ironcore.dev", "Server")
CLAIM = ("metal.ironcore.dev", "ServerClaim")
ONE = want("server", "metal-01")
TWO = want("server", "metal-02")


async def _enrolled(region: Region, *servers: Resource) -> IroncoreDriver:
    driver = IroncoreDriver(region.tools)
    for server in servers:
        assert await region.road(driver, server) == "Ready"
    return driver


async def _steps(driver: IroncoreDriver, server: Resource) -> Sequence[Step]:
    return driver.propose(server, await driver.observe(server))


async def _watched(driver: IroncoreDriver, one: Resource) -> Sequence[Step]:
    """What is proposed after it was looked at for some minutes."""
    for _ in range(8):
        await asyncio.sleep(40)
        await driver.observe(one)
    return await _steps(driver, one)


def _claim(region: Region, name: str, **spec: Any) -> None:
    if region.metal.get(("", "Namespace"), "mine") is None:
        region.metal.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}, manager="t"
        )
    region.metal.create(
        {
            "apiVersion": "metal.ironcore.dev/v1alpha1",
            "kind": "ServerClaim",
            "metadata": {"name": name, "namespace": "mine"},
            "spec": {"power": "On", "image": "os:1", **spec},
        },
        manager="t",
    )


def _bmc(region: Region, name: str, ip: str) -> None:
    region.metal.create(
        {
            "apiVersion": "metal.ironcore.dev/v1alpha1",
            "kind": "BMC",
            "metadata": {"name": name},
            "spec": {
                "access": {"ip": ip},
                "bmcSecretRef": {"name": name},
                "protocol": {"name": "Redfish", "port": 443, "scheme": "https"},
            },
        },
        manager="somebody",
    )


def test_the_driver_keeps_the_contract_for_a_server() -> None:
    """From nothing to Available, each step applied twice, then blind."""

    async def act(region: Region) -> None:
        driver = IroncoreDriver(region.tools)
        bad = changed(ONE, bmc="bmc-7.example")
        assert await suite.check(region.bench(driver, ONE, bad, 60)) == []

    loop.run(place.play(act))


def test_an_address_that_does_not_parse_is_never_written() -> None:
    """One such object stops the operator for all servers (danger 1)."""

    async def act(region: Region) -> None:
        driver = IroncoreDriver(region.tools)
        bad = changed(ONE, bmc="bmc-7.example")
        assert driver.check(bad)
        assert driver.manifests(bad) == ()

    loop.run(place.play(act))


def test_an_unreadable_bmc_of_others_is_named() -> None:
    """Somebody else wrote one: the operator's entry says which, and that it fails (danger 1)."""

    async def act(region: Region) -> None:
        driver = IroncoreDriver(region.tools)
        operator = want("metal-operator")
        assert await region.reason(driver, operator) != "UnreadableBmc"
        _bmc(region, "stray", "bmc-7.example")
        await asyncio.sleep(60)
        assert await region.reason(driver, operator) == "UnreadableBmc"
        seen = await driver.observe(operator)
        assert (seen.facts or {})["observed"]["unreadable"] == ["stray"]

    loop.run(place.play(act))


def test_operators_that_run_are_ready() -> None:
    """Both are looked at through their Deployments; nothing is proposed."""

    async def act(region: Region) -> None:
        driver = IroncoreDriver(region.tools)
        for kind in ("metal-operator", "boot-operator"):
            seen = await driver.observe(want(kind))
            assert [str(one.truth) for one in driver.judge(want(kind), seen)] == ["True"]
            assert list(driver.propose(want(kind), seen)) == []

    loop.run(place.play(act))


def test_a_machine_behind_two_addresses_is_enrolled_once() -> None:
    """The second entry is held: both would be claimed (danger 2)."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)
        first = region.world.truth.machines["metal-01"]
        second = region.world.truth.machines["metal-02"]
        second.uuid = first.uuid
        await asyncio.sleep(60)
        assert await region.reason(driver, TWO) == "SameMachineTwice"
        assert list(await _steps(driver, TWO)) == []
        assert region.metal.get(BMC, "metal-02") is None

    loop.run(place.play(act))


def test_another_object_with_the_same_address_is_found_after_the_fact() -> None:
    """Somebody enrols the machine a second time: both entries say so (danger 2)."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)
        _bmc(region, "twin", "192.0.2.11")
        await asyncio.sleep(60)
        seen = await driver.observe(ONE)
        assert (seen.facts or {})["observed"]["sameMachineAs"] == "twin"
        assert driver.judge(ONE, seen)[0].reason == "SameMachineTwice"

    loop.run(place.play(act))


def test_two_new_entries_of_one_machine_are_both_held() -> None:
    """Neither has an object yet that would tell; enrolled together, both would be claimed
    (danger 2). The one that stays in the documents is enrolled."""

    async def act(region: Region) -> None:
        driver = IroncoreDriver(region.tools)
        machines = region.world.truth.machines
        machines["metal-02"].uuid = machines["metal-01"].uuid
        await driver.observe(ONE)
        for server in (TWO, ONE):
            assert await region.reason(driver, server) == "SameMachineTwice"
            assert list(await _steps(driver, server)) == []
        left = {ref: one for ref, one in region.fleet.known.resources.items() if ref != TWO.ref}
        region.fleet.known = replace(region.fleet.known, resources=left)
        assert await region.road(driver, ONE) == "Ready"

    loop.run(place.play(act))


def test_two_machines_behind_one_bmc_are_refused() -> None:
    """metal-operator would swap their identities (danger 3)."""

    async def act(region: Region) -> None:
        driver = IroncoreDriver(region.tools)
        machines = region.world.truth.machines
        machines["metal-01"].beside.append(machines["metal-02"])
        assert await region.reason(driver, ONE) == "SeveralMachines"
        (step,) = await _steps(driver, ONE)
        assert isinstance(await driver.apply(step), Failed)
        assert region.metal.list(BMC) == []

    loop.run(place.play(act))


def test_a_second_machine_behind_an_enrolled_bmc_is_told() -> None:
    """A chassis got another blade: the operator mixes them up from now on (danger 3)."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)
        machines = region.world.truth.machines
        machines["metal-01"].beside.append(machines["metal-02"])
        await asyncio.sleep(180)
        assert await region.reason(driver, ONE) == "SeveralMachines"

    loop.run(place.play(act))


def test_a_wrong_password_is_seen_although_the_operator_says_ready() -> None:
    """The BMC object stays Ready; fleetd asks the BMC itself (danger 4)."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)
        region.world.truth.machines["metal-01"].password = "changed at the BMC"
        await asyncio.sleep(180)
        bmc = region.metal.get(BMC, "metal-01") or {}
        assert bmc["status"]["conditions"][0]["status"] == "True"
        assert await region.reason(driver, ONE) == "BmcRefused"

    loop.run(place.play(act))


@pytest.mark.parametrize(
    ("state", "reason"), [("unreachable", "BmcUnreachable"), ("refuses", "BmcRefused")]
)
def test_a_bmc_that_does_not_let_us_in_is_not_enrolled(state: str, reason: str) -> None:
    """It would slow the others down; nothing is written until it answers (danger 5)."""

    async def act(region: Region) -> None:
        driver = IroncoreDriver(region.tools)
        machine = region.world.truth.machines["metal-01"]
        machine.bmc = state
        assert await region.reason(driver, ONE) == reason
        assert list(await _steps(driver, ONE)) == []
        machine.bmc = "answers"
        await asyncio.sleep(60)
        assert await region.road(driver, ONE) == "Ready"

    loop.run(place.play(act))


def test_one_that_hangs_is_quarantined_and_released() -> None:
    """It would block the only worker for all other BMCs (danger 5)."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)
        machine = region.world.truth.machines["metal-01"]
        machine.bmc = "hangs"
        (step,) = await _watched(driver, ONE)
        await region.carry_out(driver, [step])
        notes = (region.metal.get(BMC, "metal-01") or {})["metadata"]["annotations"]
        assert notes["metal.ironcore.dev/operation"] == "ignore-reconciliation"
        assert await region.road(driver, TWO) == "Ready"
        machine.bmc = "answers"
        await asyncio.sleep(60)
        assert await region.road(driver, ONE) == "Ready"
        notes = (region.metal.get(BMC, "metal-01") or {})["metadata"]["annotations"]
        assert "metal.ironcore.dev/operation" not in notes

    loop.run(place.play(act))


def test_one_lost_answer_changes_nothing() -> None:
    """Neither into quarantine nor out of it: the same must be seen for a minute, several times."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)
        machine = region.world.truth.machines["metal-01"]
        for _ in range(4):
            machine.bmc = "hangs"
            await asyncio.sleep(130)
            assert not await _steps(driver, ONE)
            machine.bmc = "answers"
            await asyncio.sleep(40)
            assert not await _steps(driver, ONE)
        machine.bmc = "refuses"
        await region.carry_out(driver, await _watched(driver, ONE))
        machine.bmc = "answers"
        await asyncio.sleep(40)
        assert not await _steps(driver, ONE)
        (judged,) = driver.judge(ONE, await driver.observe(ONE))
        assert judged.reason == "Quarantined"
        (step,) = await _watched(driver, ONE)
        assert step.verb == "release"

    loop.run(place.play(act))


def test_refused_passwords_do_not_hold_up_the_others() -> None:
    """Quarantined with their Servers, they leave the operator's workers alone (danger 5)."""

    async def act(region: Region) -> None:
        names = [f"metal-0{number}" for number in range(1, 7)]
        servers = [want("server", name) for name in names]
        driver = await _enrolled(region, *servers)
        for name in names[1:]:
            region.world.truth.machines[name].bmc = "refuses"
        for server in servers[1:]:
            await region.carry_out(driver, await _watched(driver, server))
        await asyncio.sleep(300)

        def touch(live: dict[str, Any]) -> None:
            live["metadata"]["labels"]["look"] = "again"

        for name in names[1:]:
            region.metal.edit(SERVER, f"{name}-system-0", "", touch, manager="t")
        await asyncio.sleep(1)
        _claim(region, "c", serverRef={"name": "metal-01-system-0"})
        await asyncio.sleep(30)
        assert region.world.truth.machines["metal-01"].on

    loop.run(place.play(act))


def test_maintenance_of_servers_is_left_alone() -> None:
    """No ServerMaintenance is written or deleted and nothing is approved: deleting any would end
    the active one, and any value approves (dangers 6 and 7)."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)
        _claim(region, "c")
        await asyncio.sleep(30)
        for name, policy in (("active", "Enforced"), ("second", "OwnerApproval")):
            region.metal.create(
                {
                    "apiVersion": "metal.ironcore.dev/v1alpha1",
                    "kind": "ServerMaintenance",
                    "metadata": {"name": name, "namespace": "mine"},
                    "spec": {"policy": policy, "serverRef": {"name": "metal-01-system-0"}},
                },
                manager="t",
            )
            await asyncio.sleep(10)
        before = len(region.ledger.deeds)
        assert await region.reason(driver, ONE) == "InMaintenance"
        assert list(await _steps(driver, ONE)) == []
        (refused,) = await _steps(driver, replace(ONE, absent=True))
        assert isinstance(await driver.apply(refused), Failed)
        assert len(region.ledger.deeds) == before

    loop.run(place.play(act))


def test_a_claimed_server_is_never_removed() -> None:
    """Deleting it would boot its machine anew (danger 8); freed, it goes."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)
        _claim(region, "c")
        await asyncio.sleep(30)
        gone = replace(ONE, absent=True)
        (step,) = await _steps(driver, gone)
        assert (step.verb, step.destroys) == ("refuse", frozenset())
        assert isinstance(await driver.apply(step), Failed)
        region.metal.delete(CLAIM, "c", "mine")
        await asyncio.sleep(30)
        steps = await _steps(driver, gone)
        assert all(step.destroys == {gone.ref} for step in steps)
        await region.carry_out(driver, steps)
        await asyncio.sleep(30)
        assert region.metal.list(SERVER) == []
        assert (await driver.observe(gone)).facts == {}

    loop.run(place.play(act))


def test_no_password_is_in_facts_or_steps() -> None:
    """It is resolved when the step is carried out, and written by a verb of its own."""

    async def act(region: Region) -> None:
        driver = IroncoreDriver(region.tools)
        password = region.world.truth.machines["metal-01"].password
        steps = await _steps(driver, ONE)
        assert [step.verb for step in steps] == ["write-bmc-secret", "apply"]
        assert steps[1].after == {steps[0].id}
        await region.carry_out(driver, steps)
        await asyncio.sleep(30)
        seen = await driver.observe(ONE)
        told = json.dumps([seen.facts, [step.args for step in steps]]) + repr(driver)
        assert password not in told

    loop.run(place.play(act))


def test_a_changed_password_is_written_again() -> None:
    """The document's is the BMC's, and the metal API has the old one."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE)

        def old(live: dict[str, Any]) -> None:
            live["data"]["password"] = "b2xk"

        region.metal.edit(("metal.ironcore.dev", "BMCSecret"), "metal-01", "", old, manager="t")
        await asyncio.sleep(180)
        (step,) = await _steps(driver, ONE)
        assert step.verb == "write-bmc-secret"
        await region.carry_out(driver, [step])
        assert await region.road(driver, ONE) == "Ready"

    loop.run(place.play(act))


def test_labels_for_claims_and_nodes_are_on_the_server() -> None:
    """Class, zone, pool and the document's own, copied by the operator."""

    async def act(region: Region) -> None:
        labelled = changed(ONE, labels={"team": "a"}, rack="r7")
        region.fleet.put(labelled)
        await _enrolled(region, labelled)
        server = region.metal.get(SERVER, "metal-01-system-0") or {}
        labels = server["metadata"]["labels"]
        wanted = {
            manifests.CLASS: "std-64c",
            manifests.ZONE: "a",
            manifests.RACK: "r7",
            "team": "a",
        }
        assert wanted.items() <= labels.items()

    loop.run(place.play(act))


def test_looking_at_many_servers_asks_each_bmc_once() -> None:
    """Answers are used again for minutes, and the index is made once (no work over the fleet)."""

    async def act(region: Region) -> None:
        driver = await _enrolled(region, ONE, TWO)
        before = region.ledger.requests["bmc"]
        for _ in range(20):
            await driver.observe(ONE)
            await driver.observe(TWO)
        assert region.ledger.requests["bmc"] - before <= 4

    loop.run(place.play(act))
