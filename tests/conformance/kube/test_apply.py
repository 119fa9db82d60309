"""Server-side apply: who owns what, and what happens when two want the same."""

from typing import Any

from tests.conformance.kube.api import Answer, Api, Kind, config_map


def _managers(answer: Answer) -> dict[str, str]:
    return {entry["manager"]: entry["operation"] for entry in answer.meta["managedFields"]}


def _fields(answer: Answer, manager: str) -> dict[str, Any]:
    entries = answer.meta["managedFields"]
    return next(entry["fieldsV1"] for entry in entries if entry["manager"] == manager)


async def _apply(api: Api, data: dict[str, str], manager: str, **query: str) -> Answer:
    return await api.apply(api.maps("a"), config_map("a", data), manager, **query)


async def test_apply_creates(api: Api) -> None:
    """Apply of what is not there creates it: 201, and the manager is noted."""
    answer = await _apply(api, {"x": "1"}, "me")

    assert answer.status == 201
    assert _managers(answer) == {"me": "Apply"}
    assert _fields(answer, "me")["f:data"] == {"f:x": {}}


async def test_apply_again_changes_nothing(api: Api) -> None:
    """The same apply a second time leaves the resourceVersion alone."""
    first = await _apply(api, {"x": "1"}, "me")
    second = await _apply(api, {"x": "1"}, "me")

    assert (second.status, second.version) == (200, first.version)


async def test_apply_needs_a_manager(api: Api) -> None:
    """Apply without a field manager is refused."""
    answer = await _apply(api, {"x": "1"}, "")

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "fieldManager: Required value" in answer.message


async def test_apply_takes_no_managed_fields(api: Api) -> None:
    """A configuration that says who owns what is refused."""
    made = await api.config("a", {"x": "1"})
    body = config_map("a", {"x": "1"}, managedFields=made.meta["managedFields"])
    answer = await api.apply(api.maps("a"), body, "me")

    assert answer.status == 400
    assert answer.message == "metadata.managedFields must be nil"


async def test_apply_conflicts_with_an_applier(api: Api) -> None:
    """Another value for what another manager applied is a 409 that names both."""
    await _apply(api, {"x": "1"}, "first")
    answer = await _apply(api, {"x": "2"}, "second")

    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == 'Apply failed with 1 conflict: conflict with "first": .data.x'
    assert answer.json["details"]["causes"] == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "first"',
            "field": ".data.x",
        }
    ]


async def test_apply_conflicts_with_an_updater(api: Api) -> None:
    """What an ordinary write changed belongs to the writer; the message says in which version."""
    await _apply(api, {"x": "1"}, "first")
    await api.merge(api.maps("a"), {"data": {"x": "2"}}, fieldManager="hand")
    answer = await _apply(api, {"x": "1"}, "first")

    assert answer.status == 409
    assert 'conflict with "hand" using v1' in answer.message
    assert ".data.x" in answer.message


async def test_apply_names_all_conflicts(api: Api) -> None:
    """Several conflicts are counted and listed."""
    await _apply(api, {"x": "1", "y": "1"}, "first")
    answer = await _apply(api, {"x": "2", "y": "2"}, "second")

    assert answer.message.startswith("Apply failed with 2 conflicts: conflicts with")
    assert "- .data.x" in answer.message
    assert "- .data.y" in answer.message


async def test_refused_apply_changes_nothing(api: Api) -> None:
    """A conflict leaves the object as it was."""
    made = await _apply(api, {"x": "1"}, "first")
    await _apply(api, {"x": "2", "y": "1"}, "second")
    read = await api.get(api.maps("a"))

    assert (read.json["data"], read.version) == ({"x": "1"}, made.version)


async def test_force_takes_over(api: Api) -> None:
    """A forced apply sets the value, and the field has a new owner only."""
    await _apply(api, {"x": "1", "y": "1"}, "first")
    answer = await _apply(api, {"x": "2"}, "second", force="true")

    assert answer.json["data"] == {"x": "2", "y": "1"}
    assert _fields(answer, "first")["f:data"] == {"f:y": {}}
    assert _fields(answer, "second")["f:data"] == {"f:x": {}}


