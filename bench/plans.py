"""
What does a plan cost: the first one, and the next one after one thing changed?

The first plan is a planner that knows nothing yet (its tables are made too), all regions, and the
lint without which no plan is carried out. Its peer is the loop a script would have: ask each
thing's driver what it thinks and what it would do, with no order, no reasons and no budgets.
A plan after one change is what the engine does when a look brought news: take the observation in,
plan the one region, lint what came out. Its peer is the full plan. A *base* is what most others of
its region need: when it changes, all that wait for it are decided anew. In a *rollout* every server
is to be flashed, which takes it down; there is consent for so many, and the budgets let a few go at
a time, so each plan asks the budgets again for every server of the region.
"""

import time
from datetime import timedelta

from bench import fleets, measure, world
from bench.fleets import NOW, World
from bench.measure import Sizes
from bench.table import Goal, Peer, Row
from fleetd.engine.state import State
from fleetd.plan import lint
from fleetd.plan.planner import Planner
from fleetd.vocabulary import Plan
from topology.resource import Ref, Topology

FIRST = Goal(most=5)
AFTER = Goal(most=5)


def run(sizes: Sizes) -> list[Row]:
    topology = fleets.compiled(sizes.servers, sizes.clusters)
    rows: list[Row] = []
    full = 0.0
    for seen in World:
        measure.progress(f"first plan: {seen.value}")
        row = _first(topology, seen, sizes.whole)
        rows.append(row)
        full = max(full, row.value)
    spread, hubs = _spread(topology, sizes.changes), _hubs(topology, sizes.changes)
    for seen, words in (
        (World.RUNNING, "all runs"),
        (World.EMPTY, "all held"),
        (World.OLD, "rollout"),
    ):
        measure.progress(f"plan after one change: {words}")
        known = fleets.state(topology, seen)
        rows.append(_after(known, spread, full, f"one server changed, {words}"))
        if seen is not World.OLD:
            rows.append(_after(known, hubs, full, f"a region's base changed, {words}"))
    return rows


def first(known: State) -> list[Plan]:
    """Plan everything from nothing, with the lint."""
    planner = Planner(known.drivers)
    planner.reset(known.view)
    plans: list[Plan] = []
    for region in known.view.topology.regions:
        plan = planner.plan(known.view, known.policy, region=region, now=NOW)
        assert not lint.lint(plan, known.view.topology, known.drivers)
        plans.append(plan)
    return plans


def _naive(known: State) -> int:
    """Ask everybody; the least that any planner does."""
    count = 0
    for ref, want in known.view.topology.resources.items():
        seen, driver = known.view.seen[ref], known.drivers[want.driver]
        count += len(driver.judge(want, seen)) + len(driver.propose(want, seen))
    return count


def _first(topology: Topology, seen: World, rounds: int) -> Row:
    known = fleets.state(topology, seen)
    plans: list[Plan] = []

    def act() -> None:
        plans[:] = first(known)

    timings = measure.in_turn({"first": act, "naive": lambda: _naive(known)}, rounds)
    steps, holds = sum(len(plan.steps) for plan in plans), sum(len(plan.holds) for plan in plans)
    return Row(
        what=f"first full plan: {seen.value}",
        value=measure.median(timings["first"]),
        unit="s",
        goal=FIRST,
        peers=(
            Peer(
                name="asking each driver in a loop",
                ratio=measure.ratio(timings, "first", "naive"),
            ),
        ),
        note=f"{len(topology.resources):,} things, {steps:,} steps, {holds:,} held",
        raw=timings,
    )


def _after(known: State, changing: list[Ref], full: float, what: str) -> Row:
    """Each goes off, is planned, comes back, is planned."""
    for region in known.view.topology.regions:
        _plan(known, region, 0)
    seconds: list[float] = []
    for number, ref in enumerate(changing):
        want = known.view.topology.resources[ref]
        for power in ("Off", "On"):
            facts = {**world.facts_of(want), "powerState": power}
            began = time.process_time()
            fleets.show(known, want, facts, NOW + timedelta(milliseconds=number + 1))
            _plan(known, want.region, number + 1)
            seconds.append(time.process_time() - began)
    ranked = sorted(seconds)
    late = ranked[min(len(ranked) - 1, len(ranked) * 99 // 100)]
    middle = measure.median(seconds)
    return Row(
        what=f"plan after {what}",
        value=late * 1000,
        unit="ms",
        goal=AFTER,
        peers=(Peer(name="first full plan (median)", ratio=middle / max(full, 1e-9)),),
        note=f"99 of 100 are quicker; median {middle * 1000:.2f} ms, worst "
        f"{ranked[-1] * 1000:.1f} ms of {len(ranked)} changes",
        raw={"seconds": seconds},
    )


def _plan(known: State, region: str, milliseconds: int) -> None:
    now = NOW + timedelta(milliseconds=milliseconds)
    plan = known.planner.plan(known.view, known.policy, region=region, now=now)
    old = known.plans.get(region)
    if old is None or old.id != plan.id:
        assert not lint.lint(plan, known.view.topology, known.drivers)
        known.planned(plan)


def _spread(topology: Topology, count: int) -> list[Ref]:
    """Servers from all over the fleet."""
    servers = fleets.servers_of(topology)
    return servers[:: max(1, len(servers) // count)][:count]


def _hubs(topology: Topology, count: int) -> list[Ref]:
    """Of each region what most others need, as far as `count` goes."""
    most: dict[str, tuple[int, Ref]] = {}
    for ref, dependents in topology.needed_by.items():
        region = topology.resources[ref].region
        most[region] = max(most.get(region, (0, ref)), (len(dependents), ref))
    return [ref for _, ref in most.values()][: max(1, count // 10)]
