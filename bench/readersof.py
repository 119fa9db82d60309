"""
The readers of a daemon, in a process of their own: `python -m bench.readersof WHAT PORT SECONDS
MANY TOKEN...`. Says that it is ready, reads for so long, and prints what it got as JSON.

`read` is a full house: so many watch, four list all clusters again and again, one scrapes. `ask` is
one caller who lists a page; `idle` is the same one among twice so many who mean no good.
"""

import asyncio
import contextlib
import socket
import sys
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Sequence

import msgspec

CALLERS = 8
"""Tokens: one caller may have 50 streams."""
READY = b"ready\n"
LISTS = "/api/v1/resources?kind=cluster&limit=1000"
PAGE = "/api/v1/resources?kind=cluster&limit=100"
DRIP = 1.0
"""Seconds between two bytes of a head that never ends."""


class Got(msgspec.Struct, kw_only=True):
    readers: int = 0
    idle: int = 0
    asked: int = 0
    scraped: int = 0
    events: int = 0
    bytes: int = 0
    """Of one list."""
    lists: list[float] = []
    """Seconds of each."""
    spread: list[float] = []
    """Seconds from the first to the last reader, of each event."""

    def add(self, other: "Got") -> None:
        self.readers, self.idle = max(self.readers, other.readers), max(self.idle, other.idle)
        self.asked += other.asked
        self.scraped += other.scraped
        self.events += other.events
        self.bytes = max(self.bytes, other.bytes)
        self.lists = [*self.lists, *other.lists]
        self.spread = [*self.spread, *other.spread]


class Callers:
    def __init__(self, port: int, seconds: float, tokens: Sequence[str]) -> None:
        self._port = port
        self.seconds = seconds
        self._tokens = tokens
        self.got = Got()
        self._seen: dict[bytes, list[float]] = {}

    async def connect(self, *, small: bool = False) -> tuple[StreamReader, StreamWriter]:
        plug = socket.socket()
        if small:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        plug.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plug, ("127.0.0.1", self._port))
        return await asyncio.open_connection(sock=plug, limit=1024 if small else 1 << 20)

    def head(self, path: str, who: int = 0) -> bytes:
        token = self._tokens[who % len(self._tokens)]
        lines = (f"GET {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}")
        return "\r\n".join((*lines, "", "")).encode()

    async def ask(self, line: tuple[StreamReader, StreamWriter], path: str, who: int = 0) -> int:
        """Bytes of the answer."""
        reader, writer = line
        writer.write(self.head(path, who))
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise ValueError(head.decode())
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(size)
        return size

    async def lists(self, path: str, who: int, pause: float) -> None:
        line = await self.connect()
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            began = time.monotonic()
            self.got.bytes = await self.ask(line, path, who)
            self.got.lists.append(time.monotonic() - began)
            self.got.asked += 1
            await asyncio.sleep(pause)
        line[1].close()

    async def scrapes(self) -> None:
        line = await self.connect()
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            await self.ask(line, "/metrics", 1)
            self.got.scraped += 1
            await asyncio.sleep(1.0)
        line[1].close()

    async def watches(self, who: int) -> None:
        """One stream, for ever."""
        reader, writer = await self.connect()
        writer.write(self.head("/api/v1/watch", who))
        if b" 200 " not in await reader.readline():
            raise ValueError("a reader was refused")
        self.got.readers += 1
        while line := await reader.readline():
            if line.startswith(b"id: "):
                self._seen.setdefault(line, []).append(time.monotonic())
                self.got.events += 1

    async def full_house(self, many: int) -> None:
        async with asyncio.TaskGroup() as group:
            watching = [group.create_task(self.watches(number)) for number in range(many)]
            while self.got.readers < many:  # noqa: ASYNC110 - there is nobody to tell
                await asyncio.sleep(0.05)
            tell(READY)
            async with asyncio.TaskGroup() as rest:
                for number in range(4):
                    rest.create_task(self.lists(LISTS, number, 0.2))
                rest.create_task(self.scrapes())
            for one in watching:
                one.cancel()
        self.got.spread = [
            times[-1] - times[0] for times in self._seen.values() if len(times) == many
        ]

    async def drips(self) -> None:
        """A head that never ends; begun anew whenever it is cut off."""
        while True:
            with contextlib.suppress(OSError):
                _, writer = await self.connect()
                writer.write(b"GET / HTTP/1.1\r\nX: ")
                self.got.idle += 1
                while not writer.is_closing():
                    writer.write(b"x")
                    await asyncio.sleep(DRIP)

    async def takes_nothing(self, who: int) -> None:
        _, writer = await self.connect(small=True)
        writer.write(self.head(LISTS if who % 10 == 0 else "/openapi.json", who))
        self.got.idle += 1
        await asyncio.Event().wait()

    async def among_idlers(self, many: int) -> None:
        async with asyncio.TaskGroup() as group:
            idlers = [group.create_task(self.drips()) for _ in range(many)]
            idlers += [group.create_task(self.takes_nothing(number)) for number in range(many)]
            while self.got.idle < 2 * many:  # noqa: ASYNC110 - there is nobody to tell
                await asyncio.sleep(0.05)
            await asyncio.sleep(1.0)
            tell(READY)
            await self.lists(PAGE, 0, 0.01)
            for one in idlers:
                one.cancel()


def tell(text: bytes) -> None:
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


async def main(what: str, port: str, seconds: str, many: str, *tokens: str) -> None:
    callers = Callers(int(port), float(seconds), tokens)
    if what == "read":
        await callers.full_house(int(many))
    elif what == "idle":
        await callers.among_idlers(int(many))
    else:
        tell(READY)
        await callers.lists(PAGE, 0, 0.01)
    tell(msgspec.json.encode(callers.got))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
