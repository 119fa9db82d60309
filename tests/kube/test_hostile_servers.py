"""Servers that send without end, or what no API server sends: told in a sentence, within bounds."""

import asyncio
import random
import tracemalloc
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from fleetd.clock import LoopClock
from fleetd.kube import answers, cache, client, errors, http
from fleetd.kube.answers import Answer
from fleetd.kube.client import KubeClient
from fleetd.kube.kinds import Discovery
from fleetd.kube.room import Room
from fleetd.kube.transport import Request, Response
from fleetd.sim import loop
from tests.kube.shelf import BOX, Shelf, status
from tests.kube.stage import START, following
from topology import blind

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
DEEP = b"[" * 100_000 + b"]" * 100_000


class Giving:
    """A transport that answers each request with what `give` makes of it."""

    def __init__(self, give: Callable[[Request], Response]) -> None:
        self._give = give
        self.asked = 0

    async def send(self, request: Request) -> Response:
        self.asked += 1
        await asyncio.sleep(0)
        return self._give(request)

    def lines(self, request: Request) -> Any:
        raise NotImplementedError

    async def close(self) -> None: ...


def _page(items: list[object], more: str = "") -> Response:
    meta = {"resourceVersion": "7", "continue": more}
    return Response(status=200, body=msgspec.json.encode({"metadata": meta, "items": items}))


def _box(name: str, size: int = 0) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "5"}
    return {"metadata": meta, "spec": {"fill": "x" * size}}


# The bytes of an answer.


def _feed(answer: Answer, data: bytes, times: int) -> None:
    for _ in range(times):
        answer.feed(data)


FLOODS: Mapping[str, tuple[bytes, bytes]] = {
    "announcements": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n"),
    "one header": (b"HTTP/1.1 200 OK\r\nA: ", b"b" * 100),
    "trailers": (CHUNKED + b"0\r\n", b"A: b\r\n"),
    "a chunk's size": (CHUNKED, b"0"),
    "a chunk's words": (CHUNKED + b"1;", b"a=b;"),
}


@pytest.mark.parametrize("which", FLOODS)
def test_what_comes_beside_a_body_has_a_limit(which: str) -> None:
    """Announcements, headers and trailers without end are no answer of an API server."""
    answer = Answer(body_max=1000)
    first, again = FLOODS[which]
    answer.feed(first)
    with pytest.raises(errors.Garbled):
        _feed(answer, again, 20_000)


def test_many_headers_in_one_go_are_no_answer() -> None:
    """However short: each costs more than its bytes."""
    head = b"HTTP/1.1 200 OK\r\n" + b"A:\r\n" * 10_000 + b"\r\n"
    with pytest.raises(errors.Garbled):
        Answer(body_max=1000).feed(head)


def test_answers_under_way_share_one_room() -> None:
    """Each is within the limit, and together they are not; when one has ended there is room."""
    room = Room(4 * answers.STEP)
    piece = b" " * answers.STEP
    ones = [Answer(body_max=room.most, room=room) for _ in range(2)]
    for one in ones:
        one.feed(b"HTTP/1.1 200 OK\r\n\r\n" + piece)
    ones[0].feed(piece)
    ones[0].feed(piece)
    with pytest.raises(errors.Garbled, match="is it an API server"):
        _feed(ones[1], piece, 3)
    for one in ones:
        one.leave()
    assert room.taken == 0
    last = Answer(body_max=room.most, room=room)
    last.feed(b"HTTP/1.1 200 OK\r\n\r\n" + piece + piece)
    assert last.size == 2 * len(piece)


