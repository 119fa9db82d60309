"""Finalizers: an object that waits before it goes."""

from typing import Any

from tests.conformance.kube.api import Answer, Api, Kind, said

HOLD = "example.com/hold"


async def _held(api: Api, widget: Kind) -> Answer:
    return await api.post(widget.place(api), widget.make("a", finalizers=[HOLD]))


async def _let_go(api: Api, widget: Kind) -> Answer:
    return await api.merge(widget.place(api, "a"), {"metadata": {"finalizers": None}})


async def test_finalizer_holds(api: Api, widget: Kind) -> None:
    """Delete of an object with a finalizer answers the object, marked; it is still there."""
    await _held(api, widget)
    answer = await api.delete(widget.place(api, "a"))
    read = await api.get(widget.place(api, "a"))
    await _let_go(api, widget)

    assert answer.json["kind"] == "Widget"
    assert read.status == 200
    assert read.meta["deletionTimestamp"]
    assert read.meta["deletionGracePeriodSeconds"] == 0


async def test_mark_raises_the_generation(api: Api, widget: Kind) -> None:
    """Being marked for deletion raises the generation."""
    await _held(api, widget)
    answer = await api.delete(widget.place(api, "a"))
    await _let_go(api, widget)

    assert answer.meta["generation"] == 2


async def test_last_finalizer_lets_go(api: Api, widget: Kind) -> None:
    """Without its last finalizer a marked object is gone."""
    await _held(api, widget)
    await api.delete(widget.place(api, "a"))
    answer = await _let_go(api, widget)
    read = await api.get(widget.place(api, "a"))

    assert (answer.status, read.status) == (200, 404)


async def test_second_delete_changes_nothing(api: Api, widget: Kind) -> None:
    """Deleting what is being deleted is fine and has no effect."""
    await _held(api, widget)
    first = await api.delete(widget.place(api, "a"))
    second = await api.delete(widget.place(api, "a"))
    await _let_go(api, widget)

    assert second.status == 200
    assert second.version == first.version


async def test_no_new_finalizers_once_marked(api: Api, widget: Kind) -> None:
    """A marked object cannot get further finalizers."""
    await _held(api, widget)
    await api.delete(widget.place(api, "a"))
    body = {"metadata": {"finalizers": [HOLD, "example.com/more"]}}
    answer = await api.merge(widget.place(api, "a"), body)
    await _let_go(api, widget)

    assert answer.status == 422
    assert "no new finalizers can be added" in answer.message


async def test_mark_cannot_be_taken_off(api: Api, widget: Kind) -> None:
    """A deletionTimestamp stays, whatever is written."""
    await _held(api, widget)
    await api.delete(widget.place(api, "a"))
    await api.merge(widget.place(api, "a"), {"metadata": {"deletionTimestamp": None}})
    read = await api.get(widget.place(api, "a"))
    await _let_go(api, widget)

    assert "deletionTimestamp" in read.meta


async def test_marked_object_can_be_changed(api: Api, widget: Kind) -> None:
    """A controller can still write the status of what is going."""
    await _held(api, widget)
    await api.delete(widget.place(api, "a"))
    answer = await api.merge(widget.place(api, "a", "status"), {"status": {"phase": "Ending"}})
    await _let_go(api, widget)

    assert answer.json["status"] == {"phase": "Ending"}


async def test_watch_sees_mark_and_end(api: Api, widget: Kind) -> None:
    """The mark is MODIFIED, the end is DELETED."""
    made = await _held(api, widget)
    async with api.watch(widget.place(api), resourceVersion=made.version) as watch:
        await api.delete(widget.place(api, "a"))
        await _let_go(api, widget)
        events = await watch.take(2)

    assert said(events) == [("MODIFIED", "a"), ("DELETED", "a")]


async def test_unmarked_object_loses_its_finalizer_only(api: Api, widget: Kind) -> None:
    """Taking a finalizer off something that is not being deleted deletes nothing."""
    await _held(api, widget)
    answer = await _let_go(api, widget)
    read = await api.get(widget.place(api, "a"))

    assert (answer.status, read.status) == (200, 200)


async def test_bad_propagation(api: Api) -> None:
    """A propagation policy that does not exist is refused."""
    await api.config("a")
    body: dict[str, Any] = {"propagationPolicy": "Sideways"}
    answer = await api.delete(api.maps("a"), body)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert 'Unsupported value: "Sideways": supported values: "Foreground"' in answer.message
