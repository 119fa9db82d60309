"""Acting as somebody else, and rights that are easily forgotten."""

from typing import Any

import pytest

from tests.conformance.kube.api import RBAC, Api, Obj, config_map, until
from tests.conformance.kube.places import Server

GROUP = "rbac.authorization.k8s.io"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


async def _account(api: Api, name: str = "robot") -> Api:
    accounts = api.place("serviceaccounts")
    await api.post(accounts, {"metadata": {"name": name}})
    asked: Obj = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made = await api.post(f"{accounts}/{name}/token", asked)
    return api.as_user(made.json["status"]["token"])


async def _allow(api: Api, *rules: Obj) -> None:
    """The account may do this in its namespace."""
    role = {"metadata": {"name": "r"}, "rules": list(rules)}
    assert (await api.post(api.place("roles", base=RBAC), role)).status == 201
    binding = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": api.namespace}],
    }
    assert (await api.post(api.place("rolebindings", base=RBAC), binding)).status == 201


def _maps(*verbs: str) -> Obj:
    return {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(verbs)}


async def _settled(robot: Api) -> None:
    """An authorizer learns of new roles from a watch."""
    await until(lambda: robot.get(robot.maps()), lambda answer: answer.status == 200)


async def test_apply_that_creates(api: Api) -> None:
    """The right to patch is not the right to create."""
    robot = await _account(api)
    await _allow(api, _maps("list", "get", "patch"))
    await _settled(robot)
    await api.config("there")
    old = await robot.apply(api.maps("there"), config_map("there", {"a": "b"}), "m")
    new = await robot.apply(api.maps("new"), config_map("new"), "m")

    assert old.status == 200
    assert (new.status, new.reason) == (403, "Forbidden")
    assert new.json["details"] == {"name": "new", "kind": "configmaps"}
    assert (await api.get(api.maps("new"))).status == 404


async def test_delete_is_not_deletecollection(api: Api) -> None:
    """Who may delete one may not delete all."""
    robot = await _account(api)
    await _allow(api, _maps("list", "delete"))
    await _settled(robot)
    await api.config("a")
    answer = await robot.delete(api.maps())

    assert answer.status == 403
    assert 'cannot deletecollection resource "configmaps"' in answer.message


async def test_watch_is_not_list(api: Api) -> None:
    """Who may list may not watch."""
    robot = await _account(api)
    await _allow(api, _maps("list"))
    await _settled(robot)
    answer = await robot.get(api.maps(), watch="1", timeoutSeconds="1")

    assert answer.status == 403
    assert 'cannot watch resource "configmaps"' in answer.message


async def test_named_lists(api: Api) -> None:
    """A right for one name lets that one be listed, by its field selector, and no other."""
    robot = await _account(api)
    await _allow(api, _maps("list") | {"resourceNames": ["mine"]})
    asked = {"fieldSelector": "metadata.name=mine"}
    one = await until(lambda: robot.get(api.maps(), **asked), lambda found: found.status == 200)
    every = await robot.get(api.maps())
    other = await robot.get(api.maps(), fieldSelector="metadata.name=other")

    assert (one.status, every.status, other.status) == (200, 403, 403)


async def test_what_may_i(api: Api) -> None:
    """An account can ask for all its rights in a namespace."""
    robot = await _account(api)
    await _allow(api, _maps("list", "get"))
    await _settled(robot)
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": api.namespace},
    }
    status = (await robot.post(RULES, body)).json["status"]

    mine = {"verbs": ["list", "get"], "apiGroups": [""], "resources": ["configmaps"]}
    assert mine in status["resourceRules"]
    assert any("/version" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    assert status["incomplete"] is False


async def test_everybody_may_ask_what_there_is(api: Api) -> None:
    """Without any right of his own, a user sees groups and versions, and not the metrics."""
    robot = await _account(api)
    seen = [(await robot.get(path)).status for path in ("/api", "/apis", "/version", "/openapi/v3")]
    metrics = await robot.get("/metrics")

    assert seen == [200, 200, 200, 200]
    assert metrics.status == 403
    assert metrics.message.endswith('cannot get path "/metrics"')


# Impersonation


async def test_an_administrator_may(api: Api, server: Server) -> None:
    """Everything of the request counts for the one who is played."""
    path = api.maps()
    nobody = await server.asked("GET", path, {"impersonate-user": "nobody"})

    assert nobody.status == 403
    assert 'User "nobody" cannot list resource "configmaps"' in nobody.message


@pytest.mark.parametrize("played", ["bob", "system:serviceaccount:other:robot"])
async def test_others_may_not(api: Api, server: Server, played: str) -> None:
    """403 names who asks and the verb; the words differ between versions of Kubernetes."""
    headers = {"impersonate-user": played}
    answer = await server.asked("GET", api.maps(), headers, token=await _token(api))

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert (
        f'User "system:serviceaccount:{api.namespace}:actor" cannot impersonate' in answer.message
    )


async def _token(api: Api) -> str:
    accounts = api.place("serviceaccounts")
    await api.post(accounts, {"metadata": {"name": "actor"}})
    asked: Obj = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    return (await api.post(f"{accounts}/actor/token", asked)).json["status"]["token"]


async def test_a_user_is_not_a_group(api: Api, server: Server, label: str) -> None:
    """Who may play users may not add a group to them."""
    token = await _token(api)
    name = f"actor-{label}"
    rules = [{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}]
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    binding: dict[str, Any] = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "actor", "namespace": api.namespace}],
    }
    await api.post(f"{RBAC}/clusterrolebindings", binding)
    played = {"impersonate-user": "bob"}
    path = f"{api.maps()}"
    user = await until(
        lambda: server.asked("GET", path, played, token=token),
        lambda answer: 'User "bob"' in answer.message,
    )
    group = await server.asked(
        "GET", path, {**played, "impersonate-group": "system:masters"}, token=token
    )

    assert 'User "bob" cannot list resource "configmaps"' in user.message
    assert (group.status, group.reason) == (403, "Forbidden")
    assert ':actor" cannot impersonate' in group.message


async def test_groups_count(api: Api, server: Server) -> None:
    """Who plays a master has a master's rights."""
    headers = {"impersonate-user": "bob", "impersonate-group": "system:masters"}
    answer = await server.asked("GET", api.maps(), headers)

    assert answer.status == 200


async def test_a_group_without_a_user(api: Api, server: Server) -> None:
    """There must be a user to be in it."""
    answer = await server.asked("GET", api.maps(), {"impersonate-group": "x"})

    assert answer.status >= 400
    assert "without impersonating a user" in answer.message
