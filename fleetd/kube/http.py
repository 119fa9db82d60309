"""
A transport over HTTP. It delivers, or says `Unreachable`; it follows no redirect, keeps no cookie,
and reads no proxy or password from the environment.

How long to wait for an answer is the caller's business (`asyncio.timeout`); the limits here only
make sure that nothing waits for ever. Requests and watches have connections of their own: a watch
keeps its connection for minutes, and must not take the last one from a request.
"""

import asyncio
import os
import urllib.parse
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import yarl

import fleetd
from fleetd import secrets
from fleetd.kube import config, errors
from fleetd.kube.config import Kubeconfig, Target
from fleetd.kube.transport import Request, Response

LINE_MAX = 16 * 1024 * 1024
"""Bytes. An object has 1.5 MiB at most (etcd), and escaping may triple it."""
BODY_MAX = 512 * 1024 * 1024
"""Bytes. A page of 500 objects of 1 MiB; more is not an answer but an attack."""
ERROR_MAX = 64 * 1024
CONNECT_LIMIT = 10.0
REQUEST_LIMIT = 75.0
"""Seconds. An API server ends a request by itself after 60."""
OPEN_LIMIT = 30.0
"""Seconds until a watch has its headers: the server sends them at once."""
KEEP = 30.0
"""Seconds that an idle connection is kept; shorter than any server or balancer keeps it."""
CONNECTIONS = 32
"""For requests to one server. Its gate lets 16 looks through, and steps come on top."""


class HttpTransport:
    def __init__(self, kubeconfig: Kubeconfig, *, connections: int = CONNECTIONS) -> None:
        self._kubeconfig = kubeconfig
        self._connections = connections
        self._target: Target | None = None
        self._loading = asyncio.Lock()
        self._requests: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None
        self._closed = False

    async def send(self, request: Request) -> Response:
        target = await self._open()
        assert self._requests is not None  # noqa: S101 -- by _open
        limit = aiohttp.ClientTimeout(total=REQUEST_LIMIT, sock_connect=CONNECT_LIMIT)
        try:
            async with self._ask(self._requests, target, request, limit) as response:
                body = await _body(response, BODY_MAX)
                headers = {name.lower(): value for name, value in response.headers.items()}
        except (aiohttp.ClientError, OSError, TimeoutError) as cause:
            said = _words(cause)
        else:
            self._answered(response.status)
            return Response(status=response.status, body=body, headers=headers)
        raise errors.Unreachable(said)

    async def lines(self, request: Request) -> AsyncGenerator[bytes]:
        target = await self._open()
        assert self._watches is not None  # noqa: S101 -- by _open
        limit = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_LIMIT)
        asked = self._ask(self._watches, target, request, limit)
        try:
            async with asyncio.timeout(OPEN_LIMIT):
                response = await asked
            try:
                self._answered(response.status)
                if response.status != 200:
                    async with asyncio.timeout(OPEN_LIMIT):
                        body = await _body(response, ERROR_MAX)
                    raise errors.of(response.status, body, response.headers)
                async for line in _split(response.content):
                    yield line
            finally:
                # Not given back: what is left of the stream is of no use to the next request.
                response.close()
        except (aiohttp.ClientError, OSError, TimeoutError) as cause:
            said = _words(cause)
        else:
            return
        raise errors.Unreachable(said)

    async def close(self) -> None:
        self._closed = True
        for session in (self._requests, self._watches):
            if session is not None:
                await session.close()

    def _ask(
        self,
        session: aiohttp.ClientSession,
        target: Target,
        request: Request,
        limit: aiohttp.ClientTimeout,
    ) -> Any:  # noqa: ANN401 -- a context manager of aiohttp's that can be awaited as well
        url = target.server + request.path
        if request.query:
            url += "?" + urllib.parse.urlencode(request.query, quote_via=urllib.parse.quote)
        headers = {"Accept": request.accept}
        if request.body:
            headers["Content-Type"] = request.content_type
        if target.authorization is not None:
            headers["Authorization"] = target.authorization.reveal()
        return session.request(
            request.method,
            # Encoded already: a second time would ask for another object.
            yarl.URL(url, encoded=True),
            data=request.body or None,
            headers=headers,
            ssl=target.tls if target.tls is not None else True,
            server_hostname=target.tls_name,
            proxy=target.proxy,
            timeout=limit,
            allow_redirects=False,
        )

    async def _open(self) -> Target:
        if self._target is not None and not self._closed:
            return self._target
        async with self._loading:
            if self._closed:
                raise errors.Unreachable("the connection was closed")
            if self._target is None:
                self._target = await config.load(self._kubeconfig)
            if self._requests is None:
                self._requests = _session(self._connections)
                # One connection for each watch: there are as many as there are caches.
                self._watches = _session(0)
            return self._target

    def _answered(self, status: int) -> None:
        if status == 401 and self._kubeconfig.plugin:
            # What the plugin gave is not good any more: the next request asks it again.
            self._target = None


def _session(connections: int) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=KEEP),
        cookie_jar=aiohttp.DummyCookieJar(),
        # Uncompressed: it would cost the server more than the network gains.
        headers={"User-Agent": f"fleetd/{fleetd.__version__}", "Accept-Encoding": "identity"},
        trust_env=False,
    )


async def _body(response: aiohttp.ClientResponse, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > most:
            raise errors.Unreachable(f"the answer has more than {most} bytes")
        pieces.append(piece)
    return b"".join(pieces)


async def _split(content: aiohttp.StreamReader) -> AsyncGenerator[bytes]:
    pieces: list[bytes] = []
    size = 0
    async for chunk in content.iter_any():
        if b"\n" in chunk:
            first, *lines = chunk.split(b"\n")
            lines.insert(0, b"".join((*pieces, first)))
            rest = lines.pop()
            for line in lines:
                if line:
                    yield line
            pieces, size = [rest], len(rest)
        else:
            pieces.append(chunk)
            size += len(chunk)
        if size > LINE_MAX:
            raise errors.Unreachable(f"a line of the watch has more than {LINE_MAX} bytes")
    if size:
        raise errors.Unreachable("the watch ended in the middle of a line")


def _words(cause: Exception) -> str:
    """What stood in the way, for a person."""
    match cause:
        case aiohttp.ClientConnectorCertificateError():
            why: Any = cause.certificate_error
            said = getattr(why, "verify_message", "") or str(why)
            return f"{cause.host}:{cause.port}: its certificate is not trusted: {said}"
        case aiohttp.ClientConnectorError():
            # asyncio's own words repeat the address; a name that is not found has no number.
            number = cause.os_error.errno or 0
            said = os.strerror(number) if number > 0 else cause.os_error.strerror
            return f"{cause.host}:{cause.port}: {said or cause.os_error}"
        case TimeoutError():
            return "no answer in time"
        case aiohttp.ServerDisconnectedError():
            return "the server closed the connection without an answer"
        case aiohttp.ClientPayloadError():
            return "the connection broke off in the middle of an answer"
        case _:
            return secrets.scrub(f"{type(cause).__name__}: {cause}")
