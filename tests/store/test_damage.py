"""Damage at rest is found or is harmless: never is something silently different or missing."""

import random
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fleetd import errors
from fleetd.store import rows
from tests.store import samples

FLIPS = 10_000
SHARDS = 4
"""Shares of the flips, for test workers."""
PAGE = 2048
FILES = ("fleetd.db", "fleetd.db-wal", "fleetd.anchor")


class Victim:
    """The files of a store that was killed with work in its log, and what it held."""

    def __init__(self, files: dict[str, bytes], held: dict[str, Any]) -> None:
        self.files = files
        self.held = held

    async def examine(self, directory: Path, files: dict[str, bytes]) -> str:
        """`found`, `harmless`, or in words what is silently wrong."""
        _lay_out(directory, files)
        store = samples.inline(directory)
        try:
            await store.open()
            held = await samples.read(store)
        except errors.StoreError:
            return "found"
        finally:
            await store.close()
        wrong = [name for name in self.held if held[name] != self.held[name]]
        return f"silently different: {wrong}" if wrong else "harmless"


def _lay_out(directory: Path, files: dict[str, bytes]) -> None:
    directory.mkdir(mode=0o700, exist_ok=True)
    for name in FILES:
        (directory / name).unlink(missing_ok=True)
    for name, data in files.items():
        (directory / name).write_bytes(data)


@pytest.fixture
async def victim(tmp_path: Path) -> Victim:
    directory = tmp_path / "victim"
    store = samples.inline(directory)
    await store.open()
    await samples.write(store, 1, 200)
    await store.close()
    await store.open()
    await samples.write(store, 201, 30)
    files = {name: (directory / name).read_bytes() for name in FILES}
    held = await samples.read(store)
    await store.close()
    assert all(files.values())
    return Victim(files, held)


async def test_an_undamaged_copy_is_read_whole(victim: Victim, tmp_path: Path) -> None:
    """The files of a killed store, untouched, give back everything: the harness itself is right."""
    assert await victim.examine(tmp_path / "copy", victim.files) == "harmless"


