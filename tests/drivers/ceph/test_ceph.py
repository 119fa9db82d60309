"""The ceph driver against the simulated Rook and arbiter operator, and what it is careful about."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from drivers.ceph import kubeconfig, manifests
from fleetd.sim.controllers.arbiter import REMOTE
from fleetd.vocabulary import Truth
from tests.conformance.driver import suite
from tests.drivers.ceph.stage import CEPH_CLUSTER, SPACE, TWO_ZONES, Stage, play
from topology.resource import Resource

CLIENT = ("ceph.rook.io", "CephClient")
SECRET = ("", "Secret")
BELOW = {
    "cephcluster": (),
    "cephpool": ("cephcluster",),
    "cephclient": ("cephcluster",),
    "arbiter": (),
    "remote-cluster": ("arbiter",),
    "remote-arbiter": ("arbiter", "cephcluster", "remote-cluster"),
}
NAMES = {"cephpool": "st.vms", "cephclient": "st.prod", "arbiter": "arb"}


def bad(want: Resource) -> Resource:
    """The same with a spec that makes no sense."""
    spec: dict[str, Any] = dict(want.spec)
    match want.ref.kind:
        case "cephpool":
            spec["pool"] = {**spec["pool"], "size": 1}
        case "cephclient":
            return replace(want, needs=frozenset())
        case "cephcluster":
            spec["ceph"] = {"stretch": {"zones": ["a", "a"], "arbiter": "arb"}}
        case "arbiter":
            spec["install"] = {**spec["install"], "namespace": "elsewhere"}
        case _:
            spec["ceph"] = {}
    return replace(want, spec=spec)


@pytest.mark.parametrize("kind", list(BELOW))
def test_the_driver_keeps_the_contract(kind: str) -> None:
    """The conformance suite, for each kind, on what it needs."""

    async def act(on: Stage) -> None:
        await on.bring_up(*BELOW[kind])
        want = on.want(kind, NAMES.get(kind, "st"))

        async def settle() -> None:
            await asyncio.sleep(30)

        def state() -> object:
            gks = sorted(on.st.kinds())
            return [
                (obj["metadata"]["name"], obj.get("spec"), obj.get("data"))
                for cluster in (on.st, on.arb)
                for gk in gks
                for obj in cluster.list(gk)
            ]

        bench = suite.Bench(
            driver=on.driver,
            want=want,
            bad=bad(want),
            settle=settle,
            cut=on.cut,
            writes=lambda: len(on.ledger.deeds),
            state=state,
        )
        assert await suite.check(bench) == []

    play(act, TWO_ZONES)


def test_a_whole_storage_cluster_comes_up_and_stays_quiet() -> None:
    """Cluster, pools, users, arbiter: all Ready, and then not one write more."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "cephcluster", "remote-cluster", "remote-arbiter")
        rest = [ref for ref in on.topology.resources if ref.kind in ("cephpool", "cephclient")]
        for ref in rest:
            assert await on.road(ref.kind, ref.name) == "Ready"
        before = len(on.ledger.deeds)
        for _ in range(10):
            await asyncio.sleep(60)
            for kind in ("arbiter", "cephcluster", "remote-cluster", "remote-arbiter"):
                name = "arb" if kind == "arbiter" else "st"
                assert not on.driver.propose(on.want(kind, name), await on.observe(kind, name))
        assert len(on.ledger.deeds) == before
        assert on.world.truth.harm == []

    play(act, TWO_ZONES)


def test_each_user_may_only_use_its_pools() -> None:
    """Glance has images and nothing else; no user is allowed everything."""

    async def act(on: Stage) -> None:
        caps = {
            one.name: one.body["spec"]["caps"]["osd"]
            for one in manifests.clients(on.want("cephclient", "st.prod"))
        }
        assert caps["prod-glance"] == "profile rbd pool=images"
        assert "pool=vms" in caps["prod-nova"]
        assert "profile rbd-read-only pool=images" in caps["prod-nova"]
        assert not any("allow" in cap for cap in caps.values())

    play(act)


