"""Every object that the generic driver writes for a backing service is one its operator knows."""

from dataclasses import replace

import pytest

from drivers.kubernetes import manifests
from fleetd import objects
from tests.contract import crds
from tests.drivers.flux.stage import want

VERSIONS = {
    "k8s.mariadb.com": "v1alpha1",
    "rabbitmq.com": "v1beta1",
    "memcached.c5c3.io": "v1beta1",
    "cache.cs.sap.com": "v1alpha1",
    "ovn.openstack.org": "v1beta1",
    "external-secrets.io": "v1",
}
UNKNOWN = "garage.rajsingh.info"
"""There is no CRD of Garage to hold it against."""


@pytest.mark.parametrize("size", manifests.SIZES)
@pytest.mark.parametrize("kind", sorted(manifests.KINDS))
def test_backing_services_fit_their_schemas(kind: str, size: str) -> None:
    """In every size."""
    one = want(kind, "cp")
    one = replace(one, spec={**one.spec, "size": size})
    bodies = [body for body in manifests.KINDS[kind](one) if body["apiVersion"] != UNKNOWN]
    assert bodies
    for body in bodies:
        group = str(body["apiVersion"])
        made = objects.marked({**body, "apiVersion": f"{group}/{VERSIONS[group]}"}, one)
        assert crds.problems(made, group, body["kind"]) == []
