"""
Answers that many looks share: asked for once, and used again while they are fresh.

For far sides that have no watch. Whoever comes first asks, and who comes meanwhile waits for the
same answer, or the same failure; a thousand looks at a region are one list. An answer is never
older than a deed that was told here (`forget`), not even one that was under way. What is kept is
bounded, and nothing is lost with it: it is asked for again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

from fleetd.clock import Clock

T = TypeVar("T")

KEPT_MAX = 200_000
"""Answers at most: one of each BMC of 100,000 servers, and as much again."""
_Name = tuple[str, str]


class Polls:
    def __init__(self, clock: Clock, kept_max: int = KEPT_MAX) -> None:
        self._clock = clock
        self._kept_max = kept_max
        self._kept: OrderedDict[_Name, tuple[float, Any]] = OrderedDict()
        """Until when, and the answer; the one that was asked for last comes last."""
        self._flights: dict[_Name, asyncio.Future[Any]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    async def get(
        self,
        backend: str,
        key: str,
        fetch: Callable[[], Awaitable[T]],
        fresh: Callable[[T], timedelta],
    ) -> T:
        """What `fetch` answers, or answered; `fresh` says how long an answer is used again, from
        the moment it was asked for. Raises what `fetch` raises."""
        name = (backend, key)
        while True:
            until, answer = self._kept.get(name, (0.0, None))
            if self._clock.monotonic() < until:
                return answer
            flight = self._flights.get(name)
            if flight is None:
                return await self._fetch(name, fetch, fresh)
            await asyncio.wait([flight])
            # Who asked may have been called off; then the next one asks.
            if not flight.cancelled():
                return flight.result()

    def forget(self, backend: str, key: str) -> None:
        """The next one asks; what is under way is only for those who wait for it already."""
        self._kept.pop((backend, key), None)
        self._flights.pop((backend, key), None)

    async def _fetch(
        self, name: _Name, fetch: Callable[[], Awaitable[T]], fresh: Callable[[T], timedelta]
    ) -> T:
        flight = self._flights[name] = asyncio.get_running_loop().create_future()
        began = self._clock.monotonic()
        try:
            answer = await fetch()
        except Exception as cause:
            flight.set_exception(cause)
            flight.exception()  # nobody need wait for it
            raise
        else:
            flight.set_result(answer)
            if self._flights.get(name) is flight:
                self._keep(name, began + fresh(answer).total_seconds(), answer)
            return answer
        finally:
            flight.cancel()
            if self._flights.get(name) is flight:
                del self._flights[name]

    def _keep(self, name: _Name, until: float, answer: object) -> None:
        self._kept[name] = (until, answer)
        self._kept.move_to_end(name)
        now = self._clock.monotonic()
        # Each that is kept lets go of two at most, so that this never takes long; and so it ends
        # with no more than are fresh.
        for _ in range(2):
            oldest = next(iter(self._kept))
            if self._kept[oldest][0] > now and len(self._kept) <= self._kept_max:
                break
            del self._kept[oldest]
            if not self._kept:
                break
