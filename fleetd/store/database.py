"""
The database itself: opened, verified, written in transactions, closed. Synchronous.

A batch is one transaction and one sync: all its writes become durable together, or none does and
the store is broken for good. Intents come first: nobody knows the number of one before it is
durable, so nothing else in its batch can be about it. Reads come after the commit and see only what
is durable. What a write refuses (`ValueError`) it refuses before it has changed anything, so its
neighbours in the batch are not hurt. A batch of nothing but intents has a short way, `_append`.

Not here: asyncio, threads, and what the bytes mean to people (`sqlite`, `runner`, `codec`).
"""

import contextlib
import enum
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fleetd import errors
from fleetd.store import anchor, codec, place, rows, schema, verify
from fleetd.store.base import Entry, Recorded
from fleetd.store.rows import journal_hash
from fleetd.store.runner import Reply
from topology.resource import Ref

CHECKPOINT_ROWS = 1000
"""Changed rows between two checkpoints. An intent changes one, on a page of 2 KB, and every tenth
or so needs a new page: the log stays near 3 MB, and a checkpoint costs a few ms."""

_APPEND = "INSERT INTO journal VALUES (?, ?, NULL, ?)"

TRIM_ROWS = 1000
"""Rows one transaction of a trim removes at most: about 10 ms, so that intents are not held up."""


class Kind(enum.Enum):
    CONTROL = enum.auto()
    """Open or close: alone, outside any transaction."""
    INTENT = enum.auto()
    """A write that appends `Job.data` to the journal, and answers with its number."""
    WRITE = enum.auto()
    LAZY = enum.auto()
    """A write that need not be durable yet."""
    READ = enum.auto()


# Names of the module are found quicker than members of an enum, and these are asked for each job.
_INTENT, _WRITE, _LAZY, _READ = Kind.INTENT, Kind.WRITE, Kind.LAZY, Kind.READ


def _nothing() -> None:
    """What a job does that is all in its kind."""


class Job(msgspec.Struct, frozen=True):
    """A struct, because one is made for every intent: a fifth of the time of a dataclass."""

    kind: Kind
    act: Callable[[], Any] = _nothing
    short: bool = False
    """It changes a row or two; most of its time is the sync."""
    data: bytes = b""


_FLUSH = Job(Kind.WRITE)
"""Changes nothing itself, and takes along what waits."""


