"""Every object that the garden's driver writes is one that Gardener knows."""

import pytest

from drivers.gardener import manifests
from fleetd import objects
from tests.contract import crds
from tests.drivers.gardener import region
from topology.resource import Facts, Resource

TWO_ZONES = region.topology("two-zones")
CLUSTERS = [
    resource
    for known in (region.MINIMAL, TWO_ZONES)
    for ref, resource in known.resources.items()
    if ref.kind == "cluster"
]


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda one: f"{one.region}-{one.ref.name}")
def test_shoots_fit_the_schema(cluster: Resource) -> None:
    """For every role and update strategy of the examples."""
    body = objects.marked(manifests.shoot(cluster).body, cluster)
    body["apiVersion"] = "core.gardener.cloud/v1beta1"

    assert crds.openapi_problems(body, "core.v1beta1.Shoot") == []


def test_a_shoot_with_everything_fits_the_schema() -> None:
    """All that a document may say is said in fields that Gardener has."""
    made = manifests.shoot(region.everything()).body
    body = {**made, "apiVersion": "core.gardener.cloud/v1beta1"}

    assert crds.openapi_problems(body, "core.v1beta1.Shoot") == []
    spec: Facts = made["spec"]
    assert spec["cloudProfile"] == {"kind": "NamespacedCloudProfile", "name": "metal"}
    assert spec["maintenance"]["timeWindow"] == {"begin": "220000+0000", "end": "230000+0000"}
    named = spec["kubernetes"]["kubeAPIServer"]["structuredAuthentication"]["configMapName"]
    assert named == manifests.authentication(region.everything())[0].name


def test_a_project_fits_the_schema() -> None:
    """With the namespace that fleetd made for it."""
    want = region.want("garden-project")
    body = {**manifests.project(want)[1].body, "apiVersion": "core.gardener.cloud/v1beta1"}

    assert crds.openapi_problems(body, "core.v1beta1.Project") == []


def test_a_binding_fits_the_schema() -> None:
    """It names a Secret and the provider."""
    want = region.want("credentials-binding")
    body = {**manifests.binding(want).body, "apiVersion": "security.gardener.cloud/v1alpha1"}

    assert crds.openapi_problems(body, "security.v1alpha1.CredentialsBinding") == []


def test_an_unknown_field_is_noticed() -> None:
    """The check can fail: a misspelt field of a Shoot is a problem."""
    body = {**manifests.shoot(CLUSTERS[0]).body}
    body["spec"] = {**body["spec"], "kuberntes": {}}

    assert len(crds.openapi_problems(body, "core.v1beta1.Shoot")) == 1
