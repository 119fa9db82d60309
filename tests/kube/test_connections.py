"""How connections are opened, shared, kept and left, against servers that do as they like."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from pathlib import Path

import pytest
from aiohttp import web

from fleetd.kube import connections, errors
from fleetd.kube.transport import Request
from tests.kube import wire
from tests.kube.test_http import GET, to

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
SOON = 60.0
"""Seconds after which what should have come has not."""
PUT = Request(method="PUT", path="/x", body=b"{}")

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Coroutine[None, None, None]]


@contextlib.asynccontextmanager
async def talking(talk: Talk) -> AsyncGenerator[tuple[str, list[int]]]:
    """A server that does `talk` on each connection, with its number; and the list of those."""
    numbers: list[int] = []
    talks: list[asyncio.Task[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        numbers.append(len(numbers))
        talks.append(asyncio.create_task(talk(reader, writer, numbers[-1])))
        await asyncio.wait(talks[-1:])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", numbers
    finally:
        server.close()
        for one in talks:
            one.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        await asyncio.sleep(0.01)  # until the ends are closed


async def _again_and_again(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _number: int
) -> None:
    while True:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)


async def test_one_after_another_use_one_connection() -> None:
    """A connection is kept; two at once have two."""
    async with talking(_again_and_again) as (server, numbers), to(server) as transport:
        for _ in range(3):
            await transport.send(GET)
        alone = len(numbers)
        await asyncio.gather(transport.send(GET), transport.send(GET))

    assert (alone, len(numbers)) == (1, 2)


async def test_no_more_connections_than_allowed() -> None:
    """Who finds none free waits for one."""
    async with talking(_again_and_again) as (server, numbers), to(server, connections=2) as ours:
        await asyncio.gather(*(ours.send(GET) for _ in range(20)))

    assert len(numbers) == 2


@pytest.mark.parametrize("request_", [GET, PUT], ids=["read", "write"])
async def test_what_was_closed_while_idle_is_not_used(request_: Request) -> None:
    """The server closes after each answer without saying so: each request has a fresh one."""
    closed = asyncio.Event()

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await writer.drain()
        writer.close()
        closed.set()

    async with talking(once) as (server, numbers), to(server) as transport:
        for _ in range(3):
            closed.clear()
            assert (await transport.send(request_)).status == 200
            await closed.wait()
            await asyncio.sleep(0.01)

    assert len(numbers) == 3


async def test_a_goodbye_that_nobody_has_read_yet_is_noticed() -> None:
    """It has come, and the event loop has not told it: nothing is written to that connection."""
    leave = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        if number == 0:
            await leave.wait()
        else:
            await reader.read()

    async with talking(talk) as (server, numbers), to(server) as transport:
        await transport.send(GET)
        assert transport._pool is not None
        idle = transport._pool._idle[0]
        assert idle._transport is not None
        idle._transport.pause_reading()
        assert idle.usable
        leave.set()
        async with asyncio.timeout(SOON):
            while idle.usable:  # noqa: ASYNC110 - nobody is told, that is what is tried
                await asyncio.sleep(0.01)
        assert (await transport.send(GET)).status == 200

    assert len(numbers) == 2


async def test_a_request_that_was_written_is_never_sent_twice() -> None:
    """The server takes it and hangs up without a word: it may have done what it was asked."""
    asked: list[int] = []

    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await reader.readuntil(b"\r\n\r\n")
        asked.append(number)

    async with talking(rude) as (server, _), to(server) as transport:
        await transport.send(GET)
        with pytest.raises(errors.Unreachable, match="without an answer"):
            await transport.send(PUT)

    assert asked == [0]


async def test_an_answer_that_comes_before_the_request_is_done_counts() -> None:
    """A server that refuses a large body early is heard, and its connection is left."""
    heard = asyncio.Event()

    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await writer.drain()
        await heard.wait()

    large = Request(method="PUT", path="/x", body=b"x" * 30_000_000)
    async with talking(early) as (server, numbers), to(server) as transport:
        assert (await transport.send(large)).status == 413
        heard.set()
        assert (await transport.send(GET)).status == 413

    assert len(numbers) == 2


async def test_who_is_called_off_leaves_no_answer_for_the_next() -> None:
    """The half of an answer that was under way is not read as the next one's."""
    half, left = asyncio.Event(), asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n")
            half.set()
            await left.wait()
            writer.write(str(number).encode())

    async with talking(slow) as (server, _), to(server, connections=1) as transport:
        first = asyncio.ensure_future(transport.send(GET))
        await half.wait()
        first.cancel()
        await asyncio.wait([first])
        left.set()
        assert first.cancelled()
        assert (await transport.send(GET)).body == b"1"


