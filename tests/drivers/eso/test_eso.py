"""The eso driver: stores, pushes and pulls of Ceph keys, causes, and recovery after an outage."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from drivers.eso import manifests
from fleetd.kube import facts
from fleetd.sim import loop
from fleetd.sim.kube.cluster import Cluster
from fleetd.vocabulary import Truth
from tests.conformance.driver import suite
from tests.drivers.openbao import stage
from tests.drivers.openbao.stage import Stage
from topology.resource import Ref, Resource

EXTERNAL = ("external-secrets.io", "ExternalSecret")
STORE = ("external-secrets.io", "ClusterSecretStore")
SECRET = ("", "Secret")


def played(story: Callable[[Stage], Awaitable[None]], *stores: str) -> None:
    async def run() -> None:
        async with stage.opened() as there:
            await there.stored(*stores)
            await story(there)

    loop.run(run())


def space(cluster: Cluster, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    cluster.apply(body, manager="test")


def rook(there: Stage, key: str = "first-ceph-key") -> None:
    """The Secrets that Rook makes for the clients of cloud prod."""
    cluster = there.world.clusters["st"]
    space(cluster, "rook-ceph")
    for client in manifests.CLIENTS:
        name = f"prod-{client}"
        values = {"userID": name, "userKey": f"{key}-{client}", name: "x"}
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": f"rook-ceph-client-{name}", "namespace": "rook-ceph"},
            "data": {k: base64.b64encode(v.encode()).decode() for k, v in values.items()},
        }
        cluster.apply(body, manager="rook")


def key(cluster: Cluster, name: str, namespace: str) -> str:
    found = cluster.get(SECRET, name, namespace)
    return base64.b64decode(found["data"]["userKey"]).decode() if found else ""


async def keys(there: Stage) -> None:
    rook(there)
    await there.follow(
        there.want("ceph-push", "st.prod"),
        there.want("ceph-pull", "hv"),
        there.want("ceph-pull-services", "prod"),
    )


def open_again(there: Stage) -> None:
    for member in there.bao.members.all[:3]:
        for share in there.bao.data.shares[:3]:
            there.bao.members.unseal(member, {"key": share})


def test_ceph_keys_travel_from_storage_to_their_users() -> None:
    """Pushed with the generated policy, fetched by hypervisors and services."""

    async def story(there: Stage) -> None:
        await keys(there)
        world = there.world.clusters
        assert key(world["hv"], "ceph-client-nova", "openstack") == "first-ceph-key-nova"
        assert key(world["cp"], "ceph-client-cinder", "openstack-cp") == "first-ceph-key-cinder"
        assert key(world["cp"], "ceph-client-glance", "openstack-cp") == "first-ceph-key-glance"

    played(story, "st", "hv", "cp")


def test_a_namespace_that_is_missing_is_a_step_of_its_own() -> None:
    """Shown before the object that comes into it, made by one write, and left when that goes."""

    async def story(there: Stage) -> None:
        one, hv = there.want("ceph-pull", "hv"), there.world.clusters["hv"]
        first, second = await there.proposed(one)
        assert first.why == "make the namespace openstack, which is missing"
        assert second.after == {first.id}
        before = there.writes()
        await there.driver(one).apply(first)
        assert there.writes() == before + 1
        (left,) = await there.proposed(one)
        assert left.args["manifest"]["kind"] == "ExternalSecret"
        await there.driver(one).apply(left)
        gone = await there.proposed(replace(one, absent=True))
        assert {step.args["kind"] for step in gone} <= {"ExternalSecret", "Secret"}
        found = hv.get(("", "Namespace"), "openstack")
        assert found is not None
        assert facts.MANAGED_BY not in found["metadata"]["labels"]

    played(story, "st", "hv")


def test_nothing_is_written_into_a_namespace_that_goes() -> None:
    """It would be refused, and for good."""

    async def story(there: Stage) -> None:
        one, hv = there.want("ceph-pull", "hv"), there.world.clusters["hv"]
        space(hv, "openstack")

        def hold(new: dict[str, Any]) -> None:
            new["metadata"]["finalizers"] = ["example.org/slow"]

        hv.edit(("", "Namespace"), "openstack", "", hold, manager="test")
        hv.delete(("", "Namespace"), "openstack")
        await asyncio.sleep(1)
        assert await there.proposed(one) == ()

    played(story, "st", "hv")


def test_a_store_logs_in_with_an_audience() -> None:
    """The role asks for it, and the store's token has it."""

    async def story(there: Stage) -> None:
        found = there.world.clusters["hv"].get(STORE, "openbao-cluster-store")
        assert found is not None
        login = found["spec"]["provider"]["vault"]["auth"]["kubernetes"]
        assert login["serviceAccountRef"]["audiences"] == ["openbao"]
        assert (login["mountPath"], login["role"]) == ("kubernetes/hv", "eso-hv")

    played(story, "hv")


