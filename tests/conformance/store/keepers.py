"""
The stores under judgement, and the things one stores in them.

`keeper.new()` gives a store over the same memory every time, as a restarted daemon would have it.
A new implementation joins by one more entry in `KEEPERS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fleetd import clock
from fleetd.store import memory, runner, sqlite
from fleetd.store.base import Intent, Store
from fleetd.vocabulary import Event, PlanId, StepId
from topology.resource import Ref

START = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass(kw_only=True)
class Keeper:
    """Makes stores over one memory, and closes what a test leaves open."""

    make: Callable[[], Store]
    made: list[Store] = field(default_factory=list[Store])

    def new(self) -> Store:
        store = self.make()
        self.made.append(store)
        return store

    async def opened(self) -> Store:
        store = self.new()
        await store.open()
        return store

    async def reopened(self, store: Store) -> Store:
        await store.close()
        return await self.opened()

    @staticmethod
    def at(second: int) -> datetime:
        return START + timedelta(seconds=second)

    def intent(self, number: int = 1) -> Intent:
        return Intent(
            step=StepId(f"step-{number}"),
            ref=Ref("server", f"r1-s{number:02}"),
            verb="power_on",
            args={"bmc": "192.0.2.11", "tries": number, "nested": {"list": [1, None, 2.5, True]}},
            generation=(1 << 64) - 1 - number,
            plan=PlanId("plan-1"),
            at=self.at(number),
        )

    def event(self, number: int, ref: Ref | None = None) -> Event:
        return Event(
            at=self.at(number),
            ref=ref or Ref("server", "r1-s01"),
            reason="PoweredOn",
            message=f"event {number}: größer, 起動",
            plan=PlanId("plan-1") if number % 2 else None,
        )


def _memory(_: Path) -> Callable[[], Store]:
    store = memory.MemoryStore()
    return lambda: store


def _sqlite_thread(directory: Path) -> Callable[[], Store]:
    return lambda: sqlite.SqliteStore(directory, runner.ThreadRunner(clock.SystemClock()))


def _sqlite_thread_only(directory: Path) -> Callable[[], Store]:
    never = timedelta(0)
    return lambda: sqlite.SqliteStore(
        directory, runner.ThreadRunner(clock.SystemClock(), patience=never)
    )


def _sqlite_inline(directory: Path) -> Callable[[], Store]:
    return lambda: sqlite.SqliteStore(directory, runner.InlineRunner())


KEEPERS = {
    "memory": _memory,
    "sqlite-thread": _sqlite_thread,
    "sqlite-thread-only": _sqlite_thread_only,
    "sqlite-inline": _sqlite_inline,
}
