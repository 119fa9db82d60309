"""What the Flux driver hands over, when, and what it never shows."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from drivers.flux import credentials, installation
from fleetd.kube.secretview import SecretView
from fleetd.secrets import Secret, SecretError
from fleetd.sim import loop
from fleetd.sim.controllers.workloads_look import part
from fleetd.sim.faults import Plight
from fleetd.sim.kube.cluster import Cluster
from fleetd.vocabulary import Truth
from tests.drivers.flux import stage as stages
from tests.drivers.flux.stage import (
    KUSTOMIZATION,
    RELEASE,
    SECRET,
    SOURCE,
    SYSTEM,
    Stage,
    retired,
    want,
)
from tests.drivers.refusals import refusing

TARGET = want("flux-target")
GIT = want("flux-source", "mgmt")


def run(script: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        async with stages.opened("mgmt", "hv") as stage:
            await stage.flux("hv")
            await script(stage)

    loop.run(main())


def held(cluster: Cluster, name: str, key: str) -> str:
    found = cluster.get(SECRET, name, SYSTEM)
    return SecretView.of(found).values[key].reveal() if found else ""


def test_a_release_says_where_what_and_after_whom() -> None:
    """The HelmRelease of another cluster's operator, whole."""

    async def script(stage: Stage) -> None:
        (step,) = await stage.proposed(want("mariadb-operator", "cp"))
        body = step.args["manifest"]
        assert step.args["backend"] == "cluster:mgmt"
        assert (body["kind"], body["metadata"]["name"]) == ("HelmRelease", "cp-mariadb-operator")
        assert body["metadata"]["namespace"] == "flux-system"
        assert body["spec"] == {
            "interval": "30m",
            "timeout": "10m",
            "releaseName": "mariadb-operator",
            "targetNamespace": "mariadb-system",
            "storageNamespace": "mariadb-system",
            "chart": {
                "spec": {
                    "chart": "mariadb-operator",
                    "version": ">=0.30.0 <1.0.0",
                    "interval": "1h",
                    "sourceRef": {
                        "kind": "HelmRepository",
                        "name": "mariadb-operator-github-io-mariadb-operator",
                        "namespace": "flux-system",
                    },
                }
            },
            "install": {
                "crds": "CreateReplace",
                "createNamespace": True,
                "remediation": {"retries": 3},
            },
            "upgrade": {"crds": "CreateReplace", "remediation": {"retries": 3}},
            "kubeConfig": {"secretRef": {"name": "cp-kubeconfig"}},
            "dependsOn": [{"name": "cp-cert-manager"}, {"name": "cp-mariadb-operator-crds"}],
        }

    run(script)


def test_what_is_for_the_management_cluster_needs_no_kubeconfig() -> None:
    """Flux runs there."""

    async def script(stage: Stage) -> None:
        (step,) = await stage.proposed(want("cert-manager", "mgmt"))
        assert "kubeConfig" not in step.args["manifest"]["spec"]

    run(script)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("oci://ghcr.io/c5c3/charts", "ghcr-io-c5c3-charts"),
        ("https://charts.example:8443/A_b/", "charts-example-8443-a-b"),
        ("oci://" + "x" * 80, "x" * 63),
    ],
)
def test_a_chart_repository_is_named_after_its_address(url: str, name: str) -> None:
    """So that each address has one object, whoever asks for it."""
    assert installation.repository_name(url) == name


def test_health_of_what_runs_on_every_host_is_read_on_the_target() -> None:
    """A pod that cannot start is a failure although Flux says Ready."""
    one = want("nova-compute")

    async def script(stage: Stage) -> None:
        await stage.follow(want("ovn-controller"), one)
        mishap = ("image", "hv/nova-compute", "bad")
        stage.world.mishaps.add(mishap)
        for listener in stage.world.listeners:
            listener(mishap)
        await asyncio.sleep(120)
        judged = await stage.ready(one)
        assert judged is not None
        assert (judged.truth, judged.reason) == (Truth.FALSE, "PodsFailing")
        assert judged.message == "1 of its pods cannot start: ImagePullBackOff"
        release = stage.mgmt.get(RELEASE, "hv-nova-compute", SYSTEM)
        assert part(release, "status")["history"][0]["status"] == "deployed"

    run(script)


def test_what_a_release_brought_and_does_not_come_up_is_seen() -> None:
    """Flux stops looking once it is installed; Kubernetes gives the rollout up, and that shows."""
    one = want("cert-manager")

    async def script(stage: Stage) -> None:
        await stage.follow(one)
        mishap = ("image", "hv/cert-manager", "bad")
        stage.world.mishaps.add(mishap)
        for listener in stage.world.listeners:
            listener(mishap)
        await asyncio.sleep(900)
        judged = await stage.ready(one)
        assert judged is not None
        assert (judged.truth, judged.reason) == (Truth.FALSE, "PodsFailing")
        assert "these do not come up: cert-manager" in judged.message
        stage.world.mishaps.discard(mishap)
        for listener in stage.world.listeners:
            listener(mishap)
        await asyncio.sleep(120)
        judged = await stage.ready(one)
        assert judged is not None
        assert judged.truth is Truth.TRUE

    run(script)


