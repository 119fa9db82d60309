"""
What would happen if other documents were taken, as far as can be said without doing it. Pure.

The real planner, drivers made for these documents (`fleetd.daemon.sealed`: their topology, their
catalogue, no way out), and what was seen of the world: what is asked for in another way is judged
and proposed anew from its last observation, what is new counts as not there. What the planner
admits in one round is a wave and is taken to work; what never begins stands in the last wave, with
the reason. An outlook is not a promise: drivers look again before they act.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetd import conditions
from fleetd.daemon import sealed
from fleetd.plan.nominal import NominalDriver
from fleetd.plan.offline import Wave
from fleetd.plan.planner import Planner
from fleetd.plan.policy import Policy
from fleetd.plan.view import View
from fleetd.tools import Tools
from fleetd.vocabulary import Condition, Driver, Hold, HoldReason, Observation, Outcome, Plan, Step
from topology.catalogue import Component
from topology.resource import Facts, Ref, Resource, Topology

MakeDrivers = Callable[[Tools], Mapping[str, Driver]]
_MADE: Facts = {"fleetd": "taken to work"}
WAVES_MAX = 200
"""A budget of one server at a time makes as many waves as there are servers; more tell nothing."""


@dataclass(frozen=True, slots=True)
class _Foreseen:
    """A driver that is asked about what was seen, and trusted about what was not."""

    kind: str
    real: Driver | None
    nominal: NominalDriver

    def check(self, want: Resource) -> Sequence[str]:
        return self.real.check(want) if self.real is not None else ()

    async def observe(self, want: Resource) -> Observation:
        return await self.nominal.observe(want)

    async def apply(self, step: Step) -> Outcome:
        return await self.nominal.apply(step)

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is _MADE:
            return ()
        if want.absent or (seen.facts and self.real is not None):
            return self.real.propose(want, seen) if self.real is not None else ()
        return self.nominal.propose(want, seen)

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        if seen.facts is _MADE or self.real is None:
            return self.nominal.judge(want, seen)
        return self.real.judge(want, seen)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A copy of what the daemon knows, which nobody changes any more."""

    view: View
    policy: Policy
    now: datetime
    make: MakeDrivers
    """The same drivers as at work, made anew."""


def waves(
    world: World, new: Topology, catalogue: Mapping[str, Component], regions: Sequence[str]
) -> list[Wave]:
    """Of these regions only; nothing needs across regions."""
    deeds = {kind: component.spec.create for kind, component in catalogue.items()}
    real = world.make(sealed.tools(new, catalogue, world.view.ready, world.now))
    drivers: dict[str, Driver] = {
        name: _Foreseen(name, real.get(name), NominalDriver(kind=name, deeds=deeds))
        for name in sorted({resource.driver for resource in new.resources.values()})
    }
    view = _view(world, new, drivers)
    planner = Planner(drivers)
    planner.reset(view)
    found: list[Wave] = []
    while len(found) < WAVES_MAX:
        plans = [
            planner.plan(view, world.policy, region=region, now=world.now) for region in regions
        ]
        steps = tuple(step for plan in plans for step in plan.steps)
        if not steps:
            rest = _rest(len(found) + 1, plans)
            return [*found, rest] if rest.holds or rest.waits else found
        found.append(Wave(number=len(found) + 1, steps=steps))
        done = sorted({step.ref for step in steps})
        for ref in done:
            _see(view, drivers, new.resources[ref], _after(new.resources[ref]), world.now)
        planner.touch(done)
    return found


def _after(want: Resource) -> Facts:
    return {} if want.absent else _MADE


def _rest(number: int, plans: Sequence[Plan]) -> Wave:
    """What never begins. Orphans are told by the difference already."""
    holds: list[Hold] = [hold for plan in plans for hold in plan.holds]
    return Wave(
        number=number,
        holds=tuple(hold for hold in holds if hold.reason is not HoldReason.ORPHANED),
        waits=tuple(wait for plan in plans for wait in plan.waits),
    )


def _view(world: World, new: Topology, drivers: Mapping[str, Driver]) -> View:
    old = world.view
    view = View(topology=new, seen={}, ready={}, attempts={}, orphans={})
    for ref, want in new.resources.items():
        seen, before = old.seen.get(ref), old.topology.resources.get(ref)
        if seen is not None and before is not None and before.generation == want.generation:
            view.seen[ref] = seen
            if ref in old.ready:
                view.ready[ref] = old.ready[ref]
            if ref in old.attempts:
                view.attempts[ref] = old.attempts[ref]
        elif before is None:
            _see(view, drivers, want, {}, world.now)
        elif seen is not None and seen.facts is not None:
            _see(view, drivers, want, seen.facts, world.now)
        elif seen is not None:
            view.seen[ref] = seen
    return view


def _see(
    view: View, drivers: Mapping[str, Driver], want: Resource, facts: Facts, now: datetime
) -> None:
    ref: Ref = want.ref
    # No digest: what a driver said of other facts must not be remembered for these.
    seen = Observation(ref=ref, at=now, facts=facts)
    judged = _judged(drivers[want.driver], want, seen)
    view.seen[ref] = seen
    view.ready[ref] = conditions.of(want, seen, judged, None, grace=timedelta())
    view.attempts.pop(ref, None)


def _judged(driver: Driver, want: Resource, seen: Observation) -> Sequence[Condition]:
    try:
        return driver.judge(want, seen) if seen.facts else ()
    except Exception:  # noqa: BLE001 - a driver's fault over a guess must not end a request
        return ()
