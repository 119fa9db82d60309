"""Every object that the Flux driver writes is one that Flux and Kubernetes know."""

import asyncio
from typing import Any

import pytest

from drivers.flux import installation, manifests
from fleetd import objects
from fleetd.sim import loop
from tests.contract import crds
from tests.drivers.flux import stage as stages
from tests.drivers.flux.stage import TOPOLOGY, want
from topology.resource import Resource

GROUPS = (manifests.HELM, manifests.KUSTOMIZE, manifests.SOURCE, "fluxcd.controlplane.io")
WRITTEN = [
    one for one in TOPOLOGY.resources.values() if one.driver == "flux" and one.ref.kind != "flux"
]


async def _bodies(one: Resource) -> list[dict[str, Any]]:
    async with stages.opened("mgmt") as stage:
        await asyncio.sleep(0)
        driver: Any = stage.driver(one)
        return [objects.marked(manifest.body, one) for manifest in driver.manifests(one)]


def _versioned(body: dict[str, Any]) -> dict[str, Any]:
    group = str(body["apiVersion"]).partition("/")[0]
    return {**body, "apiVersion": f"{group}/v1"}


@pytest.mark.parametrize("one", WRITTEN, ids=lambda one: str(one.ref))
def test_what_is_written_for_flux_fits_its_schemas(one: Resource) -> None:
    """Releases, folders and sources of every component of the example."""
    for body in loop.run(_bodies(one)):
        group = str(body["apiVersion"]).partition("/")[0]
        assert crds.problems(_versioned(body), group, body["kind"]) == []


@pytest.mark.parametrize("kind", ["flux-sync", "cert-manager"])
def test_ways_without_a_secret_fit_the_schemas(kind: str) -> None:
    """A folder and a release that reach their cluster with tokens."""
    one = want(kind)
    made = (
        manifests.kustomization(one, "mgmt", "eu-1", trusts=True)
        if kind == "flux-sync"
        else manifests.helm_release(one, "mgmt", (), "charts", trusts=True)
    )
    body = objects.marked(made.body, one)

    assert body["spec"]["kubeConfig"] == {"configMapRef": {"name": "hv-kubeconfig"}}
    assert crds.problems(_versioned(body), made.group, made.kind) == []


def test_an_instance_that_makes_tokens_fits_its_schema() -> None:
    """The switch is where the operator looks for it."""
    body = installation.instance(want("flux", "mgmt"), trusts=True)

    assert body["spec"]["cluster"]["objectLevelWorkloadIdentity"] is True
    assert crds.problems(body, "fluxcd.controlplane.io", "FluxInstance") == []


def test_the_installation_fits_its_schemas() -> None:
    """The instance and the repositories; the rest is built into Kubernetes."""
    found = loop.run(_bodies(want("flux", "mgmt")))
    known = [body for body in found if str(body["apiVersion"]).partition("/")[0] in GROUPS]

    assert {body["kind"] for body in known} == {"FluxInstance", "HelmRepository"}
    for body in known:
        group = str(body["apiVersion"]).partition("/")[0]
        assert crds.problems(_versioned(body), group, body["kind"]) == []


def test_the_kinds_that_are_installed_are_those_of_the_operator() -> None:
    """Names, group and version of the definitions that fleetd writes itself."""
    made = [
        body
        for body in installation.operator(want("flux", "mgmt"))
        if body["kind"] == "CustomResourceDefinition"
    ]

    assert len(made) == 4
    for body in made:
        crds.problems({}, body["spec"]["group"], body["spec"]["names"]["kind"])


def test_a_field_that_flux_does_not_know_is_noticed() -> None:
    """The check can fail."""
    (body,) = loop.run(_bodies(want("flux-sync")))
    body["spec"]["prunes"] = True

    assert len(crds.problems(_versioned(body), manifests.KUSTOMIZE, "Kustomization")) == 1
