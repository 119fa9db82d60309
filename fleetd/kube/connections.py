"""
Connections to one server over HTTP/1.1: opened, used for one request at a time, kept for the next.

A general client costs more for a small write than the write itself; this one does what an API
server needs and no more. It never sends a request twice: one that found its connection closed
before a byte was written goes out on a fresh one, any other is `Unreachable`. Whoever is called off
in the middle of an answer leaves a connection that nobody uses again. The one rule: TLS is checked
always, by the context of the `Target`.
"""

import asyncio
import math
import os
import select
import socket
import ssl
import threading
from typing import cast
from urllib.parse import urlsplit

import aiohappyeyeballs

from fleetd import secrets
from fleetd.kube import errors
from fleetd.kube.answers import Answer
from fleetd.kube.config import Target

CONNECT_LIMIT = 10.0
"""Seconds for everything until a request can be sent."""
KEEP = 30.0
"""Seconds that an idle connection is kept; shorter than any server or balancer keeps it."""
STAGGER = 0.25
"""Seconds that one address of a name has until the next is tried too."""
AHEAD = 1024 * 1024
"""Bytes that are read before the reader has taken them; then the server has to wait."""
AT_ONCE = 256 * 1024
"""Bytes that are taken from a connection in one go."""


class _Room(threading.local):
    """Where bytes are read to, by all connections of a thread: what has come is taken out before
    the next one reads. Else the loop would make room for the most that may come each time, however
    little comes, and that costs more than to read it."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(AT_ONCE))


_ROOM = _Room()


class Connection(asyncio.BufferedProtocol):
    __slots__ = ("_answer", "_broken", "_news", "_paused", "_poll", "_transport", "idle_since")

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: Answer | None = None
        self._news: asyncio.Future[None] | None = None
        self._broken: errors.Unreachable | None = None
        self._paused = False
        self._poll: select.poll | None = None
        self.idle_since = 0.0

    # What the event loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return _ROOM.view

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(_ROOM.view[:nbytes])
        answer = self._answer
        if answer is None:
            self.close()  # nobody asked
            return
        try:
            answer.feed(data)
        except errors.Unreachable as cause:
            self._break(cause)
            return
        if answer.size > AHEAD and answer.streams and not self._paused:
            self._paused = True
            assert self._transport is not None  # noqa: S101 -- it has just spoken
            self._transport.pause_reading()
        if answer.ended or answer.streams:
            self._tell()

    def eof_received(self) -> None:
        if self._answer is not None and self._broken is None:
            try:
                self._answer.eof()
            except errors.Unreachable as cause:
                self._broken = cause
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if exc is not None and self._broken is None:
            self._broken = _of(exc)
        self.eof_received()
        self._broken = self._broken or errors.Unreachable("the connection was closed")

    def _break(self, cause: errors.Unreachable) -> None:
        self._broken = cause
        self.close()
        self._tell()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    # What its user does.

    @property
    def usable(self) -> bool:
        """Whether it is open, as far as can be known: not even a goodbye waits to be read."""
        transport = self._transport
        if transport is None or transport.is_closing() or self._broken is not None:
            return False
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not self._poll.poll(0)

    def begin(self, message: bytes, answer: Answer) -> None:
        assert self._transport is not None  # noqa: S101 -- it was `usable` just now
        self._answer = answer
        self._transport.write(message)

    async def ended(self, answer: Answer) -> None:
        """Until all of it is there."""
        while not answer.ended:
            await self.news(answer)
        self._answer = None

    async def answered(self, answer: Answer) -> None:
        """The same; then it is free for another request, or closed."""
        while not answer.ended:
            await self.news(answer)
        self._answer = None
        left = self._transport.get_write_buffer_size() if self._transport is not None else 0
        if left or not answer.reusable:
            self.close()  # the server said so, or did not wait for all of the request

    async def news(self, answer: Answer) -> None:
        """Until something has come. Raises `Unreachable` if nothing will."""
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        if not (answer.ended or answer.lines or self._broken):
            self._news = asyncio.get_running_loop().create_future()
            try:
                await self._news
            finally:
                self._news = None
        # What came whole is taken, whatever came after it.
        if self._broken is not None and not answer.ended and not answer.lines:
            raise type(self._broken)(str(self._broken))

    def give_up(self) -> None:
        """Nobody waits any longer."""
        self._break(errors.Unreachable("no answer in time"))

    def close(self) -> None:
        """At once: what is still on the way is of no use."""
        if self._transport is not None:
            self._transport.abort()

    async def encrypt(self, tls: ssl.SSLContext, name: str) -> None:
        """Go on with TLS, inside of what is there: behind a proxy."""
        loop = asyncio.get_running_loop()
        assert self._transport is not None  # noqa: S101 -- the proxy has just answered
        self._transport = await loop.start_tls(
            self._transport, self, tls, server_hostname=name, ssl_handshake_timeout=CONNECT_LIMIT
        )


class Pool:
    """Of one target."""

    def __init__(self, target: Target, connections: int, limit: float) -> None:
        """`limit`: seconds that a request and its whole answer may take."""
        self.target = target
        self._limit = limit
        parts = urlsplit(target.server)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self.authority = parts.netloc
        self.path = parts.path
        self._slots = asyncio.Semaphore(connections)
        self._idle: list[Connection] = []
        self._busy: dict[Connection, float] = {}
        """Until when each may take; a watch may for ever."""
        self._guard: asyncio.TimerHandle | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    async def ask(self, message: bytes, answer: Answer) -> None:
        """One request and its whole answer. Raises `Unreachable`."""
        until = asyncio.get_running_loop().time() + self._limit
        if self._slots.locked():
            await self._turn(until)
        else:
            await self._slots.acquire()
        try:
            connection = self._kept() or await self._connect()
            self._begin(connection, until)
            try:
                connection.begin(message, answer)
                await connection.answered(answer)
            except BaseException:
                connection.close()
                raise
            finally:
                del self._busy[connection]
        finally:
            self._slots.release()
        self._keep(connection)

    async def _turn(self, until: float) -> None:
        try:
            async with asyncio.timeout_at(until):
                await self._slots.acquire()
        except TimeoutError:
            raise errors.Unreachable("no connection was free in time") from None

    def _begin(self, connection: Connection, until: float) -> None:
        self._busy[connection] = until
        if self._guard is None and until < math.inf:
            # One timer for all: most requests end long before it rings, and none sets its own.
            self._guard = asyncio.get_running_loop().call_at(until, self._ring)

    def _ring(self) -> None:
        loop = asyncio.get_running_loop()
        self._guard = None
        for connection, until in self._busy.items():
            if until <= loop.time():
                connection.give_up()
        left = [until for until in self._busy.values() if loop.time() < until < math.inf]
        if left:
            self._guard = loop.call_at(min(left), self._ring)

    async def open(self) -> Connection:
        """One that is not shared, for a watch. `release` it."""
        connection = await self._connect()
        self._begin(connection, math.inf)
        return connection

    def release(self, connection: Connection) -> None:
        self._busy.pop(connection, None)
        connection.close()

    def _kept(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
            connection.close()
        return None

    def _keep(self, connection: Connection) -> None:
        if self._closed:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._idle.append(connection)
        if self._sweeper is None:
            self._sweeper = loop.call_later(KEEP, self._sweep)

    def _sweep(self) -> None:
        """The last one used is the next one taken, so the old ones are in front."""
        loop = asyncio.get_running_loop()
        self._sweeper = None
        while self._idle and loop.time() - self._idle[0].idle_since >= KEEP:
            self._idle.pop(0).close()
        if self._idle:
            left = KEEP - (loop.time() - self._idle[0].idle_since)
            self._sweeper = loop.call_later(left, self._sweep)

    def retire(self) -> None:
        """No new request comes; those under way end."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def close(self) -> None:
        self.retire()
        if self._guard is not None:
            self._guard.cancel()
        for connection in self._busy:
            connection.close()
        await asyncio.sleep(0)  # they end in the next turn of the loop

    # Connecting.

    async def _connect(self) -> Connection:
        if self._closed:
            raise errors.Unreachable("the connection was closed")
        try:
            async with asyncio.timeout(CONNECT_LIMIT):
                if self.target.proxy:
                    return await self._through(self.target.proxy)
                return await _connected(
                    self._host, self._port, self.target.tls, self.target.tls_name
                )
        except TimeoutError:
            said = f"{self._host}:{self._port}: no connection in time"
        except OSError as cause:
            raise _of(cause, f"{self._host}:{self._port}") from None
        raise errors.Unreachable(said)

    async def _through(self, proxy: str) -> Connection:
        """A tunnel: the proxy sees where it leads, and nothing of what goes through."""
        parts = urlsplit(proxy)
        tls = ssl.create_default_context() if parts.scheme == "https" else None
        port = parts.port or (443 if tls is not None else 80)
        connection = await _connected(parts.hostname or "", port, tls, None)
        host = f"[{self._host}]" if ":" in self._host else self._host
        where = f"{host}:{self._port}"
        answer = Answer(body_max=0, bodiless=True)
        try:
            connection.begin(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode(), answer)
            await connection.ended(answer)
            if answer.status == 200 and self.target.tls is not None:
                await connection.encrypt(self.target.tls, self.target.tls_name or self._host)
        except BaseException:
            connection.close()
            raise
        if answer.status != 200:
            connection.close()
            raise errors.Unreachable(f"the proxy does not lead there: it says {answer.status}")
        return connection


