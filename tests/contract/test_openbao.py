"""Every custom object that the openbao driver writes is one that Flux and External Secrets know."""

from dataclasses import replace
from typing import Any

from drivers.openbao import flows, manifests
from fleetd import objects
from tests.contract import crds
from tests.drivers.openbao import stage
from topology.resource import Ref, Resource

ESO = "external-secrets.io"
FLOW = stage.TWO_ZONES.resources[Ref("credentialflow", "billing-exporter")]


def _written(body: dict[str, Any], one: Resource, version: str) -> dict[str, Any]:
    made = objects.marked(body, one)
    return {**made, "apiVersion": f"{made['apiVersion']}/{version}"}


def test_the_release_fits_its_schema() -> None:
    """Of both examples."""
    for topology in (stage.MINIMAL, stage.TWO_ZONES):
        one = topology.resources[Ref("openbao", "mgmt")]
        body = _written(manifests.release(one), one, "v2")

        assert crds.problems(body, "helm.toolkit.fluxcd.io", "HelmRelease") == []


def test_what_a_flow_writes_fits_its_schemas() -> None:
    """An ExternalSecret per target, and a PushSecret where the source is a Secret."""
    named = {"cluster": "mgmt", "namespace": "x", "name": "y", "key": "k"}
    pushed = replace(FLOW, spec={**FLOW.spec, "source": {"secret": named}})
    part = flows.Flows.__new__(flows.Flows)
    bodies = [dict(one.body) for one in part.manifests(pushed) if not one.shared]

    kinds = [body["kind"] for body in bodies]

    assert kinds == ["PushSecret", "ExternalSecret", "ExternalSecret"]
    for body in bodies:
        version = "v1alpha1" if body["kind"] == "PushSecret" else "v1"
        assert crds.problems(_written(body, FLOW, version), ESO, body["kind"]) == []


def test_a_field_that_nobody_knows_is_noticed() -> None:
    """The check can fail."""
    body = manifests.pulled("x", FLOW.spec["targets"][0], "a/b")
    body["spec"]["refreshIntervall"] = "1h"

    assert len(crds.problems(_written(body, FLOW, "v1"), ESO, "ExternalSecret")) == 1
