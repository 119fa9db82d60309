"""
A second opinion before anybody acts: does this plan keep to every limit? Pure, naive on purpose.

The planner keeps books between plans, and a mistake in them would look like a good plan. Here the
view and the policy are read again in the plainest way, without those books; only who is in which
failure domain is sorted out once per topology, from the topology alone. Only steps are judged,
as holding back harms nobody; and only by what is certain, so that a good plan is never refused.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from fleetd.plan import budget, windows
from fleetd.plan.policy import Policy, mass_consent
from fleetd.plan.table import CLUSTER, SERVER
from fleetd.plan.view import View
from fleetd.vocabulary import Plan, Step, Truth
from topology.resource import Ref


def guard(plan: Plan, view: View, policy: Policy, *, now: datetime) -> list[str]:
    """Every limit that a step of the plan oversteps; empty if there is none."""
    look = _Look(plan, view, policy, now)
    return [
        *(f"{step.verb} {step.ref}: {fault}" for step in plan.steps for fault in look.step(step)),
        *look.budgets(),
        *look.mass(),
    ]


@dataclass(frozen=True)
class _Look:
    plan: Plan
    view: View
    policy: Policy
    now: datetime

    def step(self, step: Step) -> Iterator[str]:
        yield from self._timely(step)
        yield from self._permitted(step)

    def _timely(self, step: Step) -> Iterator[str]:
        """Its thing is known, nobody is at it, and what it needs is there."""
        seen, attempt = self.view.seen.get(step.ref), self.view.attempts.get(step.ref)
        want = self.view.topology.resources.get(step.ref)
        if seen is None or seen.facts is None or seen.at + self.policy.stale_after <= self.now:
            yield "nobody knows how it is now"
        if attempt is not None and attempt.ending is None:
            yield f"step {attempt.step} of it is in flight"
        for need in sorted(want.needs) if want is not None else ():
            if not self.ready(need):
                yield f"needs {need}, which is not Ready"

    def _permitted(self, step: Step) -> Iterator[str]:
        """No pause, no missing approval, no closed window."""
        touched = step.disrupts | step.destroys
        for ref in sorted({step.ref, *touched}):
            pause = self.policy.pause(ref, self.region(ref))
            if pause is not None:
                yield f"{ref} is {pause}"
        if self._lost(step) and step.id not in self.policy.approvals:
            yield "destroys something, and nobody approved it"
        if step.disrupts:
            for region in sorted({self.plan.region, *map(self.region, touched)}):
                limits = self.policy.region(region)
                if not windows.is_open(limits.windows, limits.freezes, self.now):
                    yield f"disrupts something while {region} is outside its windows or frozen"

    def budgets(self) -> Iterator[str]:
        resources = self.view.topology.resources
        falling = {ref for step in self.plan.steps for ref in step.disrupts | step.destroys}
        falling = {ref for ref in falling if ref in resources and not self.down(ref)}
        falling -= self._moving(falling)
        touched = {domain for ref in falling for domain in resources[ref].domains}
        members = self.view.topology.domains
        flying = {
            ref
            for attempt in self.view.attempts.values()
            if attempt.ending is None
            for ref in attempt.disrupts or ()
        }
        for domain in sorted(touched):
            inside = members[domain]
            region = resources[inside[0]].region
            share = self.policy.region(region).budgets.of_level(domain.split(":", 1)[0])
            if share is None:
                continue
            count = sum(ref in falling or ref in flying or self.down(ref) for ref in inside)
            most = budget.allowed(share, len(inside))
            if count > most:
                yield f"{domain} would have {count} of {len(inside)} down, and may have {most}"

    def mass(self) -> Iterator[str]:
        region, topology = self.plan.region, self.view.topology
        if mass_consent(region, topology.digest) in self.policy.consents:
            return
        lost = {ref for step in self.plan.steps for ref in self._lost(step) if ref.kind == CLUSTER}
        for ref in sorted(lost):
            yield f"destroys {ref}, and nobody consented"
        touched = {ref for step in self.plan.steps for ref in (*step.disrupts, *self._lost(step))}
        if not touched:
            return
        servers = _servers(topology.regions.get(region, ()))
        count = len(_servers(touched) & servers)
        if count > Fraction(str(self.policy.mass_max)) * len(servers):
            yield f"disrupts {count} of {len(servers)} servers, and nobody consented"

    def _lost(self, step: Step) -> list[Ref]:
        """What it destroys and nobody retired."""
        resources = self.view.topology.resources
        return [ref for ref in step.destroys if ref not in resources or not resources[ref].absent]

    def ready(self, ref: Ref) -> bool:
        want, condition = self.view.topology.resources.get(ref), self.view.ready.get(ref)
        seen = self.view.seen.get(ref)
        if want is None or condition is None or seen is None or seen.facts is None:
            return False
        fresh = self.now < seen.at + self.policy.stale_after
        good = condition.truth is Truth.TRUE and condition.generation == want.generation
        return fresh and good

    def down(self, ref: Ref) -> bool:
        """Unknown counts; what was looked for lately and is not there does not."""
        seen = self.view.seen.get(ref)
        if seen is None or seen.facts is None or seen.at + self.policy.stale_after <= self.now:
            return True
        return bool(seen.facts) and not self.ready(ref)

    def _moving(self, refs: set[Ref]) -> set[Ref]:
        """Those that an attempt may be taking down already; to take them down costs nothing. What
        an attempt from before a restart takes down is not known: it may be any of them."""
        found: set[Ref] = set()
        for attempt in self.view.attempts.values():
            reach = refs if attempt.disrupts is None else refs & attempt.disrupts
            later = attempt.not_before is not None and attempt.not_before > self.now
            ended = None if later else attempt.ended_at
            for ref in reach - found:
                seen = self.view.seen.get(ref)
                if ended is None or seen is None or seen.at < ended:
                    found.add(ref)
        return found

    def region(self, ref: Ref) -> str:
        want = self.view.topology.resources.get(ref)
        return self.plan.region if want is None else want.region


def _servers(refs: Iterable[Ref]) -> set[Ref]:
    return {ref for ref in refs if ref.kind == SERVER}