def test_a_body_in_crumbs_counts_as_what_it_takes() -> None:
    """A server that sends two bytes at a time makes a small answer large."""
    room = Room(8 * answers.STEP)
    answer = Answer(body_max=room.most, room=room)
    answer.feed(CHUNKED)
    crumbs = b"2\r\n\xff\xfe\r\n" * 10_000
    tracemalloc.start()
    try:
        with pytest.raises(errors.Garbled):
            _feed(answer, crumbs, 1000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 10 * room.most


def test_a_line_without_end_is_no_watch() -> None:
    """In large pieces or in crumbs."""
    for piece in (b"x" * 1000, b"x"):
        answer = Answer(body_max=1000, line_max=500_000)
        answer.feed(b"HTTP/1.1 200 OK\r\n\r\n")
        with pytest.raises(errors.Garbled, match="a line of the watch"):
            _feed(answer, piece, answers.PIECES_MAX + 10)
        assert answer.size <= 600_000


# What an answer says.

ODD: Mapping[str, tuple[Response, str]] = {
    "sent elsewhere": (
        Response(status=302, headers={"location": "https://login.example/?token=hush"}),
        "it answers 302 and sends us to login.example, as no API server does",
    ),
    "sent nowhere": (
        Response(status=307, headers={"location": "http://[bad"}),
        "it answers 307 and sends us elsewhere",
    ),
    "a page for a login": (
        Response(status=401, body=b"  <!doctype html><p>log in", headers={}),
        "it answers 401 with a web page",
    ),
    "a page for what is missing": (
        Response(status=404, body=b"gone", headers={"content-type": "text/HTML; charset=utf-8"}),
        "it answers 404 with a web page",
    ),
    "a page": (
        Response(status=200, body=b"<html>", headers={"content-type": "text/html"}),
        "answers in 'text/html'",
    ),
    "JSON that is called a page": (
        Response(status=200, body=b"{}", headers={"content-type": "text/plain"}),
        "answers in 'text/plain'",
    ),
    "protobuf": (
        Response(
            status=200,
            body=b"k8s\0",
            headers={"content-type": "application/vnd.kubernetes.protobuf"},
        ),
        "answers in 'application/vnd.kubernetes.protobuf'",
    ),
    "nothing": (Response(status=200), "as no API server does"),
    "no object": (Response(status=200, body=b"[]"), "as no API server does"),
    "another object": (Response(status=200, body=b'{"ok":true}'), "as no API server does"),
    "nested without end": (
        Response(status=200, body=b'{"metadata":{"name":"a"},"items":[' + DEEP + b"]}"),
        "as no API server does",
    ),
}


CALLS: Mapping[str, Callable[[Giving], Awaitable[object]]] = {
    "find": lambda there: Discovery(there).find("g", "Box"),
    "list": lambda there: KubeClient(there).list(BOX),
    "get": lambda there: KubeClient(there).get(BOX, "a", "ns"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("which", ODD)
def test_what_no_api_server_answers_is_told_as_that(which: str, call: str) -> None:
    """One reason, whatever was asked, with what to do; nothing of an address but its host."""
    answer, said = ODD[which]

    async def main() -> errors.KubeError:
        there = Giving(lambda _: answer)
        with pytest.raises(errors.KubeError) as caught:
            await CALLS[call](there)
        return caught.value

    told = loop.run(main())
    if which == "another object" and call == "find":
        assert isinstance(told, errors.NotServed)
        return
    assert told.blind == blind.NOT_AN_API_SERVER
    assert said in str(told)
    assert "is the address of the kubeconfig right?" in str(told)
    assert "hush" not in str(told)


def test_a_balancers_page_is_a_fault_that_passes() -> None:
    """The server behind it may be back in a moment; the page's text is of no use to anybody."""
    page = {"content-type": "text/html"}
    cause = errors.of(502, b"<html>Bad Gateway</html>", page)
    assert isinstance(cause, errors.ServerFault)
    assert cause.passing
    assert "html" not in str(cause)
    assert "a proxy or a balancer" in str(cause)


@pytest.mark.parametrize(
    "body", [b'{"details":' + DEEP + b"}", b'{"message":7}', b"\xff\xfe", b'{"code":"x"}']
)
def test_an_error_that_cannot_be_read_is_still_one(body: bytes) -> None:
    """With its status."""
    assert isinstance(errors.of(403, body, {}), errors.Forbidden)


def test_an_error_in_a_watch_may_hold_anything() -> None:
    """A code that is no number is the server's fault."""
    assert isinstance(errors.of_status({"code": "410"}), errors.ServerFault)


# Lists and watches.

ENDLESS: Mapping[str, Callable[[Request], Response]] = {
    "the same place again": lambda _: _page([_box("a")], "here"),
    "empty pages": lambda asked: _page([], asked.query.get("continue", "") + "1"),
}


@pytest.mark.parametrize("which", ENDLESS)
def test_a_list_that_never_ends_is_no_list(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is given up, and told."""
    monkeypatch.setattr(client, "PAGES", 50)
    there = Giving(ENDLESS[which])
    with pytest.raises(errors.Garbled, match="is a list that never ends"):
        loop.run(KubeClient(there).list(BOX))
    assert there.asked == {"the same place again": 2, "empty pages": 50}[which]


def test_a_list_with_ever_more_objects_ends_where_the_room_does() -> None:
    """And leaves the room as it was."""
    room = Room(1_000_000)
    there = Giving(lambda asked: _page([_box("a", 9_000)], asked.query.get("continue", "") + "1"))
    with pytest.raises(errors.TooMuch, match=r"more than 0 MiB .* raise network\.kept"):
        loop.run(KubeClient(there).list(BOX, room=room))
    assert there.asked < 120
    assert room.taken == 0


def test_a_watch_of_ever_more_objects_ends_where_the_room_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The cache says so, keeps no more than it may, and the server's other caches go on."""
    monkeypatch.setattr(cache, "RECOUNT", 50_000)

    async def main() -> tuple[str, str, int, bool]:
        room = Room(1_000_000)
        shelf, small = Shelf(), Shelf()
        small.put("mine")
        async with following(small, room=room) as other, following(shelf, room=room) as on:
            for number in range(2000):
                shelf.put(f"b{number}", fill="x" * 1000)
                if number % 100 == 0:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(120)
            with pytest.raises(cache.Stale) as told:
                on.cache.check()
            other.cache.check()
            return told.value.blind, str(told.value), room.taken, other.names() == ["mine"]

    reason, said, taken, lives = loop.run(main())
    assert reason == blind.TOO_MUCH
    assert "raise network.kept" in said
    assert taken <= 1_000_000
    assert lives


def test_a_watch_that_is_always_refused_is_not_fresh() -> None:
    """Lists work, so it looks as if all were well; but nothing of what changes would be heard."""

    class Shut(Shelf):
        def lines(self, request: Request) -> Any:
            return self._refuse()

        async def _refuse(self) -> Any:
            await asyncio.sleep(0.01)
            raise errors.of(403, msgspec.json.encode(status(403, "Forbidden", "no watch")), {})
            yield b""

    async def main() -> tuple[str, str, datetime | None]:
        shelf = Shut()
        shelf.put("a")
        kept = cache.Cache(
            KubeClient(shelf),
            BOX,
            clock=LoopClock(START),
            rng=random.Random(1),
            wake=lambda _: None,
        )
        async with asyncio.TaskGroup() as group:
            task = group.create_task(kept.run(), name="cache")
            await kept.synced(5)
            # At no moment of a quarter of an hour is it taken for one that follows.
            for _ in range(90):
                await asyncio.sleep(10)
                assert kept.fresh_since is None
            with pytest.raises(cache.Stale) as told:
                kept.check()
            task.cancel()
        return told.value.blind, str(told.value), kept.lost_since

    reason, said, since = loop.run(main())
    assert reason == blind.NOT_ALLOWED
    assert "no watch: if a right is missing, grant it" in said
    assert since is not None
    assert since < datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def test_limits_leave_room_for_what_is_real() -> None:
    """A page of 500 objects of the largest kind, and a line with one."""
    assert http.BODY_MAX >= 500 * 1024 * 1024
    assert http.LINE_MAX >= 4 * 1536 * 1024
