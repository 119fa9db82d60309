"""
A list that may remember only the latest of what it was told.

A rehearsal and a test are judged by everything that happened. A simulated world that runs for days
beside a daemon is not, and must not grow with every request: it is given a limit.
"""

from typing import TypeVar

T = TypeVar("T")

MOST = 10_000
"""Of a world that goes on: some hours of a region, and a few MB."""


class Recent(list[T]):
    most: int | None = None
    """So many at least are remembered, and less than twice as many; None: all."""

    def append(self, item: T, /) -> None:
        super().append(item)
        if self.most is not None and len(self) >= 2 * self.most:
            del self[: -self.most]
