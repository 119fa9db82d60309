"""
What is good now and will not be for long: versions that a garden ceases to offer, kubeconfigs that
others made and that end.

Pure. A condition of its own beside Ready: nothing is broken yet, so nothing is held back.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from fleetd.vocabulary import Condition, Observation, Truth
from topology.resource import Facts, Resource

LASTING = "Lasting"
EXPIRES_SOON = "ExpiresSoon"
WARN = timedelta(days=14)
"""A kubeconfig that a person must renew is told this long before it ends."""


def ending(what: str, until: datetime | None, now: datetime) -> list[str]:
    """What is said of something that ends, if it does so soon; None: it does not say."""
    if until is None or until - now >= WARN:
        return []
    return [f"{what} {'ended' if until <= now else 'ends'} at {until.isoformat()}"]


def judged(want: Resource, seen: Observation) -> tuple[Condition, ...]:
    """One condition if something ends soon, none otherwise."""
    observed: Facts = (seen.facts or {}).get("observed") or {}
    ending: Sequence[str] = observed.get("expiring") or ()
    if not ending:
        return ()
    return (
        Condition(
            type=LASTING,
            truth=Truth.FALSE,
            reason=EXPIRES_SOON,
            message="; ".join(ending),
            generation=want.generation,
            since=seen.at,
            reason_since=seen.at,
        ),
    )
