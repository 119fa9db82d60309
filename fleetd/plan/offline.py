"""
The whole order of work from an empty world: `fleetctl plan --offline`. Pure.

The real planner plans against a world in which every step works at once; what it admits in one
round is a wave. What never begins is in a last wave of its own, with the reason.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetd import conditions
from fleetd.plan.nominal import NominalDriver
from fleetd.plan.planner import Planner
from fleetd.plan.policy import Policy
from fleetd.plan.view import View
from fleetd.vocabulary import Hold, Observation, Plan, Step, Wait
from topology.resource import Facts, Ref, Topology

_MADE: Facts = {"nominal": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    number: int
    """Starts at 1."""
    steps: tuple[Step, ...] = ()
    """Can be done side by side."""
    holds: tuple[Hold, ...] = ()
    """Only in a last wave without steps: what never begins, and why."""
    waits: tuple[Wait, ...] = ()


def forecast(
    topology: Topology, policy: Policy, deeds: Mapping[str, str], now: datetime
) -> list[Wave]:
    """Waves in order, over all regions. Empty for an empty topology. `deeds` says for each kind
    what is done first about it."""
    drivers = {
        name: NominalDriver(kind=name, deeds=deeds)
        for name in sorted({resource.driver for resource in topology.resources.values()})
    }
    view = View(topology=topology, seen={}, ready={}, attempts={}, orphans={})
    planner = Planner(drivers)
    _show(view, drivers, topology.resources, now, {})
    waves: list[Wave] = []
    regions = sorted(topology.regions)
    while regions:
        plans = [planner.plan(view, policy, region=region, now=now) for region in regions]
        wave = _wave(len(waves) + 1, plans)
        if not wave.steps:
            return [*waves, wave] if wave.holds or wave.waits else waves
        waves.append(wave)
        done = [step.ref for step in wave.steps]
        _show(view, drivers, done, now, _MADE)
        planner.touch(done)
    return waves


def _wave(number: int, plans: Sequence[Plan]) -> Wave:
    steps = tuple(step for plan in plans for step in plan.steps)
    if steps:
        return Wave(number=number, steps=steps)
    return Wave(
        number=number,
        holds=tuple(hold for plan in plans for hold in plan.holds),
        waits=tuple(wait for plan in plans for wait in plan.waits),
    )


def _show(
    view: View,
    drivers: dict[str, NominalDriver],
    refs: Iterable[Ref],
    now: datetime,
    facts: Facts,
) -> None:
    """Let these be seen with these facts."""
    for ref in refs:
        want = view.topology.resources[ref]
        seen = Observation(ref=ref, at=now, facts=facts, digest=1 + bool(facts))
        judged = drivers[want.driver].judge(want, seen)
        view.seen[ref] = seen
        view.ready[ref] = conditions.of(want, seen, judged, None, grace=timedelta())
