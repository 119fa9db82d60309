"""A store that cannot write says so to everybody who waits, and writes nothing ever after."""

import asyncio
import functools
import os
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fleetd import clock, errors
from fleetd.store import runner, sqlite
from fleetd.vocabulary import Done
from tests.store import samples


class Disk:
    """Fails at the n-th statement, and counts how often it is touched."""

    def __init__(self) -> None:
        self.touched = 0
        self.fails_at = 0
        self.fails_after = False
        """The statement was carried out, and its success was not reported."""

    def around(self, act: Callable[[], Any]) -> Any:
        self.touched += 1
        if self.touched != self.fails_at:
            return act()
        if self.fails_after:
            act()
        raise sqlite3.OperationalError("disk I/O error")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    connect = sqlite3.connect

    class Faulty(sqlite3.Connection):
        def execute(self, *args: Any) -> sqlite3.Cursor:
            return disk.around(functools.partial(super().execute, *args))

        def executemany(self, *args: Any) -> sqlite3.Cursor:
            return disk.around(functools.partial(super().executemany, *args))

    def faulty(path: Any, **options: Any) -> sqlite3.Connection:
        if path == ":memory:":
            return connect(path, **options)
        return connect(path, factory=Faulty, **options)

    monkeypatch.setattr(sqlite3, "connect", faulty)
    return disk


async def _life(store: sqlite.SqliteStore, told: list[str]) -> None:
    """One of each write; `told` is what the store has acknowledged."""
    for number in (1, 2, 3):
        await store.intend(samples.intent(number))
        told.append(f"intent {number}")
    await store.conclude(1, Done(), samples.at(9))
    told.append("ending 1")
    await store.put("conditions", {"a": b"1", "b": b"2"})
    told.append("records")
    await store.record([samples.event(1)])
    # To record is no promise yet; what a reader sees is durable.
    told.extend("event" for _ in await store.events())
    await store.trim(events_max=9, journal_max=2)
    told.append("trim")


async def _found(store: sqlite.SqliteStore) -> list[str]:
    """What is there, in the words of `_life`."""
    journal = {entry.seq: entry for entry in await store.journal()}
    trimmed = 1 not in journal and 2 in journal
    found = [f"intent {number}" for number in (1, 2, 3) if number in journal or trimmed]
    if trimmed or (1 in journal and journal[1].ending == Done()):
        found.append("ending 1")
    if await store.load("conditions") == {"a": b"1", "b": b"2"}:
        found.append("records")
    if await store.events():
        found.append("event")
    if trimmed:
        found.append("trim")
    return found


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_an_error_at_any_statement_breaks_the_store(
    disk: Disk, tmp_path: Path, *, after: bool
) -> None:
    """At every statement of a life: the caller hears it, no later write touches the disk, and a
    new start finds all that was acknowledged and at most the one write that was not."""
    disk.fails_after = after
    store = samples.inline(tmp_path / "whole")
    await store.open()
    opening = disk.touched
    await _life(store, [])
    last = disk.touched
    await store.close()

    for n in range(opening + 1, last + 1):
        told: list[str] = []
        disk.touched, disk.fails_at = 0, n
        store = samples.inline(tmp_path / f"{n}")
        await store.open()
        with pytest.raises(errors.StoreError):
            await _life(store, told)
        assert "disk I/O error" in store.broken
        touched = disk.touched
        with pytest.raises(errors.StoreBroken, match="disk I/O error"):
            await store.intend(samples.intent(7))
        with pytest.raises(errors.StoreBroken):
            await store.record([samples.event(7)])
        assert disk.touched == touched
        await store.close()

        disk.fails_at = 0
        await store.open()
        found = await _found(store)
        await store.close()
        assert found[: len(told)] == told
        assert len(found) <= len(told) + 1


async def test_an_error_while_opening_leaves_no_lock(disk: Disk, tmp_path: Path) -> None:
    """At every statement of the opening: it is a StoreError, and the next opening succeeds."""
    store = samples.inline(tmp_path / "whole")
    await store.open()
    statements = disk.touched
    await store.close()

    for n in range(1, statements + 1):
        disk.touched, disk.fails_at = 0, n
        store = samples.inline(tmp_path / f"{n}")
        with pytest.raises(errors.StoreError):
            await store.open()
        disk.fails_at = 0
        await store.open()
        assert await store.intend(samples.intent(1)) == 1
        await store.close()


@pytest.mark.parametrize("statement", [1, 2, 3], ids=["begin", "insert", "commit"])
async def test_everybody_who_waits_hears_of_it(disk: Disk, tmp_path: Path, statement: int) -> None:
    """Of 32 callers that wait for one commit, all hear that it failed."""
    store = sqlite.SqliteStore(
        tmp_path / "state", runner.ThreadRunner(clock.SystemClock(), patience=timedelta(0))
    )
    await store.open()
    disk.fails_at = disk.touched + statement

    results = await asyncio.gather(
        *(store.intend(samples.intent(n)) for n in range(32)), return_exceptions=True
    )

    assert {type(result) for result in results} == {errors.StoreBroken}
    assert await store.journal() == []
    await store.close()


async def test_a_failed_timer_write_breaks_the_store(disk: Disk, tmp_path: Path) -> None:
    """Events that cannot be written later, when nobody waits, stop the next intent."""
    store = samples.inline(tmp_path / "state")
    await store.open()
    disk.fails_at = disk.touched + 1

    await store.record([samples.event(1)])

    assert "disk I/O error" in store.broken
    with pytest.raises(errors.StoreBroken):
        await store.intend(samples.intent(1))
    await store.close()


async def test_a_database_that_may_not_grow_breaks_the_store(tmp_path: Path) -> None:
    """A full database is an error of the write that fills it; what was there can be read."""
    store = samples.inline(tmp_path / "state")
    await store.open()
    await store.intend(samples.intent(1))
    connection = store._database._connection
    assert connection is not None
    connection.execute("PRAGMA max_page_count = 6")

    with pytest.raises(errors.StoreBroken, match="full"):
        await store.put("documents", {"big": bytes(100_000)})

    assert "full" in store.broken
    assert [entry.intent for entry in await store.journal()] == [samples.intent(1)]
    assert await store.load("documents") == {}
    await store.close()


async def test_an_anchor_that_cannot_be_written_breaks_the_store(tmp_path: Path) -> None:
    """The disk is full for the anchor alone: nobody may act on the intent."""
    store = samples.inline(tmp_path / "state")
    await store.open()
    assert store._database._anchor is not None
    full = os.open("/dev/full", os.O_RDWR)
    os.dup2(full, store._database._anchor._fd)
    os.close(full)

    with pytest.raises(errors.StoreBroken, match="No space left"):
        await store.intend(samples.intent(1))

    await store.close()
