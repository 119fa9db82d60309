"""
The tables, how they came to be, and how the file is opened.

`MIGRATIONS` is the whole history: entry n brings a database of version n to version n + 1, in one
transaction, and is never edited after a release. The tables have no index besides their own key:
an index is a second copy that can be wrong on its own, and what it would save is milliseconds.

The rule: nothing is written to a database that was not checked. `version_of` only reads.
"""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from fleetd import errors
from fleetd.store import rows

Migration = Callable[[sqlite3.Connection, rows.Ledger], None]
"""Changes the tables, and the tallies of the ledger where it changes rows."""

APPLICATION = 0x666C6474
"""Marks the file as ours ("fldt"), for `file(1)` and against a path that names something else."""


def _first(connection: sqlite3.Connection, _ledger: rows.Ledger) -> None:
    connection.execute("CREATE TABLE ledger (id INTEGER PRIMARY KEY, value BLOB NOT NULL)")
    connection.execute(
        "CREATE TABLE journal (seq INTEGER PRIMARY KEY, intent BLOB NOT NULL, ending BLOB,"
        " hash INTEGER NOT NULL)"
    )
    connection.execute(
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL,"
        " value BLOB NOT NULL, hash INTEGER NOT NULL)"
    )
    connection.execute(
        "CREATE TABLE records (name TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,"
        " hash INTEGER NOT NULL, PRIMARY KEY (name, key)) WITHOUT ROWID"
    )


MIGRATIONS: Sequence[Migration] = (_first,)


def connect(path: Path) -> sqlite3.Connection:
    """
    Open the file; write nothing yet.

    Exclusive: one connection, so the index of the log lives in memory and no second program can
    write beside us. FULL: a commit returns when the log is synced. No automatic checkpoints:
    SQLite swallows their errors, and a sync that failed once and "succeeds" when repeated has
    lost data; `database` runs them itself and believes the first error. Small pages: a commit
    writes whole pages to the log, and an intent is a few hundred bytes. Smaller still would not
    help: every page that fills up costs three more for the tree above it.
    """
    # Any thread, but one at a time: the runner holds a lock while it works.
    connection = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    try:
        for pragma in (
            "page_size = 2048",
            "locking_mode = EXCLUSIVE",
            "synchronous = FULL",
            "wal_autocheckpoint = 0",
            "cell_size_check = ON",
            "trusted_schema = OFF",
            "temp_store = MEMORY",
            "cache_size = -16384",
        ):
            connection.execute(f"PRAGMA {pragma}")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def version_of(connection: sqlite3.Connection) -> int:
    """Version of the tables; 0 for a file with nothing in it."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    tables = shape_of(connection)
    if version == 0 and application == 0 and not tables:
        return 0
    if application != APPLICATION:
        raise errors.StoreCorrupt("the database is not one of fleetd's")
    if version > len(MIGRATIONS):
        raise errors.StoreError(
            f"the state was written by a newer fleetd (its tables have version {version}, this "
            f"fleetd knows up to {len(MIGRATIONS)}): start that fleetd again, or give this one an "
            f"empty --state"
        )
    if version < 1 or tables != expected_shape(version):
        raise errors.StoreCorrupt(f"the tables are not those of version {version}")
    return version


def migrate(connection: sqlite3.Connection, ledger: rows.Ledger) -> None:
    """Bring the tables to the newest version, one transaction for each step."""
    while ledger.version < len(MIGRATIONS):
        connection.execute("BEGIN IMMEDIATE")
        try:
            MIGRATIONS[ledger.version](connection, ledger)
            ledger.version += 1
            ledger.commit += 1
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {ledger.version}")
            connection.execute("INSERT OR REPLACE INTO ledger VALUES (1, ?)", (ledger.pack(),))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def shape_of(connection: sqlite3.Connection) -> list[tuple[str, str, str]]:
    """Everything the file declares, word for word."""
    return connection.execute(
        "SELECT type, name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name"
    ).fetchall()


def expected_shape(version: int) -> list[tuple[str, str, str]]:
    """What a database of this version declares, found by making one in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    try:
        ledger = rows.Ledger()
        for step in MIGRATIONS[:version]:
            step(connection, ledger)
        return shape_of(connection)
    finally:
        connection.close()
