"""Merge patch, JSON patch, strategic merge patch."""

from typing import Any

from fleetd.kube.transport import JSON_PATCH
from tests.conformance.kube.api import Answer, Api, Kind

STRATEGIC = "application/strategic-merge-patch+json"


async def _json_patch(api: Api, *operations: dict[str, Any]) -> Answer:
    return await api.send("PATCH", api.maps("a"), list(operations), kind=JSON_PATCH)


async def test_merge_sets_and_removes(api: Api) -> None:
    """Merge patch sets what it names, removes what it names as null, leaves the rest."""
    await api.config("a", {"keep": "1", "set": "1", "drop": "1"})
    answer = await api.merge(api.maps("a"), {"data": {"set": "2", "drop": None, "new": "3"}})

    assert answer.json["data"] == {"keep": "1", "set": "2", "new": "3"}


async def test_merge_replaces_lists(api: Api, widget: Kind) -> None:
    """Merge patch replaces a list as a whole."""
    await api.post(widget.place(api), widget.make("a", {"pools": [{"name": "x"}, {"name": "y"}]}))
    answer = await api.merge(widget.place(api, "a"), {"spec": {"pools": [{"name": "z"}]}})

    assert answer.json["spec"]["pools"] == [{"name": "z"}]


async def test_merge_that_changes_nothing(api: Api) -> None:
    """A merge patch that changes nothing leaves the resourceVersion alone."""
    made = await api.config("a", {"x": "1"})
    answer = await api.merge(api.maps("a"), {"data": {"x": "1"}})

    assert answer.version == made.version


async def test_merge_of_nothing(api: Api) -> None:
    """A merge patch does not create."""
    assert (await api.merge(api.maps("a"), {"data": {}})).status == 404


async def test_merge_with_an_old_version(api: Api) -> None:
    """A merge patch that names a version is held to it."""
    made = await api.config("a", {"x": "1"})
    await api.merge(api.maps("a"), {"data": {"x": "2"}})
    body = {"metadata": {"resourceVersion": made.version}, "data": {"x": "3"}}
    answer = await api.merge(api.maps("a"), body)

    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_merge_cannot_rename(api: Api) -> None:
    """A patch that changes the name is refused."""
    await api.config("a")
    answer = await api.merge(api.maps("a"), {"metadata": {"name": "b"}})

    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_force_is_for_apply_only(api: Api) -> None:
    """`force` on a merge patch is refused."""
    await api.config("a")
    answer = await api.merge(api.maps("a"), {"data": {"x": "1"}}, force="true")

    assert answer.status == 422


async def test_json_patch_operations(api: Api) -> None:
    """add, replace, remove, copy and move do as they say, in order."""
    await api.config("a", {"x": "1", "y": "2", "z": "3"})
    answer = await _json_patch(
        api,
        {"op": "add", "path": "/data/new", "value": "4"},
        {"op": "replace", "path": "/data/x", "value": "9"},
        {"op": "remove", "path": "/data/y"},
        {"op": "copy", "from": "/data/new", "path": "/data/copied"},
        {"op": "move", "from": "/data/z", "path": "/data/moved"},
    )

    assert answer.json["data"] == {"x": "9", "new": "4", "copied": "4", "moved": "3"}


async def test_json_patch_test_that_fails(api: Api) -> None:
    """A failed test refuses the whole patch."""
    await api.config("a", {"x": "1"})
    answer = await _json_patch(
        api,
        {"op": "replace", "path": "/data/x", "value": "2"},
        {"op": "test", "path": "/data/x", "value": "other"},
    )
    read = await api.get(api.maps("a"))

    assert answer.status == 422
    assert read.json["data"] == {"x": "1"}


async def test_json_patch_of_a_missing_place(api: Api) -> None:
    """Removing what is not there is refused with 422."""
    await api.config("a", {"x": "1"})
    answer = await _json_patch(api, {"op": "remove", "path": "/data/nothing"})

    assert answer.status == 422


async def test_json_patch_of_a_list(api: Api) -> None:
    """`-` appends, an index inserts before, slashes in keys are written ~1."""
    await api.config("a", finalizers=["example.com/one"], labels={"example.com/l": "1"})
    answer = await _json_patch(
        api,
        {"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/two"},
        {"op": "add", "path": "/metadata/finalizers/0", "value": "example.com/zero"},
        {"op": "remove", "path": "/metadata/labels/example.com~1l"},
    )
    await api.merge(api.maps("a"), {"metadata": {"finalizers": None}})

    assert answer.meta["finalizers"] == [
        "example.com/zero",
        "example.com/one",
        "example.com/two",
    ]
    assert not answer.meta.get("labels")


def _deployment() -> dict[str, Any]:
    containers = [{"name": "one", "image": "i:1"}, {"name": "two", "image": "i:2"}]
    labels = {"app": "a"}
    return {
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


async def _containers(api: Api, *changes: dict[str, Any]) -> list[tuple[str, str]]:
    base = "/apis/apps/v1"
    await api.post(api.place("deployments", base=base), _deployment())
    body = {"spec": {"template": {"spec": {"containers": list(changes)}}}}
    path = api.place("deployments", "a", base=base)
    answer = await api.send("PATCH", path, body, kind=STRATEGIC)
    found = answer.json["spec"]["template"]["spec"]["containers"]
    return sorted((one["name"], one["image"]) for one in found)


async def test_strategic_merge_by_name(api: Api) -> None:
    """A strategic merge patch changes one container and leaves the other."""
    found = await _containers(api, {"name": "two", "image": "i:9"})

    assert found == [("one", "i:1"), ("two", "i:9")]


async def test_strategic_merge_deletes_by_name(api: Api) -> None:
    """`$patch: delete` takes one item out of a list."""
    found = await _containers(api, {"name": "one", "$patch": "delete"})

    assert found == [("two", "i:2")]


async def test_strategic_merge_of_a_custom_resource(api: Api, widget: Kind) -> None:
    """Custom resources take no strategic merge patch: 415."""
    await api.post(widget.place(api), widget.make("a"))
    answer = await api.send("PATCH", widget.place(api, "a"), {"spec": {}}, kind=STRATEGIC)

    assert answer.status == 415


async def test_selector_of_a_deployment_is_immutable(api: Api) -> None:
    """A Deployment keeps its selector."""
    base = "/apis/apps/v1"
    await api.post(api.place("deployments", base=base), _deployment())
    path = api.place("deployments", "a", base=base)
    answer = await api.merge(path, {"spec": {"selector": {"matchLabels": {"app": "b"}}}})

    assert answer.status == 422
