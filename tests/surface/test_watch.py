"""Events as they happen: taken up where they broke off, each once, at nobody else's cost."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from fleetd.settings import Address
from fleetd.store.base import Recorded
from fleetd.surface import crowd, http, watch
from fleetd.surface.http import Server
from fleetd.vocabulary import Event
from tests.surface import panels
from tests.surface.panels import NOW, FakePanel
from topology.resource import Ref

OTHER = Ref("flux", "hv")
SOON = 60.0
"""Seconds after which what should have come has not."""


def happen(panel: FakePanel, count: int, ref: Ref = panels.CLUSTER, message: str = "x") -> None:
    last = panel.history[-1].seq if panel.history else 0
    panel.history += [
        Recorded(seq=seq, event=Event(at=NOW, ref=ref, reason="Done", message=message))
        for seq in range(last + 1, last + 1 + count)
    ]


@pytest.fixture
def panel(monkeypatch: pytest.MonkeyPatch) -> FakePanel:
    monkeypatch.setattr(watch, "POLL", 0.01)
    return panels.small()


@pytest_asyncio.fixture
async def server(panel: FakePanel) -> AsyncGenerator[Server]:
    async with http.serving(panel, Address("127.0.0.1", 0)) as server:
        yield server


class Reader:
    """A client of the stream; knows the last id it saw."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer
        self.last = ""
        self.kinds: list[str] = []

    async def event(self) -> Any:
        """The next event with data; None at the end."""
        data = kind = ""
        async with asyncio.timeout(SOON):
            while line := (await self.answer.content.readline()).decode():
                name, _, value = line.rstrip("\n").partition(": ")
                if name == "id":
                    self.last = value
                elif name == "event":
                    kind = value
                elif name == "data":
                    data = value
                elif not name and data:
                    self.kinds.append(kind)
                    return json.loads(data)
        return None

    async def seqs(self, count: int) -> list[int]:
        return [(await self.event())["seq"] for _ in range(count)]


class Opened:
    def __init__(self, server: Server, query: str = "", **headers: str) -> None:
        self.url, self.headers = f"{server.url}/api/v1/watch{query}", headers

    async def __aenter__(self) -> Reader:
        self.session = aiohttp.ClientSession()
        self.answer = await self.session.get(self.url, headers=self.headers)
        return Reader(self.answer)

    async def __aexit__(self, *_: object) -> None:
        self.answer.close()
        await self.session.close()


async def test_events_come_as_they_happen(server: Server, panel: FakePanel) -> None:
    """Without an id the stream begins now; the type is that of an event stream."""
    async with Opened(server) as reader:
        assert reader.answer.headers["Content-Type"] == "text/event-stream"
        assert reader.answer.headers["X-Request-Id"]
        happen(panel, 3)
        assert await reader.seqs(3) == [6, 7, 8]
        happen(panel, 1, message="line\none")
        assert (await reader.event())["message"] == "line\none"
        assert reader.last == "9"


