"""The status subresource and the generation."""

from tests.conformance.kube.api import Answer, Api, Kind


async def _made(api: Api, widget: Kind) -> Answer:
    return await api.post(widget.place(api), widget.make("a", {"size": 1}))


async def test_generation_begins_at_one(api: Api, widget: Kind) -> None:
    """A new custom object has generation 1."""
    assert (await _made(api, widget)).meta["generation"] == 1


async def test_spec_raises_the_generation(api: Api, widget: Kind) -> None:
    """A changed spec raises the generation by one."""
    await _made(api, widget)
    answer = await api.merge(widget.place(api, "a"), {"spec": {"size": 2}})

    assert answer.meta["generation"] == 2


async def test_labels_leave_the_generation(api: Api, widget: Kind) -> None:
    """Labels and annotations do not count as spec."""
    await _made(api, widget)
    answer = await api.merge(widget.place(api, "a"), {"metadata": {"labels": {"x": "1"}}})

    assert answer.meta["generation"] == 1


async def test_status_leaves_the_generation(api: Api, widget: Kind) -> None:
    """A changed status raises the resourceVersion, not the generation."""
    made = await _made(api, widget)
    answer = await api.merge(widget.place(api, "a", "status"), {"status": {"phase": "Good"}})

    assert answer.meta["generation"] == 1
    assert answer.version != made.version
    assert answer.json["status"] == {"phase": "Good"}


async def test_same_spec_leaves_the_generation(api: Api, widget: Kind) -> None:
    """A write of the same spec changes nothing at all."""
    made = await _made(api, widget)
    answer = await api.merge(widget.place(api, "a"), {"spec": {"size": 1}})

    assert (answer.meta["generation"], answer.version) == (1, made.version)


async def test_config_map_has_no_generation(api: Api) -> None:
    """A ConfigMap has no generation, as it has no spec."""
    assert "generation" not in (await api.config("a")).meta


async def test_status_at_creation_is_dropped(api: Api, widget: Kind) -> None:
    """A status that comes with a create is not kept."""
    body = {**widget.make("a"), "status": {"phase": "Good"}}
    answer = await api.post(widget.place(api), body)

    assert "status" not in answer.json


async def test_object_does_not_reach_the_status(api: Api, widget: Kind) -> None:
    """A write of the object leaves the status as it is."""
    made = await _made(api, widget)
    answer = await api.merge(
        widget.place(api, "a"), {"spec": {"size": 2}, "status": {"phase": "Good"}}
    )

    assert made.status == 201
    assert answer.json["spec"]["size"] == 2
    assert "status" not in answer.json


async def test_status_does_not_reach_the_object(api: Api, widget: Kind) -> None:
    """A write of the status leaves spec and labels as they are."""
    made = await _made(api, widget)
    body = {**made.json, "spec": {"size": 9}, "status": {"phase": "Good"}}
    answer = await api.put(widget.place(api, "a", "status"), body)

    assert answer.json["spec"] == {"size": 1}
    assert answer.json["status"] == {"phase": "Good"}


async def test_status_with_an_old_version(api: Api, widget: Kind) -> None:
    """A PUT of the status is held to its version."""
    made = await _made(api, widget)
    await api.merge(widget.place(api, "a"), {"spec": {"size": 2}})
    answer = await api.put(
        widget.place(api, "a", "status"), {**made.json, "status": {"phase": "Good"}}
    )

    assert (answer.status, answer.reason) == (409, "Conflict")


async def test_status_reads_as_the_object(api: Api, widget: Kind) -> None:
    """Get of the status gives the whole object."""
    made = await _made(api, widget)
    answer = await api.get(widget.place(api, "a", "status"))

    assert answer.json == made.json


async def test_config_map_has_no_status(api: Api) -> None:
    """A kind without the subresource answers 404 there."""
    await api.config("a")

    assert (await api.get(f"{api.maps('a')}/status")).status == 404


async def test_status_is_not_created(api: Api, widget: Kind) -> None:
    """POST to a status is not allowed."""
    await _made(api, widget)
    answer = await api.post(widget.place(api, "a", "status"), {})

    assert answer.status == 405