async def test_idle_connections_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a while the server sees the end of them."""
    monkeypatch.setattr(connections, "KEEP", 0.05)
    ended = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        try:
            await _again_and_again(reader, writer, 0)
        finally:
            ended.set()

    async with talking(talk) as (server, _), to(server) as transport:
        await transport.send(GET)
        async with asyncio.timeout(SOON):
            await ended.wait()

    assert ended.is_set()


async def test_a_reader_that_is_slow_makes_the_server_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read ahead of the reader is bounded; all of it comes in the end."""
    monkeypatch.setattr(connections, "AHEAD", 10_000)
    line = b"x" * 999 + b"\n"
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(20_000):
            writer.write(line)
            await writer.drain()
            sent += 1

    async with talking(flood) as (server, _), to(server) as transport:
        lines = transport.lines(GET)
        count = len(await anext(lines))
        await asyncio.sleep(0.3)
        ahead = sent
        count += sum([len(some) async for some in lines])

    assert ahead < 15_000
    assert count == 20_000


def _tunnel(seen: list[str], head: bytes) -> Talk:
    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _: int) -> None:
        asked = (await reader.readuntil(b"\r\n\r\n")).decode()
        seen.append(asked.split("\r\n", maxsplit=1)[0])
        writer.write(head)
        if b" 200" not in head:
            return
        host, port = asked.split()[1].rsplit(":", 1)
        there, back = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            back.close()

    return proxy


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_a_proxy_only_sees_where_it_leads(version: bytes, tmp_path: Path) -> None:
    """TLS is between us and the server, whose certificate is checked through the tunnel."""
    authority = wire.Authority()
    tls = wire.server_tls(authority.sign("127.0.0.1"), tmp_path)
    seen: list[str] = []
    tunnel = _tunnel(seen, b"HTTP/%b 200 Connection established\r\n\r\n" % version)

    async def ok(_request: web.Request) -> web.StreamResponse:
        return web.Response(text="{}")

    async with wire.serving(ok, tls) as server, talking(tunnel) as (proxy, _):
        trusted = {"certificate-authority-data": wire.b64(authority.pem), "proxy-url": proxy}
        async with to(server, trusted) as transport:
            response = await transport.send(GET)
        stranger = wire.b64(wire.Authority("another").pem)
        async with to(server, {**trusted, "certificate-authority-data": stranger}) as transport:
            with pytest.raises(errors.Unreachable, match="its certificate is not trusted"):
                await transport.send(GET)

    assert response.status == 200
    assert seen == [f"CONNECT {server.removeprefix('https://')} HTTP/1.1"] * 2


async def test_a_proxy_that_refuses_is_named() -> None:
    """Not the server is to blame, and the words say so."""
    refusal = _tunnel(
        [], b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"
    )
    async with talking(refusal) as (proxy, _), to("https://10.0.0.1", {"proxy-url": proxy}) as ours:
        with pytest.raises(errors.Unreachable, match="the proxy does not lead there: it says 407"):
            await ours.send(GET)


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/ä"])
async def test_no_request_can_be_smuggled_into_a_path(path: str) -> None:
    """What is not encoded is refused before anything is sent."""
    async with talking(_again_and_again) as (server, numbers), to(server) as transport:
        with pytest.raises(errors.Invalid):
            await transport.send(Request(method="GET", path=path))
        with pytest.raises(errors.Invalid):
            await transport.send(Request(method="GET", path="/a", accept="a\r\nb"))

    assert numbers == []
