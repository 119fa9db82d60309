"""
How dear is a durable intent?

The measure is the dearest thing nobody can do without: one `fdatasync` of 4 KB into a file that has
its size already, in the same directory. Beside it stand SQLite with nothing around it, which is as
near to that as a journal in SQLite can come, and a raw append. All alternate in one run, and the
answer is the median of the ratios of the rounds. A round in which other processes used more than a
fifth of the machine does not count, unless too few are left.

Wall time here: a sync is waiting, not work. The ratio falls with a better disk, because what we
add to a sync is work, and work does not get quicker with the disk.
"""

import asyncio
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench import measure
from bench.measure import Sizes
from bench.table import Goal, Peer, Row
from fleetd import clock
from fleetd.store import codec, runner, sqlite
from fleetd.store.base import Intent
from fleetd.vocabulary import Condition, Done, PlanId, StepId, Truth
from topology.resource import Ref

ROUNDS_MORE = 3
"""Rounds that are tried for each one that must be quiet."""
BUSY = 0.2
"""Share of the machine that other processes may use in a quiet round."""
IN_FLIGHT = 32
PAGES = 256

INTENT = Intent(
    step=StepId("5c0f3fd2a1b84e6f9d7c"),
    ref=Ref("server", "eu-1-r17-s042"),
    verb="power_on",
    args={"bmc": "192.0.2.11", "boot": "pxe", "image": "gardenlinux-1877.4.0", "tries": 3},
    generation=0x8C3F_0912_77AA_01E5,
    plan=PlanId("b7e2c94410d3"),
    at=datetime(2030, 1, 1, tzinfo=UTC),
)


def run(sizes: Sizes) -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(_run(Path(name), sizes))