def test_while_a_daemonset_is_missing_the_release_says_why() -> None:
    """Its message is shown with the state Absent."""
    one = want("nova-compute")

    async def script(stage: Stage) -> None:
        await stage.do(one)
        await asyncio.sleep(60)
        judged = await stage.ready(one)
        assert judged is not None
        assert judged.reason == "Absent"
        assert "hv-ovn-controller" in judged.message

    run(script)


# Kubeconfigs.


def test_a_kubeconfig_is_replaced_only_when_it_ends_soon() -> None:
    """A restart of the daemon logs in anew, and that alone changes nothing."""

    async def script(stage: Stage) -> None:
        before = held(stage.mgmt, "hv-kubeconfig", "value")
        await asyncio.sleep(3600)
        stage.admit("hv")
        assert await stage.proposed(TARGET) == ()
        await asyncio.sleep(12 * 3600)
        stage.admit("mgmt")
        stage.admit("hv")
        assert [step.verb for step in await stage.do(TARGET)] == ["hand-over"]
        assert held(stage.mgmt, "hv-kubeconfig", "value") != before
        await asyncio.sleep(5)
        assert await stage.proposed(TARGET) == ()

    run(script)


def test_flux_works_on_with_the_new_kubeconfig() -> None:
    """Long after the first one has ended."""

    async def script(stage: Stage) -> None:
        await stage.follow(want("flux-sync"))
        for _ in range(4):
            await asyncio.sleep(12 * 3600)
            stage.admit("mgmt")
            stage.admit("hv")
            await stage.follow(TARGET)
        await stage.follow(want("flux-sync"))
        live = stage.mgmt.get(KUSTOMIZATION, "hv", SYSTEM)
        assert "(Unauthorized)" not in str(part(live, "status"))

    run(script)


def revoked(stage: Stage, text: str) -> None:
    token = msgspec.json.decode(text)["users"][0]["user"]["token"]
    stage.cluster("hv").tokens.revoke(token)


def test_a_kubeconfig_that_was_revoked_before_its_end_is_replaced() -> None:
    """Flux does not ask for another; and what is only older is left alone."""

    async def script(stage: Stage) -> None:
        stage.admit("hv")
        assert await stage.proposed(TARGET) == ()
        revoked(stage, held(stage.mgmt, "hv-kubeconfig", "value"))
        judged = await stage.ready(TARGET)
        assert judged is not None
        assert (judged.truth, judged.reason) == (Truth.FALSE, "Refused")
        (step,) = await stage.do(TARGET)
        assert step.why == "hand the kubeconfig of hv to Flux (hv refuses the one it has)"
        assert await stage.proposed(TARGET) == ()
        await stage.follow(want("flux-sync"))

    run(script)


def test_one_refusal_of_a_kubeconfig_is_no_news() -> None:
    """The same one is good at the next question; a second refusal in a row is believed."""

    async def script(stage: Stage) -> None:
        stage.admit("hv")
        for times, steps in ((1, 0), (2, 1)):
            with refusing(stage.climate, "hv", "/version", times) as refused:
                assert len(await stage.proposed(TARGET)) == steps
            assert len(refused) == times

    run(script)


def test_a_silent_cluster_says_nothing_of_the_kubeconfig() -> None:
    """Neither that it is good nor that another is needed."""

    async def script(stage: Stage) -> None:
        stage.admit("hv")
        stage.climate.plights["hv"] = Plight.UNREACHABLE
        assert await stage.proposed(TARGET) == ()

    run(script)


def test_flux_can_clean_up_though_its_kubeconfig_was_revoked() -> None:
    """A deletion hangs with one that is no good, and the Secret goes last."""

    async def script(stage: Stage) -> None:
        await stage.follow(want("flux-sync"))
        stage.admit("hv")
        revoked(stage, held(stage.mgmt, "hv-kubeconfig", "value"))
        await asyncio.sleep(1)
        assert [step.verb for step in await stage.do(retired(TARGET))] == ["hand-over"]
        await asyncio.sleep(1)
        assert await stage.proposed(retired(TARGET)) == ()

    run(script)


def test_a_kubeconfig_for_another_server_is_replaced() -> None:
    """The cluster was made anew under its name."""

    async def script(stage: Stage) -> None:
        stage.world.address = lambda name: f"https://{name}.sim:6443"
        stage.admit("hv")
        await asyncio.sleep(1)
        judged = await stage.ready(TARGET)
        assert judged is not None
        assert judged.reason == "Outdated"
        assert [step.verb for step in await stage.do(TARGET)] == ["hand-over"]
        assert "hv.sim:6443" in held(stage.mgmt, "hv-kubeconfig", "value")

    run(script)


