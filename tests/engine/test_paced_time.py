"""Paced time: it passes faster than life, and two loops with the same pace agree about it."""

import asyncio
import time

import pytest

from fleetd.sim.loop import PacedLoop


def test_two_loops_agree_about_the_time() -> None:
    """The same pace and the same beginning give the same time, in two loops."""
    since = time.time() - 100
    first = PacedLoop(600, since)
    second = PacedLoop(600, since)
    try:
        assert second.time() == pytest.approx(first.time(), abs=6)
        assert 60_000 < first.time() < 66_000
    finally:
        first.close()
        second.close()


def test_a_minute_takes_a_tenth_of_a_second() -> None:
    """A sleep of 60 s at pace 600 is 60 s in the loop and about 0.1 s on the wall."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(60)
        return loop.time() - began

    before = time.monotonic()
    with asyncio.Runner(loop_factory=lambda: PacedLoop(600, time.time())) as runner:
        passed = runner.run(main())

    assert 59.9 <= passed < 1800
    assert 0.09 <= time.monotonic() - before < 3


def test_sockets_work_as_ever() -> None:
    """Unlike virtual time, paced time has an outside: a connection over loopback works."""

    async def main() -> bytes:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello\n")
            answer = await reader.readline()
            writer.close()
            return answer

    with asyncio.Runner(loop_factory=lambda: PacedLoop(600, time.time())) as runner:
        assert runner.run(main()) == b"hello\n"
