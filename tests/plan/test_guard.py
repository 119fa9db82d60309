"""A plan that oversteps a limit is refused, though it hangs together."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from fleetd.plan import guard, lint, steps
from fleetd.plan.policy import Pause, Policy, RegionPolicy
from fleetd.plan.windows import Freeze, Window
from fleetd.vocabulary import Done, Plan, Step
from tests.plan import fleets
from tests.plan.fleets import EU, NOW, World, ref, thing, todo
from topology.resource import Ref, Resource

HOUR = timedelta(hours=1)
NIGHT = Window(
    days=frozenset(range(7)), start=22 * HOUR, end=28 * HOUR, zone=ZoneInfo("Europe/Berlin")
)
FREEZE = Freeze(start=NOW, end=NOW + HOUR, reason="fair")


def world() -> World:
    """Twenty servers in racks of four, all up; the first wants a reboot; two clusters."""
    names = [f"server/s{number:02}" for number in range(20)]
    made = World.of(
        *(
            thing(name, domains=(f"rack:eu-1/r{number // 4}", "zone:eu-1/a"))
            for number, name in enumerate(names)
        ),
        thing("server/far", region="eu-2", domains=("rack:eu-2/r0",)),
        thing("cluster/hv", "server/s00"),
    )
    made.up(*names, "server/far", "cluster/hv")
    made.up("server/s00", todo=[todo("reboot", disrupts=["server/s00"])])
    return made


def faults(made: World, plan: Plan, policy: Policy | None = None) -> list[str]:
    signed = replace(plan, id=steps.id_of(plan))
    approved = replace(signed, approved=frozenset(step.id for step in plan.steps))
    assert lint.lint(approved, made.view.topology, {"data": made.driver}) == []
    return guard.guard(approved, made.view, policy or Policy(), now=NOW)


def reboot(made: World, name: str, *others: str) -> Step:
    return fleets.step(made.want(name), "reboot", disrupts=[name, *others])


def test_a_good_plan_passes() -> None:
    """What the planner makes oversteps nothing."""
    made = world()
    plan = made.plan()

    assert [step.verb for step in plan.steps] == ["reboot"]
    assert faults(made, plan) == []


def paused(scope: str) -> Policy:
    return Policy(pauses={scope: Pause(scope=scope, who="ada", why="hands in it", since=NOW)})


def limited(region: str, limits: RegionPolicy) -> Policy:
    return Policy(regions={region: limits})


def blind(made: World) -> None:
    made.blind("server/s00")


def stale(made: World) -> None:
    made.up("server/s00", at=NOW - HOUR)


def in_flight(made: World) -> None:
    made.tried("server/s00", "x", None)


def unchanged(_: World) -> None:
    """The world is as it was."""


BAD: list[tuple[str, Callable[[World], None], Policy, str]] = [
    ("not seen", blind, Policy(), "reboot server/s00: nobody knows how it is now"),
    ("stale", stale, Policy(), "reboot server/s00: nobody knows how it is now"),
    ("in flight", in_flight, Policy(), "reboot server/s00: step x of it is in flight"),
    *(
        (
            f"paused on {scope}",
            unchanged,
            paused(scope),
            f"reboot server/s00: server/s00 is {paused(scope).pauses[scope]}",
        )
        for scope in ("all", "region:eu-1", "kind:server", "server/s00")
    ),
    (
        "window closed",
        unchanged,
        limited(EU, RegionPolicy(windows=(NIGHT,))),
        "reboot server/s00: disrupts something while eu-1 is outside its windows or frozen",
    ),
    (
        "frozen",
        unchanged,
        limited(EU, RegionPolicy(freezes=(FREEZE,))),
        "reboot server/s00: disrupts something while eu-1 is outside its windows or frozen",
    ),
    (
        "budget spent by what is down",
        lambda made: made.broken("server/s01"),
        Policy(),
        "rack:eu-1/r0 would have 2 of 4 down, and may have 1",
    ),
    (
        "budget spent by what is not known",
        lambda made: made.blind("server/s01"),
        Policy(),
        "rack:eu-1/r0 would have 2 of 4 down, and may have 1",
    ),
    (
        "budget spent by what is in flight",
        lambda made: made.tried("server/s01", "x", None, disrupts=frozenset({ref("server/s01")})),
        Policy(),
        "rack:eu-1/r0 would have 2 of 4 down, and may have 1",
    ),
]


@pytest.mark.parametrize(
    ("spoil", "policy", "words"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD]
)
def test_a_plan_that_the_moment_forbids_is_refused(
    spoil: Callable[[World], None], policy: Policy, words: str
) -> None:
    """The plan was good once; the world or the policy moved."""
    made = world()
    plan = made.plan()
    spoil(made)

    assert words in faults(made, plan, policy)


def test_a_budget_overspent_by_the_plan_itself_is_refused() -> None:
    """Two of one rack in one plan."""
    made = world()
    plan = replace(made.plan(), steps=(reboot(made, "server/s00"), reboot(made, "server/s01")))

    assert faults(made, plan) == ["rack:eu-1/r0 would have 2 of 4 down, and may have 1"]


def test_what_is_down_already_costs_nothing() -> None:
    """Repairs pass a spent budget, as in the planner."""
    made = world()
    made.broken("server/s00", "server/s01")
    plan = replace(made.plan(), steps=(reboot(made, "server/s00"),))

    assert faults(made, plan) == []


def test_what_may_be_going_down_already_costs_nothing() -> None:
    """After a restart nobody knows what an attempt takes down; the guard refuses only what is
    certain."""
    made = world()
    plan = replace(made.plan(), steps=(reboot(made, "server/s01"),))
    made.broken("server/s00")
    assert faults(made, plan) == ["rack:eu-1/r0 would have 2 of 4 down, and may have 1"]

    made.tried("server/s01", "x", Done(), ended_at=NOW + HOUR)

    assert faults(made, plan) == []


def test_destruction_needs_an_approval_that_the_policy_knows() -> None:
    """What the plan says of itself does not count."""
    made = world()
    wipe = fleets.step(made.want("server/s00"), "wipe", destroys=["server/s00"])
    plan = replace(made.plan(), steps=(wipe,))

    assert faults(made, plan) == ["wipe server/s00: destroys something, and nobody approved it"]
    assert faults(made, plan, Policy(approvals=frozenset({wipe.id}))) == []


def test_a_mass_change_needs_a_consent_that_the_policy_knows() -> None:
    """More than a tenth of the servers, or any cluster."""
    made = world()
    many = tuple(reboot(made, f"server/s{number:02}") for number in (0, 4, 8))
    drop = fleets.step(made.want("cluster/hv"), "drop", destroys=["cluster/hv"])
    wide = RegionPolicy(budgets=replace(RegionPolicy().budgets, zone="100%"))
    policy = Policy(regions={EU: wide}, approvals=frozenset({drop.id}))
    given = replace(policy, consents=frozenset({"mass-eu-1-0123456789ab"}))
    plan = made.plan()

    assert faults(made, replace(plan, steps=many), policy) == [
        "disrupts 3 of 20 servers, and nobody consented"
    ]
    assert faults(made, replace(plan, steps=(drop,)), policy) == [
        "destroys cluster/hv, and nobody consented"
    ]
    assert faults(made, replace(plan, steps=(*many, drop)), given) == []


def test_a_need_that_is_not_ready_is_found() -> None:
    """No step above something that is down."""
    made = world()
    made.broken("server/s00")
    plan = replace(made.plan(), steps=(fleets.step(made.want("cluster/hv"), "fix"),))

    assert faults(made, plan) == ["fix cluster/hv: needs server/s00, which is not Ready"]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (
            limited("eu-2", RegionPolicy(freezes=(FREEZE,))),
            "disrupts something while eu-2 is outside its windows or frozen",
        ),
        (paused("region:eu-2"), "server/far is paused by ada"),
        (paused("server/far"), "server/far is paused by ada"),
    ],
)
def test_other_regions_have_their_say(policy: Policy, words: str) -> None:
    """A step that reaches into another region must be allowed there as well."""
    made = world()
    plan = replace(made.plan(), steps=(reboot(made, "server/s00", "server/far"),))

    assert any(words in fault for fault in faults(made, plan, policy))


class Walked(dict[Ref, Resource]):
    """Counts how often somebody goes through all of it."""

    walks = 0

    def items(self) -> Any:
        self.walks += 1
        return super().items()


def test_the_fleet_is_walked_once_per_topology_and_not_per_plan() -> None:
    """Who is in which failure domain does not change between two plans of one topology."""
    made = world()
    resources = Walked(made.view.topology.resources)
    made.view.topology = replace(made.view.topology, resources=resources)
    plan = made.plan()
    assert faults(made, plan) == []
    before = resources.walks

    assert faults(made, plan) == []

    assert before > 0
    assert resources.walks == before
