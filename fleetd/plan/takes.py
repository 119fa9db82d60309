"""
What the newest attempt at a thing takes down right now, seen or not. Pure.

Between the moment a reboot is asked for and the moment a look shows the server gone, only the
attempt knows. It counts while it is in flight and while the far side said it is at work. After
that each thing it takes down counts until it was looked at itself: that the cluster was seen
after its upgrade says nothing of the server that the upgrade restarted.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from fleetd.plan.verdict import Fault, Proposed
from fleetd.plan.view import Attempt
from fleetd.vocabulary import Observation, Waiting
from topology.resource import Ref

_NOTHING: frozenset[Ref] = frozenset()


class Take(NamedTuple):
    refs: frozenset[Ref]
    ended: datetime | None
    """None: under way. Otherwise each counts until it was looked at after this."""


def taken(
    ref: Ref, seen: Observation | None, attempt: Attempt | None, proposed: Proposed, now: datetime
) -> Take | None:
    """None: nothing, and only a new attempt or a look at the thing itself can change that."""
    if attempt is None:
        return None
    refs = _refs(ref, seen, attempt, proposed)
    ended = None if _under_way(attempt, now) else attempt.ended_at
    if not refs or (refs == frozenset((ref,)) and not _unseen(seen, ended)):
        return None
    return Take(refs, ended)


def going(takes: Iterable[Take], seen: Mapping[Ref, Observation]) -> set[Ref]:
    """Everything that these take down now."""
    found: set[Ref] = set()
    for take in takes:
        found.update(ref for ref in take.refs if _unseen(seen.get(ref), take.ended))
    return found


def until(attempt: Attempt | None, now: datetime) -> datetime | None:
    """When time alone may change the answer."""
    if attempt is None or attempt.not_before is None or attempt.not_before <= now:
        return None
    return attempt.not_before


def _refs(
    ref: Ref, seen: Observation | None, attempt: Attempt, proposed: Proposed
) -> frozenset[Ref]:
    if attempt.disrupts is not None:
        return attempt.disrupts
    if not isinstance(proposed, Fault):
        for step in proposed:
            if step.id == attempt.step:
                return step.disrupts | step.destroys
    # Nobody can say any more what the step does. What is known to be absent cannot go down.
    absent = seen is not None and seen.facts is not None and not seen.facts
    return _NOTHING if absent else frozenset({ref})


def _under_way(attempt: Attempt, now: datetime) -> bool:
    if attempt.ending is None or attempt.ended_at is None:
        return True
    at_work = isinstance(attempt.ending, Waiting) and attempt.not_before is not None
    return at_work and attempt.not_before is not None and attempt.not_before > now


def _unseen(seen: Observation | None, ended: datetime | None) -> bool:
    return ended is None or seen is None or seen.at < ended
