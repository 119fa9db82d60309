"""
After a start: read what is remembered, and close what was cut off.

An intent without an ending means that the daemon ended between saying and knowing. It is ended
as lost, durably, before anything else happens; whether the deed was done is then a question for
the next look, which the planner insists on. Running this twice changes nothing the second time.
"""

import random

import structlog

from fleetd.clock import Clock
from fleetd.engine import attempts, records
from fleetd.engine.queue import Backoff
from fleetd.engine.state import State
from fleetd.store.base import Entry, Store
from fleetd.vocabulary import Event, Lost

_log = structlog.stdlib.get_logger("fleetd.recovery")

PAGE = 5000


async def recover(
    state: State, store: Store, clock: Clock, backoff: Backoff, rng: random.Random
) -> int:
    """Fill the state from the store. Returns how many steps were cut off."""
    state.view.ready.update(records.decode_conditions(await store.load(records.CONDITIONS)))
    now = clock.now()
    cut_off = await store.unfinished()
    entries = await _journal(store)
    state.view.attempts.update(attempts.replay(entries, now, backoff, rng))
    for entry in cut_off:
        lost = Lost("the daemon ended before the answer came")
        await store.conclude(entry.seq, lost, now)
        _log.info("cut off", ref=str(entry.intent.ref), verb=entry.intent.verb)
        reason, message = attempts.say(entry.intent.verb, lost)
        event = Event(
            at=now, ref=entry.intent.ref, reason=reason, message=message, plan=entry.intent.plan
        )
        await store.record([event])
    return len(cut_off)


async def _journal(store: Store) -> list[Entry]:
    entries: list[Entry] = []
    while page := await store.journal(after=entries[-1].seq if entries else 0, limit=PAGE):
        entries.extend(page)
    return entries
