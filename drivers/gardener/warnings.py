"""
What is good now and will not be for long: versions that a garden ceases to offer, kubeconfigs that
others made and that end. And what a cluster that answers does not let us follow.

Pure. Conditions of their own beside Ready: nothing of the cluster itself is broken.
"""

from datetime import datetime, timedelta

from fleetd.vocabulary import Condition, Observation, Truth
from topology.resource import Facts, Resource

LASTING = "Lasting"
EXPIRES_SOON = "ExpiresSoon"
FOLLOWED = "Followed"
NOT_FOLLOWED = "NotFollowed"
WARN = timedelta(days=14)
"""A kubeconfig that a person must renew is told this long before it ends."""


def ending(what: str, until: datetime | None, now: datetime) -> list[str]:
    """What is said of something that ends, if it does so soon; None: it does not say."""
    if until is None or until - now >= WARN:
        return []
    return [f"{what} {'ended' if until <= now else 'ends'} at {until.isoformat()}"]


def judged(want: Resource, seen: Observation) -> tuple[Condition, ...]:
    """One condition if something ends soon, one if something is not heard of, else none."""
    observed: Facts = (seen.facts or {}).get("observed") or {}
    return tuple(
        Condition(
            type=kind,
            truth=Truth.FALSE,
            reason=reason,
            message="; ".join(said),
            generation=want.generation,
            since=seen.at,
            reason_since=seen.at,
        )
        for kind, reason, said in (
            (LASTING, EXPIRES_SOON, observed.get("expiring") or ()),
            (FOLLOWED, NOT_FOLLOWED, observed.get("deaf") or ()),
        )
        if said
    )
