"""A dry run changes nothing, wherever it is asked for: in the query, or in the body of a delete."""

import pytest

from fleetd.kube.transport import APPLY, JSON_PATCH
from tests.conformance.kube.api import CORE, Api, Obj, config_map

DRY: Obj = {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}


@pytest.mark.parametrize("body", [None, DRY, {"dryRun": ["All"]}])
async def test_delete(api: Api, body: Obj | None) -> None:
    """kubectl says it in the body, others in the query; the object stays as it is."""
    made = await api.config("a")
    query = {} if body is not None else {"dryRun": "All"}
    answer = await api.delete(api.maps("a"), body, **query)
    read = await api.get(api.maps("a"))

    assert (answer.status, answer.json["status"]) == (200, "Success")
    assert read.version == made.version


async def test_delete_of_many(api: Api) -> None:
    """A collection is answered as if it had gone, and is there."""
    await api.config("a", labels={"x": "y"})
    answer = await api.delete(api.maps(), DRY, labelSelector="x=y")
    read = await api.get(api.maps("a"))

    assert [one["metadata"]["name"] for one in answer.json["items"]] == ["a"]
    assert read.status == 200


async def test_delete_of_what_waits(api: Api) -> None:
    """What has a finalizer is not even marked."""
    await api.config("a", finalizers=["example.com/hold"])
    answer = await api.delete(api.maps("a"), DRY)
    read = await api.get(api.maps("a"))
    await api.merge(api.maps("a"), {"metadata": {"finalizers": None}})

    assert answer.status == 200
    assert "deletionTimestamp" not in read.meta


@pytest.mark.parametrize(
    ("method", "kind", "body"),
    [
        ("PUT", "application/json", config_map("a", {"x": "2"})),
        ("PATCH", "application/merge-patch+json", {"data": {"x": "2"}}),
        ("PATCH", "application/strategic-merge-patch+json", {"data": {"x": "2"}}),
        ("PATCH", JSON_PATCH, [{"op": "replace", "path": "/data/x", "value": "2"}]),
        ("PATCH", APPLY, config_map("a", {"x": "2"})),
    ],
)
async def test_changes(api: Api, method: str, kind: str, body: object) -> None:
    """The answer has the change, the store has not."""
    made = await api.config("a", {"x": "1"})
    query = {"dryRun": "All", "fieldManager": "m"}
    if kind == APPLY:
        query["force"] = "true"
    answer = await api.send(method, api.maps("a"), body, kind=kind, **query)
    read = await api.get(api.maps("a"))

    assert answer.json["data"] == {"x": "2"}
    assert (read.json["data"], read.version) == ({"x": "1"}, made.version)


async def test_creations(api: Api) -> None:
    """By post or by apply: answered as made, and not there."""
    posted = await api.post(api.maps(), config_map("a"), dryRun="All")
    applied = await api.apply(api.maps("b"), config_map("b"), "m", dryRun="All")
    there = [await api.get(api.maps(name)) for name in "ab"]

    assert [posted.status, applied.status] == [201, 201]
    assert [one.status for one in there] == [404, 404]


@pytest.mark.parametrize("place", ["query", "body"])
async def test_another_word(api: Api, place: str) -> None:
    """Whoever mistypes it must not delete for real."""
    await api.config("a")
    query = {"dryRun": "true"} if place == "query" else {}
    body = {"dryRun": ["true"]} if place == "body" else None
    answer = await api.delete(api.maps("a"), body, **query)
    read = await api.get(api.maps("a"))

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.json["details"]["causes"][0]["field"] == "dryRun"
    assert read.status == 200


async def test_a_namespace(api: Api) -> None:
    """Nothing in it goes either."""
    await api.config("a")
    answer = await api.delete(f"{CORE}/namespaces/{api.namespace}", DRY)
    read = await api.get(f"{CORE}/namespaces/{api.namespace}")

    assert answer.status == 200
    assert read.json["status"]["phase"] == "Active"
