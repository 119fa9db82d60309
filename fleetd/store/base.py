"""
What the daemon remembers, and the contract of every store.

Three kinds of memory with three promises:

* the *journal*: one intent before each outward write, one ending after it. `intend` returns only
  when the intent is on disk; nobody acts before that. An intent without an ending at start means
  the daemon died in between.
* *records*: small named values that are replaced (conditions, pauses, approvals, the accepted
  documents, orphans). Durable when `put` returns.
* *events*: history for people, bounded; the oldest go first.

Secrets are never stored; a spec names them. Observations are not stored either: after a restart
the world is looked at anew. `tests/conformance/store` is the judge of every implementation.

A store that fails once is broken for good (`StoreBroken` from every later write): after a failed
fsync nobody knows what is on disk, so the daemon stops acting and is started again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from fleetd.vocabulary import Ending, Event, PlanId, StepId
from topology.resource import Facts, Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What is about to be done. Written before it is done."""

    step: StepId
    ref: Ref
    verb: str
    args: Facts
    generation: int
    plan: PlanId
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the journal: an intent, and its ending once there is one."""

    seq: int
    intent: Intent
    ending: Ending | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """An event with its place in history, for paging and for resuming a watch."""

    seq: int
    event: Event


class Store(Protocol):
    async def open(self) -> None:
        """Take the lock, verify, migrate. Raises StoreLocked, StoreCorrupt or StoreBroken; or a
        plain StoreError when the place itself will not do: it can be read by others, or it was
        written by a newer fleetd. After any of these the lock is free again."""
        ...

    async def close(self) -> None:
        """Finish what was handed over, let go of the lock. Never raises for a broken store."""
        ...

    @property
    def broken(self) -> str:
        """Why nothing may be written any more; empty while all is well."""
        ...

    @property
    def commits(self) -> int:
        """Durable writes since this object was made; group commit makes them fewer than calls."""
        ...

    @property
    def size(self) -> int:
        """Bytes on disk; 0 of what is in memory only."""
        ...

    async def intend(self, intent: Intent) -> int:
        """Write the intent; return its number when it is durable. A caller that is cancelled
        while it waits loses the answer, not the entry. TypeError if `args` are not plain data."""
        ...

    async def conclude(self, seq: int, ending: Ending, at: datetime) -> None:
        """Write how it ended. Once; a second call for one number is refused (ValueError)."""
        ...

    async def unfinished(self) -> Sequence[Entry]:
        """Intents without an ending, oldest first."""
        ...

    async def journal(self, *, after: int = 0, limit: int = 1000) -> Sequence[Entry]:
        """Entries with a number above `after`, oldest first."""
        ...

    async def put(self, table: str, values: Mapping[str, bytes | None]) -> None:
        """Replace records, all or none; None removes one."""
        ...

    async def load(self, table: str) -> Mapping[str, bytes]:
        """All records of a table."""
        ...

    async def record(self, events: Sequence[Event]) -> None:
        """Append to history. Durable with the next write, at the latest after a second."""
        ...

    async def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        ref: Ref | None = None,
        limit: int = 1000,
        newest: bool = False,
    ) -> Sequence[Recorded]:
        """History between two numbers, both left out. Oldest first, so that `limit` cuts off the
        end; with `newest`, newest first, so that it cuts off the beginning."""
        ...

    async def trim(self, *, events_max: int, journal_max: int) -> None:
        """Forget the oldest events, and the oldest *finished* journal entries, beyond a bound.
        An unfinished entry counts but is never forgotten. Numbers are not used again."""
        ...