def test_a_cleanup_policy_is_never_written() -> None:
    """Neither at creation nor when the cluster is retired: the disks keep what is on them."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        assert "cleanupPolicy" not in (on.st.get(CEPH_CLUSTER, "rook-ceph", SPACE) or {})["spec"]
        gone = replace(on.want("cephcluster"), absent=True)
        steps = on.driver.propose(gone, await on.driver.observe(gone))
        assert [step.verb for step in steps] == ["delete"]
        assert steps[0].destroys == {gone.ref}
        await on.carry_out(steps)
        await asyncio.sleep(60)
        assert not any(one.what == "ceph" and one.detail == "wiped" for one in on.world.trace)
        assert (await on.driver.observe(gone)).facts == {}

    play(act)


def upgraded(on: Stage) -> Resource:
    want = on.want("cephcluster")
    spec = {**want.spec, "parameters": {"image": "quay.io/ceph/ceph:v20.2.0"}}
    return replace(want, spec=spec, generation=want.generation + 1)


def test_another_version_says_that_it_disrupts() -> None:
    """Creation disrupts nothing; an upgrade does."""

    async def act(on: Stage) -> None:
        want = on.want("cephcluster")
        first = on.driver.propose(want, await on.driver.observe(want))
        assert all(not step.disrupts for step in first)
        await on.bring_up("cephcluster")
        steps = on.driver.propose(upgraded(on), await on.driver.observe(upgraded(on)))
        assert [step.disrupts for step in steps] == [{want.ref}]

    play(act)


def test_no_upgrade_is_proposed_while_ceph_is_not_well() -> None:
    """One lost host is enough; when it is back and all is clean, the upgrade is proposed."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        on.lose("s1")
        await asyncio.sleep(90)
        assert not on.driver.propose(upgraded(on), await on.driver.observe(upgraded(on)))
        on.mend("s1")
        await asyncio.sleep(600)
        assert on.driver.propose(upgraded(on), await on.driver.observe(upgraded(on)))

    play(act)


def test_a_lost_majority_is_told_with_its_hosts() -> None:
    """Ceph itself is silent then; the message names the monitors and where they stand. Its pools
    are of no use, though Rook leaves them Ready."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        assert await on.road("cephpool", "st.vms") == "Ready"
        on.lose("s1", "s2")
        await asyncio.sleep(90)
        pool = await on.observe("cephpool", "st.vms")
        assert (pool.facts or {})["status"]["phase"] == "Ready"
        told = on.driver.judge(on.want("cephpool", "st.vms"), pool)[0]
        assert (told.truth, told.reason) == (Truth.FALSE, "CephSilent")
        seen = await on.observe("cephcluster")
        judged = on.driver.judge(on.want("cephcluster"), seen)[0]
        assert (judged.truth, judged.reason) == (Truth.FALSE, "CephError")
        assert "2 of 3 mons down (a on s1, b on s2)" in judged.message

    play(act)


def test_ready_of_the_arbiter_is_not_enough() -> None:
    """While its monitor does not take part it is Joining, whatever the operator's state says."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "cephcluster", "remote-cluster")
        want = on.want("remote-arbiter")
        await on.carry_out(on.driver.propose(want, await on.driver.observe(want)))
        pairs: list[tuple[str, str]] = []
        for _ in range(60):
            await asyncio.sleep(5)
            seen = await on.driver.observe(want)
            state = str((seen.facts or {}).get("status", {}).get("state"))
            pairs.append((state, on.driver.judge(want, seen)[0].reason))
        assert ("Ready", "Joining") in pairs
        assert pairs[-1] == ("Ready", "Healthy")

    play(act, TWO_ZONES)


def test_stretch_mode_by_another_hand_is_a_failure() -> None:
    """Rook ignores external monitors then; the driver says so."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "cephcluster", "remote-cluster", "remote-arbiter")
        zones = [{"name": "a"}, {"name": "b"}, {"name": "c", "arbiter": True}]

        def stretch(obj: dict[str, Any]) -> None:
            obj["spec"]["mon"]["stretchCluster"] = {"zones": zones}

        on.st.edit(CEPH_CLUSTER, "rook-ceph", SPACE, stretch, manager="t")
        await asyncio.sleep(5)
        assert await on.reason("remote-arbiter") == "StretchMode"

    play(act, TWO_ZONES)


def test_the_arbiters_token_is_that_of_its_account_and_nowhere_else() -> None:
    """No fact, step or message holds it, and it is not the admin's."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter")
        want = on.want("remote-cluster")
        steps = on.driver.propose(want, await on.driver.observe(want))
        assert [step.verb for step in steps] == [kubeconfig.WRITE, "apply"]
        await on.carry_out(steps)
        await asyncio.sleep(60)
        held = on.st.get(SECRET, "arb-kubeconfig", SPACE) or {}
        text = kubeconfig.base64.b64decode(held["data"]["kubeconfig.yaml"]).decode()
        token = text.partition("token: ")[2].split()[0]
        user = on.arb.tokens.user(token, ())
        assert user.name == "system:serviceaccount:ceph-arbiter:ceph-arbiter"
        assert "tokenFile" not in text
        seen = await on.driver.observe(want)
        assert token not in repr(seen)
        assert token not in repr(steps)

    play(act, TWO_ZONES)


