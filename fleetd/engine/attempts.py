"""
What one attempt at a step means for the next: when it may be tried again, and how it is told.

Pure. `replay` reads the same meaning out of the journal after a restart, so that a daemon that is
started again neither hammers what it was backing off from nor forgets that a person is needed.
"""

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from fleetd.engine.queue import Backoff
from fleetd.plan.view import Attempt
from fleetd.store.base import Entry
from fleetd.vocabulary import Done, Ending, Failed, Lost, Waiting
from topology.resource import Ref


def ended(
    flying: Attempt, ending: Ending, at: datetime, backoff: Backoff, rng: random.Random
) -> Attempt:
    """The attempt with its ending, and the moment before which the same step is not repeated."""
    match ending:
        case Waiting(again=again):
            not_before = at + again
        case Done() | Lost():
            # The first time, a look decides. Whoever must do the same again and again without
            # effect does it ever more slowly.
            not_before = at + backoff.delay(flying.count, rng) if flying.count > 1 else None
        case Failed(retry=True):
            not_before = at + backoff.delay(flying.count, rng)
        case Failed():
            not_before = None
        case _:
            assert_never(ending)
    return replace(flying, ending=ending, ended_at=at, not_before=not_before)


def replay(
    entries: Iterable[Entry], now: datetime, backoff: Backoff, rng: random.Random
) -> dict[Ref, Attempt]:
    """The newest attempt of each resource. One without an ending was cut off by the end of the
    daemon: it ends now, as lost, so that only a look after now can decide about it."""
    newest: dict[Ref, Attempt] = {}
    for entry in entries:
        intent = entry.intent
        last = newest.get(intent.ref)
        count = last.count + 1 if last is not None and last.step == intent.step else 1
        flying = Attempt(
            step=intent.step,
            at=intent.at,
            ending=None,
            ended_at=None,
            count=count,
            not_before=None,
            verb=intent.verb,
        )
        ending = entry.ending or Lost("the daemon ended before the answer came")
        newest[intent.ref] = ended(flying, ending, entry.ended_at or now, backoff, rng)
    return newest


def say(verb: str, ending: Ending) -> tuple[str, str]:
    """Reason and message of the event that tells how a step ended."""
    match ending:
        case Done():
            return "StepDone", verb
        case Waiting(reason=reason):
            return "StepTaken", f"{verb}: {reason}"
        case Failed(reason=reason, message=message):
            return "StepFailed", f"{verb}: {reason}: {message}"
        case Lost(message=message):
            return "StepLost", f"{verb}: {message}"
        case _:
            assert_never(ending)
