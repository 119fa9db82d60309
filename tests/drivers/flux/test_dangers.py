"""Dangers of Flux (28 to 34) and what the driver does about each; without its guard, each fails."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fleetd.secrets import Secret
from fleetd.sim import loop
from fleetd.sim.controllers.workloads_look import condition, members, part
from fleetd.sim.faults import Plight
from fleetd.sim.sites import git
from fleetd.vocabulary import Failed, Truth
from tests.drivers.flux import stage as stages
from tests.drivers.flux.stage import (
    KUSTOMIZATION,
    RELEASE,
    SECRET,
    SYSTEM,
    TOPOLOGY,
    Stage,
    retired,
    want,
)

FOLDER = "clusters/hv"
SYNC = want("flux-sync")
TARGET = want("flux-target")
NAMESPACE = ("", "Namespace")
DEPLOYMENT = ("apps", "Deployment")


def run(script: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        async with stages.opened("mgmt", "hv") as stage:
            await stage.flux("hv")
            await script(stage)

    loop.run(main())


def edit(stage: Stage, gk: tuple[str, str], name: str, change: Callable[[Any], None]) -> None:
    stage.mgmt.edit(gk, name, SYSTEM, change, manager="somebody")


def suspend(new: dict[str, Any]) -> None:
    new["spec"]["suspend"] = True


async def reason(stage: Stage, one: Any) -> str:
    judged = await stage.ready(one)
    return judged.reason if judged is not None else ""


# 28: an empty directory in Git is Ready and prunes everything.


def test_flux_may_delete_only_after_the_folder_has_proven_not_to_be_empty() -> None:
    """A new Kustomization does not prune; the next step lets it, once something was applied."""

    async def script(stage: Stage) -> None:
        first = await stage.do(SYNC)
        assert [step.args["manifest"]["spec"]["prune"] for step in first] == [False]
        await asyncio.sleep(60)
        second = await stage.do(SYNC)
        assert [step.args["manifest"]["spec"]["prune"] for step in second] == [True]

    run(script)


def test_an_emptied_folder_does_not_take_the_namespaces_along() -> None:
    """And with the namespaces everything in them; it is told, and Flux may delete no more."""

    async def script(stage: Stage) -> None:
        more = [git.namespace("openstack"), git.deployment("extra", "openstack")]
        stage.site.commit({FOLDER: more}, "two things")
        await asyncio.sleep(400)
        await stage.follow(SYNC)
        stage.site.commit({FOLDER: []}, "oops")
        await asyncio.sleep(600)

        assert stage.cluster("hv").get(NAMESPACE, "openstack") is not None
        assert await reason(stage, SYNC) == "NothingInFolder"
        steps = await stage.do(SYNC)
        assert [step.args["manifest"]["spec"]["prune"] for step in steps] == [False]

        stage.site.commit({FOLDER: more}, "as before")
        await asyncio.sleep(600)
        await stage.follow(SYNC)
        live = stage.mgmt.get(KUSTOMIZATION, "hv", SYSTEM)
        assert part(live, "spec")["prune"] is True

    run(script)


def test_a_folder_that_lost_more_than_half_is_told_and_stops_the_deleting() -> None:
    """Before the rest goes too."""

    async def script(stage: Stage) -> None:
        names = ("a", "b", "c", "d")
        whole = [git.namespace("apps"), *(git.deployment(name, "apps") for name in names)]
        stage.site.commit({FOLDER: whole}, "five things")
        await asyncio.sleep(400)
        await stage.follow(SYNC)
        stage.site.commit({FOLDER: whole[:2]}, "two of five")
        await asyncio.sleep(600)

        assert await reason(stage, SYNC) == "FolderShrank"
        steps = await stage.do(SYNC)
        assert [step.args["manifest"]["spec"]["prune"] for step in steps] == [False]
        assert "only 2 objects" in steps[0].why
        stage.site.commit({FOLDER: []}, "and the rest")
        await asyncio.sleep(600)
        assert stage.cluster("hv").get(DEPLOYMENT, "a", "apps") is not None

    run(script)


def test_another_folder_is_handed_over_without_the_right_to_delete() -> None:
    """If it is empty, what the first one brought stays."""

    async def script(stage: Stage) -> None:
        await stage.follow(SYNC)
        stage.site.commit({"clusters/empty": []}, "an empty folder")
        await asyncio.sleep(600)
        moved = stages.replace(SYNC, spec={**SYNC.spec, "parameters": {"path": "clusters/empty"}})
        steps = await stage.do(moved)
        assert [step.args["manifest"]["spec"]["prune"] for step in steps] == [False]
        await asyncio.sleep(600)
        assert await stage.proposed(moved) == []
        assert stage.cluster("hv").get(NAMESPACE, "openstack") is not None

    run(script)


# 29: a cycle of dependencies stops new revisions for everybody.


def test_dependencies_between_releases_have_no_cycles() -> None:
    """They follow the topology, whose needs have none, and lead only to releases that exist."""

    async def script(stage: Stage) -> None:
        waits: dict[str, list[str]] = {}
        for one in TOPOLOGY.resources.values():
            if one.driver != "flux":
                continue
            driver: Any = stage.driver(one)
            for body in [manifest.body for manifest in driver.manifests(one)]:
                if body["kind"] == "HelmRelease":
                    depends = members(body["spec"], "dependsOn")
                    waits[body["metadata"]["name"]] = [other["name"] for other in depends]
        assert waits["cp-keystone-operator"] == [
            "cp-cert-manager",
            "cp-external-secrets",
            "cp-mariadb-operator",
            "cp-memcached-operator",
        ]
        while waits:
            free = [name for name, others in waits.items() if not set(others) & set(waits)]
            assert free, f"these wait for each other: {waits}"
            for name in free:
                del waits[name]

    run(script)


def test_a_revision_that_does_not_arrive_is_told() -> None:
    """Somebody else's cycle stops everybody, and only the revision tells."""

    async def script(stage: Stage) -> None:
        await stage.follow(SYNC)
        live = stage.mgmt.get(KUSTOMIZATION, "hv", SYSTEM)
        assert live is not None
        for name, other in (("a", "b"), ("b", "a")):
            ring = {
                "apiVersion": live["apiVersion"],
                "kind": "Kustomization",
                "metadata": {"name": name, "namespace": SYSTEM},
                "spec": {**live["spec"], "dependsOn": [{"name": other}]},
            }
            stage.mgmt.create(ring, manager="somebody")
        stage.site.commit({"clusters/other": []}, "something new")
        await asyncio.sleep(310)

        assert condition(stage.mgmt.get(KUSTOMIZATION, "hv", SYSTEM), "Ready") == "True"
        assert await reason(stage, SYNC) == "OldRevision"

    run(script)


