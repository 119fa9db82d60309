"""The life of a simulated Shoot: how long it takes, what it shows, and what can go wrong."""

import asyncio
from typing import Any

from fleetd.sim import loop
from tests.drivers.gardener import region as place
from tests.drivers.gardener.region import Region, changed, want
from tests.drivers.gardener.test_clusters import prepared, up

SHOOT = ("core.gardener.cloud", "Shoot")
NODE = ("", "Node")
SPACE = "garden-cobalt"


def _shoot(region: Region) -> dict[str, Any]:
    found = region.garden.get(SHOOT, "hv", SPACE)
    assert found is not None
    return found


def _ask(region: Region, value: str) -> None:
    def change(live: dict[str, Any]) -> None:
        live["metadata"].setdefault("annotations", {})["gardener.cloud/operation"] = value

    region.garden.edit(SHOOT, "hv", SPACE, change, manager="t")


def _phase(region: Region, part: str = "certificateAuthorities") -> str:
    return str(_shoot(region)["status"]["credentials"]["rotation"][part]["phase"])


async def _settled(region: Region) -> None:
    for _ in range(400):
        await asyncio.sleep(30)
        status, metadata = _shoot(region)["status"], _shoot(region)["metadata"]
        done = status["lastOperation"]["state"] == "Succeeded"
        if done and status["observedGeneration"] == metadata["generation"]:
            return
    raise AssertionError(_shoot(region)["status"]["lastOperation"])


def test_a_cluster_on_bare_metal_takes_its_time_and_shows_it() -> None:
    """15 to 40 minutes, with progress that only rises and the API server up before the nodes."""

    async def act(region: Region) -> None:
        driver = await prepared(region)
        await asyncio.sleep(1200)
        began = region.world.elapsed()
        cluster = want("cluster", "hv")
        await region.carry_out(driver, driver.propose(cluster, await driver.observe(cluster)))
        shown: list[int] = []
        early = False
        while not shown or shown[-1] < 100:
            await asyncio.sleep(5)
            last = _shoot(region).get("status", {}).get("lastOperation")
            if last:
                shown.append(last["progress"])
            there = region.world.clusters.get("hv")
            early = early or (there is not None and not there.list(NODE))
        minutes = (region.world.elapsed() - began) / 60
        assert shown == sorted(shown)
        assert early
        assert 15 <= minutes <= 40

    loop.run(place.play(act))


def test_a_dark_server_is_damped_before_it_is_a_fault() -> None:
    """EveryNodeReady is Progressing for five minutes, then False."""

    async def act(region: Region) -> None:
        await up(region)
        node = region.world.clusters["hv"].list(NODE)[0]["metadata"]["name"]
        machine = region.world.truth.machines[node]
        machine.bmc = "unreachable"
        region.world.truth.power(machine, on=False)
        seen: list[str] = []
        for _ in range(20):
            await asyncio.sleep(30)
            conditions = _shoot(region)["status"]["conditions"]
            seen += [one["status"] for one in conditions if one["type"] == "EveryNodeReady"]
        assert list(dict.fromkeys(seen)) == ["True", "Progressing", "False"]

    loop.run(place.play(act))


def test_a_pool_below_its_minimum_is_not_every_node() -> None:
    """A Node that is gone counts as much as one that is silent, and the numbers are told."""

    async def act(region: Region) -> None:
        await up(region)
        nodes = region.world.clusters["hv"].list(NODE)
        count = len(nodes)
        region.world.clusters["hv"].delete(NODE, nodes[0]["metadata"]["name"])
        await asyncio.sleep(420)
        conditions = {one["type"]: one for one in _shoot(region)["status"]["conditions"]}
        found = conditions["EveryNodeReady"]
        assert (found["status"], found["reason"]) == ("False", "MissingNodes")
        assert found["message"].endswith(f"minimum desired machine count. ({count - 1}/{count}).")

    loop.run(place.play(act))


def test_without_servers_it_is_depleted_and_gives_up_after_twelve_hours() -> None:
    """Error with the code, then Failed; and a server that comes makes it go on before that."""

    async def act(region: Region) -> None:
        driver = await prepared(region, servers=2)
        cluster = want("cluster", "hv")
        await region.carry_out(driver, driver.propose(cluster, await driver.observe(cluster)))
        await asyncio.sleep(3600)
        status = _shoot(region)["status"]
        assert status["lastOperation"]["state"] == "Error"
        assert status["lastErrors"][0]["codes"] == ["ERR_INFRA_RESOURCES_DEPLETED"]
        await asyncio.sleep(13 * 3600)
        assert _shoot(region)["status"]["lastOperation"]["state"] == "Failed"

    loop.run(place.play(act))


def test_a_stuck_shoot_does_not_move_until_it_is_mended() -> None:
    """By the script's mishap, as when a gardenlet hangs."""

    async def act(region: Region) -> None:
        driver = await prepared(region)
        cluster = want("cluster", "hv")
        region.world.mishaps.add(("shoot", "hv", "stuck"))
        await region.carry_out(driver, driver.propose(cluster, await driver.observe(cluster)))
        await asyncio.sleep(3600)
        assert "status" not in _shoot(region)
        region.world.mishaps.clear()
        for listener in region.world.listeners:
            listener(("shoot", "hv", "stuck"))
        await _settled(region)

    loop.run(place.play(act))


