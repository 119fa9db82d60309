"""
How a row proves that it is the row that was written, and a table that no row is missing.

Each row carries a 64-bit hash of its name and all its columns. Each table has a tally: how many
rows, and the sum of their hashes; a sum does not care for order, so one changed row costs one
subtraction and one addition. The tallies stand in the ledger, a single row with a hash of its own,
which every transaction rewrites unless all it does is append intents. Those are numbered without a
gap and bring their hashes along, so the ledger can be carried forward over them (`Ledger.append`)
by whoever wrote them and, after a kill, by whoever reads them.

This finds accidents: flipped bits, lost pages, rows that came back from the dead. It does not
stop a person who can write the file and knows this page.
"""

import hashlib
import struct
from dataclasses import dataclass, field
from typing import Any

from fleetd import errors

_LEDGER = struct.Struct(">10Q")
_SIGNED = struct.Struct(">q")
_MASK = (1 << 64) - 1
_blake2b = hashlib.blake2b


@dataclass(slots=True, kw_only=True)
class Tally:
    """What should be found in one table."""

    count: int = 0
    total: int = 0
    last: int = 0
    """The highest number ever given out; numbers are never used twice, even after a trim."""

    def add(self, row_hash: int) -> None:
        self.count += 1
        self.total = (self.total + row_hash) & _MASK

    def drop(self, row_hash: int) -> None:
        self.count -= 1
        self.total = (self.total - row_hash) & _MASK

    def same_rows(self, other: "Tally") -> bool:
        return (self.count, self.total) == (other.count, other.total)


@dataclass(slots=True, kw_only=True)
class Ledger:
    """What the database says about itself."""

    version: int = 0
    commit: int = 0
    """Goes up with every transaction: by the number of intents if it appends nothing else."""
    ahead: int = 0
    """Intents that this ledger counts and its row in the database does not count yet."""
    journal: Tally = field(default_factory=Tally)
    events: Tally = field(default_factory=Tally)
    records: Tally = field(default_factory=Tally)

    def append(self, count: int, total: int) -> None:
        """Count new intents and their hashes, without the row of the ledger being written."""
        journal = self.journal
        journal.last += count
        journal.count += count
        journal.total = (journal.total + total) & _MASK
        self.commit += count
        self.ahead += count

    def pack(self) -> bytes:
        journal, events, records = self.journal, self.events, self.records
        body = _LEDGER.pack(
            self.version,
            self.commit,
            journal.count,
            journal.total,
            journal.last,
            events.count,
            events.total,
            events.last,
            records.count,
            records.total,
        )
        return body + hashlib.blake2b(body, digest_size=16).digest()


def unpack(data: object) -> Ledger:
    if not isinstance(data, bytes) or len(data) != _LEDGER.size + 16:
        raise errors.StoreCorrupt("the ledger row has the wrong size")
    body = data[: _LEDGER.size]
    if hashlib.blake2b(body, digest_size=16).digest() != data[_LEDGER.size :]:
        raise errors.StoreCorrupt("the ledger row does not match its checksum")
    version, commit, *counts = _LEDGER.unpack(body)
    return Ledger(
        version=version,
        commit=commit,
        journal=Tally(count=counts[0], total=counts[1], last=counts[2]),
        events=Tally(count=counts[3], total=counts[4], last=counts[5]),
        records=Tally(count=counts[6], total=counts[7]),
    )


def journal_hash(seq: int, intent: bytes, ending: bytes | None) -> int:
    if ending is None:
        # As `_hash` does it, without a call: this is done for every intent.
        words = b"journal %d %d -\n%b" % (seq, len(intent), intent)
        (number,) = _SIGNED.unpack(_blake2b(words, digest_size=8).digest())
        return number
    return _hash(f"journal {seq} {len(intent)} {len(ending)}\n".encode() + intent + ending)


def event_hash(seq: int, kind: str, name: str, value: bytes) -> int:
    words = f"{kind}{name}".encode()
    return _hash(f"event {seq} {len(kind)} {len(name)} {len(value)}\n".encode() + words + value)


def record_hash(table: str, key: str, value: bytes) -> int:
    words = f"{table}{key}".encode()
    return _hash(f"record {len(table)} {len(key)} {len(value)}\n".encode() + words + value)


def check_journal(row: tuple[Any, ...]) -> tuple[int, bytes, bytes | None]:
    """(seq, intent, ending, hash) as read, proven."""
    seq, intent, ending, stored = row
    if (
        type(seq) is int
        and type(intent) is bytes
        and (ending is None or type(ending) is bytes)
        and journal_hash(seq, intent, ending) == stored
    ):
        return seq, intent, ending
    raise errors.StoreCorrupt(f"journal entry {seq!r} does not match its checksum")


def check_event(row: tuple[Any, ...]) -> tuple[int, bytes]:
    """(seq, kind, name, value, hash) as read, proven."""
    seq, kind, name, value, stored = row
    if (
        type(seq) is int
        and type(kind) is str
        and type(name) is str
        and type(value) is bytes
        and event_hash(seq, kind, name, value) == stored
    ):
        return seq, value
    raise errors.StoreCorrupt(f"event {seq!r} does not match its checksum")


def check_record(row: tuple[Any, ...]) -> tuple[str, str, bytes]:
    """(name of the table, key, value, hash) as read, proven."""
    table, key, value, stored = row
    if (
        type(table) is str
        and type(key) is str
        and type(value) is bytes
        and record_hash(table, key, value) == stored
    ):
        return table, key, value
    raise errors.StoreCorrupt(f"record {table!r}/{key!r} does not match its checksum")


def _hash(data: bytes) -> int:
    """Signed, because that is what the database keeps in an integer column."""
    (number,) = _SIGNED.unpack(_blake2b(data, digest_size=8).digest())
    return number
