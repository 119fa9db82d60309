"""Every object the openstack drivers write is one that the real CRDs take."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from drivers.openstack import manifests
from fleetd import objects
from fleetd.objects import Manifest
from tests.contract import crds
from tests.drivers.openstack import stage
from topology.resource import Resource


def _planes() -> Iterator[tuple[str, Resource, Manifest]]:
    want = stage.want("controlplane")
    services = [*want.spec["services"], "barbican"]
    for size in manifests.REPLICAS:
        made = replace(want, spec={**want.spec, "size": size, "services": services})
        yield f"ControlPlane {size}", made, manifests.control_plane(made)


def _everything() -> Iterator[tuple[str, Resource, Manifest]]:
    yield from _planes()
    for kind in manifests.REGISTERED:
        want = stage.want(kind)
        yield f"KeystoneService {kind}", want, manifests.registration(want, "https://x.example")
    want = stage.want("smoke-test")
    for manifest in manifests.smoke_test(want):
        yield manifest.key, want, manifest


CASES = list(_everything())


@pytest.mark.parametrize(
    ("want", "manifest"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_manifest_is_valid_by_the_real_crd(want: Resource, manifest: Manifest) -> None:
    """No field is unknown, none that is required is missing."""
    body = objects.marked(manifest.body, want)

    assert crds.problems(body, manifest.group, manifest.kind) == []


def test_a_wrong_field_is_found() -> None:
    """Otherwise the tests above would prove nothing."""
    want = stage.want("controlplane")
    body = objects.marked(manifests.control_plane(want).body, want)
    body["spec"]["openStackRelaese"] = body["spec"].pop("openStackRelease")

    found = crds.problems(body, "c5c3.io", "ControlPlane")

    assert len(found) == 2, found
