"""
Events as they happen: server-sent events that can be taken up again where they broke off.

A reader is a number, the last event it was sent, and has no queue: it reads on from the newest
events, which all readers share in memory, or from the store if it fell behind those. Somebody who
reads slowly therefore costs what the kernel buffers for him, and somebody who does not read at all
is cut off. Every event has its number in history as its id, so that none is lost or comes twice.
"""

import asyncio
import bisect
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import NamedTuple

from aiohttp import hdrs, web

from fleetd import errors
from fleetd.store.base import Recorded
from fleetd.surface import answering, api, asking, problems, shapes
from fleetd.surface.answering import House, Respond
from fleetd.surface.identity import Identity
from fleetd.surface.panel import Panel
from fleetd.surface.routes import EVENT_STREAM, Route
from topology.resource import Ref

POLL = 0.25
"""Seconds between two looks into the store, of all readers together."""
BEAT = 15.0
"""Seconds after which a quiet stream shows that it lives, and whether its caller still may read."""
TICK = 1.0
"""Seconds after which it is noticed that a reader left."""
SHARED = 4096
"""Events in memory; who is further behind reads from the store."""
GROUPS = 16
APART = 0.004
"""Readers are told in groups, so many seconds apart: 200 at once would hold up all other work for
20 ms, four times a second."""
CHUNK = 256
"""Events in one write: some 50 KB."""
READERS_MAX = 500
READERS_EACH = 50
_ID_MAX = 19


class Line(NamedTuple):
    seq: int
    ref: Ref
    text: bytes


class Gone(Exception):
    """History does not reach back to where a reader stands."""


class Feed:
    """The newest events, for all readers."""

    def __init__(self, panel: Panel) -> None:
        self._panel = panel
        self._lines: list[Line] = []
        self._last = 0
        self._news = [asyncio.Event() for _ in range(GROUPS)]
        self._places = itertools.cycle(range(GROUPS))
        self._looking = asyncio.Lock()
        self.readers: Counter[str] = Counter()
        self.ended = False

    async def running(self, _app: web.Application) -> AsyncIterator[None]:
        """For aiohttp: as long as the server runs."""
        async with asyncio.TaskGroup() as group:
            polling = group.create_task(self._run(), name="feed")
            yield
            polling.cancel()

    async def end(self, _app: web.Application) -> None:
        """Let every reader go."""
        self.ended = True
        for news in self._news:
            news.set()

    @contextlib.asynccontextmanager
    async def reader(self, caller: str) -> AsyncGenerator[int]:
        """The number of the newest event when this reader came."""
        if self.readers.total() >= READERS_MAX or self.readers[caller] >= READERS_EACH:
            raise problems.Refused("too-many-watchers", "close some, or ask /api/v1/events")
        self.readers[caller] += 1
        try:
            async with self._looking:
                if self.readers.total() == 1:
                    # Nobody has looked for a while: what is in memory is old.
                    newest = await self._panel.events(newest=True, limit=1)
                    self._lines, self._last = [], newest[0].seq if newest else 0
            yield self._last
        finally:
            self.readers[caller] -= 1
            if not self.readers[caller]:
                del self.readers[caller]

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(POLL)
            async with self._looking:
                found = bool(self.readers) and await self._look()
            if found:
                await self._tell()

    async def _tell(self) -> None:
        for place, news in enumerate(self._news):
            self._news[place] = asyncio.Event()
            news.set()
            if self.readers.total() > GROUPS:
                await asyncio.sleep(APART)

    async def _look(self) -> bool:
        """Whether there is something new."""
        try:
            found = await self._panel.events(after=self._last, limit=CHUNK)
        except errors.StoreError:
            return False  # /readyz says so
        if not found:
            return False
        self._lines += [_line(one) for one in found]
        if len(self._lines) > 2 * SHARED:
            del self._lines[:-SHARED]
        self._last = found[-1].seq
        return True

    async def after(self, seq: int) -> list[Line]:
        """What comes next for a reader; empty if there is nothing yet. Raises Gone."""
        if seq >= self._last:
            return []
        if self._lines and self._lines[0].seq <= seq + 1:
            start = bisect.bisect_right(self._lines, seq, key=lambda one: one.seq)
            return self._lines[start : start + CHUNK]
        found = await self._panel.events(after=seq, limit=CHUNK)
        if found and found[0].seq > seq + 1:
            raise Gone
        return [_line(one) for one in found]

    def place(self) -> int:
        """The group of a new reader."""
        return next(self._places)

    async def news(self, seq: int, place: int, within: float) -> None:
        """Wait until there is something newer, for so many seconds at most."""
        waited = self._news[place]
        if seq < self._last or self.ended:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await waited.wait()