def test_no_kubeconfig_and_no_password_is_in_facts_or_steps() -> None:
    """Neither of fleetd's own nor of what lies in the Secrets."""

    async def script(stage: Stage) -> None:
        kubeconfig_text = held(stage.mgmt, "hv-kubeconfig", "value")
        token = msgspec.json.decode(kubeconfig_text)["users"][0]["user"]["token"]
        password = held(stage.mgmt, "eu-1-git", "password")
        assert token
        assert password
        for one in (TARGET, GIT):
            shown = repr(await stage.look(one))
            stage.mgmt.delete(SECRET, "hv-kubeconfig", SYSTEM)
            stage.mgmt.delete(SECRET, "eu-1-git", SYSTEM)
            await asyncio.sleep(1)
            steps = await stage.proposed(one)
            assert steps
            shown += repr(steps) + repr([await stage.driver(one).apply(step) for step in steps])
            assert token not in shown
            assert password not in shown

    run(script)


# Git.


def test_a_new_password_reaches_flux_and_the_source_looks_at_once() -> None:
    """Without the poke it would wait up to a quarter of an hour."""

    async def script(stage: Stage) -> None:
        right = stage.site.password
        stage.site.password = "another one"
        await asyncio.sleep(1200)
        judged = await stage.ready(GIT)
        assert judged is not None
        assert judged.reason == "FetchFailed"

        def spoil(new: dict[str, Any]) -> None:
            new["data"]["password"] = "b2xk"

        stage.site.password = right
        stage.mgmt.edit(SECRET, "eu-1-git", SYSTEM, spoil, manager="somebody")
        await asyncio.sleep(1)
        assert [step.verb for step in await stage.do(GIT)] == ["log-in"]
        await asyncio.sleep(5)
        judged = await stage.ready(GIT)
        assert judged is not None
        assert judged.truth is Truth.TRUE

    run(script)


def test_a_password_that_cannot_be_read_now_does_not_blind_us() -> None:
    """Flux has it already; only a missing one would have to be written."""

    class Unreadable:
        async def read(self, access: Any, want: Any) -> Secret:
            raise SecretError(f"{access} of {want.ref} is not there")

        def provide(self, kind: str, reader: Any) -> None:
            del kind, reader

    async def script(stage: Stage) -> None:
        driver: Any = stage.driver(GIT)
        driver.tools = replace(stage.tools, secrets=Unreadable())
        judged = await stage.ready(GIT)
        assert judged is not None
        assert judged.truth is Truth.TRUE
        assert await stage.proposed(GIT) == []

    run(script)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3cr3t\n", {"username": "git", "password": "s3cr3t"}),
        ("username: me\npassword: p\n", {"username": "me", "password": "p"}),
        ("identity: k\nknown_hosts: h\n", {"identity": "k", "known_hosts": "h"}),
        ("unknown: x", {"username": "git", "password": "unknown: x"}),
    ],
    ids=["token", "user", "ssh", "not a mapping of ours"],
)
def test_a_git_access_is_a_token_or_what_flux_knows(text: str, expected: dict[str, str]) -> None:
    """As its Secret will hold it."""
    assert credentials.content(Secret(text)) == expected


# Going.


def test_flux_goes_in_the_order_in_which_it_can() -> None:
    """Its operator takes the instance apart, so it stays until that is gone."""
    one = retired(want("flux", "mgmt"))

    async def script(stage: Stage) -> None:
        first = await stage.do(one)
        kinds = [step.args["kind"] for step in first]
        assert kinds[-1] == "FluxInstance"
        assert set(kinds) == {"HelmRepository", "FluxInstance"}
        await asyncio.sleep(10)
        second = [step.args["kind"] for step in await stage.do(one)]
        assert (second[0], second[-1]) == ("Deployment", "Namespace")
        assert "CustomResourceDefinition" in second

    run(script)


def test_whoever_comes_between_two_deletions_goes_on() -> None:
    """Its kinds are gone, and a daemon that has never seen them finds what is left."""
    one = retired(want("flux", "mgmt"))

    async def script(stage: Stage) -> None:
        await stage.do(one)
        await asyncio.sleep(10)
        *others, last = await stage.proposed(one)
        for step in others:
            await stage.driver(one).apply(step)
        await asyncio.sleep(10)
        known = stage.tools.clusters.kubeconfig("cluster:mgmt")
        stage.tools.clusters.drop("cluster:mgmt")
        stage.tools.clusters.put("cluster:mgmt", known)
        assert [step.id for step in await stage.do(one)] == [last.id]
        await asyncio.sleep(60)
        assert (await stage.look(one)).facts == {}

    run(script)


def test_the_source_goes_with_its_password() -> None:
    """The password first: without the source nobody would know of it."""

    async def script(stage: Stage) -> None:
        steps = await stage.do(retired(GIT))
        assert [step.args["kind"] for step in steps] == ["Secret", "GitRepository"]
        await asyncio.sleep(5)
        assert stage.mgmt.get(SOURCE, "eu-1", SYSTEM) is None
        assert (await stage.look(retired(GIT))).facts == {}
        assert list(await stage.proposed(retired(GIT))) == []

    run(script)