def test_the_cause_is_told_from_events() -> None:
    """The condition says the same for everything; the operator is told the reason."""

    async def story(there: Stage) -> None:
        one = there.want("secret-store", "hv")
        role = there.bao.data.mounts["auth/kubernetes/hv/"].settings.pop("role/eso-hv")
        await asyncio.sleep(400)
        judged = await there.ready(one)
        assert role
        assert judged is not None
        assert (judged.truth, judged.reason) == (Truth.FALSE, "NotValid")
        assert 'invalid role name "eso-hv"' in judged.message

    played(story, "hv")


def test_a_refused_read_is_told_apart_from_a_missing_path() -> None:
    """Both give the same condition."""

    async def story(there: Stage) -> None:
        await keys(there)
        one = there.want("ceph-pull", "hv")
        there.bao.data.policies["eso-hv"] = 'path "x" { capabilities = ["read"] }'
        await asyncio.sleep(3700)
        refused = await there.ready(one)
        assert refused is not None
        assert refused.reason == "SyncFailed"
        assert "permission denied" in refused.message

    played(story, "st", "hv", "cp")


def test_after_an_outage_the_store_is_touched_first_and_then_what_uses_it() -> None:
    """Minutes earlier than by itself: each recovery is answered by one touch of each."""

    async def story(there: Stage) -> None:
        await keys(there)
        store, pull, login = (
            there.want("secret-store", "hv"),
            there.want("ceph-pull", "hv"),
            there.want("openbao-auth", "hv"),
        )
        there.bao.seal()
        await asyncio.sleep(4000)  # the hour's refresh fails, and the back-off grows
        broken = (await there.ready(store), await there.ready(pull))
        there.fleet.conditions.pop(login.ref, None)  # nobody can see whether it works
        before = list(await there.proposed(store))
        open_again(there)
        await asyncio.sleep(15)
        await there.ready(login)
        early = list(await there.proposed(pull))
        touched = [step.verb for step in await there.do(store)]
        await asyncio.sleep(3)
        then = [step.verb for step in await there.do(pull)]
        await asyncio.sleep(3)
        after = (await there.ready(store), await there.ready(pull))
        assert [one.reason for one in broken if one] == ["NotValid", "SyncFailed"]
        assert (before, early) == ([], [])
        assert (touched, then) == (["touch"], ["touch"])
        assert [one.truth for one in after if one] == [Truth.TRUE, Truth.TRUE]
        assert list(await there.proposed(store)) == []

    played(story, "st", "hv", "cp")


def test_a_touch_that_did_not_help_is_not_repeated() -> None:
    """One per recovery; a store that is wrong for another reason is left to its operator."""

    async def story(there: Stage) -> None:
        store, login = there.want("secret-store", "hv"), there.want("openbao-auth", "hv")
        await there.ready(login)
        there.bao.data.mounts["auth/kubernetes/hv/"].settings.pop("role/eso-hv")
        await asyncio.sleep(400)
        first = [step.verb for step in await there.do(store)]
        await asyncio.sleep(60)
        second = list(await there.proposed(store))
        assert (first, second) == (["touch"], [])

    played(story, "hv")


def test_a_rotated_key_needs_a_look_at_the_source() -> None:
    """A PushSecret does not watch it; what fleetd writes refreshes every hour at least."""

    async def story(there: Stage) -> None:
        await keys(there)
        rook(there, "second-ceph-key")
        await asyncio.sleep(2 * 3600 + 60)
        got = key(there.world.clusters["hv"], "ceph-client-nova", "openstack")
        assert got == "second-ceph-key-nova"

    played(story, "st", "hv", "cp")


