"""Old tables are brought forward whole or not at all; tables from the future are refused."""

import sqlite3
from pathlib import Path

import pytest

from fleetd import errors
from fleetd.store import anchor, codec, rows, schema
from fleetd.vocabulary import Done
from tests.store import samples

# Written out here and never changed: this is what version 1 has left on disks.
VERSION_1 = (
    "CREATE TABLE ledger (id INTEGER PRIMARY KEY, value BLOB NOT NULL)",
    (
        "CREATE TABLE journal (seq INTEGER PRIMARY KEY, intent BLOB NOT NULL, ending BLOB,"
        " hash INTEGER NOT NULL)"
    ),
    (
        "CREATE TABLE events (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL,"
        " value BLOB NOT NULL, hash INTEGER NOT NULL)"
    ),
    (
        "CREATE TABLE records (name TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,"
        " hash INTEGER NOT NULL, PRIMARY KEY (name, key)) WITHOUT ROWID"
    ),
    "PRAGMA application_id = 1718379636",
    "PRAGMA user_version = 1",
)


def version_1(directory: Path) -> None:
    """A state directory of version 1 with two intents, one ended, a record and an event."""
    directory.mkdir(mode=0o700)
    ledger = rows.Ledger(version=1, commit=5)
    with_anchor = anchor.Anchor(directory / "fleetd.anchor", create=True)
    with_anchor.write(5)
    with_anchor.close()
    connection = sqlite3.connect(directory / "fleetd.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    for statement in VERSION_1:
        connection.execute(statement)
    for seq, ending in ((1, codec.encode_ending(Done(), samples.at(9))), (2, None)):
        intent = codec.encode_intent(samples.intent(seq))
        row_hash = rows.journal_hash(seq, intent, ending)
        connection.execute("INSERT INTO journal VALUES (?,?,?,?)", (seq, intent, ending, row_hash))
        ledger.journal.add(row_hash)
        ledger.journal.last = seq
    row_hash = rows.record_hash("pauses", "all", b"1")
    connection.execute("INSERT INTO records VALUES ('pauses','all',?,?)", (b"1", row_hash))
    ledger.records.add(row_hash)
    event = samples.event(1)
    value = codec.encode_event(event)
    row_hash = rows.event_hash(1, event.ref.kind, event.ref.name, value)
    connection.execute(
        "INSERT INTO events VALUES (1,?,?,?,?)",
        (event.ref.kind, event.ref.name, value, row_hash),
    )
    ledger.events.add(row_hash)
    ledger.events.last = 1
    connection.execute("INSERT INTO ledger VALUES (1, ?)", (ledger.pack(),))
    connection.close()


def add_column(connection: sqlite3.Connection, _: rows.Ledger) -> None:
    connection.execute("ALTER TABLE events ADD COLUMN severity INTEGER NOT NULL DEFAULT 0")


def version_of(directory: Path) -> tuple[int, int]:
    """As the file says, and as its ledger says."""
    connection = sqlite3.connect(directory / "fleetd.db")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (ledger,) = connection.execute("SELECT value FROM ledger").fetchone()
    connection.close()
    return version, rows.unpack(ledger).version


async def test_a_state_of_version_1_is_read_whole(tmp_path: Path) -> None:
    """What the first version wrote is read by this one, and written on."""
    version_1(tmp_path / "state")
    store = samples.inline(tmp_path / "state")
    await store.open()

    assert [entry.intent for entry in await store.journal()] == [
        samples.intent(1),
        samples.intent(2),
    ]
    assert [entry.seq for entry in await store.unfinished()] == [2]
    assert await store.load("pauses") == {"all": b"1"}
    assert [recorded.event for recorded in await store.events()] == [samples.event(1)]
    assert await store.intend(samples.intent(3)) == 3
    await store.close()


async def test_a_migration_keeps_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step to the next version runs once, keeps every row, and is marked in file and ledger."""
    version_1(tmp_path / "state")
    steps = (*schema.MIGRATIONS[:1], add_column)
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    store = samples.inline(tmp_path / "state")

    for _ in range(2):
        await store.open()
        assert [entry.seq for entry in await store.journal()] == [1, 2]
        assert [recorded.event for recorded in await store.events()] == [samples.event(1)]
        await store.close()

    assert version_of(tmp_path / "state") == (2, 2)


async def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that fails half-way is undone; the old fleetd can go on with the state."""
    version_1(tmp_path / "state")
    old = schema.MIGRATIONS

    def half(connection: sqlite3.Connection, ledger: rows.Ledger) -> None:
        add_column(connection, ledger)
        connection.execute("ALTER TABLE missing ADD COLUMN x")

    monkeypatch.setattr(schema, "MIGRATIONS", (*old[:1], half))
    with pytest.raises(errors.StoreBroken, match="no such table"):
        await samples.inline(tmp_path / "state").open()

    monkeypatch.setattr(schema, "MIGRATIONS", old[:1])
    assert version_of(tmp_path / "state") == (1, 1)
    store = samples.inline(tmp_path / "state")
    await store.open()
    assert [entry.seq for entry in await store.journal()] == [1, 2]
    await store.close()


async def test_a_state_from_the_future_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older fleetd does not touch what a newer one wrote, and says what to do."""
    with monkeypatch.context() as newer:
        newer.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, add_column))
        store = samples.inline(tmp_path / "state")
        await store.open()
        await store.close()
    before = (tmp_path / "state" / "fleetd.db").read_bytes()

    with pytest.raises(errors.StoreError, match=r"newer fleetd .* start that fleetd again"):
        await samples.inline(tmp_path / "state").open()

    assert (tmp_path / "state" / "fleetd.db").read_bytes() == before


async def test_another_database_is_refused(tmp_path: Path) -> None:
    """A SQLite file of another program is not taken for ours, and not changed."""
    version_1(tmp_path / "state")
    connection = sqlite3.connect(tmp_path / "state" / "fleetd.db")
    connection.execute("PRAGMA application_id = 7")
    connection.close()

    with pytest.raises(errors.StoreCorrupt, match="not one of fleetd's"):
        await samples.inline(tmp_path / "state").open()


async def test_a_table_with_other_columns_is_refused(tmp_path: Path) -> None:
    """Tables that are not word for word those of their version are not trusted."""
    version_1(tmp_path / "state")
    connection = sqlite3.connect(tmp_path / "state" / "fleetd.db")
    connection.execute("CREATE INDEX extra ON events (name)")
    connection.close()

    with pytest.raises(errors.StoreCorrupt, match="not those of version 1"):
        await samples.inline(tmp_path / "state").open()
