"""The simulated operators of backing services take their time, lack things and lose nodes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fleetd.sim import charts, loop
from fleetd.sim.controllers.workloads_look import condition, part
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.values import at
from fleetd.sim.sites import git
from tests.drivers.flux import stage as stages
from tests.drivers.flux.stage import COMPONENTS, Stage

APPS = "apps"
OBJECTS: dict[str, tuple[str, str, dict[str, Any], str, Any]] = {
    "mariadb-operator": (
        "k8s.mariadb.com/v1alpha1",
        "MariaDB",
        {"replicas": 3, "galera": {"enabled": True}},
        "currentPrimary",
        "x-0",
    ),
    "rabbitmq-cluster-operator": (
        "rabbitmq.com/v1beta1",
        "RabbitmqCluster",
        {"replicas": 3},
        "binding.name",
        "x-default-user",
    ),
    "memcached-operator": (
        "memcached.c5c3.io/v1beta1",
        "Memcached",
        {"replicas": 2},
        "readyReplicas",
        2,
    ),
    "valkey-operator": ("cache.cs.sap.com/v1alpha1", "Valkey", {"replicas": 3}, "state", "Ready"),
    "ovn-operator": (
        "ovn.openstack.org/v1beta1",
        "OVNDBCluster",
        {"dbType": "SB", "replicas": 3},
        "readyCount",
        3,
    ),
    "garage-operator": (
        "garage.rajsingh.info/v1beta2",
        "GarageCluster",
        {"storage": {"replicas": 3}},
        "phase",
        "Running",
    ),
}


def run(script: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        async with stages.opened("cp") as stage:
            stage.cluster("cp").create(git.namespace(APPS), manager="t")
            await script(stage)

    loop.run(main())


def install(stage: Stage, *names: str) -> None:
    """As if the charts were there and their pods ready."""
    cp = stage.cluster("cp")
    for name in names:
        chart = charts.find(name)
        assert chart is not None
        for definition in chart.definitions:
            cp.serve(definition)
        for make in chart.controllers:
            make(stage.world, cp).start()


def put(cluster: Cluster, version: str, kind: str, name: str, spec: dict[str, Any]) -> None:
    metadata = {"name": name, "namespace": APPS}
    body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    cluster.apply(body, manager="t")


@pytest.mark.parametrize("operator", OBJECTS)
def test_a_backing_service_comes_up_after_a_while_and_goes_down_with_its_nodes(
    operator: str,
) -> None:
    """Never at once, and again when the nodes are back."""
    version, kind, spec, path, good = OBJECTS[operator]
    gk = (version.partition("/")[0], kind)

    async def script(stage: Stage) -> None:
        cp = stage.cluster("cp")
        install(stage, "mariadb-operator-crds", operator)
        put(cp, version, kind, "x", spec)
        await asyncio.sleep(5)
        assert at(cp.get(gk, "x", APPS) or {}, f"status.{path}") != good
        await asyncio.sleep(400)
        assert at(cp.get(gk, "x", APPS) or {}, f"status.{path}") == good

        for number in range(3):
            stages.node(cp, f"cp-{number}", ready=False)
        await asyncio.sleep(10)
        lost = cp.get(gk, "x", APPS)
        assert at(lost or {}, f"status.{path}") != good or _unready(lost)
        for number in range(3):
            stages.node(cp, f"cp-{number}")
        await asyncio.sleep(400)
        assert at(cp.get(gk, "x", APPS) or {}, f"status.{path}") == good

    run(script)


def _unready(obj: Any) -> bool:
    """RabbitMQ keeps its binding; its conditions tell."""
    return "False" in (condition(obj, "Ready"), condition(obj, "ClusterAvailable"))


def test_users_of_a_database_wait_for_it() -> None:
    """A Database is Ready only after its MariaDB."""

    async def script(stage: Stage) -> None:
        cp = stage.cluster("cp")
        install(stage, "mariadb-operator-crds", "mariadb-operator")
        put(cp, "k8s.mariadb.com/v1alpha1", "Database", "nova", {"mariaDbRef": {"name": "x"}})
        await asyncio.sleep(60)
        gk = ("k8s.mariadb.com", "Database")
        assert condition(cp.get(gk, "nova", APPS), "Ready") == "False"
        put(cp, "k8s.mariadb.com/v1alpha1", "MariaDB", "x", {"replicas": 1})
        await asyncio.sleep(400)
        assert condition(cp.get(gk, "nova", APPS), "Ready") == "True"

    run(script)


def test_a_certificate_waits_for_its_issuer_and_becomes_a_secret() -> None:
    """Without an issuer it stays DoesNotExist."""

    async def script(stage: Stage) -> None:
        cp = stage.cluster("cp")
        install(stage, "cert-manager")
        spec = {"secretName": "tls", "issuerRef": {"name": "ca"}}
        put(cp, "cert-manager.io/v1", "Certificate", "c", spec)
        await asyncio.sleep(60)
        gk = ("cert-manager.io", "Certificate")
        assert condition(cp.get(gk, "c", APPS), "Ready") == "False"
        put(cp, "cert-manager.io/v1", "Issuer", "ca", {"selfSigned": {}})
        await asyncio.sleep(60)
        assert condition(cp.get(gk, "c", APPS), "Ready") == "True"
        assert "tls.key" in part(cp.get(("", "Secret"), "tls", APPS), "data")

    run(script)


def test_a_rollout_with_a_bad_image_keeps_the_old_pods_and_misses_its_deadline() -> None:
    """Available stays, Progressing ends in ProgressDeadlineExceeded, and one pod shows why."""

    async def script(stage: Stage) -> None:
        cp = stage.cluster("cp")
        gk = ("apps", "Deployment")
        cp.apply(git.deployment("web", APPS), manager="t")
        await asyncio.sleep(60)
        assert condition(cp.get(gk, "web", APPS), "Available") == "True"
        cp.apply(git.deployment("web", APPS, "registry.example/web:missing"), manager="t")
        await asyncio.sleep(300)
        assert condition(cp.get(gk, "web", APPS), "Progressing") == "True"
        await asyncio.sleep(600)
        live = cp.get(gk, "web", APPS)
        assert (condition(live, "Available"), condition(live, "Progressing")) == ("True", "False")
        assert len(cp.list(("", "Pod"), APPS)) == 1

        cp.apply(git.deployment("web", APPS), manager="t")
        await asyncio.sleep(60)
        assert part(cp.get(gk, "web", APPS), "status")["updatedReplicas"] == 2
        assert cp.list(("", "Pod"), APPS) == []

    run(script)


def test_an_image_that_goes_bad_by_script_stops_its_pods_until_it_is_mended() -> None:
    """The fault `image cp/agent bad` reaches a DaemonSet, and its pods say why."""

    async def script(stage: Stage) -> None:
        cp, gk = stage.cluster("cp"), ("apps", "DaemonSet")
        body = git.deployment("agent", APPS)
        del body["spec"]["replicas"]
        cp.apply({**body, "kind": "DaemonSet"}, manager="t")
        await asyncio.sleep(60)
        assert part(cp.get(gk, "agent", APPS), "status")["numberReady"] == 3
        mishap = ("image", "cp/agent", "bad")
        stage.world.mishaps.add(mishap)
        for listener in stage.world.listeners:
            listener(mishap)
        await asyncio.sleep(60)
        assert len(cp.list(("", "Pod"), APPS)) == 1
        stage.world.mishaps.clear()
        for listener in stage.world.listeners:
            listener(mishap)
        await asyncio.sleep(60)
        assert cp.list(("", "Pod"), APPS) == []
        assert part(cp.get(gk, "agent", APPS), "status")["updatedNumberScheduled"] == 3

    run(script)


def test_a_daemonset_follows_the_nodes() -> None:
    """One pod for each node that is Ready."""

    async def script(stage: Stage) -> None:
        cp, gk = stage.cluster("cp"), ("apps", "DaemonSet")
        body = git.deployment("agent", APPS)
        del body["spec"]["replicas"]
        cp.apply({**body, "kind": "DaemonSet"}, manager="t")
        await asyncio.sleep(60)
        stages.node(cp, "cp-3")
        await asyncio.sleep(60)
        assert part(cp.get(gk, "agent", APPS), "status")["numberReady"] == 4
        stages.node(cp, "cp-0", ready=False)
        await asyncio.sleep(60)
        assert part(cp.get(gk, "agent", APPS), "status")["desiredNumberScheduled"] == 3

    run(script)


def test_every_chart_of_the_catalogue_that_brings_a_kind_is_known() -> None:
    """A chart that nobody knows is a plain Deployment; these must be more."""
    installed = {
        spec.install.chart or spec.install.name
        for spec in (component.spec for component in COMPONENTS.values())
        if spec.install.by == "flux-helm" and spec.driver == "flux"
    }

    assert {name for name in installed if charts.find(str(name)) is None} == {
        "labels-injector",
        "openbao-operator",
    }