def _line(one: Recorded) -> Line:
    """An event as it goes over the wire."""
    text = answering.encoded(shapes.event(one))
    return Line(one.seq, one.event.ref, b"id: %d\ndata: %b\n\n" % (one.seq, text))


def respond(route: Route, house: House, feed: Feed) -> Respond:
    async def answer(request: web.Request) -> web.StreamResponse:
        caller = await answering.admit(route, house, request)
        query = answering.parameters(request, asking.Watch)
        async with feed.reader(f"{caller.how}:{caller.name}") as newest:
            at = _start(request, query, newest)
            if at < newest:
                await _check_reach(feed, at)
            return await _stream(request, feed, _Reader(route, house, query), caller, at)

    return answer


def _start(request: web.Request, query: asking.Watch, newest: int) -> int:
    """After which event to begin: where the reader says, else now."""
    given = request.headers.get("Last-Event-ID")
    if given is None:
        at = query.after if query.after is not None else newest
    elif given.isascii() and given.isdigit() and len(given) <= _ID_MAX:
        at = int(given)
    else:
        raise problems.Refused("bad-event-id", "it must be the id of an event, a number")
    if at > newest:
        raise problems.Refused(
            "history-gone",
            f"history ends at {newest}, so {at} is of another one; read /api/v1/events anew",
            newest=newest,
        )
    return at


async def _check_reach(feed: Feed, at: int) -> None:
    try:
        await feed.after(at)
    except Gone:
        raise problems.Refused(
            "history-gone",
            f"events soon after {at} are not kept any more; read /api/v1/events anew",
        ) from None


def _wanted(house: House, caller: Identity, query: asking.Watch) -> Callable[[Ref], bool]:
    about = api.ref(query.for_) if query.for_ is not None else None

    def wanted(ref: Ref) -> bool:
        if about is not None and ref != about:
            return False
        if caller.regions is None and query.region is None:
            return True
        panel = house.views.of(caller.regions)
        found = panel.topology().resources.get(ref) or panel.orphans().get(ref)
        return found is not None and query.region in {None, found.region}

    return wanted


class _Reader(NamedTuple):
    route: Route
    house: House
    query: asking.Watch

    def wanted(self, caller: Identity) -> Callable[[Ref], bool]:
        return _wanted(self.house, caller, self.query)

    async def again(self, request: web.Request) -> Callable[[Ref], bool]:
        """What the caller may read by now. Raises Refused."""
        return self.wanted(await answering.readmit(self.route, self.house, request))


async def _stream(
    request: web.Request, feed: Feed, reader: _Reader, caller: Identity, at: int
) -> web.StreamResponse:
    wanted = reader.wanted(caller)
    response = web.StreamResponse(
        headers={hdrs.CONTENT_TYPE: EVENT_STREAM, "X-Accel-Buffering": "no"}
    )
    await response.prepare(request)
    loop, place = asyncio.get_running_loop(), feed.place()
    try:
        await response.write(f"retry: 2000\nid: {at}\n\n".encode())
        beat = asked = loop.time() + BEAT
        while not feed.ended and request.transport is not None:
            if loop.time() >= asked:
                wanted = await reader.again(request)
                asked = loop.time() + BEAT
            lines = await feed.after(at)
            text = b"".join(one.text for one in lines if wanted(one.ref))
            at = lines[-1].seq if lines else at
            if not text and loop.time() >= beat:
                text = f": still here\nid: {at}\n\n".encode()
            if text:
                await response.write(text)
                beat = loop.time() + BEAT
            elif not lines:
                await feed.news(at, place, min(beat - loop.time(), TICK))
    except Gone:
        await response.write(b"event: gone\ndata: {}\n\n")
    except (ConnectionError, problems.Refused, errors.StoreError):
        pass  # the reader left, may not read any more, or there is nothing to read from
    return response
