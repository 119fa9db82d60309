"""
What a driver says, made fit to keep: of the right type, readable, bounded, free of secrets.

A driver is trusted to know its far side, not to be free of bugs; and a far side may send anything:
a megabyte of HTML, half an emoji, the password that it was sent. None of this may end the daemon,
fill the journal or stand in an event. Pure, but for the memory of secrets.
"""

import operator
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import cast

from fleetd import secrets
from fleetd.engine import fingerprint
from fleetd.vocabulary import READY, Condition, Done, Failed, Outcome, Truth, Waiting
from topology.resource import Facts, Resource

TEXT_MAX = 2000
"""Characters of a message that are kept: a screenful, and enough for every error seen so far."""
_READ_MAX = 64 * 1024
"""Characters that are looked at. More than `TEXT_MAX`, so that no secret is cut in two unseen."""
AGAIN_MAX = timedelta(days=1)
FAULT = "DriverFault"
"""Reason of what went wrong inside a driver."""


def text(said: object) -> str:
    """Words for people. Half a character (a lone surrogate) cannot be stored and becomes `?`."""
    words = str(said)[:_READ_MAX]
    if not words.isascii():
        words = words.encode("utf-8", "replace").decode()
    words = secrets.scrub(words)
    return words if len(words) <= TEXT_MAX else f"{words[:TEXT_MAX]}..."


def outcome(said: object, driver: str) -> Outcome:
    """How an attempt ended, according to the driver."""
    match said:
        case Done():
            return said
        case Waiting(reason=reason, again=timedelta() as again):
            return Waiting(text(reason), min(max(again, timedelta(0)), AGAIN_MAX))
        case Failed(reason=reason, message=message, retry=retry):
            return Failed(text(reason), text(message), retry=bool(retry))
        case _:
            what = type(said).__name__
            message = f"the {driver} driver answered with {what} instead of an outcome"
            return Failed(FAULT, message, retry=True)


def digest(facts: object) -> int:
    """Fingerprint of what was seen; 0 if nothing was. Raises for what are no facts."""
    if facts is None:
        return 0
    if not isinstance(facts, Mapping):
        raise TypeError(f"facts are a mapping, not a {type(facts).__name__}")
    return fingerprint.of(facts)


def conditions(said: Iterable[Condition]) -> tuple[Condition, ...]:
    """What a driver thinks of a thing. Raises what iterating or reading it raises."""
    return tuple(_fit(one) for one in said)


def _fit(one: Condition) -> Condition:
    words = text(one.type), Truth(one.truth), text(one.reason), text(one.message)
    if all(map(operator.is_, words, (one.type, one.truth, one.reason, one.message))):
        return one
    kind, truth, reason, message = words
    return replace(one, type=kind, truth=truth, reason=reason, message=message)


def fault(want: Resource, at: datetime, cause: Exception) -> Condition:
    """In place of a judgement that the driver could not give: nobody knows."""
    return Condition(
        type=READY,
        truth=Truth.UNKNOWN,
        reason=FAULT,
        message=f"the {want.driver} driver could not judge it: {type(cause).__name__}",
        generation=want.generation,
        since=at,
        reason_since=at,
    )


def args(given: Facts) -> Facts:
    """A step's arguments as they may stand in the journal."""
    if not secrets.REGISTRY:
        return given
    return {key: _scrubbed(value) for key, value in given.items()}


def _scrubbed(value: object) -> object:
    """Texts only: what is no plain data must still be refused by the store."""
    match value:
        case str():
            return secrets.scrub(value)
        case Mapping():
            return args(cast("Facts", value))
        case list() | tuple():
            return [_scrubbed(one) for one in cast("list[object]", value)]
        case _:
            return value
