"""Every object that the eso driver writes is one that External Secrets knows, and so are those
that the simulated operator serves."""

import base64
from typing import Any

import pytest

from drivers.eso import manifests
from fleetd import objects
from fleetd.sim.controllers import eso
from tests.contract import crds
from tests.drivers.openbao import stage
from topology.resource import Ref, Resource

GROUP = "external-secrets.io"


def _written(body: dict[str, Any], one: Resource, version: str = "v1") -> dict[str, Any]:
    return {**objects.marked(body, one), "apiVersion": f"{GROUP}/{version}"}


def test_the_store_fits_its_schema() -> None:
    """As it is sent: with the server, and the authority in base64."""
    one = stage.MINIMAL.resources[Ref("secret-store", "hv")]
    authority = base64.b64encode(b"authority").decode()
    body = manifests.reached(manifests.store(one, "kv-v2"), "https://x:8200", authority)

    assert crds.problems(_written(body, one), GROUP, "ClusterSecretStore") == []


def test_a_store_without_a_server_would_be_refused() -> None:
    """So it must be filled in before it is sent; and the check can fail."""
    one = stage.MINIMAL.resources[Ref("secret-store", "hv")]
    body = manifests.store(one, "kv-v2")

    assert crds.problems(_written(body, one), GROUP, "ClusterSecretStore") != []


@pytest.mark.parametrize("client", manifests.CLIENTS)
def test_a_push_fits_its_schema(client: str) -> None:
    """For each Ceph client."""
    one = stage.MINIMAL.resources[Ref("ceph-push", "st.prod")]
    body = _written(manifests.push(one, client), one, "v1alpha1")

    assert crds.problems(body, GROUP, "PushSecret") == []


@pytest.mark.parametrize(("kind", "name"), [("ceph-pull", "hv"), ("ceph-pull-services", "prod")])
def test_a_pull_fits_its_schema(kind: str, name: str) -> None:
    """For hypervisors and for services."""
    one = stage.MINIMAL.resources[Ref(kind, name)]
    body = _written(manifests.pull(one, "ceph-client-nova", "nova"), one)

    assert crds.problems(body, GROUP, "ExternalSecret") == []


@pytest.mark.parametrize("definition", eso.DEFINITIONS, ids=lambda one: one.kind)
def test_the_simulated_kinds_are_the_real_ones(definition: Any) -> None:
    """Group and kind are in the real set."""
    crds.problems({}, definition.group, definition.kind)

    assert definition.group.endswith(GROUP)