async def test_a_broken_stream_goes_on_without_loss_or_repetition(
    server: Server, panel: FakePanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is cut off where, all readings together are history, each event once."""
    monkeypatch.setattr(watch, "CHUNK", 7)
    monkeypatch.setattr(watch, "SHARED", 20)
    happen(panel, 200)
    seen: list[int] = []
    last = "0"
    for count in (1, 6, 13, 0, 40, 100, 45):
        async with Opened(server, **{"Last-Event-ID": last}) as reader:
            happen(panel, 3)
            seen += await reader.seqs(count)
            last = reader.last or last
    assert seen == list(range(1, 206))


async def test_filters(server: Server, panel: FakePanel) -> None:
    """A reader hears of one thing or one region only, and its place moves on all the same."""
    async with Opened(server, "?for=flux/hv&after=5") as reader:
        happen(panel, 5)
        happen(panel, 1, OTHER)
        assert await reader.seqs(1) == [11]
    async with Opened(server, "?region=eu-1&after=11") as reader:
        happen(panel, 2, Ref("cluster", "nowhere"))
        happen(panel, 1)
        assert await reader.seqs(1) == [14]


async def test_a_quiet_stream_shows_that_it_lives(
    server: Server, panel: FakePanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A beat carries the place up to which all was looked through."""
    monkeypatch.setattr(watch, "BEAT", 0.05)
    async with Opened(server, "?for=flux/none") as reader:
        happen(panel, 4)
        async with asyncio.timeout(SOON):
            while reader.last != "9":
                line = (await reader.answer.content.readline()).decode()
                reader.last = line[4:].strip() if line.startswith("id: ") else reader.last
        assert reader.kinds == []


@pytest.mark.parametrize(
    ("given", "status", "code"),
    [
        ("x", 400, "bad-event-id"),
        ("", 400, "bad-event-id"),
        ("-1", 400, "bad-event-id"),
        ("1.5", 400, "bad-event-id"),
        ("9" * 20, 400, "bad-event-id"),
        ("²", 400, "bad-event-id"),
        ("6", 410, "history-gone"),
        ("1", 410, "history-gone"),
    ],
)
async def test_bad_places(
    server: Server, panel: FakePanel, given: str, status: int, code: str
) -> None:
    """What is no id, is not of this history, or is older than it, is refused with what to do."""
    del panel.history[:3]
    async with Opened(server, **{"Last-Event-ID": given}) as reader:
        body = await reader.answer.json(content_type=None)
        assert (reader.answer.status, body["code"]) == (status, code)
        assert body["detail"]


async def test_a_reader_whose_history_goes_away_is_told(
    server: Server, panel: FakePanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Falling behind what is kept ends the stream with a word, not with a hole."""
    monkeypatch.setattr(watch, "CHUNK", 2)
    monkeypatch.setattr(watch, "SHARED", 2)
    happen(panel, 20)
    whole = panel.events
    asked = 0

    async def events(**given: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 4:
            del panel.history[:15]
        return await whole(**given)

    monkeypatch.setattr(panel, "events", events)
    async with Opened(server, **{"Last-Event-ID": "0"}) as reader:
        seen: list[Any] = []
        while (event := await reader.event()) is not None:
            seen.append(event.get("seq"))
    assert reader.kinds[-1] == "gone"
    assert seen[:-1] == list(range(1, len(seen)))


async def test_who_does_not_read_is_cut_off_and_costs_nobody(
    panel: FakePanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that takes nothing is dropped; another gets everything in the meantime."""
    monkeypatch.setattr(crowd, "LOOK", 10 * SOON)
    monkeypatch.setattr(crowd, "STALLED", 10 * SOON)
    people = crowd.Crowd()
    monkeypatch.setattr(crowd, "Crowd", lambda: people)
    async with http.serving(panel, Address("127.0.0.1", 0)) as server:
        reader, writer = await asyncio.open_connection(*server.address, limit=1)
        writer.write(b"GET /api/v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readexactly(1)
        async with Opened(server) as other:
            for _ in range(40):
                happen(panel, 200, message="m" * 2000)
                assert len(await other.seqs(200)) == 200
            for _ in range(2):
                people.look()
            async with asyncio.timeout(SOON):
                while await _takes(reader):
                    pass
            happen(panel, 1)
            assert len(await other.seqs(1)) == 1
        writer.close()


async def _takes(reader: asyncio.StreamReader) -> bool:
    try:
        return bool(await reader.read(1 << 20))
    except ConnectionError:
        return False


async def test_there_are_not_more_readers_than_planned(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more than there may be is refused; who leaves makes room."""
    monkeypatch.setattr(watch, "READERS_EACH", 1)
    monkeypatch.setattr(watch, "TICK", 0.05)
    async with Opened(server) as first:
        assert first.answer.status == 200
        async with Opened(server) as second:
            assert second.answer.status == 503
    async with asyncio.timeout(SOON):
        while True:
            async with Opened(server) as again:
                if again.answer.status == 200:
                    break


async def test_streams_end_with_the_server(
    panel: FakePanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon that stops does not wait for its readers."""
    monkeypatch.setattr(http, "GOODBYE", 600.0)
    async with asyncio.timeout(SOON), http.serving(panel, Address("127.0.0.1", 0)) as server:
        opened = Opened(server)
        reader = await opened.__aenter__()
    assert await reader.event() is None
    await opened.__aexit__()


async def test_readers_are_told_in_groups(
    server: Server, panel: FakePanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gets what happens, once, and not all of them in one breath of the loop."""
    monkeypatch.setattr(watch, "APART", 0.02)
    came: list[float] = []

    async def read(answer: aiohttp.ClientResponse) -> list[int]:
        found = await Reader(answer).seqs(1)
        came.append(asyncio.get_running_loop().time())
        return found

    async with contextlib.AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        there = [
            await stack.enter_async_context(session.get(f"{server.url}/api/v1/watch"))
            for _ in range(2 * watch.GROUPS)
        ]
        happen(panel, 1)
        assert await asyncio.gather(*(read(one) for one in there)) == [[6]] * len(there)
    assert max(came) - min(came) >= 0.02 * (watch.GROUPS - 2)