def test_a_deleted_external_secret_does_not_take_the_key_along() -> None:
    """Nobody owns the Secret, so nothing collects it; the ExternalSecret is written again."""

    async def story(there: Stage) -> None:
        await keys(there)
        hv = there.world.clusters["hv"]
        hv.delete(EXTERNAL, "ceph-client-nova", "openstack")
        await asyncio.sleep(10)
        kept = key(hv, "ceph-client-nova", "openstack")
        await there.follow(there.want("ceph-pull", "hv"))
        assert kept == "first-ceph-key-nova"

    played(story, "st", "hv", "cp")


def test_a_retired_pull_takes_its_secret_along() -> None:
    """Both go, the ExternalSecret first, and only with consent."""

    async def story(there: Stage) -> None:
        await keys(there)
        one = replace(there.want("ceph-pull", "hv"), absent=True)
        steps = list(await there.proposed(one))
        for step in steps:
            await there.driver(one).apply(step)
        await asyncio.sleep(5)
        hv = there.world.clusters["hv"]
        assert [step.args["kind"] for step in steps] == ["ExternalSecret", "Secret"]
        assert all(step.destroys for step in steps)
        assert hv.get(SECRET, "ceph-client-nova", "openstack") is None
        assert hv.get(EXTERNAL, "ceph-client-nova", "openstack") is None

    played(story, "st", "hv", "cp")


@pytest.mark.parametrize("interval", ["0s", "0h0m0s"])
def test_an_interval_of_zero_is_refused(interval: str) -> None:
    """Such an ExternalSecret is deaf to every poke."""

    async def story(there: Stage) -> None:
        one = there.want("ceph-pull", "hv")
        bad = replace(one, spec={**one.spec, "parameters": {"refreshInterval": interval}})
        assert any("deaf" in said for said in there.driver(one).check(bad))
        assert list(there.driver(one).check(one)) == []

    played(story)


def test_a_store_follows_openbao_to_another_address() -> None:
    """The Service tells it; the store is written again."""

    async def story(there: Stage) -> None:
        one = there.want("secret-store", "hv")
        moved = {"loadBalancer": {"ingress": [{"hostname": "openbao-eu-1-0.sim"}]}}
        there.mgmt.set_status(
            ("", "Service"), "openbao", "shared-services", moved, manager="somebody"
        )
        pods: Any = there.world.controllers[("mgmt", "openbao-chart")]
        pods.stop()
        await asyncio.sleep(1)
        steps = [step.why for step in await there.do(one)]
        found = there.world.clusters["hv"].get(STORE, "openbao-cluster-store")
        assert found is not None
        assert steps == ["write the store again: OpenBao has another address now"]
        assert found["spec"]["provider"]["vault"]["server"] == "https://openbao-eu-1-0.sim:8200"

    played(story, "hv")


KINDS = (("secret-store", "hv"), ("ceph-push", "st.prod"), ("ceph-pull", "hv"))


async def _check(kind: str, name: str) -> list[str]:
    async with stage.opened() as there:
        if kind == "secret-store":
            await there.stored("mgmt")
            cluster = there.world.clusters["hv"]
            stage.eso.ExternalSecrets(there.world, cluster).start()
            await there.follow(there.want("openbao-auth", "hv"))
        else:
            await there.stored("st", "hv")
            rook(there)
        if kind == "ceph-pull":
            await there.follow(there.want("ceph-push", "st.prod"))
            space(there.world.clusters["hv"], "openstack")

        async def settle() -> None:
            await asyncio.sleep(60)

        one: Resource = there.fleet.known.resources[Ref(kind, name)]
        return await suite.check(
            suite.Bench(
                driver=there.driver(one),
                want=one,
                bad=replace(one, spec={"install": {}}),
                settle=settle,
                cut=there.cut,
                writes=there.writes,
                state=there.state,
            )
        )


@pytest.mark.parametrize(("kind", "name"), KINDS)
def test_the_contract_is_kept(kind: str, name: str) -> None:
    """From nothing to Ready, each step twice, and unknown when out of reach."""
    assert loop.run(_check(kind, name)) == []
