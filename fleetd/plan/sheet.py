"""
What is decided about one region so far, kept between plans.

Only rows with something to say are on the sheet. A verdict that comes out as it was is not
replaced, so that a look that found nothing new costs neither a digest nor a new plan.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable
from datetime import datetime

from fleetd.plan import steps
from fleetd.plan.alarms import Alarms
from fleetd.plan.gates import Gates, Held
from fleetd.plan.takes import Take
from fleetd.plan.verdict import Verdict
from fleetd.vocabulary import Hold, Plan, Step, Wait
from topology.resource import Ref

Marks = tuple[bytes, bytes, bytes]


class Sheet:
    def __init__(self, rows: Iterable[int]) -> None:
        self.dirty: set[int] = set(rows)
        self.verdicts: dict[int, Verdict] = {}
        self.takes: dict[int, Take] = {}
        """What the attempts of a row take down."""
        self.unseen: set[int] = set()
        """Servers that nobody has looked at yet."""
        self.graves: dict[int, frozenset[Ref]] = {}
        """What the proposals of a row would do to servers and clusters."""
        self.orphans: dict[Ref, Hold] = {}
        self.alarms = Alarms()
        self.changed = True
        """Whether the last plan may be out of date."""
        self.plan: Plan | None = None
        self.consents: frozenset[str] = frozenset()
        """What the last plan rests on, beside its approvals."""
        self._order: list[int] = []
        self._gated: set[int] = set()
        self._passed: dict[int, tuple[Verdict, int, Held | None, Verdict]] = {}
        """Of gated rows: the verdict, how many steps were admitted, what held the next, and what
        became of it."""
        self._marks: dict[int, tuple[Verdict, Marks]] = {}

    def begin(self, now: datetime) -> list[int]:
        """Rows to be decided anew; the caller puts a verdict for each."""
        self.dirty.update(self.alarms.due(now))
        rows = sorted(self.dirty)
        self.dirty.clear()
        return rows

    def put(self, row: int, verdict: Verdict | None, also: datetime | None = None) -> None:
        """Take a verdict; None for a row with nothing to say. `also` is one more moment at which
        the row has to be decided anew."""
        old = self.verdicts.get(row)
        moments = [moment for moment in (verdict and verdict.again, also) if moment is not None]
        self.alarms.set(row, min(moments, default=None))
        if verdict == old:
            return
        self.changed = True
        self._gated.discard(row)
        if verdict is None:
            del self.verdicts[row]
            del self._order[bisect_left(self._order, row)]
            self._passed.pop(row, None)
            self._marks.pop(row, None)
            return
        if old is None:
            insort(self._order, row)
        self.verdicts[row] = verdict
        if any(step.disrupts or step.destroys for step in verdict.steps):
            self._gated.add(row)

    def remove(self, row: int) -> None:
        """It left the table."""
        self.dirty.discard(row)
        self.put(row, None)
        self.takes.pop(row, None)
        self.graves.pop(row, None)
        self.unseen.discard(row)

    def rows(self) -> list[int]:
        """Those with something to say, in order."""
        return self._order

    @property
    def gated(self) -> bool:
        return bool(self._gated)

    def pass_gates(self, gate: Gates) -> None:
        """Ask for each step that needs it, in the order of the plan."""
        for row in sorted(self._gated):
            verdict = self.verdicts[row]
            admitted, held = _ask(verdict.steps, gate)
            kept = self._passed.get(row)
            if kept is not None and kept[0] is verdict and kept[1:3] == (admitted, held):
                continue
            self.changed = True
            self._passed[row] = (verdict, admitted, held, _after(verdict, admitted, held))

    def write(self, region: str, topology: str) -> Plan:
        """All of it as a plan, without the moment to plan again."""
        acts: list[Step] = []
        holds: list[Hold] = []
        waits: list[Wait] = []
        marks: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
        for row in self._order:
            final = self.verdicts[row]
            if row in self._gated:
                final = self._passed[row][3]
            of_acts, of_holds, of_waits = self._marks_of(row, final)
            # Written out: a thousand rows that stay as they are pass here for one that changed.
            if final.steps:
                acts.extend(final.steps)
                marks[0].append(of_acts)
            if final.holds:
                holds.extend(final.holds)
                marks[1].append(of_holds)
            if final.waits:
                waits.extend(final.waits)
                marks[2].append(of_waits)
        for ref in sorted(self.orphans):
            holds.append(self.orphans[ref])
            marks[1].append(steps.mark_hold(self.orphans[ref]))
        return Plan(
            id=steps.plan_id(region, topology, *marks),
            region=region,
            topology=topology,
            steps=tuple(acts),
            holds=tuple(holds),
            waits=tuple(waits),
        )

    def _marks_of(self, row: int, final: Verdict) -> Marks:
        kept = self._marks.get(row)
        if kept is None or kept[0] is not final:
            kept = self._marks[row] = (final, final.marks())
        return kept[1]


def _ask(proposed: tuple[Step, ...], gate: Gates) -> tuple[int, Held | None]:
    """How many steps from the start may be done, and what holds the next."""
    for number, step in enumerate(proposed):
        held = gate.ask(step)
        if held is not None:
            return number, held
    return len(proposed), None


def _after(verdict: Verdict, admitted: int, held: Held | None) -> Verdict:
    """What the gates leave of a verdict. A held step takes all later ones of its resource with it,
    and its reason stands alone: what is held on purpose is neither failed nor overdue."""
    if held is None:
        return verdict
    first = verdict.steps[admitted]
    hold = Hold(
        ref=first.ref,
        reason=held.reason,
        message=held.message,
        steps=verdict.steps[admitted:] + verdict.rest,
        approval=held.approval,
        until=held.until,
    )
    return Verdict(steps=verdict.steps[:admitted], holds=(hold,))
