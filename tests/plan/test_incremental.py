"""Planning again costs only what changed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fleetd.plan.planner import Planner
from fleetd.plan.policy import Pause, Policy, mass_consent
from fleetd.vocabulary import Done, Plan, Truth
from tests.plan.fleets import EU, NOW, World, ref, thing, todo, told

POLICY = Policy()


def fleet() -> tuple[World, Planner]:
    """Fifty agents on one base, in two regions, all up."""
    world = World.of(
        thing("base/x"),
        *(thing(f"agent/a{n:02}", "base/x") for n in range(50)),
        *(thing(f"agent/b{n:02}", region="eu-2") for n in range(50)),
    )
    world.up(*map(str, world.view.topology.resources))
    planner = Planner({"data": world.driver})
    planner.reset(world.view)
    return world, planner


def plan(world: World, planner: Planner, *, region: str = EU, policy: Policy = POLICY) -> Plan:
    return planner.plan(world.view, policy, region=region, now=NOW)


def test_the_first_plan_asks_each_driver_once() -> None:
    """And only for the region that is planned."""
    world, planner = fleet()

    plan(world, planner)
    plan(world, planner)

    assert len(world.driver.asked) == 51
    assert len(set(world.driver.asked)) == 51


def test_a_touch_asks_for_one() -> None:
    """Nobody else's driver is asked again."""
    world, planner = fleet()
    plan(world, planner)
    world.driver.asked.clear()
    world.up("agent/a07", todo=[todo("fix")])

    planner.touch([ref("agent/a07")])

    assert told(plan(world, planner)) == {"agent/a07": ["+fix"]}
    assert world.driver.asked == [ref("agent/a07")]


def test_the_same_facts_ask_nobody() -> None:
    """A look that found nothing new, a new topology of the same content, a policy: no question."""
    world, planner = fleet()
    plan(world, planner)
    world.driver.asked.clear()
    world.up("agent/a07", at=NOW + timedelta(seconds=30))
    planner.touch([ref("agent/a07")])
    plan(world, planner)
    planner.reset(world.view)
    plan(world, planner)
    planner.policy_changed()
    plan(world, planner)

    assert world.driver.asked == []


def test_a_new_generation_asks_again() -> None:
    """The memory is of (generation, digest)."""
    world, planner = fleet()
    plan(world, planner)
    world.driver.asked.clear()
    resources = dict(world.view.topology.resources)
    resources[ref("agent/a07")] = replace(resources[ref("agent/a07")], generation=2)
    world.view.topology = replace(world.view.topology, resources=resources)
    planner.reset(world.view)
    plan(world, planner)

    assert world.driver.asked == [ref("agent/a07")]


def test_without_a_digest_the_driver_is_always_asked() -> None:
    """Digest 0 means that nobody made one; then nothing is remembered."""
    world, planner = fleet()
    world.view.seen[ref("base/x")] = replace(world.view.seen[ref("base/x")], digest=0)
    plan(world, planner)
    planner.touch([ref("base/x")])
    plan(world, planner)

    assert world.driver.asked.count(ref("base/x")) == 2


def test_nothing_new_is_the_same_plan() -> None:
    """Not merely an equal one: nothing is made."""
    world, planner = fleet()
    world.absent("agent/a07")

    assert plan(world, planner) is plan(world, planner)


def test_who_needs_a_touched_thing_is_planned_again() -> None:
    """Only those that have something to do hear of it."""
    world, planner = fleet()
    world.absent("agent/a07")
    assert told(plan(world, planner)) == {"agent/a07": ["+create"]}
    world.judged("base/x", Truth.FALSE, "Broken")

    planner.touch([ref("base/x")])

    found = told(plan(world, planner))
    assert found == {"base/x": ["NothingToDo"], "agent/a07": ["DependencyNotReady"]}


def test_a_pause_is_seen_at_the_next_plan() -> None:
    """A new policy reaches whoever has something to do."""
    world, planner = fleet()
    world.absent("agent/a07")
    plan(world, planner)
    pause = Pause(scope="all", who="ada", why="stop", since=NOW)

    found = told(plan(world, planner, policy=Policy(pauses={"all": pause})))

    assert found == {"agent/a07": ["Paused"]}


def test_a_consent_is_in_the_plan_only_as_long_as_it_is_needed() -> None:
    """Also where nothing else of the plan changes: one server less goes down, and no verdict
    moves."""
    world = World.of(*(thing(f"server/s{n}") for n in range(10)), thing("agent/a"))
    world.up(*map(str, world.view.topology.resources), at=NOW - timedelta(minutes=2))
    world.up("agent/a")
    world.up("server/s0", todo=[todo("reboot", disrupts=["server/s0"])])
    ended = NOW - timedelta(minutes=1)
    world.tried("agent/a", "x", Done(), ended_at=ended, disrupts=frozenset({ref("server/s9")}))
    consent = mass_consent(EU, world.view.topology.digest)
    policy = Policy(consents=frozenset({consent}))
    planner = Planner({"data": world.driver})
    planner.reset(world.view)
    assert plan(world, planner, policy=policy).approved == {consent}

    world.up("server/s9")
    planner.touch([ref("server/s9")])

    assert plan(world, planner, policy=policy).approved == frozenset()
    assert plan(world, planner, policy=policy) == world.plan(policy)


def test_proposals_can_be_asked_for() -> None:
    """`proposes` answers for one thing; an unknown or unseen thing proposes nothing."""
    world, planner = fleet()
    world.absent("agent/a07")
    world.blind("agent/a08")

    assert [step.verb for step in planner.proposes(world.view, ref("agent/a07"))] == ["create"]
    assert planner.proposes(world.view, ref("agent/a08")) == ()
    assert planner.proposes(world.view, ref("agent/none")) == ()


def test_an_unordered_topology_is_refused() -> None:
    """Rows must follow their needs: everything else builds on it."""
    world, planner = fleet()
    resources = dict(reversed(list(world.view.topology.resources.items())))
    world.view.topology = replace(world.view.topology, resources=resources)

    with pytest.raises(ValueError, match="stands before base/x, a need of it"):
        planner.reset(world.view)
