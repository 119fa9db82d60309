"""Policies are generated from the flows, grant no more than that, and the lint catches bad ones."""

from dataclasses import replace

import pytest

from drivers.openbao import grants
from tests.drivers.openbao import stage
from topology.resource import Ref, Topology

MOUNT = "kv-v2"


def _policies(topology: Topology, region: str) -> dict[str, grants.Policy]:
    return {one.name: one for one in grants.of_region(topology, region, MOUNT)}


def test_the_generated_ones_pass_the_lint() -> None:
    """In both examples."""
    for topology, region in ((stage.MINIMAL, "eu-1"), (stage.TWO_ZONES, "eu-2")):
        made = grants.of_region(topology, region, MOUNT)

        assert made
        assert [said for one in made for said in grants.lint(one, MOUNT)] == []
        assert grants.bad_paths(topology, region) == []


@pytest.mark.parametrize(
    ("data", "metadata", "lacks"),
    [
        (("create", "update", "read"), (), "metadata/ceph/* lacks create, read, update"),
        (("update",), ("create", "read", "update"), "data/ceph/* lacks read"),
        (("read",), ("create", "read", "update"), "data/ceph/* lacks update"),
        (("read", "update"), ("read", "update"), "metadata/ceph/* lacks create"),
    ],
)
def test_the_lint_catches_a_push_that_would_be_refused(
    data: tuple[str, ...], metadata: tuple[str, ...], lacks: str
) -> None:
    """The first is the documented policy for Ceph keys."""
    rules = {f"{MOUNT}/data/ceph/*": data}
    if metadata:
        rules[f"{MOUNT}/metadata/ceph/*"] = metadata
    bad = grants.Policy(name="push-ceph-keys", rules=rules, pushes=("ceph/*",))

    assert grants.lint(bad, MOUNT) == [f"{MOUNT}/{lacks}"]


def test_a_hypervisor_cluster_reads_only_its_own() -> None:
    """Not the keys of another cloud, and not the kubeconfig of any cluster."""
    made = _policies(stage.TWO_ZONES, "eu-2")

    paths = " ".join(made["eso-hv-lab"].rules)

    assert "ceph/st/lab/client-nova" in paths
    assert "prod" not in paths
    assert "kubeconfig" not in paths
    assert "infrastructure/*" not in paths


def test_a_flow_is_readable_by_its_targets_and_nobody_else() -> None:
    """billing-exporter goes to both control planes."""
    made = _policies(stage.TWO_ZONES, "eu-2")
    readers = sorted(
        name for name, one in made.items() if f"{MOUNT}/data/billing/exporter" in one.rules
    )

    assert readers == ["eso-cp-lab", "eso-cp-prod"]


def test_a_flow_from_a_secret_gets_a_push_policy_on_its_cluster() -> None:
    """With all that a push needs, and the role of that cluster names it."""
    topology = _with_source({"secret": {"cluster": "mgmt", "namespace": "x", "name": "y"}})

    names = grants.of_cluster(topology, "eu-2", MOUNT, "mgmt")
    made = _policies(topology, "eu-2")["push-flow-billing-exporter"]

    assert "push-flow-billing-exporter" in names
    assert made.rules[f"{MOUNT}/metadata/billing/exporter"] == ("create", "read", "update")


def test_a_path_with_a_wildcard_is_refused() -> None:
    """It would open the paths of others."""
    flow = Ref("credentialflow", "billing-exporter")
    old = stage.TWO_ZONES.resources[flow]
    bad = replace(old, spec={**old.spec, "path": "billing/*"})
    topology = replace(stage.TWO_ZONES, resources={**stage.TWO_ZONES.resources, flow: bad})

    assert grants.bad_paths(topology, "eu-2") == [
        "flow billing-exporter: 'billing/*' is not a plain path"
    ]


def _with_source(source: dict[str, object]) -> Topology:
    flow = Ref("credentialflow", "billing-exporter")
    old = stage.TWO_ZONES.resources[flow]
    new = replace(old, spec={**old.spec, "source": source})
    return replace(stage.TWO_ZONES, resources={**stage.TWO_ZONES.resources, flow: new})