def test_the_rotation_of_certificate_authorities_goes_in_two_phases() -> None:
    """Preparing replaces the nodes; completing ends the kubeconfigs minted before."""

    async def act(region: Region) -> None:
        await up(region)
        before = {one["metadata"]["uid"] for one in region.world.clusters["hv"].list(NODE)}
        _ask(region, "rotate-ca-start")
        await asyncio.sleep(60)
        assert _phase(region) == "Preparing"
        await _settled(region)
        assert _phase(region) == "Prepared"
        after = {one["metadata"]["uid"] for one in region.world.clusters["hv"].list(NODE)}
        assert not before & after
        _ask(region, "rotate-ca-complete")
        await _settled(region)
        assert _phase(region) == "Completed"

    loop.run(place.play(act))


def test_a_rotation_can_leave_the_nodes_to_be_rolled_pool_by_pool() -> None:
    """For hypervisors: nothing is replaced until the pool is named."""

    async def act(region: Region) -> None:
        await up(region)
        before = {one["metadata"]["uid"] for one in region.world.clusters["hv"].list(NODE)}
        _ask(region, "rotate-ca-start-without-workers-rollout")
        await _settled(region)
        assert _phase(region) == "WaitingForWorkersRollout"
        assert before == {one["metadata"]["uid"] for one in region.world.clusters["hv"].list(NODE)}
        _ask(region, "rotate-rollout-workers=compute")
        await _settled(region)
        assert _phase(region) == "Prepared"

    loop.run(place.play(act))


def test_draining_respects_a_disruption_budget_until_the_timeout() -> None:
    """A pod that may not go keeps its machine; when the time is over, the machine is deleted
    with the virtual machines on it, and that is written down as harm."""

    async def act(region: Region) -> None:
        driver = await prepared(region)
        worker = {**want("cluster", "hv").spec["workers"][0], "drainTimeout": "24h"}
        cluster = changed(want("cluster", "hv"), workers=[worker])
        assert await region.road(driver, cluster) == "Ready"
        there = region.world.clusters["hv"]
        node = there.list(NODE)[0]["metadata"]["name"]
        labels = {"app": "guard"}
        there.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "namespace": "default", "labels": labels},
                "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
            },
            manager="t",
        )
        there.create(
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": "p", "namespace": "default"},
                "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
            },
            manager="t",
        )
        region.world.truth.machines[node].vms.add("vm-1")
        newer = changed(cluster, kubernetes="1.34.2")
        await region.carry_out(driver, driver.propose(newer, await driver.observe(newer)))
        await asyncio.sleep(20 * 3600)
        assert there.get(NODE, node) is not None
        assert region.world.truth.harm == []
        await asyncio.sleep(10 * 3600)
        assert len(region.world.truth.harm) == 1

    loop.run(place.play(act))


def test_a_pool_updated_by_hand_waits_for_the_node_to_be_chosen() -> None:
    """Nodes become candidates, the pool is locked, and only the selected one is updated."""

    async def act(region: Region) -> None:
        driver = await prepared(region)
        worker = {**want("cluster", "hv").spec["workers"][0]}
        worker["updateStrategy"] = "ManualInPlaceUpdate"
        cluster = changed(want("cluster", "hv"), workers=[worker])
        assert await region.road(driver, cluster) == "Ready"
        image = {"name": "gardenlinux", "version": "1877.5.0"}
        newer = changed(cluster, image=image)
        (step,) = driver.propose(newer, await driver.observe(newer))
        assert step.disrupts == frozenset()
        await region.carry_out(driver, [step])
        await _settled(region)
        pending = _shoot(region)["status"]["inPlaceUpdates"]["pendingWorkerUpdates"]
        assert pending == {"manualInPlaceUpdate": ["compute"]}
        there = region.world.clusters["hv"]
        for node in there.list(NODE):
            there.edit(NODE, node["metadata"]["name"], "", _select, manager="t")
        await asyncio.sleep(3600)
        images = {one["status"]["nodeInfo"]["osImage"] for one in there.list(NODE)}
        assert images == {"gardenlinux 1877.5.0"}
        assert not _shoot(region)["status"]["inPlaceUpdates"]

    loop.run(place.play(act))


def _select(live: dict[str, Any]) -> None:
    live["metadata"]["labels"]["node.machine.sapcloud.io/selected-for-update"] = "true"


def test_a_hibernated_cluster_gives_its_servers_back() -> None:
    """And takes servers again when it is woken."""

    async def act(region: Region) -> None:
        await up(region)

        def sleep(live: dict[str, Any]) -> None:
            live["spec"]["hibernation"] = {"enabled": True}

        def wake(live: dict[str, Any]) -> None:
            live["spec"]["hibernation"] = {"enabled": False}

        region.garden.edit(SHOOT, "hv", SPACE, sleep, manager="t")
        await _settled(region)
        assert _shoot(region)["status"]["hibernated"] is True
        assert not any(one.owner for one in region.world.truth.machines.values())
        region.garden.edit(SHOOT, "hv", SPACE, wake, manager="t")
        await _settled(region)
        assert len(region.world.clusters["hv"].list(NODE)) == 4

    loop.run(place.play(act))


def test_a_deleted_node_is_replaced() -> None:
    """Deleting the Node object is how one asks for another machine."""

    async def act(region: Region) -> None:
        await up(region)
        there = region.world.clusters["hv"]
        node = there.list(NODE)[0]
        there.delete(NODE, node["metadata"]["name"])
        await asyncio.sleep(3600)
        uids = {one["metadata"]["uid"] for one in there.list(NODE)}
        assert node["metadata"]["uid"] not in uids
        assert len(uids) == 4

    loop.run(place.play(act))
