"""The simulated Rook and its Ceph: how long they take, what they lose, and how it comes back."""

import asyncio
from typing import Any

import pytest

from fleetd.sim.controllers import rook
from fleetd.sim.controllers.machines_nodes import drain
from fleetd.sim.kube.refusal import Refused
from fleetd.sim.services import redfish
from tests.drivers.ceph.stage import CEPH_CLUSTER, SPACE, TWO_ZONES, Stage, play

CLIENT = ("ceph.rook.io", "CephClient")
POOL = ("ceph.rook.io", "CephBlockPool")


def test_a_ceph_cluster_takes_minutes_and_shows_its_stages() -> None:
    """Nothing is Ready at once: Progressing with Rook's words, then Ready after 5 to 10 minutes."""

    async def act(on: Stage) -> None:
        want = on.want("cephcluster")
        await on.carry_out(on.driver.propose(want, await on.driver.observe(want)))
        words: list[str] = []
        seconds = 0
        while on.status().get("phase") != "Ready":
            await asyncio.sleep(5)
            seconds += 5
            word = on.status().get("message")
            if word and word not in words:
                words.append(word)
        assert words[:-1] == [stage.message for stage in rook._CREATE]
        assert 290 <= seconds <= 610
        assert on.status()["ceph"]["health"] == "HEALTH_OK"
        assert sorted(on.ceph().mons) == ["a", "b", "c"]
        assert len(set(on.ceph().mons.values())) == 3
        assert len(on.ceph().osds) == 16

    play(act)


def test_health_is_looked_at_every_minute() -> None:
    """`lastChecked` moves on while nothing else does."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        before = on.status()["ceph"]["lastChecked"]
        await asyncio.sleep(130)
        assert on.status()["ceph"]["lastChecked"] > before

    play(act)


def test_a_lost_host_is_a_warning_and_heals_with_time() -> None:
    """MON_DOWN and OSD_DOWN while it is away; HEALTH_OK some minutes after it is back."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        on.lose("s1")
        await asyncio.sleep(90)
        ceph = on.status()["ceph"]
        assert ceph["health"] == "HEALTH_WARN"
        assert {"MON_DOWN", "OSD_DOWN", "PG_DEGRADED"} <= ceph["details"].keys()
        assert ceph["details"]["MON_DOWN"]["message"] == "1/3 mons down, quorum b,c"
        on.mend("s1")
        await asyncio.sleep(30)
        assert on.status()["ceph"]["health"] == "HEALTH_WARN"
        await asyncio.sleep(400)
        assert on.status()["ceph"]["health"] == "HEALTH_OK"
        assert on.world.truth.harm == []

    play(act)


def test_without_a_majority_of_monitors_ceph_is_silent() -> None:
    """Two of three monitors away: HEALTH_ERR, and no word of which."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        on.lose("s1", "s2")
        await asyncio.sleep(90)
        ceph = on.status()["ceph"]
        assert ceph["health"] == "HEALTH_ERR"
        assert list(ceph["details"]) == ["error"]

    play(act)


def test_a_monitor_on_a_silent_host_is_replaced_after_ten_minutes() -> None:
    """Rook places another one elsewhere, under a new name, and the lost data is made again."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        on.lose("s1")
        await asyncio.sleep(900)
        assert sorted(on.ceph().mons.values()) == ["s2", "s3", "s4"]
        await asyncio.sleep(3600)
        assert on.status()["ceph"]["health"] == "HEALTH_OK"

    play(act)


def test_a_majority_that_is_gone_with_its_nodes_does_not_come_back() -> None:
    """The map of the monitors keeps those whose Nodes are gone, so nobody can replace them."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        for name in ("s1", "s2"):
            on.world.truth.machines[name].node = ""
            on.st.delete(("", "Node"), name)
        await asyncio.sleep(7200)
        assert not on.ceph().quorum
        assert on.status()["ceph"]["health"] == "HEALTH_ERR"

    play(act)


def test_a_monitor_whose_node_is_gone_is_replaced_by_the_others() -> None:
    """They are a majority and decide it; on another host, under a new name."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        on.world.truth.machines["s1"].node = ""
        on.st.delete(("", "Node"), "s1")
        await asyncio.sleep(120)
        assert sorted(on.ceph().mons.values()) == ["s2", "s3", "s4"]
        assert on.ceph().in_quorum() == on.ceph().all_mons()

    play(act)


