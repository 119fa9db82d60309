"""
One paragraph about one thing: what it is doing or not doing, what it waits for, down to the cause.

Pure. It walks the edges: from a thing that waits to the thing it needs that is not Ready, first
one that waits for a person, else the one that comes up first, until one that waits for nobody.
That one is the cause, or shares one: where several things that feed or carry it fail together in
one rack or zone, that is told as well. Ages are relative here, because a person reads it now;
nothing is decided from it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from fleetd.plan import words
from fleetd.plan.policy import Policy
from fleetd.plan.view import View
from fleetd.vocabulary import ABSENT, Condition, Hold, HoldReason, Plan, Truth, Wait
from topology.resource import Ref, Resource

CHAIN_MAX = 40
"""Links of a chain that are told. A region's longest chain has 25."""
TOLD_MAX = 6
"""Links that a paragraph tells; of a longer chain the beginning and the end."""
_DOMAINS = ("rack", "zone")
_PERSON = frozenset({HoldReason.OVERDUE, HoldReason.APPROVAL, HoldReason.FAILED, HoldReason.PAUSED})
"""Holds that end only when somebody does something."""
_PAUSED_ON = re.compile(r"\(pause on ([^()]+)\)$")

_FREE = Policy()

Because = Callable[[Ref, Ref], str]
"""Why the one needs the other, to end the sentence "it needs this because"; empty if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One thing on the way to the cause. Its text stands alone."""

    ref: Ref
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    ref: Ref
    ready: bool
    chain: tuple[Link, ...]
    """From the thing itself to the cause."""
    cause: Ref | None
    """Where it ends, unless that is the thing itself."""
    advice: str = ""
    beside: str = ""
    """What fails around the cause, as a sentence."""
    also: tuple[Ref, ...] = field(default=())
    """The same as names."""

    @property
    def paragraph(self) -> str:
        parts = [_sentence(_joined(self.chain)), _sentence(self.beside), _sentence(self.advice)]
        return " ".join(part for part in parts if part)


def _joined(chain: tuple[Link, ...]) -> str:
    """`a waits for b; b waits for c, which is Broken`, and of a long chain only both ends."""
    texts = [link.text for link in chain]
    if len(chain) > 1:
        last = chain[-1]
        own = f"{last.ref} "
        # "a and 2 more, which is" would leave open what is meant.
        if texts[-1].startswith(own) and " more" not in texts[-2]:
            texts[-2:] = [f"{texts[-2]}, which {texts[-1].removeprefix(own)}"]
    if len(texts) > TOLD_MAX:
        left = len(texts) - TOLD_MAX
        texts[3 : 3 + left] = [f"and so on, through {left} more"]
    return "; ".join(texts)


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def unknown(_source: Ref, _target: Ref) -> str:
    return ""


def why(
    ref: Ref,
    view: View,
    plans: Mapping[str, Plan],
    *,
    now: datetime,
    because: Because = unknown,
    policy: Policy = _FREE,
) -> Answer:
    """`ref` must be in the view's topology or among its orphans."""
    orphan = view.orphans.get(ref)
    if orphan is not None and ref not in view.topology.resources:
        return _orphan(orphan)
    return _Walk(view, plans, now, because, policy).answer(ref)


def _orphan(orphan: Resource) -> Answer:
    ref = orphan.ref
    text = f"{ref} is an orphan: no document names it any more, so it is left as it is"
    advice = f"To remove it: fleetctl retire {ref.kind} {ref.name}. To keep it: put it back into "
    advice += f"{orphan.owner if orphan.owner not in (None, ref) else 'the documents'}"
    return Answer(
        ref=ref, ready=False, chain=(Link(ref=ref, text=text),), cause=None, advice=advice
    )


