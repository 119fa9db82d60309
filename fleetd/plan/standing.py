"""
How each thing stands by itself: Ready or not, down or not, and whose fault it is.

Nothing here knows of steps, policy or attempts. A thing that is not Ready has a *cause*: itself, or
the cause of the first thing it needs that is not Ready either. Rows are settled in order, so the
deepest cause is handed up one row at a time and never searched for.
"""

import heapq
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from fleetd.plan import words
from fleetd.plan.alarms import Alarms
from fleetd.plan.table import Table
from fleetd.plan.view import View
from fleetd.vocabulary import Condition, Observation, Truth
from topology.resource import Ref


class Cause(NamedTuple):
    ref: Ref
    text: str
    """What is wrong with it: `Unreachable since ...`."""


class Standing:
    def __init__(self, table: Table) -> None:
        size = len(table.refs)
        self._table = table
        self.ready = bytearray(size)
        """1: Ready for the generation that is wanted, and seen so lately."""
        self.stale = bytearray(size)
        """1: the last look is too long ago."""
        self.face: list[Cause | datetime | None] = [None] * size
        """What those that need a row see of it: since when it is Ready, or the cause."""
        self.down: dict[str, set[int]] = {}
        """Rows that are down, by failure domain."""
        self._is_down = bytearray(size)
        self._alarms: dict[str, Alarms] = {region: Alarms() for region in table.regions}
        self._touched: set[int] = set(range(size)) - table.gone

    def touch(self, row: int) -> None:
        self._touched.add(row)

    def remove(self, row: int) -> None:
        """Before it leaves the table."""
        self._touched.discard(row)
        self.ready[row] = self.stale[row] = self._is_down[row] = False
        self.face[row] = None
        self._alarms[self._table.resources[row].region].set(row, None)
        for domain in self._table.domains[row]:
            self.down.get(domain, set[int]()).discard(row)

    def settle(
        self, view: View, stale_after: timedelta, now: datetime
    ) -> tuple[set[int], list[int]]:
        """Bring everything up to date. Returns the rows that were looked at anew, and those whose
        face changed, which concerns all that need them."""
        for alarms in self._alarms.values():
            self._touched.update(alarms.due(now))
        touched, self._touched = self._touched, set()
        for row in touched:
            self._look(row, view, stale_after, now)
        changed: list[int] = []
        queue = sorted(touched)
        queued = set(touched)
        while queue:
            row = heapq.heappop(queue)
            face = self._face_of(row, view)
            if face == self.face[row]:
                continue
            self.face[row] = face
            changed.append(row)
            for dependent in self._table.dependents(row):
                if not self.ready[dependent] and dependent not in queued:
                    queued.add(dependent)
                    heapq.heappush(queue, dependent)
        return touched, changed

    def blocked(self, row: int) -> tuple[Ref, int, Cause] | None:
        """The first need that is not Ready, how many are not, and the cause of the first."""
        needs = self._table.needs[row]
        waiting = [need for need in needs if not self.ready[need]]
        missing = self._table.missing.get(row)
        if missing is not None:
            return missing, len(waiting) + 1, Cause(missing, "is named by no document")
        if not waiting:
            return None
        cause = self.face[waiting[0]]
        assert isinstance(cause, Cause)  # noqa: S101 - a row that is not Ready has a cause
        return self._table.refs[waiting[0]], len(waiting), cause

    def needs_since(self, row: int) -> datetime | None:
        """When the last of its needs became Ready; asked only if nothing blocks it."""
        faces = [self.face[need] for need in self._table.needs[row]]
        return max((face for face in faces if isinstance(face, datetime)), default=None)

    def is_down(self, row: int) -> bool:
        return bool(self._is_down[row])

    def next(self, regions: Iterable[str]) -> datetime | None:
        """When an observation in these regions grows stale."""
        moments = [self._alarms[region].next() for region in regions if region in self._alarms]
        return min((moment for moment in moments if moment is not None), default=None)

    def _look(self, row: int, view: View, stale_after: timedelta, now: datetime) -> None:
        ref = self._table.refs[row]
        seen = view.seen.get(ref)
        stale_at = None
        ready = down = stale = False
        if seen is None or seen.facts is None:
            down = True
        else:
            stale_at = seen.at + stale_after
            stale = stale_at <= now
            if not stale:
                ready = _is_ready(view.ready.get(ref), self._table.resources[row].generation)
            # What was absent long ago may be there by now: too old is not known, and counts.
            down = stale or (bool(seen.facts) and not ready)
        self.ready[row] = ready
        self.stale[row] = stale
        region = self._table.resources[row].region
        self._alarms[region].set(row, None if stale else stale_at)
        if down != self._is_down[row]:
            self._is_down[row] = down
            for domain in self._table.domains[row]:
                members = self.down.setdefault(domain, set())
                (members.add if down else members.discard)(row)

    def _face_of(self, row: int, view: View) -> Cause | datetime:
        ref = self._table.refs[row]
        if self.ready[row]:
            return view.ready[ref].since
        blocked = self.blocked(row)
        if blocked is not None:
            return blocked[2]
        return Cause(ref, self._trouble(row, view))

    def _trouble(self, row: int, view: View) -> str:
        """What is wrong with a thing that waits for nobody."""
        ref = self._table.refs[row]
        seen, condition = view.seen.get(ref), view.ready.get(ref)
        if seen is None:
            return "was not looked at yet"
        if seen.facts is None:
            return could_not_look(seen, condition)
        if self.stale[row]:
            return f"was last seen {words.moment(seen.at)}"
        if condition is None or condition.generation != self._table.resources[row].generation:
            return "was not judged yet"
        return f"{condition.reason} since {words.moment(condition.reason_since)}"


def could_not_look(seen: Observation, condition: Condition | None) -> str:
    since = seen.at
    if condition is not None and condition.reason == seen.blind:
        since = min(since, condition.reason_since)
    return f"cannot be looked at since {words.moment(since)}: {seen.error or 'no reason given'}"


def _is_ready(condition: Condition | None, generation: int) -> bool:
    return (
        condition is not None
        and condition.truth is Truth.TRUE
        and condition.generation == generation
    )
