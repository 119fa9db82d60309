"""
The simulated world as a `Transport`: a request is a function call, a watch an asyncio iterator.

Works on the virtual loop: nothing here opens a socket or starts a thread, and all waiting is
`asyncio.sleep`. What may go wrong on the way is the weather's to say (`faces.weather`); what is
said to be lost is raised as `Unreachable`, as HTTP would, and half a line is never delivered.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping

from fleetd.kube import errors
from fleetd.kube.transport import Request, Response
from fleetd.sim.faces.handler import Handler, Stream
from fleetd.sim.faces.weather import CALM, Fate, Weather


class InProcess:
    """One client's connection to one simulated server."""

    def __init__(
        self,
        handler: Handler,
        *,
        token: str = "",
        headers: Mapping[str, str] | None = None,
        backend: str = "",
        weather: Weather = CALM,
    ) -> None:
        self._handler = handler
        self._headers = {"user-agent": "fleetd", **(headers or {})}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._backend = backend
        self._weather = weather
        self._closed = False

    def __repr__(self) -> str:
        return f"<InProcess {self._backend}>"

    async def send(self, request: Request) -> Response:
        answer = await self._reach(request)
        if not isinstance(answer, Response):
            # A watch asked for as a plain request: what is there now, as a body.
            answer, stream = Response(status=200, body=b"".join(answer.take())), answer
            stream.close()
        fate = self._weather.after(self._backend, request, answer)
        return await _met(fate) or answer

    async def _reach(self, request: Request) -> Response | Stream:
        if self._closed:
            raise errors.Unreachable("the transport is closed")
        fate = self._weather.before(self._backend, request)
        instead = await _met(fate)
        if instead is not None:
            return instead
        answer = self._handler.handle(request, self._headers)
        for _ in range(fate.times - 1):
            if not isinstance(answer, Response):
                answer.close()
            answer = self._handler.handle(request, self._headers)
        return answer

    async def lines(self, request: Request) -> AsyncIterator[list[bytes]]:
        answer = await self._reach(request)
        whole = answer if isinstance(answer, Response) else Response(status=200)
        try:
            instead = await _met(self._weather.after(self._backend, request, whole))
            if instead is not None or isinstance(answer, Response):
                refused = instead or whole
                raise errors.of(refused.status, refused.body, refused.headers)
            if request.opened is not None:
                request.opened()
            async for line in self._passing(request, answer):
                yield [line]
        finally:
            if not isinstance(answer, Response):
                answer.close()

    async def _passing(self, request: Request, stream: Stream) -> AsyncIterator[bytes]:
        ready = asyncio.Event()
        stream.on_ready(ready.set)
        while not self._closed:
            ready.clear()
            for line in stream.take():
                passage = self._weather.line(self._backend, request, line)
                if passage.wait:
                    await asyncio.sleep(passage.wait)
                for passed in passage.lines:
                    if passed.endswith(b"\n"):
                        yield passed[:-1]
                    elif passage.end and not passage.lost:
                        raise errors.Unreachable("the watch ended in the middle of a line")
                if passage.lost:
                    raise errors.Unreachable(passage.lost)
                if passage.end:
                    return
            if stream.ended:
                return
            await ready.wait()

    async def close(self) -> None:
        self._closed = True


async def _met(fate: Fate) -> Response | None:
    """Lets a fate happen. Returns the answer that came instead of the server's."""
    if fate.wait:
        await asyncio.sleep(fate.wait)
    if fate.lost:
        raise errors.Unreachable(fate.lost)
    return fate.answer
