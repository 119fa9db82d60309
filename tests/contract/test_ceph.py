"""What the ceph driver writes, held against the real schemas of Rook and the arbiter operator."""

import pytest

from drivers.ceph.driver import CephDriver
from fleetd import objects
from fleetd.objects import Manifest
from tests.contract import crds
from tests.drivers.ceph.stage import ONE_ZONE, TWO_ZONES
from topology.resource import Resource

KINDS = ("cephcluster", "cephpool", "cephclient", "remote-cluster", "remote-arbiter")
WANTED = [
    resource
    for topology in (ONE_ZONE, TWO_ZONES)
    for resource in topology.resources.values()
    if resource.ref.kind in KINDS
]


def written(want: Resource) -> list[Manifest]:
    # Manifests are pure; no tools are used.
    driver = CephDriver.__new__(CephDriver)
    return list(driver.manifests(want))


@pytest.mark.parametrize("want", WANTED, ids=lambda want: f"{want.region}-{want.ref}")
def test_every_object_fits_its_schema(want: Resource) -> None:
    """No unknown field, no wrong type, with the marks that fleetd leaves."""
    found = {
        manifest.key: crds.problems(
            objects.marked(manifest.body, want), manifest.group, manifest.kind
        )
        for manifest in written(want)
    }

    assert found
    assert {key: problems for key, problems in found.items() if problems} == {}


def test_a_wrong_field_would_be_found() -> None:
    """The schemas are closed: a slip of the pen is a problem."""
    want = next(one for one in WANTED if one.ref.kind == "cephcluster")
    body = objects.marked(written(want)[0].body, want)
    body["spec"]["mon"]["counts"] = 3

    assert crds.problems(body, "ceph.rook.io", "CephCluster")