def test_fewer_hosts_than_copies_is_never_ok() -> None:
    """However long Ceph copies: three copies need three hosts."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        assert await on.road("cephpool", "st.vms") == "Ready"
        for name in ("s1", "s2"):
            on.lose(name)
            await asyncio.sleep(3 * 3600)
        ceph = on.status()["ceph"]
        assert ceph["health"] == "HEALTH_WARN"
        assert "PG_DEGRADED" in ceph["details"]

    play(act)


def test_a_broken_disk_by_mishap_degrades_and_heals() -> None:
    """`("ceph", "st", "degraded")` is honoured within seconds, and so is its end."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        mishap = ("ceph", "st", "degraded")
        on.world.mishaps.add(mishap)
        for listener in on.world.listeners:
            listener(mishap)
        await asyncio.sleep(10)
        assert on.status()["ceph"]["health"] == "HEALTH_WARN"
        on.world.mishaps.discard(mishap)
        await asyncio.sleep(70)
        assert on.status()["ceph"]["health"] == "HEALTH_OK"

    play(act)


def test_budgets_let_one_host_go_and_keep_the_others() -> None:
    """A drain empties one host; the next is guarded until the first is back and all is clean."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        await asyncio.sleep(1)
        assert drain(on.st, "s1") == 0
        assert drain(on.st, "s2") > 0
        await asyncio.sleep(30)
        assert on.status()["ceph"]["health"] == "HEALTH_WARN"
        on.cordon("s1", on=False)
        on.cordon("s2", on=False)
        await asyncio.sleep(600)
        assert on.status()["ceph"]["health"] == "HEALTH_OK"
        assert drain(on.st, "s2") == 0
        assert on.world.truth.harm == []

    play(act)


def test_taking_a_healthy_host_while_data_is_restored_hurts() -> None:
    """A host whose Node goes away for another reason than its own fault costs the last copies."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        on.lose("s1")
        await asyncio.sleep(90)
        on.world.truth.machines["s2"].node = ""
        on.st.delete(("", "Node"), "s2")
        await asyncio.sleep(90)
        assert any("s2" in harm for harm in on.world.truth.harm)

    play(act)


def test_switching_off_a_second_storage_host_hurts() -> None:
    """The truth remembers who switched off a host with OSDs while another was away."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        on.lose("s1")
        redfish.switch(on.world, on.world.truth.machines["s2"], on=False, who="somebody")
        assert any("somebody switched off s2" in harm for harm in on.world.truth.harm)

    play(act)


def test_a_new_version_is_rolled_out_kind_by_kind() -> None:
    """While it goes, `versions.overall` has two entries; at the end one, and the image is told."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        _set(on, "cephVersion", {"image": "quay.io/ceph/ceph:v20.2.0"})
        mixed = False
        for _ in range(600):
            await asyncio.sleep(5)
            mixed = mixed or len(on.status()["ceph"]["versions"]["overall"]) == 2
            if on.status()["phase"] == "Ready":
                break
        assert mixed
        assert on.status()["version"]["image"].endswith("v20.2.0")
        assert list(on.status()["ceph"]["versions"]["overall"]) == ["ceph version 20.2.0 (stable)"]

    play(act)


