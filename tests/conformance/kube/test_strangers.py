"""Somebody else's client, kubernetes_asyncio with its models and its watch, on every wire."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubernetes_asyncio import config
from kubernetes_asyncio.client import CoreV1Api, CustomObjectsApi
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.watch import Watch

from tests.conformance.kube.api import Api, Kind, config_map
from tests.conformance.kube.places import PLACES, Server

APPLY = "application/apply-patch+yaml"
WITHIN = 30.0


# It has no types that a checker could use.
_config: Any = config
_Core: Any = CoreV1Api
_Watch: Any = Watch


@pytest.fixture(params=["wire", pytest.param("real", marks=pytest.mark.real)])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    """It speaks HTTP, and within one process there is no wire."""
    async with PLACES[request.param]() as server:
        yield server


@pytest.fixture
async def stranger(server: Server) -> AsyncIterator[Any]:
    """Its client, from a kubeconfig, as its users make it."""
    async with await _config.new_client_from_config_dict(server.kubeconfig) as made:
        yield made


async def _refusal(call: Any) -> int:
    try:
        await call
    except ApiException as refused:
        return int(refused.status or 0)
    return 0


async def _take(stream: Any, count: int) -> list[Any]:
    async with asyncio.timeout(WITHIN):
        return [await anext(stream) for _ in range(count)]


async def test_its_models_are_filled(api: Api, stranger: Any) -> None:
    """Created, read, patched, listed by label and deleted, each answer as its classes want it."""
    core, space = _Core(stranger), api.namespace
    body: Any = config_map("a", {"x": "1"}, labels={"app": "a"})
    made = await core.create_namespaced_config_map(space, body)
    await core.patch_namespaced_config_map("a", space, {"data": {"y": "2"}})
    read = await core.read_namespaced_config_map("a", space)
    listed = await core.list_namespaced_config_map(space, label_selector="app=a")
    gone = await core.delete_namespaced_config_map("a", space)

    assert made.metadata.uid == read.metadata.uid
    assert read.data == {"x": "1", "y": "2"}
    assert read.metadata.creation_timestamp.tzinfo is not None
    assert [one.metadata.name for one in listed.items] == ["a"]
    assert gone.status == "Success"
    assert await _refusal(core.read_namespaced_config_map("a", space)) == 404


async def test_its_refusals_have_their_codes(api: Api, stranger: Any) -> None:
    """Made twice, changed on an old version, not valid at all."""
    core, space = _Core(stranger), api.namespace
    body: Any = config_map("a", {"x": "1"})
    old = await core.create_namespaced_config_map(space, body)
    await core.patch_namespaced_config_map("a", space, {"data": {"x": "2"}})
    bad: Any = config_map("Not A Name")

    assert await _refusal(core.create_namespaced_config_map(space, body)) == 409
    assert await _refusal(core.replace_namespaced_config_map("a", space, old)) == 409
    assert await _refusal(core.create_namespaced_config_map(space, bad)) == 422


async def test_its_apply_meets_an_owner(api: Api, stranger: Any) -> None:
    """A server-side apply over somebody's field is refused, and taken by force."""
    core, space = _Core(stranger), api.namespace

    async def apply(value: str, manager: str, **more: Any) -> Any:
        body = config_map("a", {"x": value})
        return await core.patch_namespaced_config_map(
            "a", space, body, field_manager=manager, _content_type=APPLY, **more
        )

    await apply("1", "one")
    refused = await _refusal(apply("2", "two"))
    forced = await apply("2", "two", force=True)

    assert refused == 409
    assert forced.data == {"x": "2"}
    assert "two" in [one.manager for one in forced.metadata.managed_fields]


async def test_its_pages_are_whole(api: Api, stranger: Any) -> None:
    """A list in pieces of two has all five, each once."""
    core, space = _Core(stranger), api.namespace
    for number in range(5):
        await api.config(f"part-{number}")
    names: list[str] = []
    more = ""
    while True:
        page = await core.list_namespaced_config_map(space, limit=2, _continue=more)
        names += [one.metadata.name for one in page.items]
        more = page.metadata._continue
        if not more:
            break

    assert [name for name in names if name.startswith("part-")] == [f"part-{n}" for n in range(5)]


async def test_its_watch_sees_a_life(api: Api, stranger: Any) -> None:
    """From the version of a list on: made, changed, deleted, with filled models."""
    core, space = _Core(stranger), api.namespace
    before = await core.list_namespaced_config_map(space)
    async with _Watch() as looking:
        stream = looking.stream(
            core.list_namespaced_config_map,
            space,
            resource_version=before.metadata.resource_version,
            field_selector="metadata.name=a",
            allow_watch_bookmarks=True,
        )
        await api.config("a", {"x": "1"})
        await api.merge(api.maps("a"), {"data": {"x": "2"}})
        await api.delete(api.maps("a"))
        events = [one for one in await _take(stream, 3) if one["type"] != "BOOKMARK"]

    assert [one["type"] for one in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert [one["object"].data for one in events] == [{"x": "1"}, {"x": "2"}, {"x": "2"}]


async def test_its_watch_is_told_that_it_is_too_late(api: Api, stranger: Any) -> None:
    """A version that nobody remembers ends it with 410."""
    core = _Core(stranger)
    async with _Watch() as looking:
        stream = looking.stream(
            core.list_namespaced_config_map, api.namespace, resource_version="1", timeout_seconds=20
        )
        assert await _refusal(_take(stream, 1)) == 410


async def test_its_watch_ends_when_it_was_to(api: Api, stranger: Any) -> None:
    """After `timeout_seconds`, without a fault."""
    core = _Core(stranger)
    async with _Watch() as looking, asyncio.timeout(WITHIN):
        events = [
            one["type"]
            async for one in looking.stream(
                core.list_namespaced_config_map,
                api.namespace,
                field_selector="metadata.name=nothing",
                timeout_seconds=1,
            )
        ]

    assert events == []


async def test_its_custom_objects(api: Api, stranger: Any, widget: Kind) -> None:
    """A kind without a class is read and watched as plain data."""
    custom, space = CustomObjectsApi(stranger), api.namespace
    where = (widget.group, "v1", space, widget.plural)
    made: Any = await custom.create_namespaced_custom_object(
        *where, widget.make("w", {"size": 3}, namespace=space)
    )
    async with _Watch() as looking:
        stream = looking.stream(custom.list_namespaced_custom_object, *where)
        (first,) = await _take(stream, 1)
    listed: Any = await custom.list_namespaced_custom_object(*where)

    assert made["spec"] == {"size": 3}
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "w")
    assert [one["metadata"]["name"] for one in listed["items"]] == ["w"]
