"""Nonsense is answered, not crashed over: a client's mistake must never end a simulated world."""

import itertools
from typing import Any

import pytest

from fleetd.kube.transport import APPLY, JSON, JSON_PATCH, MERGE, Response
from fleetd.sim.kube.access import User
from fleetd.sim.kube.calls import STRATEGIC
from tests.sim.kube.stage import MAP, Obj, Stage, config_map

MAPS = "/api/v1/namespaces/default/configmaps"
PATHS = (
    MAPS,
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/garden.example/v1beta1/namespaces/default/shoots",
)


def _named(**more: Any) -> Obj:
    return {"metadata": {"name": "a", **more}}


BODIES: tuple[Any, ...] = (
    None,
    5,
    "text",
    [],
    [5],
    {},
    {"metadata": None},
    {"metadata": []},
    {"metadata": {"name": 5}},
    {"metadata": {"name": None}},
    {"metadata": {"name": ["a"]}},
    _named(labels=[]),
    _named(labels={"x": 5}),
    _named(labels="x"),
    _named(annotations={"x": {}}),
    _named(finalizers="x"),
    _named(finalizers=[5]),
    _named(ownerReferences=[5]),
    _named(ownerReferences=[{}]),
    _named(ownerReferences={}),
    _named(resourceVersion=5),
    _named(uid=5),
    _named(namespace=5),
    {**_named(), "kind": 5},
    {**_named(), "apiVersion": []},
    {**_named(), "spec": 5},
    {**_named(), "spec": []},
    {**_named(), "spec": None},
    {**_named(), "spec": {"names": 5, "group": []}},
    {**_named(), "spec": {"resourceAttributes": 5, "token": 5, "audiences": 5}},
    {**_named(), "status": 5},
    {**_named(), "data": 5},
    {**_named(), "data": {"x": 5}},
    {**_named(), "data": []},
    {**_named(), "stringData": []},
    {**_named(), "roleRef": 5, "subjects": 5},
    [{"op": "add"}],
    [{"op": "replace", "path": 5, "value": 1}],
    [{"op": "replace", "path": "/metadata", "value": 1}],
    [{"op": "remove", "path": "/metadata/name"}],
    [{"op": "add", "path": "", "value": 5}],
)


@pytest.mark.parametrize("path", PATHS)
def test_nonsense_in_a_body_is_answered(path: str) -> None:
    """Whatever is sent by whatever verb, the answer is a response, and the server goes on."""
    stage = Stage(rbac_enforced=True)
    robot = stage.as_user(stage.cluster.token("robot"))
    kinds = (JSON, MERGE, JSON_PATCH, APPLY, STRATEGIC)
    ways = [("POST", path, JSON), ("PUT", f"{path}/a", JSON), ("DELETE", f"{path}/a", JSON)]
    ways += [("PATCH", f"{path}/{name}", kind) for kind in kinds for name in ("a", "b")]
    stage.ask("POST", path, _named())
    for body, (method, place, kind) in itertools.product(BODIES, ways):
        answer = stage.open(method, place, body, kind, fieldManager="me")
        assert isinstance(answer, Response), (method, place, body)
    stage.time.pass_(10)
    admin, stage.headers = stage.headers, robot
    refused = stage.ask("GET", MAPS)[0]
    stage.headers = admin

    assert refused == 403
    assert stage.ask("GET", MAPS)[0] == 200


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"limit": "-1"}, 400),
        ({"limit": "many"}, 400),
        ({"resourceVersion": "x"}, 400),
        ({"watch": "1", "timeoutSeconds": "soon"}, 400),
        ({"watch": "1", "resourceVersion": "-5"}, 400),
        ({"continue": "%%%"}, 400),
        ({"labelSelector": "((("}, 400),
        ({"fieldSelector": "metadata.name"}, 400),
    ],
)
def test_nonsense_in_a_query_is_refused(query: dict[str, str], status: int) -> None:
    """A parameter that cannot be read is a bad request."""
    assert Stage().ask("GET", MAPS, **query)[0] == status


def test_failing_hook_is_told_to_the_world() -> None:
    """What a controller's hook raises reaches the world, and the client gets a 500."""
    stage = Stage()
    told: list[Exception] = []
    stage.cluster.failed = told.append

    def broken(operation: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
        raise ZeroDivisionError(operation)

    stage.cluster.admit(MAP, broken)
    status, said = stage.ask("POST", MAPS, config_map())

    assert (status, said["reason"]) == (500, "InternalError")
    assert [str(fault) for fault in told] == ["CREATE"]
