"""
Who is connected, and who has to go: whoever takes nothing of an answer, and, where there are too
many, whoever has asked nothing for longest.

A connection costs a file and some memory, and aiohttp lets it live for as long as the other end
wants. How long a request may take to arrive is not here: its head is limited by the server
(`HEAD_WITHIN`), its body by `answering`. One rule: somebody who is being answered, and takes it,
is never sent away.
"""

import asyncio
import socket
import struct
import sys
from collections.abc import AsyncIterator

from aiohttp import web

from fleetd.surface.answering import Respond

HEAD_WITHIN = 30.0
"""Seconds for the head of a request to arrive, and between two requests of one connection."""
LOOK = 1.0
"""Seconds between two looks at everybody."""
STALLED = 20.0
"""Seconds after which somebody who takes nothing is cut off."""
MOST = 4000
"""Connections. A page has one or two, its stream among them."""
_ACKED = struct.Struct("120x Q")
"""Of Linux' tcp_info: the bytes that the other end has confirmed."""


class Crowd:
    def __init__(self) -> None:
        self.server: web.Server | None = None
        self._asking: set[web.RequestHandler] = set()
        """Whose request is being answered."""
        self._stuck: dict[web.RequestHandler, tuple[tuple[int, int], int]] = {}
        """How much somebody has not taken and has taken, and for how many looks it is so much. Not
        for how long: while this process stands still, nobody can take anything."""

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """For aiohttp: as long as the server runs."""
        async with asyncio.TaskGroup() as group:
            looking = group.create_task(self._run(), name="crowd")
            yield
            looking.cancel()

    @web.middleware
    async def around(self, request: web.Request, handler: Respond) -> web.StreamResponse:
        """Notes whom not to disturb."""
        self._asking.add(request.protocol)
        try:
            return await handler(request)
        finally:
            self._asking.discard(request.protocol)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            self.look()

    def look(self) -> None:
        there = self.server.connections if self.server is not None else []
        before, self._stuck = self._stuck, {}
        silent: list[asyncio.Transport] = []
        for one in there:
            transport = one.transport
            if not isinstance(transport, asyncio.Transport):
                continue  # it is gone
            left = transport.get_write_buffer_size()
            if left:
                far = left, _confirmed(transport)
                was, looks = before.get(one, (far, -1))
                self._stuck[one] = (far, looks + 1 if was == far else 0)
                if self._stuck[one][1] * LOOK >= STALLED:
                    transport.abort()
            elif one not in self._asking:
                silent.append(transport)
        for transport in silent[: max(len(there) - MOST, 0)]:
            transport.abort()


def _confirmed(transport: asyncio.Transport) -> int:
    """What the other end has taken so far. The kernel keeps megabytes for it and asks for more only
    when much of that is gone: by what waits here, somebody slow takes nothing for a minute."""
    if sys.platform != "linux":
        return 0
    try:
        plug = transport.get_extra_info("socket")
        told: bytes = plug.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKED.size)
        return _ACKED.unpack(told)[0]
    except (OSError, struct.error):
        return 0  # it is gone, or the kernel is older than that number