class Database:
    """One state directory. Never used by two threads at once."""

    def __init__(self, directory: Path) -> None:
        self.broken = "the store is not open"
        """Why nothing may be written; empty while all is well. Other threads only read it."""
        self.commits = 0
        """Transactions that became durable. Other threads only read it."""
        self._place = place.Place(directory)
        self._anchor: anchor.Anchor | None = None
        self._connection: sqlite3.Connection | None = None
        self._ledger = rows.Ledger()
        self._pending: list[tuple[str, str, bytes]] = []
        self._checkpointed = 0

    @property
    def size(self) -> int:
        """Of the database and its log, in bytes."""
        there = self._place.database
        files = (there, there.with_name(f"{there.name}-wal"))
        return sum(one.stat().st_size for one in files if one.exists())

    # What `runner` calls.

    def batch(self, jobs: Sequence[Job], /) -> Sequence[Reply]:
        intents = [job.data for job in jobs if job.kind is _INTENT]
        if len(intents) == len(jobs) and not self._pending:
            return self._append(intents)
        kinds = [job.kind for job in jobs]
        if Kind.CONTROL in kinds:
            return [self._alone(job) for job in jobs]
        replies: list[Reply] = [Reply()] * len(jobs)
        if self._pending or kinds.count(_READ) < len(kinds):
            self._write(jobs, replies)
        if _READ in kinds:
            self._read(jobs, replies)
        return replies

    @property
    def tired(self) -> bool:
        connection = self._connection
        if connection is None or self.broken:
            return False
        return connection.total_changes - self._checkpointed >= CHECKPOINT_ROWS

    def rest(self) -> None:
        if self.tired:
            self._settle()
        if self.tired:
            self._checkpoint("PASSIVE")

    @property
    def lazy(self) -> bool:
        return bool(self._pending)

    def flush(self) -> None:
        if self._connection is not None and not self.broken and self._pending:
            self._write([_FLUSH], [Reply()])

    # Opening and closing.

    def open(self) -> None:
        if self._connection is not None:
            raise errors.StoreLocked("the store is open already")
        self._place.take()
        try:
            self._open()
        except sqlite3.Error as cause:
            self._drop()
            raise _translated(cause, "opening the state") from cause
        except OSError as cause:
            self._drop()
            raise errors.StoreBroken(f"opening the state: {cause}") from cause
        except BaseException:
            self._drop()
            raise
        self.broken = ""

    def close(self) -> None:
        if self._connection is None:
            return
        self.flush()
        self._settle()
        if not self.broken:
            self._checkpoint("TRUNCATE")
        try:
            if not self.broken and self._anchor is not None:
                self._anchor.sync()
        except OSError as cause:
            self._break(cause)
        self.broken = self.broken or "the store is closed"
        self._drop()

    def _open(self) -> None:
        fresh = not self._place.database.exists() or self._place.database.stat().st_size == 0
        self._anchor = anchor.Anchor(
            self._place.anchor, create=fresh and not self._place.anchor.exists()
        )
        anchored = self._anchor.read()
        if fresh:
            if anchored:
                raise errors.StoreCorrupt(
                    f"{self._place.database} is missing or empty, though commit {anchored} was "
                    f"made: bring it back, or move the whole directory away to start anew"
                )
            self._place.database.touch(mode=0o600)
            self._place.sync()
        self._place.database.chmod(0o600)
        connection = self._connection = schema.connect(self._place.database)
        self._ledger = verify.settled(connection, anchored=anchored)
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise errors.StoreBroken(f"this disk does not allow a write-ahead log (got {mode})")
        before = self._ledger.commit
        schema.migrate(connection, self._ledger)
        verify.scan(connection, self._ledger)
        if self._ledger.commit != before:
            self._anchor.write(self._ledger.commit)
        self._pending = []
        self._checkpointed = connection.total_changes

    def _drop(self) -> None:
        """Let go of everything, whatever state it is in."""
        try:
            if self._connection is not None:
                self._connection.close()
        except sqlite3.Error as cause:
            self.broken = f"closing the state: {cause}"
        finally:
            self._connection = None
            if self._anchor is not None:
                self._anchor.close()
                self._anchor = None
            self._place.leave()

    # Writes: only from inside a WRITE job.

    def conclude(self, seq: int, ending: bytes) -> None:
        row = self._sql.execute(
            "SELECT seq, intent, ending, hash FROM journal WHERE seq = ?", (seq,)
        ).fetchone()
        if row is None:
            raise ValueError(f"there is no journal entry {seq}")
        _, intent, ended = rows.check_journal(row)
        if ended is not None:
            raise ValueError(f"journal entry {seq} has an ending already")
        row_hash = rows.journal_hash(seq, intent, ending)
        self._sql.execute(
            "UPDATE journal SET ending = ?, hash = ? WHERE seq = ?", (ending, row_hash, seq)
        )
        self._ledger.journal.drop(row[3])
        self._ledger.journal.add(row_hash)

    def put(self, table: str, values: Mapping[str, bytes | None]) -> None:
        tally = self._ledger.records
        for key, value in values.items():
            old = self._sql.execute(
                "SELECT hash FROM records WHERE name = ? AND key = ?", (table, key)
            ).fetchone()
            if old is not None:
                tally.drop(old[0])
            if value is not None:
                row_hash = rows.record_hash(table, key, value)
                self._sql.execute(
                    "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)",
                    (table, key, value, row_hash),
                )
                tally.add(row_hash)
            elif old is not None:
                self._sql.execute("DELETE FROM records WHERE name = ? AND key = ?", (table, key))

    def record(self, events: Sequence[tuple[str, str, bytes]]) -> None:
        """LAZY: kept in memory until the next transaction."""
        self._pending.extend(events)

    def trim(self, *, events_max: int, journal_max: int) -> bool:
        """Remove a few of the rows beyond the bounds; True while there is more to remove."""
        events = self._remove(
            "events",
            self._ledger.events,
            "SELECT seq, hash FROM events ORDER BY seq LIMIT ?",
            self._ledger.events.count - events_max,
        )
        journal = self._remove(
            "journal",
            self._ledger.journal,
            "SELECT seq, hash FROM journal WHERE ending IS NOT NULL ORDER BY seq LIMIT ?",
            self._ledger.journal.count - journal_max,
        )
        return events or journal

    def _remove(self, table: str, tally: rows.Tally, select: str, excess: int) -> bool:
        if excess <= 0:
            return False
        found = self._sql.execute(select, (min(excess, TRIM_ROWS),)).fetchall()
        for seq, row_hash in found:
            # The table is one of two names in this file, never input.
            self._sql.execute(f"DELETE FROM {table} WHERE seq = ?", (seq,))  # noqa: S608
            tally.drop(row_hash)
        return len(found) == TRIM_ROWS < excess

    # Reads: only from inside a READ job.

    def unfinished(self) -> list[Entry]:
        found = self._sql.execute(
            "SELECT seq, intent, ending, hash FROM journal WHERE ending IS NULL ORDER BY seq"
        )
        return [_entry(row) for row in found]

    def journal(self, after: int, limit: int) -> list[Entry]:
        found = self._sql.execute(
            "SELECT seq, intent, ending, hash FROM journal WHERE seq > ? ORDER BY seq LIMIT ?",
            (after, limit),
        )
        return [_entry(row) for row in found]

    def load(self, table: str) -> dict[str, bytes]:
        found = self._sql.execute(
            "SELECT name, key, value, hash FROM records WHERE name = ? ORDER BY key", (table,)
        )
        proven = (rows.check_record(row) for row in found)
        return {key: value for _, key, value in proven}

    def events(
        self, span: tuple[int, int], ref: Ref | None, limit: int, *, newest: bool
    ) -> list[Recorded]:
        of = " AND kind = ? AND name = ?" if ref is not None else ""
        order = " DESC" if newest else ""
        # Only fixed words are put together here; every value is a parameter.
        found = self._sql.execute(
            "SELECT seq, kind, name, value, hash FROM events"  # noqa: S608
            f" WHERE seq > ? AND seq < ?{of} ORDER BY seq{order} LIMIT ?",
            (*span, *(ref or ()), limit),
        )
        proven = (rows.check_event(row) for row in found)
        return [Recorded(seq=seq, event=codec.decode_event(value)) for seq, value in proven]

    # Inside.

    @property
    def _sql(self) -> sqlite3.Connection:
        if self._connection is None:
            raise errors.StoreBroken(self.broken)
        return self._connection

    def _alone(self, job: Job) -> Reply:
        if job.kind is not Kind.CONTROL:
            (reply,) = self.batch([job])
            return reply
        try:
            return Reply(value=job.act())
        except Exception as cause:  # noqa: BLE001 - a worker: whatever it is, the caller must know
            return Reply(error=cause)

    def _append(self, intents: Sequence[bytes]) -> Sequence[Reply]:
        """
        Nothing but intents: one transaction that leaves the row of the ledger as it is.

        Half the pages and a quarter of the statements of `_write`. A single row is a transaction
        by itself, without BEGIN and COMMIT.
        """
        if self.broken:
            return [Reply(error=errors.StoreBroken(self.broken))] * len(intents)
        try:
            ledger, sql = self._ledger, self._sql
            first = ledger.journal.last + 1
            if len(intents) == 1:
                total = journal_hash(first, intents[0], None)
                sql.execute(_APPEND, (first, intents[0], total))
            else:
                sql.execute("BEGIN IMMEDIATE")
                total = self._insert(intents)
                sql.execute("COMMIT")
            ledger.append(len(intents), total)
            self._durable()
        except Exception as cause:  # noqa: BLE001 - a worker: an unknown error breaks the store too
            return [Reply(error=self._break(cause))] * len(intents)
        return [Reply(seq) for seq in range(first, first + len(intents))]

    def _insert(self, intents: Sequence[bytes]) -> int:
        """Write new entries of the journal; return the sum of their hashes."""
        made = [
            (seq, intent, journal_hash(seq, intent, None))
            for seq, intent in enumerate(intents, self._ledger.journal.last + 1)
        ]
        self._sql.executemany(_APPEND, made)
        return sum([row_hash for _, _, row_hash in made])

    def _write(self, jobs: Sequence[Job], replies: list[Reply]) -> None:
        """All writes of a batch in one transaction; fills in their replies."""
        lazy = [i for i, job in enumerate(jobs) if job.kind is _LAZY]
        intents = [i for i, job in enumerate(jobs) if job.kind is _INTENT]
        writes = [i for i, job in enumerate(jobs) if job.kind is _WRITE]
        if self.broken:
            for i in (*lazy, *intents, *writes):
                replies[i] = Reply(error=errors.StoreBroken(self.broken))
            return
        try:
            for i in lazy:
                replies[i] = Reply(value=jobs[i].act())
            # Lazy work alone may wait for company; a reader must see it, so a reader is company.
            if intents or writes or (self._pending and len(lazy) < len(jobs)):
                self._sql.execute("BEGIN IMMEDIATE")
                for seq, i in enumerate(intents, self._ledger.journal.last + 1):
                    replies[i] = Reply(seq)
                total = self._insert([jobs[i].data for i in intents])
                self._ledger.append(len(intents), total)
                for i in writes:
                    replies[i] = _refusable(jobs[i])
                self._commit()
        except Exception as cause:  # noqa: BLE001 - a worker: an unknown error breaks the store too
            failure = self._break(cause)
            for i in (*lazy, *intents, *writes):
                replies[i] = Reply(error=failure)

    def _commit(self) -> None:
        ledger, sql = self._ledger, self._sql
        for kind, name, value in self._pending:
            seq = ledger.events.last + 1
            row_hash = rows.event_hash(seq, kind, name, value)
            sql.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?)", (seq, kind, name, value, row_hash)
            )
            ledger.events.last = seq
            ledger.events.add(row_hash)
        ledger.commit += 1
        sql.execute("UPDATE ledger SET value = ? WHERE id = 1", (ledger.pack(),))
        sql.execute("COMMIT")
        ledger.ahead = 0
        self._pending.clear()
        self._durable()

    def _durable(self) -> None:
        """A transaction is on disk: count it, and let the anchor say so."""
        if self._anchor is not None:
            self._anchor.write(self._ledger.commit)
        self.commits += 1

    def _settle(self) -> None:
        """
        Write the ledger if intents were appended since.

        Before each checkpoint, so that intents without a ledger stand only in the log, where every
        page has a checksum of its own and what is lost is lost from the end, as the anchor knows.
        """
        if self._ledger.ahead and not self.broken:
            self._write([_FLUSH], [Reply()])

    def _read(self, jobs: Sequence[Job], replies: list[Reply]) -> None:
        """All reads of a batch, after its writes are durable. A broken store may still be read."""
        for i, job in enumerate(jobs):
            if job.kind is not Kind.READ:
                continue
            try:
                replies[i] = Reply(value=job.act())
            except sqlite3.Error as cause:
                self._break(cause)
                replies[i] = Reply(error=_translated(cause, "reading the state"))
            except errors.StoreCorrupt as cause:
                self._break(cause)
                replies[i] = Reply(error=cause)
            except Exception as cause:  # noqa: BLE001 - a worker: the caller must know
                replies[i] = Reply(error=cause)

    def _checkpoint(self, mode: str) -> None:
        """Bring the log into the database. A sync that fails here counts like any other."""
        sql = self._sql
        try:
            sql.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        except sqlite3.Error as cause:
            self._break(cause)
        self._checkpointed = sql.total_changes

    def _break(self, cause: Exception) -> errors.StoreBroken:
        """From now on every write is refused. The first reason stays."""
        if not self.broken:
            self.broken = (
                f"writing the state failed ({cause}): nothing is done outward any more; mend the "
                f"disk under {self._place.directory} and start fleetd again"
            )
            self._pending.clear()
        if self._connection is not None and self._connection.in_transaction:
            # If even this fails: nothing of it was committed, and no later write is let through.
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
        failure = errors.StoreBroken(self.broken)
        failure.__cause__ = cause
        return failure


def _refusable(job: Job) -> Reply:
    try:
        return Reply(value=job.act())
    except ValueError as refused:
        return Reply(error=refused)


def _entry(row: tuple[Any, ...]) -> Entry:
    seq, intent, ended = rows.check_journal(row)
    ending, at = (None, None) if ended is None else codec.decode_ending(ended)
    return Entry(seq=seq, intent=codec.decode_intent(intent), ending=ending, ended_at=at)


_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def _translated(cause: sqlite3.Error, doing: str) -> errors.StoreError:
    """Damage, or a disk that does not work. Text that is not UTF-8 comes without a code."""
    code = getattr(cause, "sqlite_errorcode", None)
    if code is None or code & 0xFF in _DAMAGE:
        return errors.StoreCorrupt(f"{doing}: {cause}")
    return errors.StoreBroken(f"{doing}: {cause}")
