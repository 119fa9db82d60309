"""What holds for every plan of every fleet."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from fleetd.plan import budget, guard, lint, planner
from fleetd.plan.policy import Policy
from fleetd.plan.view import View
from fleetd.vocabulary import Plan, Truth
from tests.plan import fleets, worlds
from tests.plan.fleets import NOW, World
from topology.resource import Ref

MANY = settings(max_examples=150, deadline=None)


def planned(world: World, policy: Policy, now: timedelta = timedelta()) -> list[Plan]:
    return [world.plan(policy, region=region, now=NOW + now) for region in worlds.REGIONS]


def ready(world: World, policy: Policy, ref: Ref) -> bool:
    """Said once more, in other words than the planner's."""
    want, seen = world.view.topology.resources.get(ref), world.view.seen.get(ref)
    verdict = world.view.ready.get(ref)
    if want is None or seen is None or verdict is None or seen.facts is None:
        return False
    fresh = NOW - seen.at < policy.stale_after
    return fresh and verdict.truth is Truth.TRUE and verdict.generation == want.generation


def proposes(world: World, ref: Ref) -> bool:
    """Whether its driver has something to say of it, were it only nonsense."""
    want, seen = world.view.topology.resources[ref], world.view.seen.get(ref)
    if want.driver != "data" or seen is None or seen.facts is None:
        return False
    return bool(seen.facts.get("todo") or seen.facts.get("fault")) or not seen.facts


def down(world: World, policy: Policy, ref: Ref) -> bool:
    seen = world.view.seen.get(ref)
    if seen is None or seen.facts is None or NOW - seen.at >= policy.stale_after:
        return True
    return bool(seen.facts) and not ready(world, policy, ref)


@MANY
@given(st.data())
def test_nobody_who_is_not_ready_is_passed_over_in_silence(data: st.DataObject) -> None:
    """Every resource that is not Ready, or Ready and not as it should be, has a step, a hold or a
    wait, and each says why."""
    world = data.draw(worlds.worlds())
    policy = data.draw(worlds.policies(world.view.topology))

    plans = planned(world, policy)

    told = {one.ref for plan in plans for one in (*plan.steps, *plan.holds, *plan.waits)}
    silent = [
        ref
        for ref in world.view.topology.resources
        if (not ready(world, policy, ref) or proposes(world, ref)) and ref not in told
    ]
    assert silent == []
    assert all(one.message and one.reason for plan in plans for one in (*plan.holds, *plan.waits))


@MANY
@given(st.data())
def test_no_step_before_its_needs_are_ready(data: st.DataObject) -> None:
    """A step's resource has been seen lately, and everything it needs is Ready."""
    world = data.draw(worlds.worlds())
    policy = data.draw(worlds.policies(world.view.topology))

    for plan in planned(world, policy):
        for step in plan.steps:
            needs = world.view.topology.resources[step.ref].needs
            assert all(ready(world, policy, need) for need in needs)
            assert NOW - world.view.seen[step.ref].at < policy.stale_after


@MANY
@given(st.data())
def test_no_budget_is_overspent(data: st.DataObject) -> None:
    """What is down, what is in flight and what is planned never exceed a budget, unless what is
    down already does, and then nothing is added."""
    world = data.draw(worlds.worlds())
    policy = data.draw(worlds.policies(world.view.topology))
    resources = world.view.topology.resources

    for plan in planned(world, policy):
        fallen = {ref for ref in resources if down(world, policy, ref)}
        fallen |= _in_flight(world.view)
        falling = {ref for step in plan.steps for ref in step.disrupts | step.destroys} - fallen
        falling -= _perhaps_in_flight(world.view)
        domains = sorted({domain for ref in falling for domain in resources[ref].domains})
        for domain in domains:
            members = {ref for ref in resources if domain in resources[ref].domains}
            region = resources[min(members)].region
            share = policy.region(region).budgets.of_level(domain.split(":")[0])
            if share is None:
                continue
            assert len(members & (fallen | falling)) <= budget.allowed(share, len(members))


def _in_flight(view: View) -> set[Ref]:
    """What attempts take down: while they are under way, and until each was looked at after."""
    found: set[Ref] = set()
    for attempt in view.attempts.values():
        for ref in attempt.disrupts or ():
            seen, ended = view.seen.get(ref), attempt.ended_at
            if ended is None or seen is None or seen.at < ended:
                found.add(ref)
    return found


def _perhaps_in_flight(view: View) -> set[Ref]:
    """Of a try from before a restart nobody knows what it takes down: its own thing, or whatever
    its driver would take down for it. To take that down once more may cost nothing."""
    found: set[Ref] = set()
    for own, attempt in view.attempts.items():
        if attempt.disrupts is None:
            seen = view.seen.get(own)
            todo = (seen.facts or {}).get("todo", ()) if seen is not None else ()
            named = (one for deed in todo for one in (*deed["disrupts"], *deed["destroys"]))
            found |= {own, *(fleets.ref(name) for name in named)}
    return found


