"""Connections that ask nothing, never finish, or take nothing: each is ended, and nobody else."""

import asyncio
import contextlib
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest
import pytest_asyncio

from fleetd import secrets
from fleetd.settings import Address
from fleetd.surface import bodies, crowd, http
from fleetd.surface.http import Server
from tests.surface import desks, panels

HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LARGE = 4_000_000
"""Bytes of an answer: more than kernels keep for somebody."""
PATH = "/api/v1/resources/cluster/hv"
MANY = 50
STEP = 64_000
"""Bytes that a slow reader takes between two looks: more than are on the way to it."""
SOON = 60.0
"""Seconds after which something that should end has not."""


Line = tuple[StreamReader, StreamWriter]
Connect = Callable[[Server], Awaitable[Line]]


@pytest_asyncio.fixture
async def connect() -> AsyncGenerator[Connect]:
    """By somebody who keeps little for himself; all lines are closed in the end."""
    made: list[Line] = []

    async def connect(server: Server) -> Line:
        plug = socket.socket()
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plug.setblocking(False)
        place = (server.address.host, server.address.port)
        await asyncio.get_running_loop().sock_connect(plug, place)
        made.append(await asyncio.open_connection(sock=plug, limit=1024))
        return made[-1]

    yield connect
    for _, writer in made:
        writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def _ended(reader: StreamReader) -> bytes:
    """All that comes until the server ends it."""
    read = b""
    try:
        async with asyncio.timeout(SOON):
            while piece := await reader.read(65536):
                read += piece
    except ConnectionError:
        pass
    return read


async def _health(line: Line) -> bytes:
    line[1].write(HEAD + b"Connection: close\r\n\r\n")
    return await _ended(line[0])


async def _drip(writer: StreamWriter) -> None:
    """A head that goes on and on."""
    writer.write(HEAD + b"X: ")
    while not writer.is_closing():
        writer.write(b"x")
        await asyncio.sleep(0.05)


async def test_a_head_that_drips_is_ended(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However busily: the time for a head begins with the connection, not with its last byte."""
    monkeypatch.setattr(crowd, "HEAD_WITHIN", 0.5)
    async with http.serving(panels.small(), Address("127.0.0.1", 0)) as server:
        there = [await connect(server) for _ in range(MANY)]
        async with asyncio.TaskGroup() as group:
            drips = [group.create_task(_drip(writer)) for _, writer in there]
            said = await asyncio.gather(*(_ended(reader) for reader, _ in there))
            for task in drips:
                task.cancel()
        assert said == [b""] * MANY
        # Whoever is quick enough; on a busy machine that is not the first.
        answers = [await _health(await connect(server)) for _ in range(10)]
        assert any(answer.endswith(b"ok\n") for answer in answers)


async def test_a_body_that_does_not_come_is_refused(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a problem that says so, after the time that a body has."""
    monkeypatch.setattr(bodies, "WITHIN", 0.2)
    async with http.serving(
        panels.small(), Address("127.0.0.1", 0), desk=desks.FakeDesk()
    ) as server:
        reader, writer = await connect(server)
        head = "POST /api/v1/pause HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
        writer.write(f"{head}Content-Type: application/json\r\n\r\n{{".encode())
        async with asyncio.timeout(SOON):
            assert b" 408 " in await reader.readuntil(b"\r\n")


async def test_who_takes_nothing_is_cut_off(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a large answer; somebody who takes it slowly gets all of it."""
    secrets.REGISTRY.forget()  # what other tests revealed is looked for at each letter
    monkeypatch.setattr(crowd, "LOOK", 10 * SOON)
    monkeypatch.setattr(crowd, "STALLED", 10 * SOON)
    people = crowd.Crowd()
    monkeypatch.setattr(crowd, "Crowd", lambda: people)
    async with http.serving(panels.small("x" * LARGE), Address("127.0.0.1", 0)) as server:
        idle, slow = [await connect(server) for _ in range(4)], await connect(server)
        for _, writer in (*idle, slow):
            writer.write(f"GET {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        taken = 0
        while taken + STEP < LARGE:
            async with asyncio.timeout(SOON):
                taken += len(await slow[0].readexactly(STEP))
            people.look()
        for reader, _ in idle:
            assert len(await _ended(reader)) < LARGE


async def test_too_many_make_room(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who have asked nothing for longest go; a stream that is read stays, and whoever comes
    is answered."""
    monkeypatch.setattr(crowd, "LOOK", 0.1)
    monkeypatch.setattr(crowd, "MOST", 10)
    async with http.serving(panels.small(), Address("127.0.0.1", 0)) as server:
        stream, writer = await connect(server)
        writer.write(b"GET /api/v1/watch HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b"200" in await stream.readuntil(b"\r\n")
        there = [await connect(server) for _ in range(MANY)]
        gone = there[: MANY + 1 - crowd.MOST]
        assert await asyncio.gather(*(_ended(reader) for reader, _ in gone)) == [b""] * len(gone)
        assert (await _health(await connect(server))).endswith(b"ok\n")
        assert not stream.at_eof()
        kept = there[len(gone) + 1 :]
        assert [reader.at_eof() for reader, _ in kept] == [False] * len(kept)
