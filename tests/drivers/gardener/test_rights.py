"""fleetd's own rights on a cluster: enough for its drivers, and no more than it says."""

from collections.abc import Iterator
from typing import Any

import pytest

from drivers.ceph import manifests as ceph
from drivers.gardener import account, rights
from fleetd.sim.kube.access import User
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.rbac import Ask
from tests.drivers.gardener.region import COMPONENTS, changed, want
from tests.sim.kube.stage import Stage
from topology.documents.cluster import Role
from topology.resource import Facts

ROLES = [str(role) for role in Role]
FLEETD = User("system:serviceaccount:fleetd-system:fleetd", ("system:serviceaccounts",))


def _rules(role: str) -> list[Facts]:
    return rights.of(role, COMPONENTS)


def _grants(role: str) -> Iterator[tuple[str, str, str, bool]]:
    for rule in _rules(role):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield group, resource, verb, bool(rule.get("resourceNames"))


@pytest.mark.parametrize("role", ROLES)
def test_it_is_no_administrator(role: str) -> None:
    """No right to everything, none to give itself more, none to be somebody else."""
    for group, resource, verb, named in _grants(role):
        assert group != "*"
        assert verb not in {"*", "escalate", "impersonate"}
        assert resource != "*" or (group and not group.endswith(".k8s.io"))
        assert named or (verb != "bind" and resource != "serviceaccounts/token")


@pytest.mark.parametrize("role", ["management", "control-plane", "hypervisor", "storage"])
def test_secrets_are_asked_for_by_name(role: str) -> None:
    """It never lists or watches them; only the arbiter's account, which it makes, may."""
    verbs = {verb for group, what, verb, _ in _grants(role) if (group, what) == ("", "secrets")}
    assert verbs == {"get", "create", "patch", "update", "delete"}


def test_only_who_installs_flux_may_make_administrators() -> None:
    """The role cluster-admin is bound on the management cluster and nowhere else."""
    found = {
        role
        for role in ROLES
        for rule in _rules(role)
        if "cluster-admin" in rule.get("resourceNames", ())
    }
    assert found == {"management"}


def test_what_it_hands_on_to_the_arbiter_it_holds() -> None:
    """An API server refuses a Role with rights that its writer does not have."""
    there = _enforced("arbiter")
    for group, resource, verb in ceph.rights():
        ask = Ask(verb=verb, group=group, resource=resource, namespace="ceph-arbiter")
        assert there.rbac.allows(FLEETD, ask), ask


def test_it_renews_its_own_token_and_nobody_elses() -> None:
    """A token of another account would be a way around its role."""
    there = _enforced("hypervisor")
    mine, others = (
        there.rbac.allows(
            FLEETD,
            Ask(
                verb="create",
                resource="serviceaccounts/token",
                namespace="fleetd-system",
                name=name,
            ),
        )
        for name in ("fleetd", "default")
    )
    assert (mine, others) == (True, False)


def _enforced(role: str) -> Cluster:
    there = Stage(rbac_enforced=True).cluster
    access = want("access", "hv")
    access = changed(access, role=role)
    for one in account.manifests(access, COMPONENTS, trusts=False):
        body: dict[str, Any] = {**one.body}
        if one.group:
            body["apiVersion"] = f"{one.group}/v1"
        there.create(body, manager="t")
    return there


def test_what_a_catalogue_of_your_own_brings_is_added() -> None:
    """By its API group, on the clusters on which the component stands; Kubernetes' own are not."""
    brought = [
        {"apiVersion": "backup.example/v1", "kind": "Plan"},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass"},
    ]
    given = COMPONENTS["mariadb"]
    changes = {"roles": [Role.STORAGE], "parameters": {"manifest": brought}}
    mine = given.model_copy(update={"spec": given.spec.model_copy(update=changes)})
    found = {
        role: {group for rule in rights.of(role, {"mine": mine}) for group in rule["apiGroups"]}
        for role in ROLES
    }
    assert [role for role in ROLES if "backup.example" in found[role]] == ["storage"]
    assert "storage.k8s.io" not in found["storage"]


def test_a_host_that_goes_is_told_so_on_its_node() -> None:
    """Only on the clusters of hypervisors, where a Node is told to go before it is drained."""
    may = [
        role
        for role in ROLES
        if any("nodes/status" in rule["resources"] for rule in rights.of(role, COMPONENTS))
    ]
    assert may == ["hypervisor"]
