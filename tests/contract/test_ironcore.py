"""Every object that the metal driver writes is one that metal-operator knows."""

import pytest

from drivers.ironcore import manifests
from fleetd import objects
from tests.contract import crds
from tests.drivers.gardener import region
from topology.resource import Ref, Resource

SERVERS = [
    region.MINIMAL.resources[Ref("server", "metal-01")],
    region.topology("two-zones").resources[Ref("server", "a3-h01")],
]


@pytest.mark.parametrize("server", SERVERS, ids=lambda one: one.ref.name)
def test_bmcs_fit_the_schema(server: Resource) -> None:
    """With access, secret and protocol."""
    body = objects.marked(manifests.bmc(server).body, server)
    body["apiVersion"] = "metal.ironcore.dev/v1alpha1"

    assert crds.problems(body, "metal.ironcore.dev", "BMC") == []


def test_a_secret_fits_the_schema() -> None:
    """User name and password, encoded."""
    body = {
        "apiVersion": "metal.ironcore.dev/v1alpha1",
        "kind": "BMCSecret",
        "metadata": {"name": "metal-01"},
        "data": {"username": "dQ==", "password": "cA=="},
    }

    assert crds.problems(body, "metal.ironcore.dev", "BMCSecret") == []


def test_a_missing_field_is_noticed() -> None:
    """The check can fail: a BMC without its secret is a problem."""
    want = region.MINIMAL.resources[Ref("server", "metal-01")]
    body = {**manifests.bmc(want).body}
    body["spec"] = {key: value for key, value in body["spec"].items() if key != "bmcSecretRef"}

    assert len(crds.problems(body, "metal.ironcore.dev", "BMC")) == 1
