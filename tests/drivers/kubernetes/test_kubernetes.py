"""The generic driver: backing services from nothing to Ready, and components without Python."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from drivers.kubernetes import manifests
from drivers.kubernetes.driver import KubernetesDriver
from fleetd.sim import charts, loop
from fleetd.sim.controllers import eso
from fleetd.sim.controllers.workloads_look import part
from fleetd.sim.sites import git
from fleetd.vocabulary import Truth
from tests.conformance.driver import suite
from tests.drivers.flux import stage as stages
from tests.drivers.flux.stage import SECRET, Stage, retired, want

OPERATORS = (
    "mariadb-operator-crds",
    "mariadb-operator",
    "rabbitmq-cluster-operator",
    "memcached-operator",
    "valkey-operator",
    "ovn-operator",
    "garage-operator",
)
SPACE = "openstack-cp"
KINDS = tuple(manifests.KINDS)


def prepare(stage: Stage) -> None:
    """The operators run, the namespace is there, and the secrets from OpenBao."""
    cp = stage.cluster("cp")
    cp.create(git.namespace(SPACE), manager="t")
    for name in OPERATORS:
        chart = charts.find(name)
        assert chart is not None
        for definition in chart.definitions:
            cp.serve(definition)
        for make in chart.controllers:
            make(stage.world, cp).start()
    for definition in eso.DEFINITIONS:
        cp.serve(definition)
    for name, key in (("mariadb-root-password", "password"), ("garage-admin-token", "token")):
        metadata = {"name": name, "namespace": SPACE}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {key: "eA=="}}
        cp.create(body, manager="t")


def run(script: Callable[[Stage], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with stages.opened("cp") as stage:
            prepare(stage)
            return await script(stage)

    return loop.run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_the_generic_driver_keeps_the_contract(kind: str) -> None:
    """For every backing service."""
    one = want(kind, "cp")
    bad = replace(one, spec={**one.spec, "size": "gigantic"})

    async def script(stage: Stage) -> list[str]:
        return await suite.check(stages.bench(stage, one, bad, cut="cp"))

    assert run(script) == []


def test_a_database_without_its_password_is_not_ready() -> None:
    """It waits for the Secret, and comes up once that is there."""
    one = want("mariadb", "cp")

    async def script(stage: Stage) -> None:
        cp = stage.cluster("cp")
        cp.delete(SECRET, "mariadb-root-password", SPACE)
        await stage.do(one)
        await asyncio.sleep(900)
        judged = await stage.ready(one)
        assert judged is not None
        assert judged.truth is Truth.FALSE
        assert "mariadb-root-password" in judged.message

        metadata = {"name": "mariadb-root-password", "namespace": SPACE}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        cp.create({**body, "data": {"password": "eA=="}}, manager="t")
        await stage.follow(one, minutes=10)

    run(script)


def test_both_ovn_databases_must_be_there() -> None:
    """One of two is not a healthy pair."""
    one = want("ovn", "cp")

    async def script(stage: Stage) -> None:
        await stage.follow(one)
        cp = stage.cluster("cp")
        cp.delete(("ovn.openstack.org", "OVNDBCluster"), "ovn-sb", SPACE)
        await asyncio.sleep(5)
        judged = await stage.ready(one)
        assert judged is not None
        assert (judged.truth, judged.reason) == (Truth.FALSE, "Incomplete")
        await stage.follow(one)

    run(script)


def test_what_somebody_changed_is_put_right_and_what_others_own_stays() -> None:
    """Only the fields that fleetd asked for are compared."""
    one = want("memcached", "cp")
    gk = ("memcached.c5c3.io", "Memcached")

    async def script(stage: Stage) -> None:
        await stage.follow(one)
        cp = stage.cluster("cp")

        def change(new: dict[str, Any]) -> None:
            new["spec"]["replicas"] = 1
            new["spec"]["image"] = "memcached:1.6.38"

        cp.edit(gk, "openstack-memcached", SPACE, change, manager="somebody")
        await asyncio.sleep(1)
        (step,) = await stage.proposed(one)
        assert "spec.replicas" in step.why
        applied = replace(step, args={**step.args, "force": True})
        await stage.driver(one).apply(applied)
        spec = part(cp.get(gk, "openstack-memcached", SPACE), "spec")
        assert (spec["replicas"], spec["image"]) == (3, "memcached:1.6.38")

    run(script)


def test_what_is_retired_goes_and_what_fleetd_did_not_make_stays() -> None:
    """Backwards, each with what it destroys."""
    one = want("garage", "cp")
    bucket = ("garage.rajsingh.info", "GarageBucket")

    async def script(stage: Stage) -> None:
        await stage.follow(one)
        foreign = {
            "apiVersion": "garage.rajsingh.info/v1beta1",
            "kind": "GarageBucket",
            "metadata": {"name": "other", "namespace": SPACE},
            "spec": {"clusterRef": {"name": "garage"}},
        }
        stage.cluster("cp").create(foreign, manager="somebody")
        steps = await stage.do(retired(one))
        assert [step.args["kind"] for step in steps] == [
            "GarageKey",
            "GarageBucket",
            "GarageCluster",
            "ExternalSecret",
            "ExternalSecret",
        ]
        assert [obj["metadata"]["name"] for obj in stage.cluster("cp").list(bucket)] == ["other"]

    run(script)


def test_a_component_of_the_operator_needs_no_python() -> None:
    """`install: {by: apply}` and `parameters.manifest`: applied, compared and judged."""
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "exporter", "namespace": SPACE},
        "spec": git.deployment("exporter", SPACE)["spec"],
    }
    like = want("memcached", "cp")
    one = replace(
        like,
        ref=like.ref._replace(kind="cert-manager"),
        spec={
            "cluster": "cp",
            "install": {"by": "apply"},
            "parameters": {"manifest": [git.namespace("more"), manifest]},
            "object": {
                "group": "apps",
                "kind": "Deployment",
                "namespace": SPACE,
                "name": "exporter",
            },
        },
    )

    async def script(stage: Stage) -> None:
        assert stage.driver(one).check(one) == []
        assert len(await stage.do(one)) == 2
        await asyncio.sleep(60)
        seen = await stage.look(one)
        assert seen.facts is not None
        assert seen.facts["status"]["availableReplicas"] == 2
        assert await stage.proposed(one) == ()

    run(script)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (None, "brings no objects"),
        ({"kind": "ConfigMap", "metadata": {"name": "x"}}, "no apiVersion"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {}}}, "no metadata.name"),
        ({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}, "brings a Secret"),
    ],
    ids=["nothing", "no version", "no name", "secret"],
)
def test_a_bad_manifest_is_refused_in_words(manifest: Any, words: str) -> None:
    """Before anything is written."""
    like = want("memcached", "cp")
    one = replace(
        like,
        ref=like.ref._replace(kind="exporter"),
        spec={**like.spec, "parameters": {"manifest": manifest}},
    )

    async def script(stage: Stage) -> None:
        driver = stage.driver(one)
        assert isinstance(driver, KubernetesDriver)
        assert any(words in complaint for complaint in driver.check(one))

    run(script)
