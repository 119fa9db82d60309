"""The simulated arbiter operator: really logs in, is Ready before the quorum is, and gets stuck."""

import asyncio
from typing import Any

from fleetd.sim.controllers.arbiter import ARBITER, REMOTE
from fleetd.sim.controllers.workloads_look import condition
from fleetd.sim.kube.values import at
from tests.drivers.ceph.stage import CEPH_CLUSTER, SPACE, TWO_ZONES, Stage, play

ROLE = ("rbac.authorization.k8s.io", "RoleBinding")


def live(on: Stage, gk: tuple[str, str]) -> dict[str, Any]:
    return on.st.get(gk, "arb", SPACE) or {}


def test_a_remote_cluster_without_a_secret_is_an_error() -> None:
    """It says which condition failed, and is Ready once the kubeconfig is there."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter")
        steps = on.driver.propose(on.want("remote-cluster"), await on.observe("remote-cluster"))
        await on.carry_out(steps[1:])
        await asyncio.sleep(5)
        assert live(on, REMOTE)["status"]["state"] == "Error"
        assert condition(live(on, REMOTE), "SecretAvailable") == "False"
        await on.carry_out(steps[:1])
        await asyncio.sleep(60)
        assert live(on, REMOTE)["status"]["state"] == "Ready"

    play(act, TWO_ZONES)


def test_missing_rights_are_named() -> None:
    """Without the binding the account may do nothing, and the message says what it lacks."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "remote-cluster")
        on.arb.delete(ROLE, "ceph-arbiter", "ceph-arbiter")
        await asyncio.sleep(90)
        assert condition(live(on, REMOTE), "HasEnoughPermissions") == "False"
        assert "create deployments in ceph-arbiter" in live(on, REMOTE)["status"]["message"]

    play(act, TWO_ZONES)


def test_a_token_that_ended_breaks_it() -> None:
    """The kubeconfig is really used: when its account is gone, the cluster is not reachable."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "remote-cluster")
        on.arb.delete(("", "ServiceAccount"), "ceph-arbiter", "ceph-arbiter")
        await asyncio.sleep(120)
        assert condition(live(on, REMOTE), "ClusterReachable") == "False"

    play(act, TWO_ZONES)


def test_a_default_that_is_a_sentence_finds_no_secret() -> None:
    """accesskeyRef without a name looks for a Secret that cannot exist."""

    async def act(on: Stage) -> None:
        body = {
            "apiVersion": "ceph.cobaltcore.sap.com/v1alpha1",
            "kind": "RemoteCluster",
            "metadata": {"name": "bare", "namespace": SPACE},
            "spec": {"accesskeyRef": {"key": "kubeconfig.yaml"}},
        }
        on.st.apply(body, manager="t")
        await asyncio.sleep(5)
        made = on.st.get(REMOTE, "bare", SPACE) or {}
        assert made["spec"]["accesskeyRef"]["name"] == "matches RemoteCluster name"
        assert made["status"]["state"] == "Error"

    play(act, TWO_ZONES)


def test_an_arbiter_waits_for_a_ready_ceph_cluster() -> None:
    """Error with the reason until Rook says Ready."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "remote-cluster")
        want = on.want("remote-arbiter")
        await on.carry_out(on.driver.propose(want, await on.driver.observe(want)))
        await asyncio.sleep(30)
        assert condition(live(on, ARBITER), "CephClusterExists") == "False"
        await on.bring_up("cephcluster")
        await asyncio.sleep(300)
        assert live(on, ARBITER)["status"]["monId"] == "ext-a"
        ceph = on.st.get(CEPH_CLUSTER, "rook-ceph", SPACE) or {}
        assert ceph["spec"]["mon"]["externalMonIDs"] == ["ext-a"]

    play(act, TWO_ZONES)


def test_ready_comes_before_the_quorum() -> None:
    """The Deployment runs, the state is Ready, and the monitor takes part only later."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "cephcluster", "remote-cluster")
        want = on.want("remote-arbiter")
        await on.carry_out(on.driver.propose(want, await on.driver.observe(want)))
        joined: list[dict[str, bool]] = []
        for _ in range(120):
            await asyncio.sleep(1)
            if at(live(on, ARBITER), "status.state") == "Ready":
                joined.append(dict(on.ceph().external))
        assert joined[0] == {}
        await asyncio.sleep(300)
        assert on.ceph().external == {"ext-a": True}
        assert len(on.ceph().all_mons()) == 5

    play(act, TWO_ZONES)


def test_with_the_arbiter_a_lost_zone_leaves_a_majority() -> None:
    """Three of five monitors are left: a warning, not the end."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "cephcluster", "remote-cluster", "remote-arbiter")
        on.lose("s1", "s2", "s3")
        await asyncio.sleep(90)
        assert on.status()["ceph"]["health"] == "HEALTH_WARN"

    play(act, TWO_ZONES)


def test_in_stretch_mode_rook_removes_the_external_monitor() -> None:
    """With stretchCluster the id in externalMonIDs counts for nothing."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "cephcluster", "remote-cluster", "remote-arbiter")
        zones = [{"name": "a"}, {"name": "b"}, {"name": "c", "arbiter": True}]

        def stretch(obj: dict[str, Any]) -> None:
            obj["spec"]["mon"]["stretchCluster"] = {"zones": zones}

        on.st.edit(CEPH_CLUSTER, "rook-ceph", SPACE, stretch, manager="t")
        await asyncio.sleep(20)
        assert on.ceph().external == {}

    play(act, TWO_ZONES)


def test_after_a_healed_failure_the_state_stays_progressing() -> None:
    """The operator's trap: every condition True again, and the state never Ready by itself."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "remote-cluster")
        with on.astray():
            await asyncio.sleep(90)
            assert condition(live(on, REMOTE), "ClusterReachable") == "False"
        await asyncio.sleep(1200)
        status = live(on, REMOTE)["status"]
        assert {one["status"] for one in status["conditions"]} == {"True"}
        assert status["state"] == "Progressing"

    play(act, TWO_ZONES)
