"""A small but varied state, and everything one can read from a store, for comparing."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from fleetd.store import runner, sqlite
from fleetd.store.base import Intent, Store
from fleetd.vocabulary import Done, Event, Failed, PlanId, StepId, Waiting
from topology.resource import Ref

START = datetime(2030, 1, 1, tzinfo=UTC)
TABLES = ("conditions", "documents", "pauses")


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def intent(number: int) -> Intent:
    return Intent(
        step=StepId(f"step-{number}"),
        ref=Ref("server", f"r1-s{number:02}"),
        verb="power_on",
        args={"bmc": "192.0.2.11", "number": number},
        generation=number,
        plan=PlanId("plan-1"),
        at=at(number),
    )


def event(number: int) -> Event:
    return Event(
        at=at(number),
        ref=Ref("server", f"r1-s{number % 5:02}"),
        reason="PoweredOn",
        message=f"event {number}",
    )


def inline(directory: Path) -> sqlite.SqliteStore:
    return sqlite.SqliteStore(directory, runner.InlineRunner())


async def write(store: Store, start: int, count: int) -> None:
    """A stretch of life: intents, most of them ended, conditions, documents, events, a trim."""
    for number in range(start, start + count):
        seq = await store.intend(intent(number))
        if number % 4 == 0:
            await store.conclude(seq, Done(), at(number))
        elif number % 4 == 1:
            await store.conclude(seq, Failed("Refused", "no", retry=True), at(number))
        elif number % 4 == 2:
            await store.conclude(seq, Waiting("Booting", timedelta(seconds=9)), at(number))
        await store.put("conditions", {f"server/{number % 50}": b"condition %d" % number * 5})
        await store.record([event(number), event(number + 1)])
        if number % 10 == 0:
            await store.put("documents", {f"Cluster/{number}": b"document " * 100})
            await store.put("pauses", {"all": b"%d" % number if number % 20 else None})
    await store.trim(events_max=150, journal_max=120)


async def read(store: Store) -> dict[str, Any]:
    """Everything, by scans and by short pages, so that every way of finding a row is used."""
    journal: list[Any] = []
    while page := await store.journal(after=journal[-1].seq if journal else 0, limit=17):
        journal += page
    events: list[Any] = []
    while page := await store.events(after=events[-1].seq if events else 0, limit=17):
        events += page
    return {
        "journal": journal,
        "unfinished": await store.unfinished(),
        "events": events,
        "of one": await store.events(ref=Ref("server", "r1-s03")),
        "records": {table: dict(await store.load(table)) for table in TABLES},
    }
