"""Clusters as Shoots: what is written, what an upgrade takes down, what is held, how one goes."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from drivers.gardener import manifests, shoots
from drivers.gardener.driver import GardenerDriver
from drivers.ironcore.driver import IroncoreDriver
from fleetd.sim import loop
from fleetd.vocabulary import Failed, Step
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, want
from topology.resource import Ref, Resource

SHOOT = ("core.gardener.cloud", "Shoot")
PROFILE = ("core.gardener.cloud", "CloudProfile")


async def prepared(region: Region, *, servers: int = 14) -> GardenerDriver:
    """Servers enrolled, project and credentials there."""
    metal, driver = IroncoreDriver(region.tools), GardenerDriver(region.tools)
    refs = [ref for ref in region.fleet.known.resources if ref.kind == "server"][:servers]
    for ref in refs:
        server = region.fleet.known.resources[ref]
        await region.carry_out(metal, metal.propose(server, await metal.observe(server)))
    assert await region.road(driver, want("garden-project")) == "Ready"
    assert await region.road(driver, want("credentials-binding")) == "Ready"
    return driver


async def up(region: Region, name: str = "hv") -> GardenerDriver:
    driver = await prepared(region)
    assert await region.road(driver, want("cluster", name)) == "Ready"
    return driver


async def proposed(region: Region, driver: GardenerDriver, cluster: Resource) -> Sequence[Step]:
    return driver.propose(cluster, await driver.observe(cluster))


def _spec(region: Region, name: str = "hv") -> dict[str, Any]:
    shoot = region.garden.get(SHOOT, name, "garden-cobalt")
    assert shoot is not None
    return shoot["spec"]


@pytest.mark.parametrize("name", ["mgmt", "cp", "hv", "st"])
def test_automatic_updates_are_always_written_as_off(name: str) -> None:
    """A garden that finds no maintenance block turns both on (danger 10)."""
    body = manifests.shoot(want("cluster", name)).body["spec"]

    assert body["maintenance"]["autoUpdate"] == {
        "kubernetesVersion": False,
        "machineImageVersion": False,
    }


def test_a_host_with_virtual_machines_gets_a_month_to_become_empty() -> None:
    """After the drain timeout Gardener deletes the machine with all that is on it."""
    workers = manifests.shoot(want("cluster", "hv")).body["spec"]["provider"]["workers"]

    assert workers[0]["machineControllerManager"]["machineDrainTimeout"] == "720h0m0s"


@pytest.mark.parametrize(("name", "expected"), [("cp", "0h30m0s"), ("st", "720h0m0s")])
def test_a_silent_host_with_data_is_not_given_up(name: str, expected: str) -> None:
    """A rack without power for an hour must not cost a storage cluster its machines."""
    workers = manifests.shoot(want("cluster", name)).body["spec"]["provider"]["workers"]

    assert workers[0]["machineControllerManager"]["machineHealthTimeout"] == expected


def test_claims_of_a_cluster_are_told_from_those_of_its_namesake() -> None:
    """`hv` must not count the claims of `hv-lab`."""
    heads = manifests.claims_of(want("cluster", "hv").spec)

    assert "shoot--cobalt--hv-compute-z1-abc".startswith(heads)
    assert not "shoot--cobalt--hv-lab-compute-z1-abc".startswith(heads)


def test_what_stands_is_left_alone() -> None:
    """Defaults that the garden filled in are no difference: nothing is written (danger 11)."""

    async def act(region: Region) -> None:
        driver = await up(region)
        before = len(region.ledger.deeds)
        for _ in range(3):
            assert await proposed(region, driver, want("cluster", "hv")) == ()
            await asyncio.sleep(300)
        assert len(region.ledger.deeds) == before

    loop.run(place.play(act))


def test_an_upgrade_names_what_it_takes_down_and_rolls_one_node_at_a_time() -> None:
    """The cluster and as many servers as go at once are disrupted; never two nodes are away."""

    async def act(region: Region) -> None:
        driver = await up(region)
        newer = changed(want("cluster", "hv"), kubernetes="1.34.2")
        (step,) = await proposed(region, driver, newer)
        kinds = sorted(ref.kind for ref in step.disrupts)
        assert kinds == ["cluster", "server"]
        assert Ref("cluster", "hv") in step.disrupts
        await region.carry_out(driver, [step])
        fewest, nodes = 4, list[dict[str, Any]]()
        for _ in range(400):
            await asyncio.sleep(15)
            nodes = region.world.clusters["hv"].list(("", "Node"))
            fewest = min(fewest, len(nodes))
        versions = {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes}
        assert (fewest, versions, len(nodes)) == (3, {"v1.34.2"}, 4)

    loop.run(place.play(act))


def test_a_patch_version_takes_nothing_down() -> None:
    """Only the kubelet is restarted, so no budget is asked."""

    async def act(region: Region) -> None:
        driver = await up(region)
        (step,) = await proposed(
            region, driver, changed(want("cluster", "hv"), kubernetes="1.33.5")
        )
        assert step.disrupts == frozenset()

    loop.run(place.play(act))


def test_an_older_image_is_told_before_it_is_rolled() -> None:
    """The garden takes a downgrade of a rolled pool without a word (danger 14)."""

    async def act(region: Region) -> None:
        driver = await up(region)
        image = {"name": "gardenlinux", "version": "1877.3.0"}
        (step,) = await proposed(region, driver, changed(want("cluster", "hv"), image=image))
        assert "goes back to an older image on compute" in step.why
        assert step.disrupts

    loop.run(place.play(act))


def test_nothing_is_rolled_while_its_servers_are_not_known() -> None:
    """A metal API that does not tell the claims: budgets and consents would see no server go down.
    The facts say why; what takes nothing down is still written."""

    async def act(region: Region) -> None:
        driver = await up(region)
        rolling = changed(want("cluster", "hv"), kubernetes="1.34.2")
        assert any(step.disrupts for step in await proposed(region, driver, rolling))

        region.cut("metal-eu-1")
        await asyncio.sleep(120)
        seen = await driver.observe(rolling)
        assert seen.facts
        assert "metal:eu-1" in seen.facts["observed"]["serversUnknown"]
        assert list(driver.propose(rolling, seen)) == []

        harmless = changed(want("cluster", "hv"), kubernetes="1.33.5")
        assert [step.disrupts for step in await proposed(region, driver, harmless)] == [frozenset()]

    loop.run(place.play(act))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"kubernetes": "1.32.6"}, "cannot go back"),
        ({"kubernetes": "1.35.1"}, "minor by minor"),
        ({"kubernetes": "1.33.99"}, "does not offer Kubernetes 1.33.99"),
        ({"image": {"name": "gardenlinux", "version": "1.0.0"}}, "does not offer image"),
        ({"networking": {"type": "cilium"}}, "networking.type is calico"),
    ],
)
def test_what_the_garden_would_refuse_is_held_with_the_reason(
    spec: dict[str, Any], words: str
) -> None:
    """A step that says why and cannot be carried out; nothing is sent."""

    async def act(region: Region) -> None:
        driver = await up(region)
        (step,) = await proposed(region, driver, changed(want("cluster", "hv"), **spec))
        before = _spec(region)
        outcome = await driver.apply(step)
        assert isinstance(outcome, Failed)
        assert (step.verb, outcome.retry, step.disrupts) == ("refuse", False, frozenset())
        assert words in outcome.message
        assert _spec(region) == before

    loop.run(place.play(act))


@pytest.mark.parametrize(
    "spec",
    [
        {"kubernetes": "1.33.5"},
        {"workers": {"maximum": 3}},
        {"workers": {"labels": {"team": "a"}}},
        {"workers": {"drainTimeout": "40d"}},
    ],
)
def test_a_pool_that_is_updated_in_place_is_not_touched_meanwhile(spec: dict[str, Any]) -> None:
    """While an update is pending the garden refuses any change of the pool (danger 14)."""

    async def act(region: Region) -> None:
        driver = await up(region)
        _pending(region)
        await asyncio.sleep(1)
        cluster = want("cluster", "hv")
        if "workers" in spec:
            pools = [{**one, **spec["workers"]} for one in cluster.spec["workers"]]
            other = changed(cluster, workers=pools)
        else:
            other = changed(cluster, **spec)
        (step,) = await proposed(region, driver, other)
        assert step.verb == "refuse"
        assert "being updated in place" in step.why

    loop.run(place.play(act))


def test_other_pools_may_change_while_one_is_updated_in_place() -> None:
    """Only the pool that is named is locked."""

    async def act(region: Region) -> None:
        driver = await up(region)
        _pending(region)
        await asyncio.sleep(1)
        cluster = want("cluster", "hv")
        more = [*cluster.spec["workers"], {**cluster.spec["workers"][0], "name": "more"}]
        (step,) = await proposed(region, driver, changed(cluster, workers=more))
        assert step.verb == "apply"

    loop.run(place.play(act))


@pytest.mark.parametrize(("version", "verb"), [("1.33.5", "refuse"), ("1.33.4", "apply")])
def test_a_constraint_that_is_false_holds_an_upgrade(version: str, verb: str) -> None:
    """It blocks nothing now; what it warns of would happen in the upgrade. Others go on."""

    async def act(region: Region) -> None:
        driver = await up(region)
        cluster = want("cluster", "hv")
        assert cluster.spec["kubernetes"] == "1.33.4"
        status = (region.garden.get(SHOOT, "hv", "garden-cobalt") or {})["status"]
        said = {
            "type": "MaintenancePreconditionsSatisfied",
            "status": "False",
            "reason": "ProblematicWebhooks",
            "message": "webhook x fails closed",
        }
        region.garden.set_status(
            SHOOT, "hv", "garden-cobalt", {**status, "constraints": [said]}, manager="t"
        )
        await asyncio.sleep(1)
        (step,) = await proposed(
            region, driver, changed(cluster, kubernetes=version, labels={"a": "b"})
        )
        assert step.verb == verb
        assert ("webhook x fails closed" in step.why) == (verb == "refuse")

    loop.run(place.play(act))


def test_an_image_too_far_for_an_update_in_place_is_told() -> None:
    """The garden refuses to jump over a version that must come between."""
    image = {"name": "gardenlinux", "version": "2000.1.0"}
    offered = {**image, "inPlaceUpdates": {"supported": True, "minVersionForUpdate": "1900.0.0"}}
    profile: dict[str, Any] = {
        "kubernetes": {"versions": []},
        "machineImages": [{"name": "gardenlinux", "versions": [offered]}],
    }
    live = one_pool({"name": "gardenlinux", "version": "1877.4.0"}, "AutoInPlaceUpdate")
    now = datetime(2026, 3, 3, tzinfo=UTC)

    held = shoots.refusals(
        one_pool(image, "AutoInPlaceUpdate"), {"spec": live, "status": {}}, profile, now
    )

    assert held == [
        "pool compute cannot go from image 1877.4.0 to 2000.1.0 in place: 1900.0.0 first"
    ]


def one_pool(image: dict[str, str], strategy: str) -> dict[str, Any]:
    pool = {"name": "compute", "machine": {"type": "m", "image": image}, "updateStrategy": strategy}
    return {
        "region": "eu-1",
        "kubernetes": {"version": "1.33.4"},
        "provider": {"type": "ironcore-metal", "workers": [pool]},
    }


def test_who_gives_servers_back_is_told_that_nobody_wipes_them() -> None:
    """The next claim gets the old disks (danger 9): said where servers are freed."""

    async def act(region: Region) -> None:
        driver = await up(region)
        cluster = want("cluster", "hv")
        fewer = [{**one, "minimum": 0, "maximum": 0} for one in cluster.spec["workers"]]
        steps = await proposed(region, driver, changed(cluster, workers=fewer))
        gone = await proposed(region, driver, replace(cluster, absent=True))
        for step in (steps[0], gone[0]):
            assert "which nobody wipes" in step.why

    loop.run(place.play(act))


def _pending(region: Region) -> None:
    status = (region.garden.get(SHOOT, "hv", "garden-cobalt") or {})["status"]
    pending = {"pendingWorkerUpdates": {"manualInPlaceUpdate": ["compute"]}}
    region.garden.set_status(
        SHOOT, "hv", "garden-cobalt", {**status, "inPlaceUpdates": pending}, manager="t"
    )


def test_a_profile_of_another_type_is_told_instead_of_failing_every_write() -> None:
    """Its type can be changed in use, and breaks every Shoot of it (danger 14)."""

    async def act(region: Region) -> None:
        driver = await up(region)

        def other(live: dict[str, Any]) -> None:
            live["spec"]["type"] = "openstack"

        region.garden.edit(PROFILE, "metal", "", other, manager="t")
        await asyncio.sleep(1)
        (step,) = await proposed(
            region, driver, changed(want("cluster", "hv"), kubernetes="1.33.5")
        )
        assert step.verb == "refuse"
        assert "CloudProfile is of type openstack" in step.why

    loop.run(place.play(act))


def test_a_cluster_without_servers_says_so() -> None:
    """Claims that wait longer than a machine may take are counted; the Shoot names the cause."""

    async def act(region: Region) -> None:
        driver = await prepared(region, servers=2)
        cluster = want("cluster", "hv")
        assert await region.road(driver, cluster, seconds=2400) == "OutOfServers"
        assert await region.road(driver, cluster, seconds=1200) == "ClaimsUnbound"
        seen = await driver.observe(cluster)
        assert seen.facts is not None
        assert seen.facts["observed"]["claimsUnbound"] == 2
        assert len(seen.facts["observed"]["servers"]["compute"]) == 2
        (ready, *_) = driver.judge(cluster, seen)
        assert ready.message.startswith("waits for a free server in pool metal, for 2 nodes")

    loop.run(place.play(act))


def test_a_retired_cluster_is_confirmed_and_deleted_in_two_steps() -> None:
    """Both destroy it, so neither is done without approval; then it is gone."""

    async def act(region: Region) -> None:
        driver = await up(region)
        gone = replace(want("cluster", "hv"), absent=True)
        steps = await proposed(region, driver, gone)
        assert [step.verb for step in steps] == ["confirm-deletion", "delete"]
        assert all(step.destroys == {gone.ref} for step in steps)
        assert steps[1].after == {steps[0].id}
        await region.carry_out(driver, steps)
        await asyncio.sleep(3600)
        seen = await driver.observe(gone)
        assert seen.facts == {}
        assert "hv" not in region.world.clusters
        assert all(not machine.owner for machine in region.world.truth.machines.values())
        assert region.world.truth.harm == []

    loop.run(place.play(act))


def test_a_cluster_that_others_made_is_not_deleted() -> None:
    """What fleetd did not make, it does not remove."""

    async def act(region: Region) -> None:
        driver = await prepared(region)
        body = {**manifests.shoot(want("cluster", "hv")).body}
        body["apiVersion"] = "core.gardener.cloud/v1beta1"
        region.garden.create(body, manager="somebody")
        await asyncio.sleep(1)
        gone = replace(want("cluster", "hv"), absent=True)
        assert list(await proposed(region, driver, gone)) == []

    loop.run(place.play(act))
