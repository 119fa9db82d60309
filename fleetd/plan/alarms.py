"""
Which rows time alone will change, and when.

One alarm per row; setting it again moves it. A heap whose old entries are put right when they come
up: a row that is looked at every 30 s moves its alarm for nothing, and that must cost nothing.
"""

import heapq
from datetime import datetime


class Alarms:
    def __init__(self) -> None:
        self._when: dict[int, datetime] = {}
        self._queued: dict[int, datetime] = {}
        """The earliest entry of a row in the heap; others of the same row are leftovers."""
        self._heap: list[tuple[datetime, int]] = []

    def set(self, row: int, when: datetime | None) -> None:
        if when is None:
            self._when.pop(row, None)
            return
        self._when[row] = when
        queued = self._queued.get(row)
        if queued is None or when < queued:
            self._push(row, when)

    def due(self, now: datetime) -> list[int]:
        """Rows whose moment has come, each once; their alarms are gone."""
        found: list[int] = []
        while (first := self.next()) is not None and first <= now:
            row = self._pop()
            del self._when[row]
            found.append(row)
        return found

    def next(self) -> datetime | None:
        """The earliest alarm."""
        while self._heap:
            at, row = self._heap[0]
            when = self._when.get(row)
            if self._queued.get(row) == at:
                if when == at:
                    return at
                self._pop()
                if when is not None:
                    self._push(row, when)
            else:
                heapq.heappop(self._heap)
        return None

    def _push(self, row: int, when: datetime) -> None:
        self._queued[row] = when
        heapq.heappush(self._heap, (when, row))

    def _pop(self) -> int:
        _, row = heapq.heappop(self._heap)
        del self._queued[row]
        return row
