"""Nobody gives away rights that he does not have; and fleetd's own account is enough for fleetd."""

from typing import Any

import pytest

from drivers.ceph import manifests as ceph
from drivers.gardener import account, rights
from tests.conformance.kube.api import CORE, RBAC, Api, Obj, eventually
from tests.drivers.gardener.region import COMPONENTS
from topology.documents.cluster import Role

GROUP = "rbac.authorization.k8s.io"
SECRETS = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["deletecollection"]}


async def _robot(api: Api, *rules: Any) -> Api:
    """An account with these rights in the whole cluster; bound by an administrator."""
    name = f"{api.namespace}-{account.NAME}"
    head = {"apiVersion": f"{GROUP}/v1"}
    role = {**head, "kind": "ClusterRole", "metadata": {"name": name}, "rules": list(rules)}
    binding = {
        **head,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": api.namespace}],
    }
    made = await api.post(f"{RBAC}/clusterroles", role)
    assert made.status == 201, made.message
    assert (await api.post(f"{RBAC}/clusterrolebindings", binding)).status == 201
    accounts = api.place("serviceaccounts")
    assert (await api.post(accounts, {"metadata": {"name": "robot"}})).status == 201
    asked: Obj = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    minted = await api.post(f"{accounts}/robot/token", asked)
    robot = api.as_user(minted.json["status"]["token"])
    # An authorizer learns of new roles from a watch.
    await eventually(lambda: robot.get(f"{CORE}/namespaces/{api.namespace}"), 200)
    return robot


def _role(api: Api, *rules: Any) -> Obj:
    metadata = {"name": "given", "namespace": api.namespace}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Role",
        "metadata": metadata,
        "rules": list(rules),
    }


def _roles(api: Api, kind: str = "roles") -> str:
    return f"{RBAC}/namespaces/{api.namespace}/{kind}"


@pytest.mark.parametrize("role", [str(role) for role in Role])
async def test_the_rights_of_every_job_are_a_role(api: Api, role: str) -> None:
    """The server takes the rules as they are; with them nobody lists Secrets, but for an arbiter's
    cluster, where the account that fleetd makes must be able to."""
    robot = await _robot(api, *rights.of(role, COMPONENTS))
    listed = await robot.get(f"{CORE}/secrets")
    one = await robot.get(api.place("secrets", "none"))

    assert (listed.status == 200) == (role == "arbiter")
    assert one.status == 404


async def test_what_is_handed_on_to_the_arbiter_may_be(api: Api) -> None:
    """Role and binding are written by fleetd's own account: it holds what it gives."""
    robot = await _robot(api, *rights.of("arbiter", COMPONENTS))
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        for group, resource, verb in ceph.rights()
    ]
    made = await robot.post(_roles(api), _role(api, *rules))
    assert made.status == 201, made.message
    binding = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "given", "namespace": api.namespace},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "given"},
        "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": api.namespace}],
    }
    bound = await robot.post(_roles(api, "rolebindings"), binding)
    assert bound.status == 201, bound.message


async def test_nobody_gives_what_he_does_not_have(api: Api) -> None:
    """A Role with more than its writer holds is refused, and the server says which rights."""
    robot = await _robot(api, *rights.of("arbiter", COMPONENTS))
    made = await robot.post(_roles(api), _role(api, SECRETS))

    assert made.status == 403
    assert "is attempting to grant RBAC permissions not currently held" in made.message
    assert 'Resources:["secrets"], Verbs:["deletecollection"]' in made.message


@pytest.mark.parametrize(
    ("role", "named", "status"),
    [
        ("hypervisor", "system:auth-delegator", 201),
        ("hypervisor", "cluster-admin", 403),
        ("management", "cluster-admin", 201),
    ],
)
async def test_roles_are_bound_by_name(api: Api, role: str, named: str, status: int) -> None:
    """OpenBao's reviewer everywhere; an administrator only where Flux is installed."""
    await _known(api, named)
    robot = await _robot(api, *rights.of(role, COMPONENTS))
    binding = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{api.namespace}-given"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": named},
        "subjects": [{"kind": "ServiceAccount", "name": "x", "namespace": api.namespace}],
    }
    made = await robot.post(f"{RBAC}/clusterrolebindings", binding)

    assert made.status == status, made.message


async def _known(api: Api, name: str) -> None:
    """A real server brings these roles; a bare simulated one does not."""
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    body = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name}}
    made = await api.post(f"{RBAC}/clusterroles", {**body, "rules": rules})
    assert made.status in (201, 409)


async def test_it_renews_its_own_token_only(api: Api) -> None:
    """The right is for one name; a token of another account would be a way around its role."""
    mine = {
        "apiGroups": [""],
        "resources": ["serviceaccounts/token"],
        "resourceNames": ["robot"],
        "verbs": ["create"],
    }
    reads = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}
    robot = await _robot(api, mine, reads)
    accounts = api.place("serviceaccounts")
    assert (await api.post(accounts, {"metadata": {"name": "other"}})).status == 201
    asked: Obj = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    renewed = await robot.post(f"{accounts}/robot/token", asked)
    other = await robot.post(f"{accounts}/other/token", asked)

    assert (renewed.status, other.status) == (201, 403)