async def _connected(
    host: str, port: int, tls: ssl.SSLContext | None, tls_name: str | None
) -> Connection:
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    sock = await aiohappyeyeballs.start_connection(  # pyright: ignore[reportUnknownMemberType]
        addresses, happy_eyeballs_delay=STAGGER, interleave=1
    )
    try:
        _, connection = await loop.create_connection(
            Connection,
            sock=sock,
            ssl=tls,
            server_hostname=(tls_name or host) if tls is not None else None,
            ssl_handshake_timeout=CONNECT_LIMIT if tls is not None else None,
        )
    except BaseException:
        sock.close()
        raise
    return connection


def _of(cause: Exception, backend: str = "") -> errors.Unreachable:
    trusted = not isinstance(cause, ssl.SSLCertVerificationError)
    made = errors.Unreachable if trusted else errors.Untrusted
    return made(_words(cause), backend=backend)


def _words(cause: Exception) -> str:
    """What stood in the way, for a person."""
    match cause:
        case ssl.SSLCertVerificationError():
            said = cause.verify_message or cause
            return (
                f"its certificate is not trusted: {said}; is the authority of the kubeconfig "
                "the server's?"
            )
        case ssl.SSLError():
            return f"TLS failed: {cause.reason or type(cause).__name__}"
        case OSError() if cause.errno and cause.errno > 0:
            # The system's own words: asyncio's repeat the address.
            return os.strerror(cause.errno)
        case _:
            return (
                secrets.scrub(getattr(cause, "strerror", None) or str(cause))
                or type(cause).__name__
            )