# 30: deleting a suspended object leaves everything behind.


@pytest.mark.parametrize(
    ("one", "gk", "name"),
    [
        (SYNC, KUSTOMIZATION, "hv"),
        (want("cert-manager"), RELEASE, "hv-cert-manager"),
        (want("ovn-controller"), RELEASE, "hv-ovn-controller"),
    ],
    ids=["folder", "release", "release of a DaemonSet"],
)
def test_what_is_suspended_is_resumed_before_it_is_deleted(
    one: Any, gk: tuple[str, str], name: str
) -> None:
    """So that what it brought goes with it."""

    async def script(stage: Stage) -> None:
        await stage.follow(one)
        edit(stage, gk, name, suspend)
        await asyncio.sleep(5)
        going = retired(one)
        assert [step.verb for step in await stage.do(going)] == ["resume"]
        await asyncio.sleep(60)
        steps = await stage.do(going)
        assert [step.verb for step in steps] == ["delete"]
        assert all(step.destroys == {one.ref} for step in steps)
        await asyncio.sleep(60)

        assert stage.mgmt.get(gk, name, SYSTEM) is None
        assert stage.cluster("hv").list(("apps", "Deployment"), "cert-manager") == []
        assert stage.cluster("hv").list(("apps", "DaemonSet"), "openstack") == []

    run(script)


def test_the_kubeconfig_goes_only_when_nobody_uses_it_any_more() -> None:
    """Flux cleans up with it, and hangs without a word if it is gone."""

    async def script(stage: Stage) -> None:
        await stage.follow(SYNC)
        assert list(await stage.proposed(retired(TARGET))) == []
        await stage.do(retired(SYNC))
        await asyncio.sleep(60)
        assert [step.verb for step in await stage.do(retired(TARGET))] == ["delete"]
        assert stage.mgmt.get(SECRET, "hv-kubeconfig", SYSTEM) is None

    run(script)


# 31: Ready and the matching revision are not enough.


def test_a_suspended_folder_is_not_ready_although_flux_says_so() -> None:
    """Flux keeps Ready True and claims to have seen the newest spec; fleetd leaves it alone."""

    async def script(stage: Stage) -> None:
        await stage.follow(SYNC)
        edit(stage, KUSTOMIZATION, "hv", suspend)
        await asyncio.sleep(5)

        assert condition(stage.mgmt.get(KUSTOMIZATION, "hv", SYSTEM), "Ready") == "True"
        assert await reason(stage, SYNC) == "Suspended"
        assert await stage.proposed(SYNC) == []

    run(script)


