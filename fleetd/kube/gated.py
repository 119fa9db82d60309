"""
A transport behind its backend's gate: every request to an API server passes here, and here alone
it is noticed whether the server answers.

Watches are let through and not counted: one that breaks off says little, since a server that
restarts breaks all of them, and one that cannot be opened is followed by a request that tells. The
one rule: what did not arrive is raised as `Unreachable` with the name of who was silent, because
whoever looks at one thing may have asked several servers.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import cast

from fleetd.clock import Clock
from fleetd.gate import Gate, GateClosed
from fleetd.kube import errors
from fleetd.kube.transport import Request, Response, Transport


class GatedTransport:
    def __init__(self, inner: Transport, gate: Gate, clock: Clock) -> None:
        self._inner = inner
        self._gate = gate
        self._clock = clock
        self._closed = False
        self._last: errors.Unreachable | None = None
        """How the last request ended, if nobody answered it."""

    async def send(self, request: Request) -> Response:
        try:
            turn = await self._gate.enter()
        except GateClosed as closed:
            raise self._shut(closed) from None
        sent = self._clock.monotonic()
        try:
            answer = await self._inner.send(request)
        except errors.Unreachable as cause:
            raise self._silent(cause) from None
        except asyncio.CancelledError:
            self._gate.given_up(sent)
            raise
        finally:
            turn.end()
        self._last = None
        self._gate.heard(answer.status, answer.headers)
        return answer

    async def lines(self, request: Request) -> AsyncGenerator[list[bytes]]:
        try:
            await self._gate.begin_watch()
        except GateClosed as closed:
            raise self._shut(closed) from None
        lines = cast("AsyncGenerator[list[bytes]]", self._inner.lines(request))
        async with contextlib.aclosing(lines):
            try:
                async for some in lines:
                    yield some
            except errors.Unreachable as cause:
                raise type(cause)(str(cause), backend=self._gate.backend) from None

    async def close(self) -> None:
        self._closed = True
        await self._inner.close()

    def _silent(self, cause: errors.Unreachable) -> errors.Unreachable:
        # A connection that we closed ourselves says nothing about the far side.
        if not self._closed:
            self._gate.silent()
        # A new one: that which was raised holds on to all that was on the way.
        self._last = type(cause)(str(cause))
        return type(cause)(str(cause), backend=self._gate.backend)

    def _shut(self, closed: GateClosed) -> errors.Closed:
        return errors.Closed(str(closed), self._gate.backend, closed.again, self._last)
