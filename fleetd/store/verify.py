"""
Is what is on disk what was written? Asked once, when the store is opened.

`settled` looks at the file as a whole before anything is changed: SQLite's own check, the ledger
and the anchor. `scan` then reads every row once, and compares it with its hash, its neighbour and
the tallies. What passes here is complete; what does not is `StoreCorrupt`, with the thing named.
"""

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

from fleetd import errors
from fleetd.store import rows, schema


def settled(connection: sqlite3.Connection, *, anchored: int) -> rows.Ledger:
    """The ledger of a database that is whole and has come as far as the anchor says."""
    version = schema.version_of(connection)
    ledger = _carried(connection, _ledger(connection)) if version else rows.Ledger()
    if ledger.version != version:
        raise errors.StoreCorrupt(
            f"the file says version {version}, its ledger says {ledger.version}"
        )
    if ledger.commit < anchored:
        raise errors.StoreCorrupt(
            f"the database ends with commit {ledger.commit}, but commit {anchored} was made: it is "
            f"an old copy, or its log is damaged"
        )
    found = [line for (line,) in connection.execute("PRAGMA quick_check(3)")]
    if found != ["ok"]:
        raise errors.StoreCorrupt(f"SQLite finds the database damaged: {'; '.join(found)}")
    return ledger


def scan(connection: sqlite3.Connection, ledger: rows.Ledger) -> None:
    """Every row, against its hash and the tallies."""
    journal = _scan(
        "journal",
        connection.execute("SELECT seq, intent, ending, hash FROM journal ORDER BY seq"),
        rows.check_journal,
        key=1,
    )
    events = _scan(
        "events",
        connection.execute("SELECT seq, kind, name, value, hash FROM events ORDER BY seq"),
        rows.check_event,
        key=1,
    )
    records = _scan(
        "records",
        connection.execute("SELECT name, key, value, hash FROM records ORDER BY name, key"),
        rows.check_record,
        key=2,
    )
    _compare("journal", ledger.journal, journal)
    _compare("events", ledger.events, events)
    _compare("records", ledger.records, records)


def _scan(
    table: str,
    found: Iterable[tuple[Any, ...]],
    check: Callable[[tuple[Any, ...]], object],
    *,
    key: int,
) -> rows.Tally:
    tally = rows.Tally()
    before: tuple[Any, ...] | None = None
    total = 0
    for row in found:
        check(row)
        here = row[:key]
        # A search goes by order. Rows out of order would be seen by this scan and not by a search.
        if before is not None and before >= here:
            raise errors.StoreCorrupt(f"table {table} is out of order at {here}")
        before = here
        total += row[-1]
        tally.count += 1
    tally.total = total & ((1 << 64) - 1)
    if before is not None and key == 1:
        tally.last = before[0]
    return tally


def _compare(table: str, told: rows.Tally, found: rows.Tally) -> None:
    if not told.same_rows(found) or found.last > told.last:
        raise errors.StoreCorrupt(
            f"table {table} has {found.count} rows, its tally says {told.count}, "
            f"and their hashes do not add up: rows are missing, doubled or old"
        )


def _carried(connection: sqlite3.Connection, ledger: rows.Ledger) -> rows.Ledger:
    """The ledger after the intents that were appended since its row was written."""
    found = connection.execute(
        "SELECT seq, intent, ending, hash FROM journal WHERE seq > ? ORDER BY seq",
        (ledger.journal.last,),
    )
    for row in found:
        seq, _, ending = rows.check_journal(row)
        # An ending is written together with the ledger, which would then know the entry.
        if seq != ledger.journal.last + 1 or ending is not None:
            raise errors.StoreCorrupt(
                f"journal entry {seq} does not follow on entry {ledger.journal.last}, the last one "
                f"that is accounted for: rows are missing or old"
            )
        ledger.append(1, row[3])
    return ledger


def _ledger(connection: sqlite3.Connection) -> rows.Ledger:
    found = connection.execute("SELECT id, value FROM ledger").fetchall()
    if len(found) != 1 or found[0][0] != 1:
        raise errors.StoreCorrupt("the ledger row is missing")
    return rows.unpack(found[0][1])