def test_a_broken_source_is_told_by_the_source() -> None:
    """The folder stays Ready at the old revision; the source does not."""

    async def script(stage: Stage) -> None:
        await stage.follow(SYNC)
        stage.site.password = "changed by somebody"
        await asyncio.sleep(600)

        assert (await reason(stage, want("flux-source", "mgmt"))) == "FetchFailed"
        judged = await stage.ready(SYNC)
        assert judged is not None
        assert judged.truth is Truth.TRUE

    run(script)


def test_a_folder_that_flux_has_stopped_looking_at_is_not_ready() -> None:
    """A controller that is gone leaves everything as it was."""

    async def script(stage: Stage) -> None:
        await stage.follow(SYNC)
        stage.world.controllers[("mgmt", "kustomize-controller")].stop()
        await asyncio.sleep(2400)

        assert condition(stage.mgmt.get(KUSTOMIZATION, "hv", SYSTEM), "Ready") == "True"
        assert await reason(stage, SYNC) == "NotLookedAt"

    run(script)


# 32: a hanging cluster delays the healthy ones.


@pytest.mark.parametrize(
    ("one", "gk", "name"),
    [(SYNC, KUSTOMIZATION, "hv"), (want("cert-manager"), RELEASE, "hv-cert-manager")],
    ids=["folder", "release"],
)
def test_what_is_for_a_silent_cluster_is_suspended_and_resumed_when_it_answers(
    one: Any, gk: tuple[str, str], name: str
) -> None:
    """And its state says why it stands still."""

    async def script(stage: Stage) -> None:
        await stage.follow(one)
        stage.world.mishaps.add(("cluster", "hv", "frozen"))
        stage.climate.plights["hv"] = Plight.FROZEN
        stage.cluster("hv").end_watches()
        await asyncio.sleep(2400)
        assert [step.verb for step in await stage.do(one)] == ["suspend"]
        await asyncio.sleep(60)
        assert await reason(stage, one) == "ClusterSilent"
        assert list(await stage.proposed(one)) == []

        stage.world.mishaps.clear()
        stage.climate.plights.clear()
        await asyncio.sleep(300)
        assert [step.verb for step in await stage.do(one)] == ["resume"]
        await stage.follow(one)
        assert not part(stage.mgmt.get(gk, name, SYSTEM), "spec").get("suspend")

    run(script)


# 33: a kubeconfig with a file in it makes the controller send its own.


@pytest.mark.parametrize(
    "user",
    [
        {"tokenFile": "/var/run/secrets/token"},
        {"exec": {"command": "login"}},
        {"client-certificate": "/etc/cert.pem", "client-key": "/etc/key.pem"},
        {"token": "t", "auth-provider": {"name": "x"}},
    ],
    ids=["file", "program", "certificate file", "plugin"],
)
def test_only_inline_credentials_are_handed_over(user: dict[str, Any]) -> None:
    """Whatever fleetd itself logs in with; and what somebody else put there is replaced."""
    text = {
        "clusters": [{"name": "hv", "cluster": {"server": "https://hv.sim"}}],
        "users": [{"name": "hv", "user": user}],
        "contexts": [{"name": "hv", "context": {"cluster": "hv", "user": "hv"}}],
        "current-context": "hv",
    }

    async def script(stage: Stage) -> None:
        def spoil(new: dict[str, Any]) -> None:
            new["data"]["value"] = base64.b64encode(json.dumps(text).encode()).decode()

        edit(stage, SECRET, "hv-kubeconfig", spoil)
        await asyncio.sleep(1)
        assert await reason(stage, TARGET) == "NotInline"
        (step,) = await stage.proposed(TARGET)

        kept = stage.tools.clusters.kubeconfig("cluster:hv")
        stage.tools.clusters._backends["cluster:hv"].kubeconfig = Secret(json.dumps(text))  # pyright: ignore[reportPrivateUsage]
        refused = await stage.driver(TARGET).apply(step)
        assert isinstance(refused, Failed)
        assert (refused.reason, refused.retry) == ("NotInline", False)

        stage.tools.clusters._backends["cluster:hv"].kubeconfig = kept  # pyright: ignore[reportPrivateUsage]
        await stage.follow(TARGET)

    run(script)


# 34: a new kubeconfig counts at the next reconcile only, unless the Secret is watched.


def test_the_secret_is_watched_and_a_lost_label_comes_back() -> None:
    """So that a new kubeconfig counts at once."""

    async def script(stage: Stage) -> None:
        def strip(new: dict[str, Any]) -> None:
            del new["metadata"]["labels"]["reconcile.fluxcd.io/watch"]

        edit(stage, SECRET, "hv-kubeconfig", strip)
        await asyncio.sleep(1)
        assert await reason(stage, TARGET) == "NotWatched"
        await stage.follow(TARGET)
        labels = part(part(stage.mgmt.get(SECRET, "hv-kubeconfig", SYSTEM), "metadata"), "labels")
        assert labels["reconcile.fluxcd.io/watch"] == "Enabled"

    run(script)
