"""
The walk of the demo: three failures, one after the other, and what a person sees of each.

Each is broken, shows as one incident with its cause, is looked at, mended, and seen to be gone.
At a terminal a key leads on; `--walk` leads on by itself and is how the walk is tested.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fleetd import clock
from fleetd.sim import serve

PATIENCE = 300.0
"""Seconds for an incident to show, and for it to go."""
SETTLE = 6.0
"""Simulated minutes after the first sign: what belongs together shows within that."""


class Failure(NamedTuple):
    title: str
    fault: str
    """As the simulated world takes it."""
    why: str
    """What to ask about."""


class Walk(NamedTuple):
    """What the walk may do."""

    say: Callable[[str], None]
    ask: Callable[[str], Any]
    """What the daemon answers at a path."""
    tell: Callable[[str], None]
    """Have the world go wrong, or well again."""
    next: Callable[[str], bool]
    """Wait for the person; False: they want to go on alone."""
    time: clock.Clock
    minutes: Callable[[], float]
    """Of the simulated time."""
    url: str


def walk(steps: Sequence[Failure], way: Walk) -> str:
    """All of them. Returns what went otherwise than it should; empty if nothing did."""
    for number, one in enumerate(steps, 1):
        way.say(f"\n{number} of {len(steps)}: {one.title}")
        if not way.next("break it"):
            return ""
        way.tell(one.fault)
        found = _until(way, bool)
        if not found:
            return f"{one.fault} showed as no incident within {PATIENCE:.0f} s"
        sign = way.minutes()
        while way.minutes() - sign < SETTLE:
            clock.block(clock.seconds(0.3))
        found = _incidents(way) or found
        for incident in found:
            way.say(_words(incident))
        way.say(f"  on the page:     {way.url}/#/incidents")
        way.say(f"  in the terminal: .venv/bin/fleetctl --server {way.url} why {one.why}")
        way.say(f"  {_why(way, one.why)}")
        on = way.next("mend it")
        way.tell(serve.MEND)
        if _until(way, lambda items: not items):
            return f"{one.fault} was mended, and {len(_incidents(way))} incidents are left"
        way.say("  mended: no incident is left")
        if len(found) != 1:
            return f"{one.fault} showed as {len(found)} incidents instead of one"
        if not on:
            return ""
    return ""


def _why(way: Walk, about: str) -> str:
    kind, _, name = about.partition(" ")
    return way.ask(f"/api/v1/resources/{kind}/{name}")["why"]["paragraph"]


def _words(incident: Any) -> str:  # noqa: ANN401 - JSON
    cause = incident["cause"]
    count = incident["affectedTotal"]
    things = f"{count} other thing{'s' * (count != 1)}"
    return (
        f"  one incident: {cause['ref']} {cause['reason']}, {cause['message']} (affects {things})"
    )


def _incidents(way: Walk) -> list[Any]:
    return way.ask("/api/v1/incidents")["items"]


def _until(way: Walk, wanted: Callable[[list[Any]], bool]) -> list[Any]:
    """The incidents once they are as wanted, or when patience ends."""
    began = way.time.monotonic()
    while True:
        items = _incidents(way)
        if wanted(items) or way.time.monotonic() - began > PATIENCE:
            return items
        clock.block(clock.seconds(0.3))
