"""
A time that runs faster than life, and slows down where the machine cannot follow.

Every timer, deadline and interval of a `PacedLoop` is shorter by the same factor, and sockets work
as ever. For showing, not for measuring. A busy machine makes nobody late: while a loop rests, time
passes; while it works, only as much as the work it got done, so a process that is not let onto a
core stands still together with its deadlines. Programs that belong together share one time in a
file (`Shared`): none gets further ahead of the slowest than it can catch up with in a moment.
"""

import asyncio
import fcntl
import mmap
import selectors
import struct
from pathlib import Path
from typing import BinaryIO, Protocol

from fleetd import clock

SLICE = 0.02
"""Seconds that a loop rests at most before it says again that it is there."""
AHEAD = 3 * SLICE
"""Seconds that one may be ahead of the slowest."""
SILENT = 1.0
"""Seconds after which it is asked whether somebody who says nothing is still there."""
ROUNDED = 0.002
"""Seconds by which a rest may be longer than was asked for on a machine with nothing to do."""
PLACES = 8
"""Programs that may share a time."""
_NUMBER = struct.Struct("d")
_FIRST = 1.0
"""What one who begins has behind him: zero is nobody."""


class Course(Protocol):
    """How far time has come, in seconds of life."""

    def join(self) -> None:
        """Before the first step, once."""
        ...

    def go(self, seconds: float) -> float:
        """Somebody has come so much further; how far all have come now."""
        ...

    def leave(self) -> None:
        """After the last one."""
        ...


class Alone:
    def __init__(self) -> None:
        self._passed = 0.0

    def join(self) -> None:
        return None

    def go(self, seconds: float) -> float:
        self._passed += seconds
        return self._passed

    def leave(self) -> None:
        return None


class Shared:
    """A file with the moment at which the time began and how far each program has come. Beside it
    lies a file for each, held while it lives: who is gone holds up nobody."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = _NUMBER.size * (PLACES + 1)
            if file.seek(0, 2) < size:
                file.truncate(size)
            self._map = mmap.mmap(file.fileno(), size)
            if not self._at(0):
                self._put(0, clock.SystemClock().now().timestamp())
            fcntl.flock(file, fcntl.LOCK_UN)  # the map keeps the file open
        self.began = self._at(0)
        """Unix seconds."""
        self._clock = clock.SystemClock()
        self._place = 0
        self._held: BinaryIO | None = None
        self._told = 0.0
        self._heard: dict[int, tuple[float, float]] = {}

    def passed(self) -> float:
        """As far as the slowest. For one who only looks."""
        there = [far for far in map(self._at, range(1, PLACES + 1)) if far]
        self._told = max(self._told, min(there, default=_FIRST) - _FIRST)
        return self._told

    def join(self) -> None:
        """From here on all wait for this one. It begins where the others are."""
        for place in range(1, PLACES + 1):
            held = self._hold(place)
            if held is not None:
                self._put(place, 0.0)
                self._held, self._place = held, place
                self._put(place, self.passed() + _FIRST)
                return
        raise OSError(f"{self._path}: {PLACES} programs share this time already")

    def go(self, seconds: float) -> float:
        mine = self._at(self._place) + seconds
        for place in range(1, PLACES + 1):
            far = self._at(place)
            if far and place != self._place and mine > far + AHEAD and self._waits(place, far):
                mine = far + AHEAD
        self._put(self._place, max(mine, self._at(self._place)))
        return self.passed()

    def leave(self) -> None:
        if self._held is not None:
            self._put(self._place, 0.0)
            self._held.close()
            self._held = None
        self._map.close()

    def _waits(self, place: int, far: float) -> bool:
        """Whether somebody so far behind is to be waited for."""
        now = self._clock.monotonic()
        last, since = self._heard.get(place, (0.0, 0.0))
        if far != last:
            self._heard[place] = far, now
        elif now - since > SILENT:
            self._heard[place] = far, now
            held = self._hold(place)
            if held is not None:
                self._put(place, 0.0)
                held.close()
                return False
        return True

    def _hold(self, place: int) -> BinaryIO | None:
        held = self._path.with_name(f"{self._path.name}.{place}").open("ab")
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.close()
            return None
        return held

    def _at(self, place: int) -> float:
        return _NUMBER.unpack_from(self._map, place * _NUMBER.size)[0]

    def _put(self, place: int, far: float) -> None:
        _NUMBER.pack_into(self._map, place * _NUMBER.size, far)


class _PacedSelector(selectors.DefaultSelector):
    """Rests, but not as long as it is told to, and keeps the time."""

    def __init__(self, pace: float, course: Course) -> None:
        super().__init__()
        self._pace = pace
        self._course = course
        self._clock = clock.SystemClock()
        self._woke = self._clock.monotonic()
        self._worked = self._clock.worked()
        self.now = course.go(0.0) * pace

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        began = self._clock.monotonic()
        rest = SLICE if timeout is None else min(max(timeout, 0.0) / self._pace, SLICE)
        found = super().select(rest)
        woke, worked = self._clock.monotonic(), self._clock.worked()
        rested = min(woke - began, rest + ROUNDED) if rest else 0.0
        passed = min(woke - self._woke, max(worked - self._worked, 0.0) + rested)
        self._woke, self._worked = woke, worked
        self.now = self._course.go(passed) * self._pace
        return found


class PacedLoop(asyncio.SelectorEventLoop):
    """Its time stands still within a turn."""

    def __init__(self, pace: float, course: Course | None = None) -> None:
        """Without a course it has a time of its own, from zero."""
        self._course = Alone() if course is None else course
        self._course.join()
        self._paced = _PacedSelector(pace, self._course)
        super().__init__(self._paced)

    def time(self) -> float:
        return self._paced.now

    def close(self) -> None:
        if not self.is_closed():
            self._course.leave()
        super().close()
