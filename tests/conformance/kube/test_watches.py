"""Watches: from where, of what, and how they end."""

import pytest

from fleetd.kube import errors
from tests.conformance.kube.api import Api, Kind, said


async def test_watch_shows_later_changes(api: Api, widget: Kind) -> None:
    """From the version of a list on, every change comes once and in order."""
    start = (await api.get(widget.place(api))).version
    async with api.watch(widget.place(api), resourceVersion=start) as watch:
        await api.post(widget.place(api), widget.make("a"))
        await api.merge(widget.place(api, "a"), {"spec": {"size": 2}})
        await api.delete(widget.place(api, "a"))
        events = await watch.take(3)

    assert said(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)


async def test_watch_catches_up(api: Api, widget: Kind) -> None:
    """Changes made before the watch was opened, but after its version, come too."""
    start = (await api.get(widget.place(api))).version
    await api.post(widget.place(api), widget.make("a"))
    await api.delete(widget.place(api, "a"))
    async with api.watch(widget.place(api), resourceVersion=start) as watch:
        events = await watch.take(2)

    assert said(events) == [("ADDED", "a"), ("DELETED", "a")]


async def test_watch_from_nowhere_begins_with_all(api: Api, widget: Kind) -> None:
    """Without a version every object comes first, as ADDED."""
    await api.post(widget.place(api), widget.make("a"))
    async with api.watch(widget.place(api)) as watch:
        first = await watch.next()
        await api.post(widget.place(api), widget.make("b"))
        second = await watch.next()

    assert said([first, second]) == [("ADDED", "a"), ("ADDED", "b")]


async def test_deleted_object_is_shown_as_it_was(api: Api, widget: Kind) -> None:
    """DELETED carries the last state, with a version newer than that state's."""
    await api.post(widget.place(api), widget.make("a", {"size": 7}))
    listed = await api.get(widget.place(api))
    async with api.watch(widget.place(api), resourceVersion=listed.version) as watch:
        await api.delete(widget.place(api, "a"))
        event = await watch.next()

    assert event["object"]["spec"] == {"size": 7}
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(listed.version)


async def test_write_that_changes_nothing_is_not_shown(api: Api, widget: Kind) -> None:
    """A write without effect makes no event."""
    made = await api.post(widget.place(api), widget.make("a", {"size": 1}))
    async with api.watch(widget.place(api), resourceVersion=made.version) as watch:
        await api.merge(widget.place(api, "a"), {"spec": {"size": 1}})
        await api.merge(widget.place(api, "a"), {"spec": {"size": 2}})
        event = await watch.next()

    assert event["object"]["spec"] == {"size": 2}


async def test_watch_by_label_sees_the_border(api: Api) -> None:
    """An object that begins to match is ADDED, one that stops is DELETED."""
    start = (await api.get(api.maps())).version
    async with api.watch(api.maps(), resourceVersion=start, labelSelector="in=yes") as watch:
        await api.config("a")
        await api.merge(api.maps("a"), {"metadata": {"labels": {"in": "yes"}}})
        await api.merge(api.maps("a"), {"data": {"x": "1"}})
        await api.merge(api.maps("a"), {"metadata": {"labels": {"in": "no"}}})
        events = await watch.take(3)

    assert said(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


async def test_watch_by_name(api: Api) -> None:
    """One object can be watched by its name."""
    start = (await api.get(api.maps())).version
    async with api.watch(
        api.maps(), resourceVersion=start, fieldSelector="metadata.name=b"
    ) as watch:
        await api.config("a")
        await api.config("b")
        event = await watch.next()

    assert said([event]) == [("ADDED", "b")]


async def test_watch_of_a_namespace(api: Api) -> None:
    """What happens in other namespaces does not show."""
    start = (await api.get(api.maps())).version
    async with api.watch(api.maps(), resourceVersion=start) as watch:
        path = api.maps(namespace="default")
        name = f"{api.namespace}-elsewhere"
        await api.post(path, {"metadata": {"name": name}})
        await api.delete(f"{path}/{name}")
        await api.config("here")
        event = await watch.next()

    assert said([event]) == [("ADDED", "here")]


async def test_watch_from_too_long_ago(api: Api) -> None:
    """A version that is forgotten is answered with one ERROR: 410 Expired."""
    async with api.watch(api.maps(), resourceVersion="1") as watch:
        events = await watch.rest()

    assert [event["type"] for event in events] == ["ERROR"]
    status = events[0]["object"]
    assert (status["code"], status["reason"]) == (410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")


async def test_watch_ends_in_time(api: Api, widget: Kind) -> None:
    """timeoutSeconds ends a watch without an error."""
    await api.post(widget.place(api), widget.make("a"))
    async with api.watch(widget.place(api), timeoutSeconds="1") as watch:
        events = await watch.rest()

    assert said(events) == [("ADDED", "a")]


async def test_bookmark_after_the_initial_events(api: Api, widget: Kind) -> None:
    """sendInitialEvents ends its list with a bookmark that says so."""
    await api.post(widget.place(api), widget.make("a"))
    async with api.watch(
        widget.place(api),
        sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
        allowWatchBookmarks="true",
    ) as watch:
        first, mark = await watch.take(2)

    assert said([first]) == [("ADDED", "a")]
    assert mark["type"] == "BOOKMARK"
    metadata = mark["object"]["metadata"]
    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(metadata["resourceVersion"]) >= int(first["object"]["metadata"]["resourceVersion"])


async def test_initial_events_need_a_match(api: Api, widget: Kind) -> None:
    """sendInitialEvents without resourceVersionMatch is refused."""
    with pytest.raises(errors.Invalid) as caught:
        async with api.watch(widget.place(api), sendInitialEvents="true") as watch:
            await watch.next()

    assert caught.value.status == 422


async def test_bookmarks_come_by_themselves(api: Api, widget: Kind) -> None:
    """A watch that allows bookmarks gets one of its kind within two minutes, though nothing of
    its kind happens."""
    start = (await api.get(widget.place(api))).version
    await api.config("elsewhere")
    async with api.watch(
        widget.place(api), resourceVersion=start, allowWatchBookmarks="true"
    ) as watch:
        event = await watch.next(within=130.0)

    assert event["type"] == "BOOKMARK"
    assert event["object"]["kind"] == "Widget"
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(start)


async def test_watch_can_begin_at_a_bookmark(api: Api, widget: Kind) -> None:
    """The version of a bookmark is one to watch from."""
    await api.post(widget.place(api), widget.make("a"))
    options = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    async with api.watch(widget.place(api), **options) as watch:
        mark = (await watch.take(2))[1]
    version = mark["object"]["metadata"]["resourceVersion"]
    await api.post(widget.place(api), widget.make("b"))
    async with api.watch(widget.place(api), resourceVersion=version) as again:
        event = await again.next()

    assert said([event]) == [("ADDED", "b")]


async def test_watch_of_an_unknown_kind(api: Api) -> None:
    """A kind that is not served cannot be watched."""
    with pytest.raises(errors.NotFound):
        async with api.watch("/apis/nobody.example/v1/things") as watch:
            await watch.next()


async def test_watch_by_an_undeclared_field(api: Api, widget: Kind) -> None:
    """A field selector that lists refuse is refused for watches too."""
    with pytest.raises(errors.Invalid):
        async with api.watch(widget.place(api), fieldSelector="spec.size=1") as watch:
            await watch.next()