class _Walk:
    def __init__(
        self,
        view: View,
        plans: Mapping[str, Plan],
        now: datetime,
        because: Because,
        policy: Policy,
    ) -> None:
        self._view = view
        self._plans = plans
        self._now = now
        self._because = because
        self._policy = policy

    def answer(self, ref: Ref) -> Answer:
        links: list[Link] = []
        passed = {ref}
        at = ref
        while len(links) < CHAIN_MAX:
            needed = self._first_unready_need(at)
            if needed is None or needed in passed:
                break
            links.append(Link(ref=at, text=self._waits(at, needed, first=at == ref)))
            passed.add(needed)
            at = needed
        links.append(Link(ref=at, text=self._is(at)))
        also, beside = self._company(at)
        return Answer(
            ref=ref,
            ready=self._ready(ref),
            chain=tuple(links),
            cause=at if at != ref else None,
            advice=self._advice(at),
            beside=beside,
            also=also,
        )

    def _first_unready_need(self, ref: Ref) -> Ref | None:
        """Of those that are not Ready one that waits for a person, else the one that comes up
        first, the worst of several. Nobody waits when Ready."""
        want = self._view.topology.resources.get(ref)
        if want is None or self._ready(ref) or ref in self._paused:
            return None
        return min(self._unready(ref, want), key=self._order, default=None)

    def _unready(self, ref: Ref, want: Resource) -> list[Ref]:
        """What it needs that is not Ready. A region is the sum of all that is in it, so it waits
        for parts that nobody needs any more once they were up, e.g. a pool."""
        whole = ref == Ref("region", want.region)
        needs = self._view.topology.regions.get(want.region, ()) if whole else want.needs
        return [need for need in needs if need != ref and not self._ready(need)]

    def _order(self, need: Ref) -> tuple[bool, int, int, Ref]:
        want, condition = self._view.topology.resources.get(need), self._condition(need)
        bad = condition is not None and condition.truth is Truth.FALSE
        there = condition is not None and condition.reason != ABSENT
        calm = 0 if bad and there else 1 if condition is None or there else 2
        return need not in self._stopped, want.rank if want is not None else -1, calm, need

    @cached_property
    def _stopped(self) -> frozenset[Ref]:
        """What goes on only when a person does something."""
        return frozenset(
            hold.ref
            for plan in self._plans.values()
            for hold in plan.holds
            if hold.reason in _PERSON
        )

    @cached_property
    def _paused(self) -> frozenset[Ref]:
        """A pause holds whatever else does, so it is the end of the walk."""
        return frozenset(
            hold.ref
            for plan in self._plans.values()
            for hold in plan.holds
            if hold.reason is HoldReason.PAUSED
        )

    def _waits(self, ref: Ref, needed: Ref, *, first: bool) -> str:
        want = self._view.topology.resources[ref]
        others = len(self._unready(ref, want)) - 1
        more = f" and {others} more" if others else ""
        if want.absent:
            return f"{ref} was retired and waits until {needed}{more} is gone"
        seen = self._condition(ref)
        there = seen is not None and seen.reason != ABSENT and ref in self._view.seen
        state = f" is {seen.reason} and" if first and there and seen is not None else ""
        told = self._because(ref, needed)
        return f"{ref}{state} waits for {needed}{more}{f' ({told})' if told else ''}"

    def _is(self, ref: Ref) -> str:
        """How a thing is that waits for nobody else."""
        want = self._view.topology.resources.get(ref)
        if want is None:
            return f"{ref} is named by no document"
        seen, condition = self._view.seen.get(ref), self._condition(ref)
        if seen is None:
            return f"{ref} was not looked at yet"
        if condition is None:
            return f"{ref} was not judged yet"
        age = words.span(self._now - condition.reason_since)
        told = f": {condition.message}" if condition.message else ""
        doing = self._doing(ref)
        if condition.truth is Truth.TRUE and self._ready(ref):
            # What is as it should be has no hold, and would still be left as it is.
            pause = self._policy.pause(ref, want.region)
            paused = f"; {pause}" if pause is not None and not doing else ""
            return f"{ref} is Ready since {words.span(self._now - condition.since)}{doing}{paused}"
        return f"{ref} is {condition.reason} since {age}{told}{doing}"

    def _doing(self, ref: Ref) -> str:
        """What is done about it now."""
        plan = self._plan(ref)
        attempt = self._view.attempts.get(ref)
        if attempt is not None and attempt.ending is None:
            verb = attempt.verb or attempt.step
            return f"; {verb} is under way since {words.span(self._now - attempt.at)}"
        if plan is None:
            return ""
        step = next((one for one in plan.steps if one.ref == ref), None)
        if step is not None:
            return f"; next: {step.why}"
        hold = self._hold(plan, ref)
        condition = self._condition(ref)
        if hold is not None:
            return self._held(hold, told=condition.message if condition is not None else "")
        wait = self._wait(plan, ref)
        news = wait is not None and (condition is None or wait.message != condition.message)
        return f"; waiting: {wait.message}" if wait is not None and news and wait.message else ""

    @staticmethod
    def _held(hold: Hold, told: str) -> str:
        if hold.reason is HoldReason.OVERDUE:
            # Since when was told already, and what to do is the advice.
            limit = hold.message.partition("; ")[0].rpartition(", ")[2]
            return f"; overdue, {limit}"
        until = f" until {words.moment(hold.until)}" if hold.until else ""
        return f"; held ({hold.reason}{until}): {hold.message.removesuffix(f': {told}')}"

    def _company(self, ref: Ref) -> tuple[tuple[Ref, ...], str]:
        """What carries or feeds the cause and fails as well, and what those have in common."""
        if self._ready(ref):
            return (), ""
        failing, place = sorted(self._below(ref)), "Below"
        if not failing:
            failing, place = sorted(self._beside(ref)), "Beside"
        if not failing:
            return (), ""
        shared, whole = self._shared(failing)
        where = f", all in {shared}" if shared and len(failing) > 1 else ""
        where = where or (f", in {shared} too" if shared and place == "Beside" else "")
        where += ", where no server is Ready: has it lost power or network?" if whole else ""
        first = self._condition(failing[0])
        reason = f" ({first.reason})" if first is not None else ""
        verb = "is" if len(failing) == 1 else "are"
        text = f"{place} it {words.names(failing)} {verb} not Ready{reason}{where}"
        return tuple(failing), text

    def _shared(self, refs: Sequence[Ref]) -> tuple[str, bool]:
        """The rack, else the zone, that all of them stand in: `rack r2`; and whether all of the
        several servers there fail."""
        resources = self._view.topology.resources
        common = set[str].intersection(*(set(resources[one].domains) for one in refs))
        for level in _DOMAINS:
            for domain in sorted(common):
                if domain.startswith(f"{level}:"):
                    there = [
                        ref
                        for ref, want in resources.items()
                        if ref.kind == "server" and domain in want.domains
                    ]
                    whole = len(there) > 1 and all(self._known_bad(ref) for ref in there)
                    return f"{level} {domain.rpartition('/')[2]}", whole
        return "", False

    def _beside(self, ref: Ref) -> list[Ref]:
        """Others of its kind that fail in the same rack."""
        resources = self._view.topology.resources
        domains = resources[ref].domains if ref in resources else ()
        own = {one for one in domains if one.startswith("rack:")}
        return [
            other
            for other, want in resources.items()
            if other.kind == ref.kind
            and other != ref
            and own & set(want.domains)
            and self._known_bad(other)
        ]

    def _below(self, ref: Ref) -> set[Ref]:
        """Things that host or feed it, at most three steps down, and are not Ready."""
        found: set[Ref] = set()
        sums: set[Ref] = set()
        carriers = self._view.topology.carriers
        front = {ref}
        for _ in range(3):
            edges = [(source, target) for target in front for source in carriers.get(target, ())]
            front = {source for source, _ in edges if source not in found}
            bad = {one for one in front if self._known_bad(one)}
            # A pool that is short of servers says nothing beside the servers themselves.
            sums |= {target for source, target in edges if source in bad}
            found |= bad
        return found - sums - {ref}

    def _known_bad(self, ref: Ref) -> bool:
        """Looked at, there, and not well. What is not there yet is no company in misfortune."""
        condition, seen = self._condition(ref), self._view.seen.get(ref)
        return (
            condition is not None
            and seen is not None
            and not self._ready(ref)
            and condition.reason not in (ABSENT, "Ready")
            and self._first_unready_need(ref) is None
        )

    def _advice(self, ref: Ref) -> str:
        """What a person should do, where a person is what it waits for."""
        plan = self._plan(ref)
        held = [hold for hold in plan.holds if hold.ref == ref] if plan is not None else []
        for hold in held:
            if hold.reason is HoldReason.OVERDUE:
                return hold.message.partition("; ")[2] or hold.message
        for hold in held:
            if hold.approval:
                return f"To let it happen: fleetctl approve {hold.approval}"
            paused = _PAUSED_ON.search(hold.message)
            if hold.reason is HoldReason.PAUSED and paused is not None:
                return f"To go on: fleetctl resume {paused[1]}"
            if hold.reason is HoldReason.NO_DRIVER:
                return "Start the daemon with a driver for it (--drivers)"
        want = self._view.topology.resources.get(ref)
        pause = self._policy.pause(ref, want.region) if want is not None else None
        return f"To go on: fleetctl resume {pause.scope}" if pause is not None else ""

    def _plan(self, ref: Ref) -> Plan | None:
        want = self._view.topology.resources.get(ref)
        return self._plans.get(want.region) if want is not None else None

    @staticmethod
    def _hold(plan: Plan, ref: Ref) -> Hold | None:
        held = [one for one in plan.holds if one.ref == ref]
        return next((one for one in held if one.reason is not HoldReason.DEPENDENCY), None)

    @staticmethod
    def _wait(plan: Plan, ref: Ref) -> Wait | None:
        return next((one for one in plan.waits if one.ref == ref), None)

    def _condition(self, ref: Ref) -> Condition | None:
        return self._view.ready.get(ref)

    def _ready(self, ref: Ref) -> bool:
        want, condition = self._view.topology.resources.get(ref), self._condition(ref)
        return (
            want is not None
            and condition is not None
            and ref in self._view.seen
            and condition.truth is Truth.TRUE
            and condition.generation == want.generation
        )