async def _run(directory: Path, sizes: Sizes) -> list[Row]:
    store = sqlite.SqliteStore(directory / "state", runner.ThreadRunner(clock.SystemClock()))
    await store.open()
    raw, bare = _Raw(directory / "raw"), _Bare(directory / "bare")
    # A log that has reached its size is what a daemon has that is not brand new.
    await _single(store, 4 * sizes.syncs)
    bare.rate(4 * sizes.syncs)
    rounds: list[dict[str, float]] = []
    quiet = 0
    while len(rounds) < sizes.rounds * ROUNDS_MORE and quiet < sizes.rounds:
        measure.progress(f"round {len(rounds) + 1}")
        others = measure.Others()
        found = {"raw": raw.rate(sizes.syncs), "bare": bare.rate(sizes.syncs)}
        found["single"] = await _single(store, sizes.syncs)
        found["flight"] = await _in_flight(store, max(1, sizes.syncs // 8))
        found["append"] = raw.append(sizes.syncs)
        found["others"] = others.share()
        rounds.append(found)
        quiet += found["others"] < BUSY
    await store.close()
    raw.close()
    bare.close()
    chosen = [found for found in rounds if found["others"] < BUSY]
    note = f"{len(chosen)} quiet rounds of {len(rounds)}"
    if len(chosen) < sizes.rounds:
        chosen, note = rounds, f"only {note}, so all count"
    measure.progress(f"opening a store with {sizes.stored:,} conditions")
    return [*_ratios(chosen, note), await _restart(directory / "large", sizes.stored)]


def _ratios(rounds: list[dict[str, float]], note: str) -> list[Row]:
    def median(of: Callable[[dict[str, float]], float]) -> float:
        return statistics.median(of(found) for found in rounds)

    rates = ", ".join(
        f"{words} {median(lambda found, name=name: found[name]):,.0f}/s"
        for name, words in (("raw", "raw"), ("single", "one"), ("flight", f"{IN_FLIGHT} in flight"))
    )
    return [
        Row(
            what="one durable intent / raw fdatasync of 4 KB",
            value=median(lambda found: found["single"] / found["raw"]),
            unit="×",
            goal=Goal(least=0.7),
            peers=(
                Peer(
                    name="bare sqlite3, same row and settings",
                    ratio=median(lambda found: found["single"] / found["bare"]),
                ),
                Peer(
                    name="raw append and fdatasync",
                    ratio=median(lambda found: found["single"] / found["append"]),
                ),
            ),
            note=f"{rates}; {note}",
            raw={name: [found[name] for found in rounds] for name in rounds[0]},
        ),
        Row(
            what=f"intents with {IN_FLIGHT} in flight / one at a time",
            value=median(lambda found: found["flight"] / found["single"]),
            unit="×",
            goal=Goal(least=10),
            peers=(
                Peer(
                    name="raw fdatasync of 4 KB",
                    ratio=median(lambda found: found["flight"] / found["raw"]),
                ),
            ),
        ),
    ]


async def _single(store: sqlite.SqliteStore, count: int) -> float:
    began = time.perf_counter()
    for _ in range(count):
        await store.intend(INTENT)
    return count / (time.perf_counter() - began)


async def _in_flight(store: sqlite.SqliteStore, each: int) -> float:
    async def work() -> None:
        for _ in range(each):
            await store.intend(INTENT)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return IN_FLIGHT * each / (time.perf_counter() - began)


class _Raw:
    """The peer: no records, no checksums, no order; only the sync."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._page = os.urandom(4096)
        for number in range(PAGES):
            os.pwrite(self._fd, self._page, 4096 * number)
        os.fsync(self._fd)

    def rate(self, count: int) -> float:
        began = time.perf_counter()
        for number in range(count):
            os.pwrite(self._fd, self._page, 4096 * (number % PAGES))
            os.fdatasync(self._fd)
        return count / (time.perf_counter() - began)

    def append(self, count: int) -> float:
        """As a log without a size of its own would: the file grows with each."""
        with self._path.with_suffix(".log").open("ab", buffering=0) as stream:
            began = time.perf_counter()
            for _ in range(count):
                stream.write(self._page)
                os.fdatasync(stream.fileno())
            return count / (time.perf_counter() - began)

    def close(self) -> None:
        os.close(self._fd)


class _Bare:
    """What SQLite itself can do: the same row, as durable, with no hash, ledger, queue or loop."""

    def __init__(self, path: Path) -> None:
        self._sql = sqlite3.connect(path, isolation_level=None)
        for pragma in (
            "page_size = 2048",
            "journal_mode = WAL",
            "synchronous = FULL",
            "wal_autocheckpoint = 0",
        ):
            self._sql.execute(f"PRAGMA {pragma}")
        self._sql.execute("CREATE TABLE journal (seq INTEGER PRIMARY KEY, intent BLOB)")
        self._row = codec.encode_intent(INTENT)

    def rate(self, count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            self._sql.execute("BEGIN IMMEDIATE")
            self._sql.execute("INSERT INTO journal VALUES (NULL, ?)", (self._row,))
            self._sql.execute("COMMIT")
        self._sql.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return count / (time.perf_counter() - began)

    def close(self) -> None:
        self._sql.close()


async def _restart(directory: Path, conditions: int) -> Row:
    """Open a large state: everything is checked before the first answer."""
    store = sqlite.SqliteStore(directory, runner.ThreadRunner(clock.SystemClock()))
    await store.open()
    condition = Condition(
        type="Ready",
        truth=Truth.TRUE,
        reason="Ready",
        message="it is as it should be",
        generation=INTENT.generation,
        since=INTENT.at,
        reason_since=INTENT.at,
    )
    data = codec.encode_condition(condition)
    for start in range(0, conditions, 5000):
        many = range(start, min(start + 5000, conditions))
        await store.put("conditions", {f"server/s{number:06}": data for number in many})
    entries = 2 * conditions
    for start in range(0, entries, 2000):
        many = range(start, min(start + 2000, entries))
        given = await asyncio.gather(
            *(store.intend(replace(INTENT, generation=number)) for number in many)
        )
        await asyncio.gather(*(store.conclude(seq, Done(), INTENT.at) for seq in given[:-1]))
    await store.close()
    size = (directory / "fleetd.db").stat().st_size
    seconds: list[float] = []
    loaded = 0
    for _ in range(3):
        began = time.perf_counter()
        await store.open()
        loaded = len(await store.load("conditions")) + len(await store.unfinished())
        seconds.append(time.perf_counter() - began)
        await store.close()
    return Row(
        what=f"open a store of {conditions:,} conditions again",
        value=statistics.median(seconds),
        unit="s",
        goal=Goal(most=5),
        note=f"{entries:,} journal entries too; every row verified, {loaded:,} loaded, "
        f"{size / 1e6:.0f} MB",
        raw={"seconds": seconds},
    )
