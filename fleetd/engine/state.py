"""
What the daemon knows right now, in one place, and who must hear that it changed.

Only the engine's loops write here, on one thread, between awaits; the planner and the surfaces
read. Everything in it can be rebuilt from the store and by looking again. A change marks the
regions that have to be planned anew; a look that found nothing new marks none.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from fleetd.engine import retirement
from fleetd.plan.capacity import CLUSTER, SERVER, Capacity
from fleetd.plan.incidents import Troubles
from fleetd.plan.planner import Planner
from fleetd.plan.policy import Policy
from fleetd.plan.table import Table
from fleetd.plan.view import Attempt, View
from fleetd.reads import Reads
from fleetd.vocabulary import (
    Condition,
    Done,
    Driver,
    HoldReason,
    Observation,
    Plan,
    Step,
    StepId,
    Truth,
)
from topology.resource import EMPTY, Ref, Resource, Topology


def _empty_view() -> View:
    return View(topology=EMPTY, seen={}, ready={}, attempts={}, orphans={})


@dataclass
class State:
    drivers: Mapping[str, Driver]
    policy: Policy
    reads: Reads = field(default_factory=Reads)
    """What the drivers read of the topology and the catalogue."""
    view: View = field(default_factory=_empty_view)
    declared: Topology = EMPTY
    """What the documents ask for; the view's topology has what is to go as well."""
    everything: Topology = EMPTY
    """The view's topology and all orphans."""
    retired: frozenset[Ref] = frozenset()
    """Orphans that a person retired."""
    plans: dict[str, Plan] = field(default_factory=dict[str, Plan])
    dirty: set[str] = field(default_factory=set[str])
    """Regions whose plan may be out of date."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    stopping: bool = False
    counts: Counter[tuple[str, str, Truth]] = field(default_factory=Counter[tuple[str, str, Truth]])
    """Resources by kind, region and what is thought of them; never looked at is Unknown."""
    held: dict[str, Counter[HoldReason]] = field(default_factory=dict[str, Counter[HoldReason]])
    """What holds the newest plan of each region back."""
    faulty: dict[str, str] = field(default_factory=dict[str, str])
    """Regions whose newest plan was refused, and the first reason: nothing is begun there."""
    undriven: int = 0
    """Resources whose driver is not loaded: nobody looks at them."""
    _wanted: dict[str, frozenset[StepId]] = field(default_factory=dict[str, frozenset[StepId]])

    def __post_init__(self) -> None:
        self.planner = Planner(self.drivers, self.reads)
        self.planner.reset(self.view)
        self.kinds: dict[str, set[str]] = {}
        """By region, what there is of; and its clusters."""
        self.clusters: dict[str, list[Ref]] = {}
        self.marks: Counter[str] = Counter()
        """By region, how often one of its figures may have changed."""
        self.troubles = Troubles()
        self.capacity = Capacity()
        self.changing: dict[str, datetime | None] = {}
        """Regions of which something new was asked that is not reached, and since when; None until
        the next plan. After a restart, all that was not reached is new."""

    def want(self, ref: Ref) -> Resource | None:
        return self.view.topology.resources.get(ref)

    def accept(
        self, topology: Topology, orphans: Mapping[Ref, Resource], table: Table | None = None
    ) -> None:
        """Work towards this from now on. What was seen of things that stay is kept."""
        view = self.view
        self.declared = topology
        tombs = retirement.tombstones(orphans, self.retired)
        if tombs:
            topology, table = retirement.together(topology, tombs), None
        self.dirty.update(view.topology.regions)
        old_resources = view.topology.resources
        view.topology = topology
        view.orphans.clear()
        view.orphans.update(orphans)
        self.everything = retirement.together(topology, self._left())
        for known in (view.ready, view.attempts):
            for ref in [ref for ref in known if ref not in topology.resources]:
                del known[ref]
        # What was asked for in another way was looked at in another way, perhaps at another place:
        # it is looked at again before anything is decided.
        before = {ref: old.generation for ref, old in old_resources.items() if ref in view.seen}
        for ref, generation in before.items():
            resource = topology.resources.get(ref)
            if resource is None or resource.generation != generation:
                del view.seen[ref]
        self.planner.reset(view, table)
        self.troubles.reset(view.ready, view.ready)
        self.capacity.reset(topology, view.ready, view.seen)
        self._wanted.clear()
        self.faulty.clear()
        self.undriven = sum(
            resource.driver not in self.drivers for resource in topology.resources.values()
        )
        self.counts = Counter(
            (ref.kind, resource.region, self._truth(ref))
            for ref, resource in topology.resources.items()
        )
        self.kinds = {}
        for kind, region, _ in self.counts:
            self.kinds.setdefault(region, set()).add(kind)
        self.clusters = {}
        for ref in topology.kinds.get(CLUSTER, ()):
            self.clusters.setdefault(topology.resources[ref].region, []).append(ref)
        self.marks = Counter({region: self.marks[region] + 1 for region in topology.regions})
        self._note_changes(old_resources, topology)
        self.dirty.update(topology.regions)
        self.dirty.update(orphan.region for orphan in orphans.values())
        self.changed.set()

    def _note_changes(self, old: Mapping[Ref, Resource], topology: Topology) -> None:
        moved = {
            want.region
            for ref, want in topology.resources.items()
            if ref not in old or old[ref].generation != want.generation
        }
        self.changing = {
            region: self.changing.get(region)
            for region in topology.regions
            if region in moved or region in self.changing
        }

    def retire(self, refs: Iterable[Ref]) -> None:
        """These orphans are to go. Durably remembered before this is called."""
        self.retired |= frozenset(refs)
        self.accept(self.declared, dict(self.view.orphans))

    def bury(self, ref: Ref) -> None:
        """It is gone, and its record with it. Costs what the one thing touches, not what the fleet
        is: a pool that is retired is buried server by server."""
        view, joined = self.view, self.view.topology
        tomb = joined.resources.get(ref)
        if not isinstance(joined, retirement.Joined) or tomb is None or not tomb.absent:
            return  # new documents came first
        self.counts[ref.kind, tomb.region, self._truth(ref)] -= 1
        self.undriven -= tomb.driver not in self.drivers
        self.retired -= {ref}
        self.marks[tomb.region] += 1
        if ref.kind == SERVER:
            self.capacity.add(tomb, view.ready.get(ref), view.seen.get(ref), -1)
        for known in (view.orphans, view.seen, view.ready, view.attempts):
            known.pop(ref, None)
        self.troubles.forget(ref)
        self._mark((ref, *joined.needed_by.get(ref, ())))
        view.topology = retirement.without(joined, ref)
        self.everything = retirement.together(view.topology, self._left())
        self.planner.remove(view, ref)
        if view.topology.digest != joined.digest:
            self.dirty.update(view.topology.regions)

    def _left(self) -> dict[Ref, Resource]:
        """Orphans that nobody has retired."""
        there = self.view.topology.resources
        return {ref: orphan for ref, orphan in self.view.orphans.items() if ref not in there}

    def set_policy(self, policy: Policy) -> None:
        self.policy = policy
        # A pause, or an approval that is withdrawn, counts from now on, not from the next plan on.
        self._wanted.clear()
        self.planner.policy_changed()
        self.dirty.update(self.view.topology.regions)
        self.changed.set()

    def allow(
        self,
        *,
        approvals: frozenset[str] | None = None,
        consents: frozenset[str] | None = None,
        refs: Iterable[Ref] = (),
        regions: Iterable[str] = (),
    ) -> None:
        """Other approvals, for steps of `refs`, or consents, for `regions`; whatever else people
        said stays, and so do the plans of all other regions."""
        now = self.policy
        self.policy = replace(
            now,
            approvals=now.approvals if approvals is None else approvals,
            consents=now.consents if consents is None else consents,
        )
        known = self.view.topology.resources
        about = [ref for ref in refs if ref in known]
        touched = {*regions, *(known[ref].region for ref in about)}
        for region in touched:
            self._wanted.pop(region, None)
        self.planner.allowed(self.policy, about, touched)
        self.dirty.update(touched)
        self.changed.set()

    def withdraw_approval(self, step: Step) -> None:
        self.allow(approvals=self.policy.approvals - {step.id}, refs=[step.ref])

    def saw(self, seen: Observation, ready: Condition) -> None:
        view, ref = self.view, seen.ref
        before, was = view.seen.get(ref), view.ready.get(ref)
        resource = view.topology.resources.get(ref)
        if resource is None or resource.generation != ready.generation:
            return  # the documents changed while it was judged
        self.counts[ref.kind, resource.region, self._truth(ref)] -= 1
        self.counts[ref.kind, resource.region, ready.truth] += 1
        if ref.kind == SERVER:
            self.capacity.add(resource, was, before, -1)
            self.capacity.add(resource, ready, seen, 1)
        view.seen[ref] = seen
        view.ready[ref] = ready
        self.troubles.judged(ref, was, ready)
        self._forget_settled(ref, ready)
        self.planner.touch((ref,))
        if was is not ready or (ref.kind == SERVER and seen.digest != (before and before.digest)):
            self.marks[resource.region] += 1
        turned = was is None or was.truth is not ready.truth or was.generation != ready.generation
        news = (
            turned
            or before is None
            or before.digest != seen.digest
            or (before.facts is None) != (seen.facts is None)
            or (was is not None and was.reason != ready.reason)
            or self._first_since_attempt(ref, before)
        )
        if news:
            self._mark((ref, *view.topology.needed_by.get(ref, ())) if turned else (ref,))

    def allow_for_the_clock(self, ref: Ref, now: datetime) -> None:
        """Called when a look begins. An attempt that ended later than now means that the clock was
        put back; left as it is, no look would count until the clock has caught up."""
        attempt = self.view.attempts.get(ref)
        if attempt is None or attempt.ended_at is None or attempt.ended_at <= now:
            return
        back = attempt.ended_at - now
        not_before = attempt.not_before - back if attempt.not_before is not None else None
        self.attempted(ref, replace(attempt, ended_at=now, not_before=not_before))

    def attempted(self, ref: Ref, attempt: Attempt) -> None:
        if ref not in self.view.topology.resources:
            return  # nobody asks for it any more
        self.view.attempts[ref] = attempt
        self.planner.touch((ref,))
        self._mark((ref,))

    def nudge(self, ref: Ref) -> None:
        """Have its region planned again, though nothing was seen to change."""
        self._mark((ref,))

    def planned(self, plan: Plan) -> None:
        self.plans[plan.region] = plan
        self.troubles.planned(plan)
        if plan.region in self.marks:
            self.marks[plan.region] += 1
        self.held[plan.region] = Counter(hold.reason for hold in plan.holds)
        self._wanted[plan.region] = frozenset(step.id for step in plan.steps)
        self.faulty.pop(plan.region, None)

    def compare(self, plan: Plan, now: datetime) -> None:
        """Whether what was last asked of a region is reached: it is Ready, and nothing is left to
        do. What serves in its old form is Ready too, and then there is a step for it."""
        region = plan.region
        if region not in self.changing:
            return
        whole = self.view.ready.get(Ref("region", region))
        left = any(hold.reason is not HoldReason.ORPHANED for hold in plan.holds)
        if plan.steps or plan.waits or left or whole is None or whole.truth is not Truth.TRUE:
            if self.changing[region] is not None:
                return
            self.changing[region] = now
        else:
            del self.changing[region]
        self.marks[region] += 1

    def plan_refused(self, region: str, fault: str) -> None:
        """The planner erred. The last good plan is still shown, but none of its steps begins any
        more: it answers a world that has moved."""
        self._wanted.pop(region, None)
        self.faulty[region] = fault

    def knows(self, plan: Plan) -> bool:
        """Whether this is the plan that is in force."""
        old = self.plans.get(plan.region)
        return old is not None and old.id == plan.id and plan.region in self._wanted

    def still_wanted(self, region: str, step: StepId) -> bool:
        """Whether the newest plan of the region has this step: the last look before acting."""
        return not self.stopping and step in self._wanted.get(region, frozenset())

    def _first_since_attempt(self, ref: Ref, before: Observation) -> bool:
        """Whether an attempt waited for exactly this look."""
        attempt = self.view.attempts.get(ref)
        return attempt is not None and (attempt.ended_at is None or before.at <= attempt.ended_at)

    def _truth(self, ref: Ref) -> Truth:
        """What is thought of it now. What is only remembered from before a restart is not known."""
        ready = self.view.ready.get(ref)
        return ready.truth if ready is not None and ref in self.view.seen else Truth.UNKNOWN

    def _forget_settled(self, ref: Ref, ready: Condition) -> None:
        """An attempt that ended well and whose thing is Ready has nothing more to say."""
        attempt = self.view.attempts.get(ref)
        if attempt is None or attempt.ended_at is None:
            return
        seen = self.view.seen[ref]
        if (
            isinstance(attempt.ending, Done)
            and ready.truth is Truth.TRUE
            and seen.at > attempt.ended_at
            and self._looked_at(attempt.disrupts or (), attempt.ended_at)
            and not self.planner.proposes(self.view, ref)
        ):
            del self.view.attempts[ref]

    def _looked_at(self, refs: Iterable[Ref], since: datetime) -> bool:
        """Whether all that a step took down was seen after it: until then the budgets need to
        know of the step."""
        found = (self.view.seen.get(ref) for ref in refs if ref in self.view.topology.resources)
        return all(seen is not None and seen.at >= since for seen in found)

    def _mark(self, refs: Iterable[Ref]) -> None:
        resources = self.view.topology.resources
        for ref in refs:
            resource = resources.get(ref)
            if resource is not None:
                self.dirty.add(resource.region)
        self.changed.set()
