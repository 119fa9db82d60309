"""
A transport over HTTP. It delivers, or says `Unreachable`; it follows no redirect, keeps no cookie,
and reads no proxy or password from the environment.

How long to wait for an answer is the caller's business (`asyncio.timeout`); the limits here only
make sure that nothing waits for ever. Requests and watches have connections of their own: a watch
keeps its connection for minutes, and must not take the last one from a request.
"""

import asyncio
import functools
import urllib.parse
from collections.abc import AsyncGenerator

import fleetd
from fleetd.kube import config, errors
from fleetd.kube.answers import Answer
from fleetd.kube.config import Kubeconfig
from fleetd.kube.connections import Pool
from fleetd.kube.room import Room
from fleetd.kube.transport import Request, Response

LINE_MAX = 16 * 1024 * 1024
"""Bytes. An object has 1.5 MiB at most (etcd), and escaping may triple it."""
BODY_MAX = 512 * 1024 * 1024
"""Bytes of all answers under way from a server. A page of 500 objects of 1 MiB is the most that may
come; more is not an answer but an attack."""
ERROR_MAX = 64 * 1024
REQUEST_LIMIT = 75.0
"""Seconds. An API server ends a request by itself after 60."""
OPEN_LIMIT = 30.0
"""Seconds until a watch has its headers: the server sends them at once."""
CONNECTIONS = 32
"""For requests to one server. Its gate lets 16 looks through, and steps come on top."""

_QUERIES = 512
"""Different ones that are remembered as they are encoded: most are the same few."""


class HttpTransport:
    def __init__(self, kubeconfig: Kubeconfig, *, connections: int = CONNECTIONS) -> None:
        self._kubeconfig = kubeconfig
        self._connections = connections
        self._room = Room(BODY_MAX)
        """For all answers that are under way."""
        self._pool: Pool | None = None
        self._stale = False
        """Whether the server does not take what the pool's target logs in with."""
        self._loading = asyncio.Lock()
        self._closed = False

    async def send(self, request: Request) -> Response:
        pool = await self._open()
        answer = Answer(
            body_max=self._room.most, bodiless=request.method == "HEAD", room=self._room
        )
        try:
            await pool.ask(_message(pool, request), answer)
        finally:
            answer.leave()
        self._answered(answer.status)
        return Response(status=answer.status, body=answer.body(), headers=answer.headers)

    async def lines(self, request: Request) -> AsyncGenerator[list[bytes]]:
        pool = await self._open()
        answer = Answer(body_max=ERROR_MAX, line_max=LINE_MAX)
        connection = await pool.open()
        try:
            connection.begin(_message(pool, request), answer)
            try:
                async with asyncio.timeout(OPEN_LIMIT):
                    while not answer.ended and not answer.streams:
                        await connection.news(answer)
            except TimeoutError:
                raise errors.Unreachable("no answer in time") from None
            self._answered(answer.status)
            if answer.status != 200:
                raise errors.of(answer.status, answer.body(), answer.headers)
            if request.opened is not None:
                request.opened()
            while True:
                if answer.lines:
                    yield answer.take()
                if answer.ended and not answer.lines:
                    break
                await connection.news(answer)
            answer.check_whole()
        finally:
            # Not given back: what is left of the stream is of no use to the next request.
            pool.release(connection)

    async def close(self) -> None:
        self._closed = True
        if self._pool is not None:
            await self._pool.close()

    async def _open(self) -> Pool:
        if self._pool is not None and not self._closed and not self._stale:
            return self._pool
        async with self._loading:
            if self._closed:
                raise errors.Unreachable("the connection was closed")
            if self._pool is None or self._stale:
                old, self._pool = (
                    self._pool,
                    Pool(await config.load(self._kubeconfig), self._connections, REQUEST_LIMIT),
                )
                self._stale = False
                if old is not None:
                    old.retire()
            return self._pool

    def _answered(self, status: int) -> None:
        if status == 401 and self._kubeconfig.plugin:
            # What the plugin gave is not good any more: the next request asks it again.
            self._stale = True


def _message(pool: Pool, request: Request) -> bytes:
    """The request as it goes over the wire."""
    path = pool.path + request.path
    if request.query:
        path += "?" + _query(tuple(request.query.items()))
    authorization = pool.target.authorization
    token = authorization.reveal() if authorization is not None else ""
    # A blank or a line's end in one of these would make another request of it.
    said = f"{path}{request.accept}{request.content_type}{token}"
    if not said.isascii() or not said.isprintable() or " " in path:
        raise errors.Invalid("the request holds characters that cannot be sent")
    head = (
        f"{request.method} {path} HTTP/1.1\r\nHost: {pool.authority}\r\n{_ABOUT_US}"
        f"Accept: {request.accept}\r\n"
    )
    if token:
        head += f"Authorization: {token}\r\n"
    if request.body:
        head += f"Content-Type: {request.content_type}\r\n"
    if request.body or request.writes:
        head += f"Content-Length: {len(request.body)}\r\n"
    return f"{head}\r\n".encode("ascii") + request.body


@functools.lru_cache(_QUERIES)
def _query(pairs: tuple[tuple[str, str], ...]) -> str:
    return urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote)


# Uncompressed: it would cost the server more than the network gains.
_ABOUT_US = f"User-Agent: fleetd/{fleetd.__version__}\r\nAccept-Encoding: identity\r\n"
