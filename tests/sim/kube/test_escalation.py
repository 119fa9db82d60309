"""Nobody gives away rights that he does not have."""

from typing import Any

import pytest

from tests.sim.kube.stage import Stage

RBAC = "rbac.authorization.k8s.io"
BASE = f"/apis/{RBAC}/v1"
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}


def _stage(*more: dict[str, Any]) -> Stage:
    """A user who may write roles and bindings, and read pods."""
    on = Stage(rbac_enforced=True)
    writes = {"apiGroups": [RBAC], "resources": ["*"], "verbs": ["create", "update", "get"]}
    _put(on, "ClusterRole", "writer", rules=[writes, PODS, *more])
    _put(on, "ClusterRole", "secrets", rules=[SECRETS])
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "writer"}
    subject = {"apiGroup": RBAC, "kind": "User", "name": "jo"}
    _put(on, "ClusterRoleBinding", "jo", roleRef=role, subjects=[subject])
    on.headers = on.as_user(on.cluster.token("jo"))
    return on


def _put(on: Stage, kind: str, name: str, **body: Any) -> None:
    head = {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": {"name": name}}
    on.cluster.create({**head, **body}, manager="t")


def _role(on: Stage, rule: dict[str, Any]) -> int:
    head = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": "new"}}
    return on.ask("POST", f"{BASE}/clusterroles", {**head, "rules": [rule]})[0]


def _binding(on: Stage) -> tuple[int, str]:
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "secrets"}
    body: dict[str, Any] = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "new"},
        "roleRef": role,
        "subjects": [],
    }
    status, answer = on.ask("POST", f"{BASE}/clusterrolebindings", body)
    return status, str(answer.get("message", ""))


@pytest.mark.parametrize(("rule", "status"), [(PODS, 201), (SECRETS, 403)])
def test_a_role_holds_no_more_than_its_writer(rule: dict[str, Any], status: int) -> None:
    """What he may do himself he may write down for others."""
    assert _role(_stage(), rule) == status


def test_who_may_escalate_writes_any_role() -> None:
    """The verb is there for those who administer rights."""
    verb = {"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["escalate"]}
    assert _role(_stage(verb), SECRETS) == 201


def test_a_binding_gives_no_more_than_its_writer_has() -> None:
    """The server says which rights he lacks."""
    status, said = _binding(_stage())
    assert status == 403
    assert 'user "jo"' in said
    assert 'Resources:["secrets"]' in said


def test_who_may_bind_a_role_binds_it() -> None:
    """Named one by one, without having the rights himself."""
    verb = {
        "apiGroups": [RBAC],
        "resources": ["clusterroles"],
        "resourceNames": ["secrets"],
        "verbs": ["bind"],
    }
    assert _binding(_stage(verb))[0] == 201