async def test_same_value_is_shared(api: Api) -> None:
    """Two managers that want the same both own it, without conflict."""
    await _apply(api, {"x": "1"}, "first")
    answer = await _apply(api, {"x": "1"}, "second")

    assert answer.status == 200
    assert _fields(answer, "first")["f:data"] == {"f:x": {}}
    assert _fields(answer, "second")["f:data"] == {"f:x": {}}


async def test_what_is_not_applied_any_more_goes(api: Api) -> None:
    """A field that its only owner stops applying is removed."""
    await _apply(api, {"x": "1", "y": "1"}, "me")
    answer = await _apply(api, {"x": "1"}, "me")

    assert answer.json["data"] == {"x": "1"}


async def test_what_another_owns_stays(api: Api) -> None:
    """A field that somebody else owns too stays when one stops applying it."""
    await _apply(api, {"x": "1", "y": "1"}, "first")
    await _apply(api, {"y": "1"}, "second")
    answer = await _apply(api, {"x": "1"}, "first")

    assert answer.json["data"] == {"x": "1", "y": "1"}


async def test_foreign_fields_stay(api: Api) -> None:
    """What was never applied is not touched by apply."""
    await api.config("a", {"hand": "made"})
    answer = await _apply(api, {"x": "1"}, "me")

    assert answer.json["data"] == {"hand": "made", "x": "1"}


async def test_whole_map_goes_with_its_owner(api: Api) -> None:
    """When all of a map is given up, the map goes too."""
    await api.apply(api.maps("a"), config_map("a", {"x": "1"}, labels={"l": "1"}), "me")
    answer = await _apply(api, {"x": "1"}, "me")

    assert not answer.meta.get("labels")


async def test_update_takes_ownership(api: Api) -> None:
    """A PUT that changes an applied field takes it from the applier."""
    made = await _apply(api, {"x": "1", "y": "1"}, "me")
    body = {**made.json, "data": {"x": "2", "y": "1"}}
    answer = await api.put(api.maps("a"), body, fieldManager="hand")

    assert _fields(answer, "me")["f:data"] == {"f:y": {}}
    assert _fields(answer, "hand")["f:data"] == {"f:x": {}}


async def test_list_is_merged_by_its_key(api: Api, widget: Kind) -> None:
    """Items of a list with keys belong to whoever applied them."""
    path = widget.place(api, "a")
    await api.apply(path, widget.make("a", {"pools": [{"name": "x", "count": 1}]}), "first")
    answer = await api.apply(
        path, widget.make("a", {"pools": [{"name": "y", "count": 2}]}), "second"
    )

    assert answer.status == 200
    assert answer.json["spec"]["pools"] == [
        {"name": "x", "count": 1},
        {"name": "y", "count": 2},
    ]


async def test_item_goes_with_its_owner(api: Api, widget: Kind) -> None:
    """An item that is not applied any more goes; those of others stay."""
    path = widget.place(api, "a")
    both = {"pools": [{"name": "x", "count": 1}, {"name": "z", "count": 1}]}
    await api.apply(path, widget.make("a", both), "first")
    await api.apply(path, widget.make("a", {"pools": [{"name": "y", "count": 2}]}), "second")
    answer = await api.apply(
        path, widget.make("a", {"pools": [{"name": "x", "count": 1}]}), "first"
    )

    assert sorted(one["name"] for one in answer.json["spec"]["pools"]) == ["x", "y"]


async def test_conflict_in_an_item_names_it(api: Api, widget: Kind) -> None:
    """The field of a conflict in a list has the key of the item."""
    path = widget.place(api, "a")
    await api.apply(path, widget.make("a", {"pools": [{"name": "x", "count": 1}]}), "first")
    answer = await api.apply(
        path, widget.make("a", {"pools": [{"name": "x", "count": 2}]}), "second"
    )

    assert answer.status == 409
    assert '.spec.pools[name="x"].count' in answer.message


