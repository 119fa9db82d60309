"""
The store that forgets when the process ends. For rehearsals, simulation and offline planning.

It keeps the same bytes as the one on disk, through the same codec, so that what cannot be stored
there cannot be stored here. Its state belongs to the object: close and open again finds it, and
`crash` is what a kill would leave.
"""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime

from fleetd import errors
from fleetd.store import codec
from fleetd.store.base import Entry, Intent, Recorded
from fleetd.vocabulary import Ending, Event
from topology.resource import Ref


class MemoryStore:
    """Implements `base.Store`."""

    def __init__(self) -> None:
        self._broken = "the store is not open"
        self._open = False
        self._commits = 0
        self._journal: dict[int, tuple[bytes, bytes | None]] = {}
        self._journal_last = 0
        self._records: dict[str, dict[str, bytes]] = {}
        self._events: dict[int, tuple[Ref, bytes]] = {}
        self._events_last = 0

    def crash(self) -> None:
        """As if the process had been killed: what was written stays, and the lock is free."""
        self._open = False
        self._broken = "the store is not open"

    def fail(self, why: str) -> None:
        """As if a sync had failed: every later write is refused until it is opened again."""
        self._broken = why

    async def open(self) -> None:
        if self._open:
            raise errors.StoreLocked("the store is open already")
        self._open = True
        self._broken = ""
        await asyncio.sleep(0)

    async def close(self) -> None:
        if self._open:
            self._open = False
            self._broken = self._broken or "the store is closed"
        await asyncio.sleep(0)

    @property
    def broken(self) -> str:
        return self._broken

    @property
    def commits(self) -> int:
        return self._commits

    @property
    def size(self) -> int:
        return 0

    async def intend(self, intent: Intent) -> int:
        data = codec.encode_intent(intent)
        self._writable()
        self._journal_last += 1
        seq = self._journal_last
        self._journal[seq] = data, None
        await _told()
        return seq

    async def conclude(self, seq: int, ending: Ending, at: datetime) -> None:
        data = codec.encode_ending(ending, at)
        self._writable()
        if seq not in self._journal:
            raise ValueError(f"there is no journal entry {seq}")
        intent, ended = self._journal[seq]
        if ended is not None:
            raise ValueError(f"journal entry {seq} has an ending already")
        self._journal[seq] = intent, data
        await _told()

    async def unfinished(self) -> Sequence[Entry]:
        self._readable()
        found = [
            _entry(seq, intent, None)
            for seq, (intent, ended) in self._journal.items()
            if ended is None
        ]
        await _told()
        return found

    async def journal(self, *, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        self._readable()
        numbers = [seq for seq in self._journal if seq > after][:limit]
        found = [_entry(seq, *self._journal[seq]) for seq in numbers]
        await _told()
        return found

    async def put(self, table: str, values: Mapping[str, bytes | None]) -> None:
        self._writable()
        records = self._records.setdefault(table, {})
        for key, value in values.items():
            if value is None:
                records.pop(key, None)
            else:
                records[key] = bytes(value)
        await _told()

    async def load(self, table: str) -> Mapping[str, bytes]:
        self._readable()
        found = dict(sorted(self._records.get(table, {}).items()))
        await _told()
        return found

    async def record(self, events: Sequence[Event]) -> None:
        rows = [(event.ref, codec.encode_event(event)) for event in events]
        self._writable()
        for row in rows:
            self._events_last += 1
            self._events[self._events_last] = row
        await _told()

    async def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        ref: Ref | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[Recorded]:
        self._readable()
        inside = (
            seq
            for seq in (reversed(self._events) if newest else self._events)
            if after < seq and (before is None or seq < before)
        )
        mine = (seq for seq in inside if ref is None or self._events[seq][0] == ref)
        numbers = list(itertools.islice(mine, limit))
        found = [
            Recorded(seq=seq, event=codec.decode_event(self._events[seq][1])) for seq in numbers
        ]
        await _told()
        return found

    async def trim(self, *, events_max: int, journal_max: int) -> None:
        self._writable()
        for seq in list(self._events)[: max(0, len(self._events) - events_max)]:
            del self._events[seq]
        finished = [seq for seq, (_, ended) in self._journal.items() if ended is not None]
        for seq in finished[: max(0, len(self._journal) - journal_max)]:
            del self._journal[seq]
        await _told()

    def _readable(self) -> None:
        if not self._open:
            raise errors.StoreBroken("the store is not open")

    def _writable(self) -> None:
        self._readable()
        if self._broken:
            raise errors.StoreBroken(self._broken)
        self._commits += 1


async def _told() -> None:
    """The moment between "it is written" and "the caller knows", as every store has it."""
    await asyncio.sleep(0)


def _entry(seq: int, intent: bytes, ended: bytes | None) -> Entry:
    ending, at = (None, None) if ended is None else codec.decode_ending(ended)
    return Entry(seq=seq, intent=codec.decode_intent(intent), ending=ending, ended_at=at)