def test_the_token_is_renewed_at_half_of_its_life() -> None:
    """Not before; once; and the arbiter goes on."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "remote-cluster")
        want = on.want("remote-cluster")
        first = on.st.get(SECRET, "arb-kubeconfig", SPACE) or {}
        for controller in list(on.world.controllers.values()):
            controller.stop()  # a month of their minutes proves nothing here
        await asyncio.sleep(29 * 86400)
        assert not on.driver.propose(want, await on.driver.observe(want))
        await asyncio.sleep(2 * 86400)
        steps = on.driver.propose(want, await on.driver.observe(want))
        assert [step.verb for step in steps] == [kubeconfig.WRITE]
        await on.carry_out(steps)
        second = on.st.get(SECRET, "arb-kubeconfig", SPACE) or {}
        assert second["data"] != first["data"]
        assert not on.driver.propose(want, await on.driver.observe(want))

    play(act, TWO_ZONES)


def test_an_operator_that_is_stuck_is_made_to_begin_anew() -> None:
    """All conditions True and the state not: the conditions are taken away, and it is Ready."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "remote-cluster")
        with on.astray():
            await asyncio.sleep(90)
            assert await on.reason("remote-cluster") == "Unreachable"
        await asyncio.sleep(90)
        assert not on.driver.propose(on.want("remote-cluster"), await on.observe("remote-cluster"))
        assert await on.road("remote-cluster") == "Ready"
        assert (on.st.get(REMOTE, "arb", SPACE) or {})["status"]["state"] == "Ready"

    play(act, TWO_ZONES)


def test_missing_rights_are_counted_and_given_back() -> None:
    """Somebody cut the Role down: the site is not Ready, and the Role is written again."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter")
        gk = ("rbac.authorization.k8s.io", "Role")

        def cut(live: dict[str, Any]) -> None:
            live["rules"] = live["rules"][:1]

        on.arb.edit(gk, "ceph-arbiter", "ceph-arbiter", cut, manager="somebody")
        await asyncio.sleep(1)
        assert await on.reason("arbiter", "arb") == "RightsMissing"
        want = on.want("arbiter", "arb")
        steps = on.driver.propose(want, await on.driver.observe(want))
        assert [step.args["manifest"]["kind"] for step in steps] == ["Role"]

    play(act, TWO_ZONES)


def test_retiring_a_remote_cluster_leaves_nothing() -> None:
    """The RemoteCluster first, then the Secret, which the operator held until then."""

    async def act(on: Stage) -> None:
        await on.bring_up("arbiter", "remote-cluster")
        gone = replace(on.want("remote-cluster"), absent=True)
        for _ in range(5):
            await on.carry_out(on.driver.propose(gone, await on.driver.observe(gone)))
            await asyncio.sleep(10)
        assert on.st.get(REMOTE, "arb", SPACE) is None
        assert on.st.get(SECRET, "arb-kubeconfig", SPACE) is None
        assert (await on.driver.observe(gone)).facts == {}

    play(act, TWO_ZONES)


def test_two_of_three_users_are_not_all() -> None:
    """A cloud whose third user is missing is not Ready, however well the others are."""

    async def act(on: Stage) -> None:
        await on.bring_up("cephcluster")
        assert await on.road("cephclient", "st.prod") == "Ready"
        on.st.delete(CLIENT, "prod-glance", SPACE)
        await asyncio.sleep(5)
        assert await on.reason("cephclient", "st.prod") == "Incomplete"

    play(act)


def test_pools_of_a_stretched_cluster_keep_half_in_each_zone() -> None:
    """Failure domain zone, two replicas in each, on different hosts."""

    async def act(on: Stage) -> None:
        spec = manifests.pool(on.want("cephpool", "st.vms")).body["spec"]
        assert spec["failureDomain"] == "zone"
        assert spec["replicated"]["replicasPerFailureDomain"] == 2
        assert spec["deviceClass"] == "nvme"

    play(act, TWO_ZONES)