def test_no_upgrade_begins_in_health_err() -> None:
    """Rook refuses: Failure with the reason, and the old version stays."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        on.lose("s1", "s2")
        await asyncio.sleep(60)
        _set(on, "cephVersion", {"image": "quay.io/ceph/ceph:v20.2.0"})
        await asyncio.sleep(60)
        assert on.status()["phase"] == "Failure"
        assert "refusing to upgrade" in on.status()["message"]

    play(act)


def test_too_few_hosts_for_the_monitors_is_a_failure() -> None:
    """After ten minutes of waiting for a place for the last monitor."""

    async def act(on: Stage) -> None:
        on.lose("s1", "s2")
        want = on.want("cephcluster")
        await on.carry_out(on.driver.propose(want, await on.driver.observe(want)))
        said: list[str] = []
        for _ in range(100):
            await asyncio.sleep(10)
            if on.status().get("phase") == "Failure":
                said.append(on.status()["message"])
        assert said
        assert all("2 of 3 placed" in one for one in said)

    play(act)


def test_a_client_becomes_a_secret_and_rotates_by_generation() -> None:
    """The Secret has the documented keys; a higher generation gives another key."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        _client(on, 1)
        await asyncio.sleep(15)
        first = on.st.get(("", "Secret"), "rook-ceph-client-x-nova", SPACE) or {}
        assert sorted(first["data"]) == ["userID", "userKey", "x-nova"]
        assert first["type"] == "kubernetes.io/rook"
        _client(on, 2)
        await asyncio.sleep(15)
        second = on.st.get(("", "Secret"), "rook-ceph-client-x-nova", SPACE) or {}
        live = on.st.get(CLIENT, "x-nova", SPACE) or {}
        assert second["data"]["userKey"] != first["data"]["userKey"]
        assert live["status"]["cephx"]["keyGeneration"] == 2
        with pytest.raises(Refused, match="cannot be decreased"):
            _client(on, 1)

    play(act)


def test_members_wait_for_a_ready_cluster() -> None:
    """A CephClient written before its cluster is Progressing, and made when the cluster is up."""

    async def act(on: Stage) -> None:
        _client(on, 1)
        await asyncio.sleep(60)
        live = on.st.get(CLIENT, "x-nova", SPACE) or {}
        assert live["status"]["phase"] == "Progressing"
        await on.bring_up("cephcluster")
        await asyncio.sleep(30)
        live = on.st.get(CLIENT, "x-nova", SPACE) or {}
        assert live["status"]["phase"] == "Ready"

    play(act)


def test_taking_the_key_of_nova_under_running_vms_hurts() -> None:
    """The truth remembers it."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        _client(on, 1)
        await asyncio.sleep(15)
        on.world.truth.machines["w1"].vms.add("vm-1")
        on.st.delete(CLIENT, "x-nova", SPACE)
        await asyncio.sleep(5)
        assert any("x-nova" in harm for harm in on.world.truth.harm)

    play(act)


def test_a_cluster_with_pools_is_not_deleted() -> None:
    """DeletionIsBlocked names what is in the way; without it the daemons end, disks untouched."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        await on.road("cephpool", "st.vms")
        on.st.delete(CEPH_CLUSTER, "rook-ceph", SPACE)
        await asyncio.sleep(60)
        told = {one["type"]: one for one in on.status()["conditions"]}
        assert told["DeletionIsBlocked"]["message"] == "dependents: CephBlockPool: vms"
        assert on.ceph().mons
        on.st.delete(POOL, "vms", SPACE)
        await asyncio.sleep(120)
        assert on.st.get(CEPH_CLUSTER, "rook-ceph", SPACE) is None
        assert not any(one.osds or one.mons for one in on.world.truth.machines.values())
        assert on.st.list(("", "Pod"), SPACE) == []

    play(act)


def test_monitors_stand_in_both_zones() -> None:
    """Two in each zone that the spec names."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        zones = [on.world.truth.machines[where].zone for where in on.ceph().mons.values()]
        assert sorted(zones) == ["a", "a", "b", "b"]

    play(act, TWO_ZONES)


def test_the_same_seed_gives_the_same_story() -> None:
    """Equal traces, line by line."""
    stories: list[list[str]] = []

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        on.lose("s2")
        await asyncio.sleep(1000)
        stories.append([str(one) for one in on.world.trace])

    play(act)
    play(act)

    assert stories[0] == stories[1]
    assert any("HEALTH_WARN" in line for line in stories[0])


def _set(on: Stage, field: str, value: Any) -> None:
    on.st.edit(
        CEPH_CLUSTER,
        "rook-ceph",
        SPACE,
        lambda live: live["spec"].update({field: value}),
        manager="t",
    )


def _client(on: Stage, generation: int) -> None:
    on.st.apply(
        {
            "apiVersion": "ceph.rook.io/v1",
            "kind": "CephClient",
            "metadata": {"name": "x-nova", "namespace": SPACE},
            "spec": {
                "caps": {"mon": "profile rbd"},
                "security": {
                    "cephx": {"keyRotationPolicy": "KeyGeneration", "keyGeneration": generation}
                },
            },
        },
        manager="t",
    )
