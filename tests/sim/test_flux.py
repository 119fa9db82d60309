"""The simulated Flux does what the real one was seen to do, dangers included."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fleetd.sim import loop
from fleetd.sim.controllers.workloads_look import condition, conditions, members, part
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.sites import git
from tests.drivers.flux import stage as stages
from tests.drivers.flux.stage import KUSTOMIZATION, RELEASE, SECRET, SOURCE, SYSTEM, Stage, want

FOLDER = "clusters/hv"


def run(script: Callable[[Stage], Awaitable[None]], *, seed: int = 1) -> None:
    """With Flux, its source, and the way into hv."""

    async def main() -> None:
        async with stages.opened("mgmt", "hv", seed=seed) as stage:
            await stage.flux("hv")
            await script(stage)

    loop.run(main())


def body(name: str, **spec: Any) -> dict[str, Any]:
    """A Kustomization of hv's folder."""
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": name, "namespace": SYSTEM},
        "spec": {
            "interval": "10m",
            "retryInterval": "1m",
            "prune": True,
            "wait": True,
            "path": f"./{FOLDER}",
            "sourceRef": {"kind": "GitRepository", "name": "eu-1"},
            "kubeConfig": {"secretRef": {"name": "hv-kubeconfig"}},
            **spec,
        },
    }


def release(name: str, chart: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": SYSTEM},
        "spec": {
            "interval": "30m",
            "timeout": "3m",
            "targetNamespace": "apps",
            "storageNamespace": "apps",
            "install": {"createNamespace": True, "remediation": {"retries": 1}},
            "chart": {
                "spec": {
                    "chart": chart,
                    "sourceRef": {"kind": "HelmRepository", "name": "ghcr-io-c5c3-charts"},
                }
            },
            "kubeConfig": {"secretRef": {"name": "hv-kubeconfig"}},
            **spec,
        },
    }


def put(cluster: Cluster, *bodies: dict[str, Any]) -> None:
    for one in bodies:
        cluster.apply(one, manager="t")


def said(cluster: Cluster, gk: tuple[str, str], name: str, kind: str = "Ready") -> tuple[str, ...]:
    """Status, reason and message of a condition."""
    live = cluster.get(gk, name, SYSTEM)
    found = [one for one in conditions(live) if one["type"] == kind]
    return tuple(str(found[0][part]) for part in ("status", "reason", "message")) if found else ()


