"""
The simulated world behind one HTTP server on loopback, many backends by path.

`/k8s/<cluster>` is an API server, `/svc/<name>` any other service: whatever `add` was told. A
request goes to the backend with the longest fitting prefix, with the prefix taken off, and the
same weather as in-process decides what happens to it on the way. It listens on 127.0.0.1 only.
"""

import asyncio
import ssl
from collections.abc import Mapping

from aiohttp import web

from fleetd.kube.transport import JSON, Request, Response
from fleetd.sim.faces.handler import Handler, Stream
from fleetd.sim.faces.weather import CALM, Fate, Weather
from fleetd.sim.kube import impersonation

LOOPBACK = "127.0.0.1"
BACKLOG = 2048
"""Connections that may wait: a thousand clusters are behind one address here."""
_HOP_BY_HOP = frozenset(("content-length", "transfer-encoding", "connection"))


class _Lost(Exception):
    """The weather broke the connection."""


class Wire:
    def __init__(self, *, weather: Weather = CALM, tls: ssl.SSLContext | None = None) -> None:
        """`tls` for kubectl, which sends no token over plain HTTP: see `faces.certificates`."""
        self._weather = weather
        self._tls = tls
        self._backends: dict[str, tuple[str, Handler]] = {}
        self._runner: web.ServerRunner | None = None
        self.otherwise: Handler | None = None
        """Gets what no prefix fits, with the whole path."""
        self.address = ""
        """As `https://127.0.0.1:40123`, once started."""

    def add(self, prefix: str, handler: Handler, *, backend: str = "") -> None:
        """`backend` is the name the weather knows it by; without one, the last part of the
        prefix."""
        prefix = "/" + prefix.strip("/")
        self._backends[prefix] = (backend or prefix.rsplit("/", 1)[1], handler)

    def remove(self, prefix: str) -> None:
        self._backends.pop("/" + prefix.strip("/"), None)

    async def start(self, port: int = 0) -> str:
        """Listens from now on; gives the address. Port 0 takes a free one."""
        # Cancelled when a client goes away: a watch has nothing else to learn it from.
        server = web.Server(self._serve, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, port, ssl_context=self._tls, backlog=BACKLOG)
        await site.start()
        port = self._runner.addresses[0][1]
        self.address = f"{'https' if self._tls is not None else 'http'}://{LOOPBACK}:{port}"
        return self.address

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _find(self, path: str) -> tuple[str, Handler, str] | None:
        """Backend's name, handler and the path below it."""
        prefix = path
        while prefix:
            found = self._backends.get(prefix)
            if found is not None:
                return *found, path[len(prefix) :] or "/"
            prefix = prefix.rpartition("/")[0]
        return None if self.otherwise is None else ("otherwise", self.otherwise, path)

    async def _serve(self, came: web.BaseRequest) -> web.StreamResponse:
        found = self._find(came.raw_path.partition("?")[0])
        if found is None:
            return web.Response(status=404, text="nothing is simulated here\n")
        backend, handler, path = found
        headers = {
            name.lower(): impersonation.SEPARATOR.join(came.headers.getall(name))
            for name in came.headers
        }
        request = Request(
            method=came.method,
            path=path,
            query=dict(came.query),
            body=await came.read(),
            content_type=headers.get("content-type", JSON),
            accept=headers.get("accept", JSON),
        )
        try:
            return await self._deliver(came, backend, handler, request, headers)
        except _Lost:
            if came.transport is not None:
                came.transport.abort()
            return web.Response(status=500)

    async def _deliver(
        self,
        came: web.BaseRequest,
        backend: str,
        handler: Handler,
        request: Request,
        headers: Mapping[str, str],
    ) -> web.StreamResponse:
        fate = self._weather.before(backend, request)
        answer: Response | Stream | None = await _met(fate)
        if answer is None:
            answer = handler.handle(request, headers)
            for _ in range(fate.times - 1):
                if not isinstance(answer, Response):
                    answer.close()
                answer = handler.handle(request, headers)
        whole = answer if isinstance(answer, Response) else Response(status=200)
        try:
            instead = await _met(self._weather.after(backend, request, whole))
            if instead is not None or isinstance(answer, Response):
                return _whole(instead or whole)
            return await self._stream(came, backend, request, answer)
        finally:
            if not isinstance(answer, Response):
                answer.close()

    async def _stream(
        self, came: web.BaseRequest, backend: str, request: Request, stream: Stream
    ) -> web.StreamResponse:
        out = web.StreamResponse(headers={"content-type": JSON})
        await out.prepare(came)
        ready = asyncio.Event()
        stream.on_ready(ready.set)
        while True:
            ready.clear()
            for line in stream.take():
                passage = self._weather.line(backend, request, line)
                if passage.wait:
                    await asyncio.sleep(passage.wait)
                for passed in passage.lines:
                    await out.write(passed)
                if passage.lost:
                    raise _Lost
                if passage.end:
                    await out.write_eof()
                    return out
            if stream.ended:
                await out.write_eof()
                return out
            await ready.wait()


def _whole(response: Response) -> web.Response:
    headers = {name: value for name, value in response.headers.items() if name not in _HOP_BY_HOP}
    return web.Response(status=response.status, body=response.body, headers=headers)


async def _met(fate: Fate) -> Response | None:
    if fate.wait:
        await asyncio.sleep(fate.wait)
    if fate.lost:
        raise _Lost
    return fate.answer