async def test_set_is_a_union(api: Api, widget: Kind) -> None:
    """A list that is a set holds what anybody applied."""
    path = widget.place(api, "a")
    await api.apply(path, widget.make("a", {"tags": ["x"]}), "first")
    answer = await api.apply(path, widget.make("a", {"tags": ["y"]}), "second")
    less = await api.apply(path, widget.make("a", {"tags": []}), "first")

    assert sorted(answer.json["spec"]["tags"]) == ["x", "y"]
    assert less.json["spec"]["tags"] == ["y"]


async def test_plain_list_has_one_owner(api: Api, widget: Kind) -> None:
    """A list without keys is one value: another one is a conflict."""
    path = widget.place(api, "a")
    await api.apply(path, widget.make("a", {"steps": ["x"]}), "first")
    answer = await api.apply(path, widget.make("a", {"steps": ["x", "y"]}), "second")

    assert answer.status == 409
    assert ".spec.steps" in answer.message


async def test_finalizers_of_two_managers(api: Api) -> None:
    """Finalizers are a set: two managers can each have theirs."""
    one = config_map("a", finalizers=["example.com/one"])
    two = config_map("a", finalizers=["example.com/two"])
    await api.apply(api.maps("a"), one, "first")
    answer = await api.apply(api.maps("a"), two, "second")
    await api.merge(api.maps("a"), {"metadata": {"finalizers": None}})

    assert sorted(answer.meta["finalizers"]) == ["example.com/one", "example.com/two"]


async def test_apply_with_an_old_version(api: Api) -> None:
    """An apply that names a version is held to it."""
    made = await _apply(api, {"x": "1"}, "me")
    await _apply(api, {"x": "2"}, "me")
    body = config_map("a", {"x": "3"}, resourceVersion=made.version)
    answer = await api.apply(api.maps("a"), body, "me")

    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_dry_run_apply(api: Api) -> None:
    """A dry run of apply shows the outcome and stores nothing."""
    answer = await _apply(api, {"x": "1"}, "me", dryRun="All")
    read = await api.get(api.maps("a"))

    assert answer.json["data"] == {"x": "1"}
    assert read.status == 404


async def test_dry_run_apply_conflicts(api: Api) -> None:
    """A dry run tells of a conflict too."""
    await _apply(api, {"x": "1"}, "first")
    answer = await _apply(api, {"x": "2"}, "second", dryRun="All")

    assert answer.status == 409


async def test_apply_reaches_only_the_spec(api: Api, widget: Kind) -> None:
    """A status that is applied to the object itself is not taken, nor owned."""
    body = {**widget.make("a"), "status": {"phase": "Good"}}
    answer = await api.apply(widget.place(api, "a"), body, "me")

    assert "status" not in answer.json
    assert "f:status" not in _fields(answer, "me")


async def test_apply_of_the_status(api: Api, widget: Kind) -> None:
    """The status has appliers of its own; conditions are merged by type."""
    await api.post(widget.place(api), widget.make("a"))
    path = widget.place(api, "a", "status")
    ready: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}
    cold: dict[str, Any] = {"conditions": [{"type": "Cold", "status": "False"}]}
    base = {"apiVersion": f"{widget.group}/v1", "kind": widget.kind, "metadata": {"name": "a"}}
    await api.apply(path, {**base, "status": ready}, "first")
    answer = await api.apply(path, {**base, "status": cold}, "second")

    assert [one["type"] for one in answer.json["status"]["conditions"]] == ["Ready", "Cold"]
    entries = answer.meta["managedFields"]
    assert {entry["manager"] for entry in entries if entry.get("subresource") == "status"} == {
        "first",
        "second",
    }


async def test_apply_of_the_status_does_not_create(api: Api, widget: Kind) -> None:
    """A status cannot be applied to what is not there."""
    base = {"apiVersion": f"{widget.group}/v1", "kind": widget.kind, "metadata": {"name": "a"}}
    answer = await api.apply(widget.place(api, "a", "status"), {**base, "status": {}}, "me")

    assert answer.status == 404
