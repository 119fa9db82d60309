"""
The planner: what is to be done in a region, what is not, and why. Pure decisions, incremental.

`plan()` decides everything from nothing. `Planner` gives exactly the same plans, but keeps what it
decided and decides anew only for what was touched, for what needs a touched thing, and for what
time has changed. Resources that are Ready and as they should be cost nothing.

The one rule: a driver's `propose` is asked once per (generation, observation digest), and, if it
read the topology or the catalogue, once more for each new one of these. A driver whose proposals
depend on time must say so in the facts it observes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from fleetd.plan import gates, intake, takes, verdict
from fleetd.plan.budget import Budget
from fleetd.plan.gates import Gates, Opening
from fleetd.plan.policy import Policy
from fleetd.plan.sheet import Sheet
from fleetd.plan.standing import Standing
from fleetd.plan.table import SERVER, Table
from fleetd.plan.verdict import Case, Fault, Proposed
from fleetd.plan.view import View
from fleetd.reads import Reads
from fleetd.vocabulary import Driver, Hold, HoldReason, Observation, Plan, Step
from topology.resource import EMPTY, Ref, Resource

_Kept = TypeVar("_Kept", frozenset[Ref], takes.Take)

Lookup = Callable[[Resource, Observation], Proposed | None]
"""What the driver of a resource proposes; None if it has no driver."""


def plan(
    view: View, policy: Policy, proposals: Mapping[Ref, Proposed], *, region: str, now: datetime
) -> Plan:
    """The plan of one region, from nothing. A resource without an entry has no driver."""

    def lookup(want: Resource, _: Observation) -> Proposed | None:
        found = proposals.get(want.ref)
        return None if found is None else intake.checked(want, found)

    desk = _Desk(lookup, lambda want: want.ref in proposals)
    desk.reset(view)
    return desk.plan(view, policy, region=region, now=now)


def proposals(view: View, drivers: Mapping[str, Driver], *, region: str) -> dict[Ref, Proposed]:
    """What `plan` takes: an entry for each resource of the region that has a driver."""
    found: dict[Ref, Proposed] = {}
    for ref in view.topology.regions.get(region, ()):
        want, seen = view.topology.resources[ref], view.seen.get(ref)
        driver = drivers.get(want.driver)
        if driver is not None:
            looked = seen is not None and seen.facts is not None
            found[ref] = intake.ask(driver, want, seen) if looked and seen else ()
    return found


class Planner:
    """Keeps its place between plans. Reads the view it is given and changes nothing."""

    def __init__(self, drivers: Mapping[str, Driver], reads: Reads | None = None) -> None:
        """`reads` counts what the drivers read of the topology and the catalogue; without it they
        are drivers that read neither."""
        self._drivers = drivers
        self._reads = reads or Reads()
        self._memo: dict[Ref, tuple[int, int, Proposed]] = {}
        self._around: set[Ref] = set()
        """Of these, the proposals hang on the topology or the catalogue."""
        self._desk = _Desk(self._proposed, lambda want: want.driver in drivers)

    def reset(self, view: View, table: Table | None = None) -> None:
        """There is a new topology or a new catalogue. `table` is the topology's table, if somebody
        made it already, away from the event loop."""
        known = view.topology.resources
        self._memo = {
            ref: kept
            for ref, kept in self._memo.items()
            if ref in known and ref not in self._around
        }
        self._around.clear()
        self._desk.reset(view, table)

    def touch(self, refs: Iterable[Ref]) -> None:
        """Observation, condition, attempt or orphanhood of these changed."""
        self._desk.touch(refs)

    def remove(self, view: View, ref: Ref) -> None:
        """The view's topology is that of before without one thing, which only tombstones needed.
        Costs what this thing touches, and asks anew whose proposals may hang on it: a driver reads
        of the topology what is in its own region."""
        self._memo.pop(ref, None)
        self._around.discard(ref)
        region = self._desk.remove(view, ref)
        resources = view.topology.resources
        hanging = [other for other in self._around if resources[other].region == region]
        for other in hanging:
            del self._memo[other]
        self._around.difference_update(hanging)
        self._desk.touch(hanging)

    def policy_changed(self) -> None:
        self._desk.policy_changed()

    def allowed(self, policy: Policy, refs: Iterable[Ref], regions: Iterable[str]) -> None:
        """The policy differs from the last in approvals for steps of these things and in consents
        for these regions, and in nothing else."""
        self._desk.allowed(policy, refs, regions)

    def plan(self, view: View, policy: Policy, *, region: str, now: datetime) -> Plan:
        return self._desk.plan(view, policy, region=region, now=now)

    def proposes(self, view: View, ref: Ref) -> tuple[Step, ...]:
        """What the driver would do about this thing as it was last seen."""
        want, seen = view.topology.resources.get(ref), view.seen.get(ref)
        if want is None or seen is None or seen.facts is None:
            return ()
        proposed = self._proposed(want, seen)
        return () if proposed is None or isinstance(proposed, Fault) else proposed

    def grave(self, region: str) -> bool:
        """Whether anything that consents are about is proposed or under way in a region."""
        return self._desk.grave(region)

    def _proposed(self, want: Resource, seen: Observation) -> Proposed | None:
        driver = self._drivers.get(want.driver)
        if driver is None:
            return None
        kept = self._memo.get(want.ref)
        # Digest 0 means that nobody made one.
        if kept and kept[0] == want.generation and kept[1] == seen.digest and seen.digest:
            return kept[2]
        before = self._reads.count
        proposed = intake.ask(driver, want, seen)
        around = self._reads.count != before
        (self._around.add if around else self._around.discard)(want.ref)
        self._memo[want.ref] = (want.generation, seen.digest, proposed)
        return proposed


class _Desk:
    """The work itself: how things stand, what is due, and one sheet per region."""

    def __init__(self, lookup: Lookup, driven: Callable[[Resource], bool]) -> None:
        self._lookup = lookup
        self._driven = driven
        self._policy: Policy | None = None
        self._table = Table(EMPTY)
        self._start()

    def reset(self, view: View, table: Table | None = None) -> None:
        if view.topology is not self._table.topology:
            self._table = table or Table(view.topology)
        self._start()
        self._touched.update(view.orphans)
        self._touched.update(view.attempts)

    def touch(self, refs: Iterable[Ref]) -> None:
        self._touched.update(refs)

    def remove(self, view: View, ref: Ref) -> str:
        table, row = self._table, self._table.index[ref]
        region = table.resources[row].region
        digest = table.topology.digest
        self._standing.remove(row)
        for dependent in table.remove(ref, view.topology):
            self._standing.touch(dependent)
        self._sheet(region).remove(row)
        self._reach(row, frozenset())
        # What would take down a thing that is not there any more must not be done.
        for other in self._reached.get(ref, ()):
            self._sheet(table.resources[other].region).dirty.add(other)
        self._flights.discard(ref)
        if view.topology.digest != digest:
            for sheet in self._sheets.values():
                sheet.changed = True
        return region

    def policy_changed(self) -> None:
        self._policy = None

    def allowed(self, policy: Policy, refs: Iterable[Ref], regions: Iterable[str]) -> None:
        if self._policy is None:
            return  # everything is looked at anyway
        self._policy = policy
        for region in regions:
            self._sheet(region).changed = True
        for ref in refs:
            row = self._table.index.get(ref)
            if row is not None:
                sheet = self._sheet(self._table.resources[row].region)
                sheet.dirty.add(row)
                sheet.changed = True

    def plan(self, view: View, policy: Policy, *, region: str, now: datetime) -> Plan:
        self._catch_up(view, policy, now)
        sheet = self._sheet(region)
        for row in sheet.begin(now):
            self._decide(sheet, row, view, policy, now)
        gate = self._pass_gates(sheet, view, policy, region, now) if sheet.gated else None
        consents = frozenset(gate.consents if gate is not None else ())
        if sheet.changed or sheet.plan is None or consents != sheet.consents:
            written = sheet.write(region, self._table.topology.digest)
            approved = policy.approvals.intersection(step.id for step in written.steps)
            sheet.plan = replace(written, approved=approved | consents)
            sheet.consents = consents
            sheet.changed = False
        again = self._again(sheet, gate, view, region, now)
        if again != sheet.plan.again:
            sheet.plan = replace(sheet.plan, again=again)
        return sheet.plan

    def grave(self, region: str) -> bool:
        index, resources = self._table.index, self._table.resources
        homes = (resources[index[ref]].region for ref in self._flights if ref in index)
        return bool(self._sheet(region).graves) or region in homes

    def _again(
        self, sheet: Sheet, gate: Gates | None, view: View, region: str, now: datetime
    ) -> datetime | None:
        """The earliest moment at which time alone may change the plan."""
        near = self._table.near
        regions = set(near.get(region, ()))
        moments = [sheet.alarms.next()]
        if gate is not None:
            moments.extend(gate.changes)
            moments.extend(takes.until(view.attempts.get(ref), now) for ref in self._flights)
            for other in gate.budget.regions:
                regions.update(near.get(other, ()))
        moments.append(self._standing.next(regions))
        return min((moment for moment in moments if moment is not None), default=None)

    def _start(self) -> None:
        self._standing = Standing(self._table)
        self._sheets = {region: Sheet(rows) for region, rows in self._table.regions.items()}
        self._openings: dict[str, Opening] = {}
        self._orphans: dict[Ref, str] = {}
        self._flights: set[Ref] = set()
        """Things whose attempts take something down, here or in other regions."""
        self._reached: dict[Ref, set[int]] = {}
        """Who would take a thing down, beside itself."""
        self._reaching: dict[int, frozenset[Ref]] = {}
        self._touched: set[Ref] = set()
        self._last: datetime | None = None
        self._stale_after: timedelta | None = None

    def _sheet(self, region: str) -> Sheet:
        sheet = self._sheets.get(region)
        if sheet is None:
            sheet = self._sheets[region] = Sheet(())
        return sheet

    def _catch_up(self, view: View, policy: Policy, now: datetime) -> None:
        """Mark what has to be decided anew, in all regions."""
        moved_back = self._last is not None and now < self._last
        other_limit = self._stale_after is not None and policy.stale_after != self._stale_after
        # What time has changed cannot be taken back row by row; this happens next to never.
        if moved_back or other_limit or view.topology is not self._table.topology:
            self.reset(view)
        elif policy is not self._policy:
            for sheet in self._sheets.values():
                sheet.dirty.update(sheet.rows())
                sheet.changed = True
            self._openings.clear()
        self._policy, self._stale_after, self._last = policy, policy.stale_after, now
        self._take_touched(view)
        looked, turned = self._standing.settle(view, policy.stale_after, now)
        resources, ready = self._table.resources, self._standing.ready
        for row in looked:
            self._sheets[resources[row].region].dirty.add(row)
        for row in turned:
            for dependent in self._table.dependents(row):
                sheet = self._sheets[resources[dependent].region]
                # What is Ready and silent does not care for what it needs.
                if not ready[dependent] or dependent in sheet.verdicts:
                    sheet.dirty.add(dependent)

    def _take_touched(self, view: View) -> None:
        for ref in sorted(self._touched):
            row = self._table.index.get(ref)
            if row is not None:
                self._standing.touch(row)
                self._note_flight(view, row)
            if ref in view.orphans or ref in self._orphans:
                self._orphan(view, ref)
        self._touched.clear()

    def _orphan(self, view: View, ref: Ref) -> None:
        old = self._orphans.pop(ref, None)
        if old is not None:
            sheet = self._sheet(old)
            sheet.orphans.pop(ref)
            sheet.changed = True
        orphan = view.orphans.get(ref)
        if orphan is None or ref in self._table.index:
            return
        sheet = self._sheet(orphan.region)
        sheet.orphans[ref] = Hold(
            ref=ref,
            reason=HoldReason.ORPHANED,
            message=f"no document names it any more; `fleetctl retire {ref.kind} {ref.name}` "
            "removes it, putting the document back keeps it",
        )
        sheet.changed = True
        self._orphans[ref] = orphan.region

    def _decide(self, sheet: Sheet, row: int, view: View, policy: Policy, now: datetime) -> None:
        want = self._table.resources[row]
        ref = want.ref
        seen, attempt = view.seen.get(ref), view.attempts.get(ref)
        proposed: Proposed = ()
        if seen is not None and seen.facts is not None:
            proposed = intake.known(self._lookup(want, seen) or (), self._table.index)
        ready, driven = bool(self._standing.ready[row]), self._driven(want)
        self._note_graves(sheet, row, proposed)
        _keep(sheet.takes, row, takes.taken(ref, seen, attempt, proposed, now))
        unseen = seen is None and driven and ref.kind == SERVER
        (sheet.unseen.add if unseen else sheet.unseen.discard)(row)
        if ready and not proposed and attempt is None and driven:
            sheet.put(row, None)
            return
        blocked = self._standing.blocked(row)
        case = Case(
            want=want,
            driven=driven,
            seen=seen,
            condition=view.ready.get(ref),
            ready=ready,
            stale=bool(self._standing.stale[row]),
            attempt=attempt,
            proposed=proposed,
            blocked=blocked,
            needs_since=self._standing.needs_since(row) if blocked is None else None,
            pause=policy.pause(ref, want.region),
            approvals=policy.approvals,
            stale_after=policy.stale_after,
            now=now,
        )
        sheet.put(row, verdict.decide(case), takes.until(attempt, now))

    def _note_graves(self, sheet: Sheet, row: int, proposed: Proposed) -> None:
        want = self._table.resources[row]
        found: frozenset[Ref] = frozenset()
        touched: frozenset[Ref] = frozenset()
        if not isinstance(proposed, Fault):
            for step in proposed:
                if step.disrupts or step.destroys:
                    grave = gates.grave(step, self._table, want.region)
                    found = found | grave if found else grave
                    touched |= step.disrupts | step.destroys
        _keep(sheet.graves, row, found)
        self._reach(row, touched - {want.ref})

    def _reach(self, row: int, refs: frozenset[Ref]) -> None:
        before = self._reaching.get(row, frozenset[Ref]())
        if refs == before:
            return
        for ref in before - refs:
            self._reached[ref].discard(row)
        for ref in refs - before:
            self._reached.setdefault(ref, set()).add(row)
        _keep(self._reaching, row, refs)

    def _note_flight(self, view: View, row: int) -> None:
        want = self._table.resources[row]
        attempt = view.attempts.get(want.ref)
        reaches = attempt is not None and bool(attempt.disrupts)
        (self._flights.add if reaches else self._flights.discard)(want.ref)

    def _pass_gates(
        self, sheet: Sheet, view: View, policy: Policy, region: str, now: datetime
    ) -> Gates:
        def opening(name: str) -> Opening:
            known = self._openings.get(name)
            if known is None or not known.holds_at(now):
                known = self._openings[name] = gates.opening(policy, name, now)
            return known

        going = self._going(sheet, view, now)
        touched = {ref for refs in sheet.graves.values() for ref in refs}
        touched |= gates.servers(going, self._table, region)
        gate = Gates(
            policy=policy,
            region=region,
            table=self._table,
            budget=Budget(self._table, self._standing, policy, going),
            opening=opening,
            mass=gates.mass(touched, len(sheet.unseen), self._table, policy, region),
        )
        sheet.pass_gates(gate)
        return gate

    def _going(self, sheet: Sheet, view: View, now: datetime) -> set[Ref]:
        """What goes down right now because of attempts, in this region and in others."""
        abroad = [
            takes.taken(ref, view.seen.get(ref), view.attempts.get(ref), (), now)
            for ref in self._flights
        ]
        return takes.going([*sheet.takes.values(), *(take for take in abroad if take)], view.seen)


def _keep(where: dict[int, _Kept], row: int, kept: _Kept | None) -> None:
    if kept:
        where[row] = kept
    else:
        where.pop(row, None)
