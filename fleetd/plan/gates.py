"""
What a region as a whole says to a step: pause, consent, approval, window, budget, in this order.

First what a person decides, then what time decides, then what the fleet's state decides. A gate is
asked once for each step that disrupts or destroys something, in the order of the plan; what it
admits it counts. A step may reach into other regions: then their pauses, windows and budgets count
as well. Pure.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

from fleetd.plan import policy as policies
from fleetd.plan import windows, words
from fleetd.plan.budget import Budget
from fleetd.plan.policy import Policy
from fleetd.plan.table import CLUSTER, SERVER, Table
from fleetd.vocabulary import HoldReason, Step
from topology.resource import Ref


class Held(NamedTuple):
    reason: HoldReason
    message: str
    approval: str = ""
    until: datetime | None = None


class Opening(NamedTuple):
    """Whether disruptive work may start in a region, and until when that is so."""

    at: datetime
    open: bool
    change: datetime | None
    frozen: str
    """The reason of the freeze that holds, if one does."""

    def holds_at(self, now: datetime) -> bool:
        return self.at <= now and (self.change is None or now < self.change)


def opening(policy: Policy, region: str, now: datetime) -> Opening:
    limits = policy.region(region)
    freeze = windows.frozen(limits.freezes, now)
    return Opening(
        at=now,
        open=windows.is_open(limits.windows, limits.freezes, now),
        change=windows.next_change(limits.windows, limits.freezes, now),
        frozen=freeze.reason if freeze else "",
    )


def grave(step: Step, table: Table, region: str) -> frozenset[Ref]:
    """The servers of the region that a step disrupts or destroys, and the clusters it destroys;
    not what a person retired: its end was asked for by name."""
    touched = step.disrupts | step.destroys if step.destroys else step.disrupts
    found = [ref for ref in touched if _is_grave(ref, step, table, region)]
    # Mostly it is all of them, and a set that is there already weighs nothing.
    return touched if len(found) == len(touched) else frozenset(found)


def _is_grave(ref: Ref, step: Step, table: Table, region: str) -> bool:
    if ref not in step.disrupts and retired(ref, table):
        return False
    if ref.kind == SERVER:
        row = table.index.get(ref)
        return row is None or table.resources[row].region == region
    return ref.kind == CLUSTER and ref in step.destroys


def retired(ref: Ref, table: Table) -> bool:
    """Whether a person retired it: then its end is what was asked for."""
    row = table.index.get(ref)
    return row is not None and table.resources[row].absent


def servers(refs: Iterable[Ref], table: Table, region: str) -> set[Ref]:
    """Those of a region."""
    rows = ((ref, table.index.get(ref)) for ref in refs if ref.kind == SERVER)
    return {ref for ref, row in rows if row is None or table.resources[row].region == region}


class Mass(NamedTuple):
    """A change so large, or of a size so little known, that it does not go without consent."""

    consent: str
    reason: HoldReason
    message: str


def mass(
    touched: Iterable[Ref], unseen: int, table: Table, policy: Policy, region: str
) -> Mass | None:
    """Whether all that is proposed and under way in a region is too much; None if it is not.

    Servers that nobody has looked at yet may be part of it. After a start they come in one by one,
    and a change of all of them must not pass as many small ones."""
    refs = list(touched)
    clusters = sorted(ref for ref in refs if ref.kind == CLUSTER)
    count = len(refs) - len(clusters)
    total = table.servers.get(region, 0)
    share = Fraction(str(policy.mass_max))
    consent = policies.mass_consent(region, table.topology.digest)
    most = f"more than {float(share * 100):g} % need consent"
    if not clusters and count <= share * total:
        if not unseen or count + unseen <= share * total:
            return None
        message = (
            f"{unseen} of {total} servers were not looked at yet, so nobody knows how many this "
            f"change disrupts ({most}); the next looks tell"
        )
        return Mass(consent, HoldReason.STALE, message)
    parts: list[str] = []
    if count:
        parts.append(f"disrupts or destroys {count} of {total} servers ({most})")
    if clusters:
        parts.append(f"destroys {words.listed(clusters)}")
    sums = f"all that is proposed in {region} together {' and '.join(parts)}"
    return Mass(consent, HoldReason.APPROVAL, f"{sums}; approve {consent} to let it happen")


@dataclass(slots=True, kw_only=True)
class Gates:
    """Of one region, for one plan."""

    policy: Policy
    region: str
    table: Table
    budget: Budget
    opening: Callable[[str], Opening]
    """Of each region."""
    mass: Mass | None
    changes: set[datetime] = field(default_factory=set[datetime])
    """When the windows that were asked for open or close."""
    consents: set[str] = field(default_factory=set[str])
    """The consents that admitted steps rest on."""

    def ask(self, step: Step) -> Held | None:
        """None: it may be done, and is counted as done."""
        if not step.disrupts and not step.destroys:
            return None
        paused = self._paused(step)
        if paused is not None:
            return paused
        mass = self.mass if self.mass and grave(step, self.table, self.region) else None
        if mass is not None and mass.consent not in self.policy.consents:
            approval = mass.consent if mass.reason is HoldReason.APPROVAL else ""
            return Held(mass.reason, mass.message, approval=approval)
        lost = [ref for ref in step.destroys if not retired(ref, self.table)]
        if lost and step.id not in self.policy.approvals:
            message = (
                f"{step.verb} destroys {words.names(step.destroys)}, which cannot be had back; "
                f"approve {step.id} to let it happen"
            )
            return Held(HoldReason.APPROVAL, message, approval=step.id)
        falling = self._falling(step)
        if falling:
            closed = self._closed(step.verb, falling)
            if closed is not None:
                return closed
            problem = self.budget.spend(falling)
            if problem:
                return Held(HoldReason.BUDGET, problem)
        if mass is not None:
            self.consents.add(mass.consent)
        return None

    def _paused(self, step: Step) -> Held | None:
        """Whoever pauses a server wants it left alone, also by the cluster it belongs to."""
        if not self.policy.pauses:
            return None
        for ref in sorted(step.disrupts | step.destroys):
            pause = self.policy.pause(ref, self._region(ref))
            if pause is not None:
                word = "destroys" if ref in step.destroys else "disrupts"
                return Held(HoldReason.PAUSED, f"{step.verb} {word} {ref}, which is {pause}")
        return None

    def _region(self, ref: Ref) -> str:
        row = self.table.index.get(ref)
        return self.region if row is None else self.table.resources[row].region

    def _falling(self, step: Step) -> frozenset[Ref]:
        """What goes down. What is destroyed goes down too, if it is in a failure domain; a key
        that is revoked is not."""
        if not step.destroys:
            return step.disrupts
        index, domains = self.table.index, self.table.domains
        lost = {
            ref for ref in step.destroys if (row := index.get(ref)) is not None and domains[row]
        }
        return step.disrupts | lost

    def _closed(self, verb: str, falling: Iterable[Ref]) -> Held | None:
        """The own region's windows first, then those of all that goes down elsewhere."""
        others = sorted({self._region(ref) for ref in falling} - {self.region})
        for region in (self.region, *others):
            opening = self.opening(region)
            change = opening.change
            if change is not None:
                self.changes.add(change)
            if opening.open:
                continue
            when = f"until {words.moment(change)}" if change else "with no end in sight"
            where = f" of {region}" if region != self.region else ""
            why = f"outside the maintenance windows{where} {when}"
            if opening.frozen:
                there = f"{region} is " if region != self.region else ""
                why = f"{there}frozen {when}: {opening.frozen}"
            message = f"{why}; {verb} disrupts {words.names(falling)}"
            return Held(HoldReason.WINDOW, message, until=change)
        return None