@pytest.mark.parametrize("shard", range(SHARDS))
async def test_flipped_bits_are_found_or_harmless(
    victim: Victim, tmp_path: Path, shard: int
) -> None:
    """Of 10,000 flipped bits in database, log and anchor none changes what is read."""
    rng = random.Random(20300101 + shard)
    verdicts: Counter[str] = Counter()
    for number in range(FLIPS // SHARDS):
        name = rng.choices(FILES, weights=(10, 10, 1))[0]
        data = bytearray(victim.files[name])
        bit = rng.randrange(len(data) * 8)
        data[bit // 8] ^= 1 << bit % 8
        verdict = await victim.examine(tmp_path / "copy", {**victim.files, name: bytes(data)})
        if verdict not in {"found", "harmless"}:
            verdict = f"flip {number}, bit {bit} of {name}: {verdict}"
        verdicts[verdict] += 1

    assert set(verdicts) == {"found", "harmless"}, verdicts
    # Neither answer alone would do: all found would mean that nothing can be opened any more.
    assert verdicts["found"] > FLIPS // SHARDS // 4
    assert verdicts["harmless"] > FLIPS // SHARDS // 50


async def test_a_file_cut_short_is_found_or_harmless(victim: Victim, tmp_path: Path) -> None:
    """Database, log and anchor cut at 60 places each: nothing is silently missing."""
    rng = random.Random(7)
    for name in FILES:
        data = victim.files[name]
        cuts = [0, 1, len(data) - 1, *(rng.randrange(len(data)) for _ in range(57))]
        for cut in cuts:
            files = {**victim.files, name: data[:cut]}
            verdict = await victim.examine(tmp_path / "copy", files)
            assert verdict in {"found", "harmless"}, f"{name} cut at {cut}: {verdict}"


async def test_a_zeroed_page_is_found_or_harmless(victim: Victim, tmp_path: Path) -> None:
    """Every page of database and log, zeroed in turn: nothing is silently missing."""
    verdicts: Counter[str] = Counter()
    for name in FILES[:2]:
        data = victim.files[name]
        for start in range(0, len(data), PAGE):
            damaged = data[:start] + bytes(PAGE) + data[start + PAGE :]
            files = {**victim.files, name: damaged[: len(data)]}
            verdict = await victim.examine(tmp_path / "copy", files)
            assert verdict in {"found", "harmless"}, f"{name} at {start}: {verdict}"
            verdicts[verdict] += 1

    assert verdicts["found"] > 10


@pytest.mark.parametrize("missing", FILES)
async def test_a_missing_file_is_found(victim: Victim, tmp_path: Path, missing: str) -> None:
    """Without its database, its log or its anchor the state is refused."""
    files = {name: data for name, data in victim.files.items() if name != missing}

    assert await victim.examine(tmp_path / "copy", files) == "found"


async def test_an_old_copy_of_the_database_is_found(tmp_path: Path) -> None:
    """A backup put back under a newer anchor is refused, and the words say what it is."""
    directory = tmp_path / "state"
    store = samples.inline(directory)
    await store.open()
    await samples.write(store, 1, 20)
    await store.close()
    old = (directory / "fleetd.db").read_bytes()
    await store.open()
    await store.intend(samples.intent(99))
    await store.close()

    (directory / "fleetd.db").write_bytes(old)

    with pytest.raises(errors.StoreCorrupt, match="old copy"):
        await store.open()


async def test_an_older_anchor_is_no_damage(tmp_path: Path) -> None:
    """A power cut may leave the anchor behind the database; that is in order."""
    directory = tmp_path / "state"
    store = samples.inline(directory)
    await store.open()
    old = (directory / "fleetd.anchor").read_bytes()
    await samples.write(store, 1, 20)
    held = await samples.read(store)
    await store.close()

    (directory / "fleetd.anchor").write_bytes(old)
    await store.open()

    assert await samples.read(store) == held
    await store.close()


async def test_one_torn_slot_of_the_anchor_is_no_damage(tmp_path: Path) -> None:
    """Each slot of the anchor may be torn by a power cut; the other one still speaks."""
    directory = tmp_path / "state"
    store = samples.inline(directory)
    await store.open()
    await samples.write(store, 1, 20)
    await store.close()
    whole = (directory / "fleetd.anchor").read_bytes()

    for start in (0, 512):
        torn = whole[: start + 5] + b"\xff" * 7 + whole[start + 12 :]
        (directory / "fleetd.anchor").write_bytes(torn)
        await store.open()
        assert store.broken == ""
        await store.close()
        (directory / "fleetd.anchor").write_bytes(whole)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM journal WHERE seq = 2",
        "DELETE FROM records WHERE key = 'server/7'",
        "DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
        "DELETE FROM journal",
        "DELETE FROM ledger",
    ],
)
async def test_a_missing_row_is_found(tmp_path: Path, statement: str) -> None:
    """A row that is gone leaves a healthy file behind; the tally still misses it."""
    store = samples.inline(tmp_path / "state")
    await store.open()
    await samples.write(store, 1, 20)
    await store.close()
    connection = sqlite3.connect(tmp_path / "state" / "fleetd.db", isolation_level=None)
    assert connection.execute(statement).rowcount > 0
    connection.close()

    with pytest.raises(errors.StoreCorrupt, match=r"rows are missing|ledger row is missing"):
        await store.open()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM journal WHERE seq = 22",
        "DELETE FROM journal WHERE seq = 25",
        "DELETE FROM journal WHERE seq > 20",
        "UPDATE journal SET intent = x'00' WHERE seq = 23",
    ],
    ids=["middle", "last", "all", "changed"],
)
async def test_a_row_that_the_ledger_does_not_know_yet_is_missed(
    tmp_path: Path, statement: str
) -> None:
    """Intents of a killed store, written after its ledger: one that is gone or changed is found."""
    directory, copy = tmp_path / "state", tmp_path / "copy"
    store = samples.inline(directory)
    await store.open()
    await samples.write(store, 1, 20)
    for number in range(21, 26):
        await store.intend(samples.intent(number))
    held = await samples.read(store)
    killed = {name: (directory / name).read_bytes() for name in FILES}
    await store.close()
    _lay_out(copy, killed)
    whole = samples.inline(copy)
    await whole.open()
    assert await samples.read(whole) == held
    await whole.close()
    _lay_out(copy, killed)
    connection = sqlite3.connect(copy / "fleetd.db", isolation_level=None)
    assert connection.execute(statement).rowcount > 0
    connection.close()

    with pytest.raises(errors.StoreCorrupt):
        await samples.inline(copy).open()


async def test_a_row_that_came_back_is_found(tmp_path: Path) -> None:
    """A record that was removed, with the hash it once rightly had, is not believed."""
    store = samples.inline(tmp_path / "state")
    await store.open()
    await store.put("pauses", {"all": b"1"})
    await store.put("pauses", {"all": None})
    await store.close()
    connection = sqlite3.connect(tmp_path / "state" / "fleetd.db", isolation_level=None)
    connection.execute(
        "INSERT INTO records VALUES ('pauses', 'all', ?, ?)",
        (b"1", rows.record_hash("pauses", "all", b"1")),
    )
    connection.close()

    with pytest.raises(errors.StoreCorrupt, match="doubled or old"):
        await store.open()