def replace_kubeconfig(stage: Stage, data: dict[str, str] | None) -> None:
    """What the Secret of hv holds from now on; None: there is no Secret."""
    stage.mgmt.delete(SECRET, "hv-kubeconfig", SYSTEM)
    if data is not None:
        labels = {"reconcile.fluxcd.io/watch": "Enabled"}
        metadata = {"name": "hv-kubeconfig", "namespace": SYSTEM, "labels": labels}
        coded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
        put(stage.mgmt, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": coded})


def config(stage: Stage, **user: str) -> str:
    """A kubeconfig of hv with these credentials."""
    made = stage.cluster("hv").kubeconfig(stage.world.address("hv"), "")
    return str({**made, "users": [{"name": "hv", "user": user}]}).replace("'", '"')


def test_a_folder_is_applied_to_another_cluster_and_not_at_once() -> None:
    """Ready is Unknown while it works; then the revision, the inventory and the history tell."""

    async def script(stage: Stage) -> None:
        put(stage.mgmt, body("x"))
        await asyncio.sleep(0.2)
        assert said(stage.mgmt, KUSTOMIZATION, "x")[:2] == ("Unknown", "Progressing")
        assert (
            part(stage.mgmt.get(KUSTOMIZATION, "x", SYSTEM), "status")["observedGeneration"] == -1
        )
        await asyncio.sleep(60)

        live = stage.mgmt.get(KUSTOMIZATION, "x", SYSTEM)
        status = part(live, "status")
        assert said(stage.mgmt, KUSTOMIZATION, "x")[:2] == ("True", "ReconciliationSucceeded")
        assert status["lastAppliedRevision"] == stage.site.revision
        assert status["history"][0]["lastReconciledStatus"] == "ReconciliationSucceeded"
        assert {"id": "_openstack__Namespace", "v": "v1"} in status["inventory"]["entries"]
        assert stage.cluster("hv").get(("", "Namespace"), "openstack") is not None
        assert stage.mgmt.get(("", "Namespace"), "openstack") is None

    run(script)


@pytest.mark.parametrize(
    ("data", "kustomization", "helm"),
    [
        (None, "unable to read KubeConfig secret", ("RESTClientError", "could not get KubeConfig")),
        ({"other": "x"}, "does not contain a 'value' key", ("RESTClientError", "'value.yaml'")),
        ({"value": "nonsense"}, "json parse error", ("RESTClientError", "json parse error")),
        ({"value": ""}, "no configuration has been provided", ("RESTClientError", "no config")),
        (
            {"value": "TOKEN"},
            "(Unauthorized): failed to get server",
            ("StateError", "Unauthorized"),
        ),
        ({"value": "FILE"}, "(Unauthorized): failed to get server", ("StateError", "Unauthorized")),
    ],
    ids=["no secret", "no key", "garbage", "empty", "bad token", "a file instead of a token"],
)
def test_a_kubeconfig_that_is_no_good_is_refused_in_the_words_of_flux(
    data: dict[str, str] | None, kustomization: str, helm: tuple[str, str]
) -> None:
    """The token is really used on the other cluster; each failure has its own message."""

    async def script(stage: Stage) -> None:
        users = {"TOKEN": {"token": "wrong"}, "FILE": {"tokenFile": "/var/run/token"}}
        given = data
        if given is not None and given.get("value") in users:
            given = {"value": config(stage, **users[given["value"]])}
        replace_kubeconfig(stage, given)
        put(stage.mgmt, body("x"), release("r", "thing"))
        await asyncio.sleep(30)

        ready = said(stage.mgmt, KUSTOMIZATION, "x")
        assert ready[:2] == ("False", "ReconciliationFailed")
        assert kustomization in ready[2]
        assert said(stage.mgmt, RELEASE, "r")[1] == helm[0]
        assert helm[1] in said(stage.mgmt, RELEASE, "r")[2]
        assert stage.cluster("hv").get(("", "Namespace"), "openstack") is None

    run(script)


def test_a_labelled_secret_counts_at_once_and_an_unlabelled_one_at_the_next_attempt() -> None:
    """Danger 34: without the label a new kubeconfig waits for the interval."""

    async def changed(stage: Stage, *, labelled: bool) -> bool:
        put(stage.mgmt, body("x"))
        await asyncio.sleep(60)
        secret = stage.mgmt.get(SECRET, "hv-kubeconfig", SYSTEM)
        assert secret is not None

        def spoil(new: dict[str, Any]) -> None:
            new["data"]["value"] = base64.b64encode(config(stage, token="bad").encode()).decode()
            if not labelled:
                new["metadata"]["labels"] = {}

        stage.mgmt.edit(SECRET, "hv-kubeconfig", SYSTEM, spoil, manager="t")
        await asyncio.sleep(10)
        return "(Unauthorized)" in said(stage.mgmt, KUSTOMIZATION, "x")[2]

    async def with_label(stage: Stage) -> None:
        assert await changed(stage, labelled=True)

    async def without(stage: Stage) -> None:
        assert not await changed(stage, labelled=False)

    run(with_label)
    run(without)


def test_an_empty_folder_is_ready_and_prunes_everything() -> None:
    """Danger 28, as the real one does it when nobody guards against it."""

    async def script(stage: Stage) -> None:
        put(stage.mgmt, body("x"))
        await asyncio.sleep(60)
        stage.site.commit({FOLDER: []}, "oops")
        await asyncio.sleep(600)

        live = stage.mgmt.get(KUSTOMIZATION, "x", SYSTEM)
        assert condition(live, "Ready") == "True"
        assert members(part(part(live, "status"), "inventory"), "entries") == []
        assert stage.cluster("hv").get(("", "Namespace"), "openstack") is None

    run(script)


def test_what_says_that_it_must_stay_is_not_pruned() -> None:
    """The annotation `prune: disabled`, which a patch of the Kustomization may add."""

    async def script(stage: Stage) -> None:
        text = "metadata: {annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}}"
        put(stage.mgmt, body("x", patches=[{"target": {"kind": "Namespace"}, "patch": text}]))
        await asyncio.sleep(60)
        stage.site.commit({FOLDER: []}, "oops")
        await asyncio.sleep(600)

        assert condition(stage.mgmt.get(KUSTOMIZATION, "x", SYSTEM), "Ready") == "True"
        assert stage.cluster("hv").get(("", "Namespace"), "openstack") is not None

    run(script)


@pytest.mark.parametrize("suspended", [True, False], ids=["suspended", "at work"])
def test_a_suspended_kustomization_is_deleted_without_pruning(*, suspended: bool) -> None:
    """Danger 30: gone at once, and everything stays on the target."""

    async def script(stage: Stage) -> None:
        put(stage.mgmt, body("x"))
        await asyncio.sleep(60)
        put(stage.mgmt, body("x", suspend=suspended))
        await asyncio.sleep(30)
        stage.mgmt.delete(KUSTOMIZATION, "x", SYSTEM)
        await asyncio.sleep(30)

        assert stage.mgmt.get(KUSTOMIZATION, "x", SYSTEM) is None
        left = stage.cluster("hv").get(("", "Namespace"), "openstack") is not None
        assert left is suspended

    run(script)


def test_a_deletion_with_a_bad_kubeconfig_hangs_with_ready_still_true() -> None:
    """Danger 30: only the deletionTimestamp tells; a good Secret ends it."""

    async def script(stage: Stage) -> None:
        put(stage.mgmt, body("x"))
        await asyncio.sleep(60)
        good = stage.tools.clusters.kubeconfig("cluster:hv").reveal()
        replace_kubeconfig(stage, None)
        stage.mgmt.delete(KUSTOMIZATION, "x", SYSTEM)
        await asyncio.sleep(600)
        live = stage.mgmt.get(KUSTOMIZATION, "x", SYSTEM)
        assert live is not None
        assert "deletionTimestamp" in live["metadata"]
        assert condition(live, "Ready") == "True"

        replace_kubeconfig(stage, {"value": good})
        await asyncio.sleep(5)
        assert stage.mgmt.get(KUSTOMIZATION, "x", SYSTEM) is None
        assert stage.cluster("hv").get(("", "Namespace"), "openstack") is None

    run(script)


def test_a_cycle_of_dependencies_stops_new_revisions_for_everybody() -> None:
    """Danger 29: also one that is not in the cycle stays at the old revision, and Ready."""

    async def script(stage: Stage) -> None:
        put(stage.mgmt, body("x", interval="12h"))
        await asyncio.sleep(60)
        before = stage.site.revision
        ring = [body("a", dependsOn=[{"name": "b"}]), body("b", dependsOn=[{"name": "a"}])]
        put(stage.mgmt, *ring)
        stage.site.commit({"clusters/other": []}, "something new")
        await asyncio.sleep(1200)

        live = stage.mgmt.get(KUSTOMIZATION, "x", SYSTEM)
        assert part(live, "status")["lastAppliedRevision"] == before != stage.site.revision
        assert condition(live, "Ready") == "True"
        assert said(stage.mgmt, KUSTOMIZATION, "a")[1] == "DependencyNotReady"
        assert any("circular" in one.detail for one in stage.world.trace)

    run(script)


def test_a_new_commit_reaches_the_cluster() -> None:
    """Within the source's interval, and the health of what it brings is waited for."""

    async def script(stage: Stage) -> None:
        put(stage.mgmt, body("x"))
        await asyncio.sleep(60)
        more = [git.namespace("openstack"), git.deployment("extra", "openstack")]
        stage.site.commit({FOLDER: more}, "one more")
        await asyncio.sleep(400)

        live = stage.mgmt.get(KUSTOMIZATION, "x", SYSTEM)
        assert part(live, "status")["lastAppliedRevision"] == stage.site.revision
        there = stage.cluster("hv").get(("apps", "Deployment"), "extra", "openstack")
        assert condition(there, "Available") == "True"

    run(script)


def test_a_bad_image_is_never_healthy() -> None:
    """The revision is attempted, not applied; observedGeneration and the old revision stay."""

    async def script(stage: Stage) -> None:
        put(stage.mgmt, body("x", timeout="2m"))
        await asyncio.sleep(60)
        before = stage.site.revision
        image = "registry.example/extra:missing"
        bad = [git.namespace("openstack"), git.deployment("extra", "openstack", image)]
        stage.site.commit({FOLDER: bad}, "a bad image")
        await asyncio.sleep(900)

        status = part(stage.mgmt.get(KUSTOMIZATION, "x", SYSTEM), "status")
        assert status["lastAppliedRevision"] == before
        assert status["lastAttemptedRevision"] == stage.site.revision
        assert status["history"][0]["lastReconciledStatus"] == "HealthCheckFailed"
        pods = stage.cluster("hv").list(("", "Pod"), "openstack")
        waits = [p["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] for p in pods]
        assert waits == ["ImagePullBackOff"]

    run(script)


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        ({"ref": {"branch": "nope"}}, "GitOperationFailed", 'remote ref "refs/heads/nope"'),
        ({"url": "https://git.example/none"}, "GitOperationFailed", "repository not found"),
        ({"secretRef": {"name": "gone"}}, "AuthenticationFailed", 'secrets "gone" not found'),
        ({"secretRef": {"name": "other"}}, "GitOperationFailed", "authentication required: denied"),
    ],
    ids=["branch", "repository", "no secret", "bad password"],
)
def test_a_source_fails_in_the_words_of_flux_and_keeps_its_artifact(
    change: dict[str, Any], reason: str, words: str
) -> None:
    """Danger 31: what hangs on it stays Ready at the old revision."""

    async def script(stage: Stage) -> None:
        put(stage.mgmt, body("x"))
        await asyncio.sleep(60)
        metadata = {"name": "other", "namespace": SYSTEM}
        put(stage.mgmt, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata})

        def spoil(new: dict[str, Any]) -> None:
            new["spec"].update(change)

        stage.mgmt.edit(SOURCE, "eu-1", SYSTEM, spoil, manager="t")
        await asyncio.sleep(60)

        live = stage.mgmt.get(SOURCE, "eu-1", SYSTEM)
        assert said(stage.mgmt, SOURCE, "eu-1")[:2] == ("False", reason)
        assert words in said(stage.mgmt, SOURCE, "eu-1")[2]
        assert condition(live, "FetchFailed") == "True"
        assert part(part(live, "status"), "artifact")["revision"] == stage.site.revision
        assert condition(stage.mgmt.get(KUSTOMIZATION, "x", SYSTEM), "Ready") == "True"

    run(script)


