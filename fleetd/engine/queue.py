"""
The work queue: which resources want attention, and when.

A key waits here at most once and is handed to one worker at a time, so work on one resource is
serial and work on the fleet is parallel. Keys carry no payload on purpose: the worker reads the
world again, and a lost wake-up costs only a delay. A key added twice keeps the earlier time and
the higher priority; a key added while a worker has it comes back when the worker is done.

Keys may share a lane, which lets so many through at once (`Lanes`). What finds its lane full waits
beside it and not in a worker's hands: a slow lane would else take one worker after the other, and
leave none for the rest.

Backoff of looks and steps lives here and nowhere else; a broken watch is taken up by its cache
(`fleetd.kube.cache`), which nobody queues.
"""

import asyncio
import heapq
import itertools
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, TypeVar

K = TypeVar("K")

URGENT = 2
"""Something was done to it: look at once, before anything else."""
SOON = 1
"""It is new, or on the move."""
ROUTINE = 0


@dataclass(slots=True)
class _Slot:
    due: float
    priority: int
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential, capped, with full jitter on the upper half: delays spread over
    [cap/2, cap], so that a thousand keys that failed together do not come back together."""

    base: timedelta
    maximum: timedelta

    def delay(self, failures: int, rng: random.Random) -> timedelta:
        # 2**20 base seconds are twelve days; beyond that only the maximum matters.
        cap = min(self.base * 2 ** min(max(failures - 1, 0), 20), self.maximum)
        return cap * (0.5 + rng.random() / 2)


class Lanes(Generic[K]):
    """Which lane a key takes, and how many of a lane may be worked on at once: at least one. Both
    are asked anew each time; a lane may grow wider or narrower."""

    def __init__(self, of: Callable[[K], str], width: Callable[[str], int]) -> None:
        self._of = of
        self._width = width
        self._busy: dict[str, int] = {}
        self._beside: dict[str, list[tuple[int, int, K]]] = {}
        self._roomy: set[str] = set()
        """Lanes that may have room for those who wait beside them."""

    def enter(self, entry: tuple[int, int, K]) -> str | None:
        """The lane that its key is in from now on; None if it has to wait beside it."""
        lane = self._of(entry[2])
        if self._room(lane) <= 0:
            heapq.heappush(self._beside.setdefault(lane, []), entry)
            return None
        self._busy[lane] = self._busy.get(lane, 0) + 1
        return lane

    def leave(self, lane: str) -> int:
        """How many could enter now."""
        left = self._busy.pop(lane) - 1
        if left:
            self._busy[lane] = left
        if lane not in self._beside:
            return 0
        self._roomy.add(lane)
        return max(min(self._room(lane), len(self._beside[lane])), 0)

    def admit(self) -> list[tuple[int, int, K]]:
        """Those who may try to enter. A lane is asked until it is full or nobody waits: somebody
        who was let off may have gone away meanwhile."""
        found: list[tuple[int, int, K]] = []
        for lane in sorted(self._roomy):
            beside, room = self._beside.get(lane, []), self._room(lane)
            found += [heapq.heappop(beside) for _ in range(min(room, len(beside)))]
            if not beside:
                self._beside.pop(lane, None)
            if room <= 0 or not beside:
                self._roomy.discard(lane)
        return found

    def _room(self, lane: str) -> int:
        return self._width(lane) - self._busy.get(lane, 0)

    def __len__(self) -> int:
        return sum(map(len, self._beside.values()))


def _nobody(_waited: float) -> None:
    """Nobody wants to know."""


def _one_lane() -> Lanes[Any]:
    return Lanes(lambda _: "", lambda _: sys.maxsize)


@dataclass
class Queue(Generic[K]):
    backoff: Backoff
    rng: random.Random
    keys_max: int = 2_000_000
    """A bound against a leak of keys: twenty times the largest fleet we promise to run."""
    lanes: Lanes[K] = field(default_factory=_one_lane)
    waited: Callable[[float], None] = _nobody
    """Hears how many seconds a key that was due waited for a worker."""

    _waiting: dict[K, _Slot] = field(default_factory=dict[K, _Slot])
    _later: list[tuple[float, int, K]] = field(default_factory=list[tuple[float, int, K]])
    _ready: list[tuple[int, int, K]] = field(default_factory=list[tuple[int, int, K]])
    _working: dict[K, str] = field(default_factory=dict[K, str])
    """With the lane that each is in."""
    _again: dict[K, tuple[float, int]] = field(default_factory=dict[K, tuple[float, int]])
    _failures: dict[K, int] = field(default_factory=dict[K, int])
    _serial: "itertools.count[int]" = field(default_factory=itertools.count)
    _takers: list["asyncio.Future[None]"] = field(default_factory=list["asyncio.Future[None]"])
    _timer: asyncio.TimerHandle | None = None
    _timer_due: float = 0.0

    def add(self, key: K, *, after: timedelta = timedelta(0), priority: int = ROUTINE) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + max(after.total_seconds(), 0.0)
        if key in self._working:
            held = self._again.get(key)
            if held is not None:
                due, priority = min(due, held[0]), max(priority, held[1])
            self._again[key] = (due, priority)
            return
        self._place(key, due, priority, loop.time())

    def retry(self, key: K, *, priority: int = ROUTINE) -> timedelta:
        """Add it again after a failure; each one in a row waits longer."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = self.backoff.delay(failures, self.rng)
        self.add(key, after=delay, priority=priority)
        return delay

    def succeeded(self, key: K) -> None:
        """Forget its failures."""
        self._failures.pop(key, None)

    def drop(self, key: K) -> None:
        """It needs no attention any more. A worker that has it finishes first."""
        self._waiting.pop(key, None)
        self._again.pop(key, None)
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The most urgent key that is due. Must be followed by `done`."""
        while True:
            key = self._take()
            if key is not None:
                return key
            taker = asyncio.get_running_loop().create_future()
            self._takers.append(taker)
            try:
                await taker
            finally:
                if taker in self._takers:
                    self._takers.remove(taker)
                elif self._ready:
                    # It was woken, and may have been cancelled at the same moment: the wake-up
                    # must not die with it.
                    self._wake()

    def done(self, key: K) -> None:
        for _ in range(self.lanes.leave(self._working.pop(key))):
            self._wake()
        again = self._again.pop(key, None)
        if again is not None:
            self._place(key, *again, asyncio.get_running_loop().time())

    def __len__(self) -> int:
        return len(self._waiting) + len(self._again)

    @property
    def working(self) -> int:
        return len(self._working)

    def due(self) -> int:
        """How many could be worked on now: the backlog."""
        return len(self._ready) + len(self.lanes)

    def _place(self, key: K, due: float, priority: int, now: float) -> None:
        slot = self._waiting.get(key)
        if slot is not None:
            if slot.due <= due and slot.priority >= priority:
                return
            due, priority = min(due, slot.due), max(priority, slot.priority)
        elif len(self._waiting) >= self.keys_max:
            raise OverflowError(f"the queue holds {self.keys_max} keys; something adds without end")
        slot = _Slot(due, priority, next(self._serial))
        self._waiting[key] = slot
        if due <= now:
            heapq.heappush(self._ready, (-priority, slot.serial, key))
            self._wake()
            return
        heapq.heappush(self._later, (due, slot.serial, key))
        self._set_timer()

    def _take(self) -> K | None:
        self._promote()
        while True:
            for entry in self.lanes.admit():
                heapq.heappush(self._ready, entry)
            if not self._ready:
                return None
            entry = heapq.heappop(self._ready)
            _, serial, key = entry
            slot = self._waiting.get(key)
            if slot is None or slot.serial != serial:
                continue  # it was added again with another time or priority
            lane = self.lanes.enter(entry)
            if lane is None:
                continue
            del self._waiting[key]
            self._working[key] = lane
            self.waited(max(asyncio.get_running_loop().time() - slot.due, 0.0))
            return key

    def _promote(self) -> None:
        if not self._later:
            return
        now = asyncio.get_running_loop().time()
        if self._later[0][0] > now and self._timer is not None and self._timer_due > now:
            return  # for nothing that came since; whoever came set the timer
        while self._later and self._later[0][0] <= now:
            _, serial, key = heapq.heappop(self._later)
            slot = self._waiting.get(key)
            if slot is not None and slot.serial == serial:
                heapq.heappush(self._ready, (-slot.priority, serial, key))
        self._set_timer()

    def _set_timer(self) -> None:
        if not self._later:
            return
        loop = asyncio.get_running_loop()
        due = self._later[0][0]
        if self._timer is not None and not self._timer.cancelled():
            if loop.time() < self._timer_due <= due:
                return
            self._timer.cancel()
        self._timer = loop.call_at(due, self._on_time)
        # Kept here: not every loop's handle knows when it is due.
        self._timer_due = due

    def _on_time(self) -> None:
        self._timer = None
        self._promote()
        for _ in range(min(len(self._ready), len(self._takers))):
            self._wake()

    def _wake(self) -> None:
        while self._takers:
            taker = self._takers.pop(0)
            # One that was cancelled in this very turn of the loop is done, and still stands here.
            if not taker.done():
                taker.set_result(None)
                return
