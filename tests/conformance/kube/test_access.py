"""Who may do what: tokens, roles, reviews."""

from typing import Any

from tests.conformance.kube.api import RBAC, Answer, Api, Kind, config_map, until

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
SELF = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


async def _account(api: Api, name: str = "robot") -> str:
    await api.post(api.place("serviceaccounts"), {"metadata": {"name": name}})
    return f"system:serviceaccount:{api.namespace}:{name}"


async def _request(api: Api, name: str = "robot", **spec: Any) -> Answer:
    path = f"{api.place('serviceaccounts', name)}/token"
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    return await api.post(path, body)


async def _robot(api: Api) -> Api:
    """The server as a ServiceAccount without any rights sees it."""
    await _account(api)
    return api.as_user((await _request(api)).json["status"]["token"])


async def _allow(api: Api, *rules: dict[str, Any]) -> None:
    """Gives the ServiceAccount these rights in its own namespace."""
    await api.post(api.place("roles", base=RBAC), {"metadata": {"name": "r"}, "rules": list(rules)})
    group = "rbac.authorization.k8s.io"
    await api.post(
        api.place("rolebindings", base=RBAC),
        {
            "metadata": {"name": "r"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": api.namespace}],
        },
    )


def _rule(resources: list[str], verbs: list[str], **more: Any) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": resources, "verbs": verbs, **more}


async def _review(api: Api, token: str, *audiences: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"token": token}
    if audiences:
        spec["audiences"] = list(audiences)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    return (await api.post(REVIEWS, body)).json["status"]


async def test_unknown_token_is_unauthorized(api: Api) -> None:
    """A token nobody gave is answered with 401."""
    answer = await api.as_user("nonsense").get(api.maps())

    assert (answer.status, answer.reason, answer.message) == (401, "Unauthorized", "Unauthorized")


async def test_no_token_is_unauthorized(api: Api) -> None:
    """So is none at all."""
    assert (await api.as_user("").get(api.maps())).status == 401


async def test_stranger_is_forbidden(api: Api) -> None:
    """A user without rights is told who may not do what, where."""
    robot = await _robot(api)
    answer = await robot.get(api.maps("a"))

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == (
        f'configmaps "a" is forbidden: User "system:serviceaccount:{api.namespace}:robot" cannot '
        f'get resource "configmaps" in API group "" in the namespace "{api.namespace}"'
    )


async def test_stranger_cannot_list_the_cluster(api: Api) -> None:
    """A list of everything is refused at the cluster scope."""
    answer = await (await _robot(api)).get("/api/v1/nodes")

    assert answer.status == 403
    assert answer.message.endswith("at the cluster scope")


async def test_role_allows_what_it_says(api: Api) -> None:
    """A role lets its verbs through and no others."""
    robot = await _robot(api)
    await _allow(api, _rule(["configmaps"], ["get", "list"]))
    await api.config("a")
    read = await until(lambda: robot.get(api.maps("a")), lambda answer: answer.status == 200)
    listed = await robot.get(api.maps())
    written = await robot.post(api.maps(), config_map("b"))

    assert (read.status, listed.status, written.status) == (200, 200, 403)


async def test_role_ends_at_its_namespace(api: Api) -> None:
    """A role of one namespace is none in another."""
    robot = await _robot(api)
    await _allow(api, _rule(["configmaps"], ["list"]))
    await until(lambda: robot.get(api.maps()), lambda answer: answer.status == 200)

    assert (await robot.get(api.maps(namespace="default"))).status == 403


async def test_role_for_named_objects(api: Api) -> None:
    """resourceNames lets through those objects only."""
    robot = await _robot(api)
    await _allow(api, _rule(["configmaps"], ["get"], resourceNames=["a"]))
    await api.config("a")
    await api.config("b")
    one = await until(lambda: robot.get(api.maps("a")), lambda answer: answer.status == 200)
    two = await robot.get(api.maps("b"))

    assert (one.status, two.status) == (200, 403)


async def test_subresource_is_a_right_of_its_own(api: Api) -> None:
    """All rights on serviceaccounts do not include their tokens."""
    robot = await _robot(api)
    await _allow(api, _rule(["serviceaccounts"], ["*"]))
    await until(
        lambda: robot.get(api.place("serviceaccounts")), lambda answer: answer.status == 200
    )
    answer = await _request(robot)

    assert answer.status == 403
    assert 'cannot create resource "serviceaccounts/token"' in answer.message


async def test_status_is_a_right_of_its_own(api: Api, widget: Kind) -> None:
    """The right to patch objects is not the right to patch their status."""
    robot = await _robot(api)
    rule = _rule(["widgets"], ["get", "patch"]) | {"apiGroups": [widget.group]}
    await _allow(api, rule)
    await api.post(widget.place(api), widget.make("a"))
    await until(lambda: robot.get(widget.place(api, "a")), lambda answer: answer.status == 200)
    spec = await robot.merge(widget.place(api, "a"), {"spec": {"size": 3}})
    status = await robot.merge(widget.place(api, "a", "status"), {"status": {"phase": "x"}})

    assert (spec.status, status.status) == (200, 403)


async def test_one_may_ask_about_oneself(api: Api) -> None:
    """SelfSubjectAccessReview needs no right and tells the truth."""
    robot = await _robot(api)
    await _allow(api, _rule(["configmaps"], ["get"]))
    await until(lambda: robot.get(api.maps("a")), lambda answer: answer.status == 404)
    answers: list[bool] = []
    for verb in ("get", "delete"):
        attributes = {"verb": verb, "resource": "configmaps", "namespace": api.namespace}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        answer = await robot.post(SELF, body)
        answers.append(answer.json["status"]["allowed"])

    assert answers == [True, False]


async def test_one_may_ask_about_others(api: Api) -> None:
    """SubjectAccessReview answers for another user and their groups."""
    user = await _account(api)
    await _allow(api, _rule(["secrets"], ["get"]))
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": user,
            "resourceAttributes": {
                "verb": "get",
                "resource": "secrets",
                "namespace": api.namespace,
            },
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = await until(
        lambda: api.post(path, body), lambda answer: answer.json["status"]["allowed"]
    )

    assert answer.json["status"]["allowed"] is True


async def test_token_is_given(api: Api) -> None:
    """A TokenRequest gives a token, its audience and its end."""
    await _account(api)
    answer = await _request(api, expirationSeconds=900)

    assert answer.status == 201
    assert answer.json["kind"] == "TokenRequest"
    assert answer.json["spec"]["expirationSeconds"] == 900
    assert set(answer.json["status"]) == {"token", "expirationTimestamp"}
    assert answer.json["status"]["token"].count(".") == 2


async def test_short_tokens_are_refused(api: Api) -> None:
    """A token for less than ten minutes is not given."""
    await _account(api)
    answer = await _request(api, expirationSeconds=599)

    assert answer.status == 422
    assert "may not specify a duration less than 10 minutes" in answer.message


async def test_token_of_a_missing_account(api: Api) -> None:
    """There is no token for an account that is not there."""
    assert (await _request(api, "nobody")).status == 404


async def test_review_knows_its_tokens(api: Api) -> None:
    """A TokenReview names the user and the groups of a good token."""
    user = await _account(api)
    token = (await _request(api)).json["status"]["token"]
    status = await _review(api, token)

    assert status["authenticated"] is True
    assert status["user"]["username"] == user
    assert f"system:serviceaccounts:{api.namespace}" in status["user"]["groups"]
    assert "system:authenticated" in status["user"]["groups"]


async def test_review_of_a_foreign_token(api: Api) -> None:
    """A token of somebody else is not authenticated, with a reason, and that is no error."""
    status = await _review(api, "nonsense")

    assert not status.get("authenticated")
    assert "invalid bearer token" in status["error"]


async def test_audience_must_be_asked_for(api: Api) -> None:
    """A token for another audience is good only in a review that names it."""
    await _account(api)
    token = (await _request(api, audiences=["vault"])).json["status"]["token"]
    plain = await _review(api, token)
    named = await _review(api, token, "vault", "other")

    assert not plain.get("authenticated")
    assert 'token audiences ["vault"] is invalid for the target audiences' in plain["error"]
    assert named["authenticated"] is True
    assert named["audiences"] == ["vault"]


async def test_token_for_another_audience_does_not_log_in(api: Api) -> None:
    """Nor is it good for the server itself."""
    await _account(api)
    token = (await _request(api, audiences=["vault"])).json["status"]["token"]

    assert (await api.as_user(token).get(api.maps())).status == 401


async def test_token_dies_with_its_account(api: Api) -> None:
    """The token of a deleted account is good for some seconds more, and then not."""
    await _account(api)
    token = (await _request(api)).json["status"]["token"]
    await _review(api, token)
    await api.delete(api.place("serviceaccounts", "robot"))
    robot = api.as_user(token)
    answer = await until(lambda: robot.get(api.maps()), lambda answer: answer.status == 401)
    status = await _review(api, token)

    assert answer.status == 401
    assert not status.get("authenticated")


async def test_binding_keeps_its_role(api: Api) -> None:
    """The role of a binding cannot be exchanged."""
    await _allow(api, _rule(["configmaps"], ["get"]))
    path = api.place("rolebindings", "r", base=RBAC)
    answer = await api.merge(path, {"roleRef": {"name": "other"}})

    assert answer.status == 422