def test_a_chart_brings_its_kinds_and_controllers_while_it_is_installed() -> None:
    """Nothing before its pods are ready, and nothing after it was uninstalled."""

    async def script(stage: Stage) -> None:
        put(stage.mgmt, release("r", "cert-manager"))
        await asyncio.sleep(5)
        assert ("hv", "cert-manager") not in stage.world.controllers
        await asyncio.sleep(120)
        assert said(stage.mgmt, RELEASE, "r")[:2] == ("True", "InstallSucceeded")
        assert ("hv", "cert-manager") in stage.world.controllers
        assert ("cert-manager.io", "Certificate") in stage.cluster("hv").store.tables

        stage.mgmt.delete(RELEASE, "r", SYSTEM)
        await asyncio.sleep(30)
        assert stage.mgmt.get(RELEASE, "r", SYSTEM) is None
        assert ("hv", "cert-manager") not in stage.world.controllers

    run(script)


def test_a_release_that_never_comes_up_is_retried_and_then_stalls() -> None:
    """Afterwards any look leaves Ready Unknown beside Stalled, so Stalled must be read first."""

    async def script(stage: Stage) -> None:
        stage.world.mishaps.add(("image", "hv/thing", "bad"))
        put(stage.mgmt, release("r", "thing"))
        await asyncio.sleep(1200)
        assert said(stage.mgmt, RELEASE, "r", "Stalled")[:2] == ("True", "RetriesExceeded")
        assert "after 2 attempt(s)" in said(stage.mgmt, RELEASE, "r", "Stalled")[2]

        def poke(new: dict[str, Any]) -> None:
            new["metadata"]["annotations"] = {"reconcile.fluxcd.io/requestedAt": "1"}

        stage.mgmt.edit(RELEASE, "r", SYSTEM, poke, manager="t")
        await asyncio.sleep(60)
        assert said(stage.mgmt, RELEASE, "r")[0] == "Unknown"
        assert said(stage.mgmt, RELEASE, "r", "Stalled")[0] == "True"

    run(script)


