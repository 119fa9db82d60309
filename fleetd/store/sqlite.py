"""
The store on disk: SQLite, one file, durable when it says so.

This is the asynchronous face: it turns nouns into bytes, and calls into jobs for `database`, which
`runner` does in a thread (the daemon) or at once (simulation). No call blocks the event loop
beyond the runner's stated patience.

A caller that is cancelled while it waits loses the answer, not the write: an intent may then stand
in the journal with nobody to act on it, which is what `unfinished` is for.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from fleetd import errors
from fleetd.store import codec
from fleetd.store.base import Entry, Intent, Recorded
from fleetd.store.codec import encode_intent
from fleetd.store.database import Database, Job, Kind
from fleetd.store.runner import Runner
from fleetd.vocabulary import Ending, Event
from topology.resource import Ref

Value = TypeVar("Value")

_INTENT = Kind.INTENT
LAST = 2**63 - 1
"""Above every number that the database can give out."""


class SqliteStore:
    """Implements `base.Store`."""

    def __init__(self, directory: Path, runner: Runner[Job]) -> None:
        self._runner = runner
        self._database = Database(directory)
        self._started = False

    async def open(self) -> None:
        if self._started:
            raise errors.StoreLocked("the store is open already")
        self._started = True
        self._runner.start(self._database)
        try:
            await self._runner.run(Job(Kind.CONTROL, self._database.open))
        except BaseException:
            # Cancelled while the thread went on: it may have opened by now, so it must close.
            await self.close()
            raise

    async def close(self) -> None:
        if not self._started:
            return
        self._started = False
        try:
            await self._runner.run(Job(Kind.CONTROL, self._database.close))
        finally:
            await self._runner.stop()

    @property
    def broken(self) -> str:
        return self._database.broken

    @property
    def commits(self) -> int:
        return self._database.commits

    @property
    def size(self) -> int:
        return self._database.size

    async def intend(self, intent: Intent) -> int:
        if not self._started:
            raise errors.StoreBroken("the store is not open")
        return await self._runner.run(Job(_INTENT, data=encode_intent(intent), short=True))

    async def conclude(self, seq: int, ending: Ending, at: datetime) -> None:
        data = codec.encode_ending(ending, at)
        await self._do(Kind.WRITE, partial(self._database.conclude, seq, data), short=True)

    async def unfinished(self) -> Sequence[Entry]:
        return await self._do(Kind.READ, self._database.unfinished)

    async def journal(self, *, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        return await self._do(Kind.READ, partial(self._database.journal, after, limit))

    async def put(self, table: str, values: Mapping[str, bytes | None]) -> None:
        # A copy: the caller may change its mapping while the job waits for its turn.
        put = partial(self._database.put, table, dict(values))
        await self._do(Kind.WRITE, put, short=len(values) <= 4)

    async def load(self, table: str) -> Mapping[str, bytes]:
        return await self._do(Kind.READ, partial(self._database.load, table))

    async def record(self, events: Sequence[Event]) -> None:
        rows = [(event.ref.kind, event.ref.name, codec.encode_event(event)) for event in events]
        await self._do(Kind.LAZY, partial(self._database.record, rows))

    async def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        ref: Ref | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[Recorded]:
        span = (after, LAST if before is None else before)
        read = partial(self._database.events, span, ref, limit, newest=newest)
        return await self._do(Kind.READ, read)

    async def trim(self, *, events_max: int, journal_max: int) -> None:
        step = partial(self._database.trim, events_max=events_max, journal_max=journal_max)
        while await self._do(Kind.WRITE, step):
            pass

    def _do(self, kind: Kind, act: Callable[[], Value], *, short: bool = False) -> Awaitable[Value]:
        if not self._started:
            raise errors.StoreBroken("the store is not open")
        return self._runner.run(Job(kind, act, short))
