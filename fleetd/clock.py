"""
All time comes from here, and nowhere else reads the system's.

`now()` is what the wall says, for people, windows and records. `monotonic()` only moves forward,
for how long something took. Waiting is `asyncio.sleep` and `asyncio.timeout` on the running loop;
under `fleetd.sim.loop` that loop's time is virtual and the clock follows it.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds; only differences mean something."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def worked(self) -> float:
        """Seconds of a core that this thread has had."""
        return time.thread_time()


class LoopClock:
    """Follows the running event loop: `start` is the moment at loop time zero."""

    def __init__(self, start: datetime) -> None:
        self._start = start

    @staticmethod
    def moment(seconds: float) -> datetime:
        """A moment given in Unix seconds."""
        return datetime.fromtimestamp(seconds, UTC)

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def block(span: timedelta) -> None:
    """Wait without a loop: for the command line, never for the daemon."""
    time.sleep(span.total_seconds())