@pytest.mark.parametrize(("how", "attempts"), [("forceAt", 3), ("resetAt", 2)])
def test_a_stalled_release_tries_again_when_asked(how: str, attempts: int) -> None:
    """Forced: once more. Reset: as often as at first. With a token that it has met: not at all."""

    async def script(stage: Stage) -> None:
        stage.world.mishaps.add(("image", "hv/thing", "bad"))
        put(stage.mgmt, release("r", "thing"))
        await asyncio.sleep(1200)

        def ask(new: dict[str, Any]) -> None:
            names = ("requestedAt", how)
            new["metadata"]["annotations"] = {f"reconcile.fluxcd.io/{one}": "1" for one in names}
            new["metadata"]["labels"] = {"asked": str(stage.world.elapsed())}

        stage.mgmt.edit(RELEASE, "r", SYSTEM, ask, manager="t")
        await asyncio.sleep(60)
        assert said(stage.mgmt, RELEASE, "r", "Stalled") == ()
        await asyncio.sleep(1200)
        assert f"after {attempts} attempt(s)" in said(stage.mgmt, RELEASE, "r", "Stalled")[2]
        stage.mgmt.edit(RELEASE, "r", SYSTEM, ask, manager="t")
        await asyncio.sleep(60)
        assert said(stage.mgmt, RELEASE, "r", "Stalled")[0] == "True"

    run(script)