@MANY
@given(st.data())
def test_nothing_is_destroyed_or_disrupted_without_leave(data: st.DataObject) -> None:
    """A destroying step is approved; a disrupting one runs in open windows and leaves alone what
    is paused."""
    world = data.draw(worlds.worlds())
    policy = data.draw(worlds.policies(world.view.topology))

    for plan in planned(world, policy):
        assert all(step.id in policy.approvals for step in plan.steps if step.destroys)
        for step in plan.steps:
            touched = step.disrupts | step.destroys
            homes = {world.view.topology.resources[ref].region for ref in touched}
            assert not [ref for ref in touched for home in homes if policy.pause(ref, home)]
            if step.disrupts:
                assert not [home for home in {plan.region, *homes} if closed(policy, home)]


def closed(policy: Policy, region: str) -> bool:
    """At NOW, which is noon."""
    window = next(iter(policy.region(region).windows), None)
    shut = window is not None and not window.start <= timedelta(hours=12) < window.end
    return shut or bool(policy.region(region).freezes)


@MANY
@given(st.data())
def test_every_plan_passes_the_lint(data: st.DataObject) -> None:
    """The planner makes no plan that would be refused, whatever its drivers propose."""
    world = data.draw(worlds.worlds())
    policy = data.draw(worlds.policies(world.view.topology))

    for plan in planned(world, policy):
        assert lint.lint(plan, world.view.topology, {"data": world.driver}) == []
        assert guard.guard(plan, world.view, policy, now=NOW) == []


@MANY
@given(st.data())
def test_equal_input_gives_an_equal_plan(data: st.DataObject) -> None:
    """Neither a second time nor another order of what is known changes anything."""
    world = data.draw(worlds.worlds())
    policy = data.draw(worlds.policies(world.view.topology))
    view = world.view
    turned = World(
        View(
            topology=view.topology,
            seen=dict(reversed(view.seen.items())),
            ready=dict(reversed(view.ready.items())),
            attempts=dict(reversed(view.attempts.items())),
            orphans=dict(reversed(view.orphans.items())),
        )
    )

    assert planned(turned, policy) == planned(world, policy)


@MANY
@given(st.data())
def test_nothing_changes_before_the_plan_says_so(data: st.DataObject) -> None:
    """Until `again`, and without it for ever, time alone changes no plan."""
    world = data.draw(worlds.worlds())
    policy = data.draw(worlds.policies(world.view.topology))

    for first in planned(world, policy):
        last = NOW + timedelta(days=30)
        end = last if first.again is None else first.again - timedelta(microseconds=1)
        assert first.again is None or first.again > NOW
        share = data.draw(st.floats(0, 1))
        for now in (end, NOW + (end - NOW) * share):
            later = world.plan(policy, region=first.region, now=now)
            assert replace(later, again=None) == replace(first, again=None)


@MANY
@given(st.data())
def test_a_converged_fleet_plans_nothing(data: st.DataObject) -> None:
    """Everything Ready and as it should be: an empty plan."""
    made = [replace(one, driver="data") for one in data.draw(worlds.things())]
    world = World.of(*made)
    world.up(*[str(ref) for ref in world.view.topology.resources])
    policy = data.draw(worlds.policies(world.view.topology))

    for plan in planned(world, policy):
        assert (plan.steps, plan.holds, plan.waits) == ((), (), ())


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_incremental_planning_gives_what_full_planning_gives(data: st.DataObject) -> None:
    """Over random histories of looks, tries, orphans, burials, policies, topologies and time."""
    world = World.of(*data.draw(worlds.things()))
    drivers = {"data": world.driver}
    keeper = planner.Planner(drivers)
    keeper.reset(world.view)
    policy = data.draw(worlds.policies(world.view.topology))
    now = NOW
    events = [
        "look",
        "look",
        "look",
        "try",
        "orphan",
        "policy",
        "leave",
        "time",
        "topology",
        "bury",
    ]
    touches = {"look": worlds.sights, "try": worlds.tries, "orphan": worlds.orphanings}
    less = False
    for _ in range(data.draw(st.integers(1, 14))):
        event = data.draw(st.sampled_from(events))
        if event in touches:
            keeper.touch([data.draw(touches[event](world))])
        elif event == "policy":
            policy = data.draw(worlds.policies(world.view.topology))
            keeper.policy_changed()
        elif event == "leave":
            policy = data.draw(worlds.leave(world, policy, keeper))
        elif event == "bury":
            less = data.draw(worlds.burials(world, keeper)) or less
        elif event == "time":
            now += data.draw(worlds.MINUTES)
        else:
            world.view.topology = World.of(*data.draw(worlds.things())).view.topology
            for known in (world.view.seen, world.view.ready, world.view.attempts):
                for ref in [ref for ref in known if ref not in world.view.topology.resources]:
                    del known[ref]
            keeper.reset(world.view)
            less = False
        for region in data.draw(st.permutations(worlds.REGIONS))[: data.draw(st.integers(0, 2))]:
            kept = keeper.plan(world.view, policy, region=region, now=now)
            fresh = world.plan(policy, region=region, now=now)
            assert (_early(kept, fresh) if less else kept) == fresh


def _early(kept: Plan, fresh: Plan) -> Plan:
    """Regions that were tied by what is gone still wake each other: too early, never too late."""
    late = fresh.again is not None and (kept.again is None or kept.again > fresh.again)
    return kept if late else replace(kept, again=fresh.again)