def test_a_release_waits_for_what_it_depends_on_and_for_its_chart() -> None:
    """DependencyNotReady and SourceNotReady are waiting, not failing."""

    async def script(stage: Stage) -> None:
        put(
            stage.mgmt,
            release("second", "thing", dependsOn=[{"name": "first"}]),
            release("lost", "missing"),
        )
        await asyncio.sleep(60)
        assert said(stage.mgmt, RELEASE, "second")[1] == "DependencyNotReady"
        assert said(stage.mgmt, RELEASE, "lost")[1] == "SourceNotReady"
        assert "no chart name found" in said(stage.mgmt, RELEASE, "lost")[2]

        put(stage.mgmt, release("first", "other"))
        await asyncio.sleep(180)
        assert said(stage.mgmt, RELEASE, "second")[0] == "True"

    run(script)


def test_a_hanging_cluster_holds_a_worker_for_twenty_seconds() -> None:
    """Danger 32: with few workers the others wait."""

    async def script(stage: Stage) -> None:
        stage.world.mishaps.add(("cluster", "hv", "frozen"))
        put(stage.mgmt, body("far"))
        await asyncio.sleep(19)
        assert said(stage.mgmt, KUSTOMIZATION, "far")[0] == "Unknown"
        await asyncio.sleep(3)
        assert said(stage.mgmt, KUSTOMIZATION, "far")[0] == "False"
        assert "TLS handshake timeout" in said(stage.mgmt, KUSTOMIZATION, "far")[2]

    run(script)


def test_the_same_seed_gives_the_same_trace() -> None:
    """And another seed another one."""

    def trace(seed: int) -> list[str]:
        found: list[str] = []

        async def script(stage: Stage) -> None:
            await stage.follow(want("flux-sync"), want("cert-manager"))
            found.extend(str(one) for one in stage.world.trace)

        run(script, seed=seed)
        return found

    assert trace(3) == trace(3)
    assert trace(3) != trace(4)
