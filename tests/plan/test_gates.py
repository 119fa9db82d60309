"""Approval, consent, windows and budgets: what a region says to a step."""

from collections.abc import Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from fleetd.plan import budget
from fleetd.plan.policy import Budgets, Pause, Policy, RegionPolicy
from fleetd.plan.windows import Freeze, Window
from fleetd.vocabulary import Done, Hold, Waiting
from tests.plan import fleets
from tests.plan.fleets import EU, NOW, World, ref, thing, todo, told

MINUTE = timedelta(minutes=1)
MASS = "mass-eu-1-0123456789ab"
WIDE = Budgets(rack="100%", zone="100%", pool="100%", clusters="100%")


def policy(
    *,
    budgets: Budgets = WIDE,
    approvals: Sequence[str] = (),
    consents: Sequence[str] = (MASS,),
    windows: tuple[Window, ...] = (),
    freezes: tuple[Freeze, ...] = (),
) -> Policy:
    return Policy(
        regions={EU: RegionPolicy(windows=windows, freezes=freezes, budgets=budgets)},
        approvals=frozenset(approvals),
        consents=frozenset(consents),
    )


def racks(*, servers: int, per_rack: int = 4) -> World:
    """Servers s00, s01 ... that all want a reboot."""
    names = [f"server/s{number:02}" for number in range(servers)]
    world = World.of(
        *(
            thing(
                name,
                domains=(f"rack:eu-1/r{number // per_rack}", "zone:eu-1/a", "pool:compute"),
            )
            for number, name in enumerate(names)
        )
    )
    for name in names:
        world.up(name, todo=[todo("reboot", disrupts=[name])])
    return world


def rebooted(world: World, given: Policy) -> list[str]:
    return [step.ref.name for step in world.plan(given).steps]


def held(world: World, given: Policy) -> dict[str, Hold]:
    return {hold.ref.name: hold for hold in world.plan(given).holds}


def test_what_destroys_needs_approval() -> None:
    """Held with the id to approve; approved, it is planned and the plan says on what it rests."""
    world = World.of(thing("key/a"))
    world.up("key/a", todo=[todo("revoke", destroys=["key/a"])])
    wanted = fleets.step(world.want("key/a"), "revoke", destroys=["key/a"]).id

    plan = world.plan(policy())

    assert told(plan) == {"key/a": ["NeedsApproval"]}
    assert plan.holds[0].approval == wanted
    assert plan.holds[0].message == (
        f"revoke destroys key/a, which cannot be had back; approve {wanted} to let it happen"
    )
    approved = world.plan(policy(approvals=[wanted]))
    assert told(approved) == {"key/a": ["+revoke"]}
    assert approved.approved == {wanted}


def test_steps_after_a_held_one_go_into_the_hold() -> None:
    """Up to the first held step they are planned; the rest waits with it."""
    world = World.of(thing("key/a"))
    world.up("key/a", todo=[todo("make"), todo("revoke", destroys=["key/a"]), todo("tidy")])

    plan = world.plan(policy())

    assert told(plan) == {"key/a": ["+make", "NeedsApproval"]}
    assert [step.verb for step in plan.holds[0].steps] == ["revoke", "tidy"]


NIGHT = Window(
    days=frozenset({2}), start=timedelta(hours=22), end=timedelta(hours=28), zone=ZoneInfo("UTC")
)
"""Wednesday night; NOW is the noon before."""


def test_outside_the_window_nothing_is_disrupted() -> None:
    """Held until the window opens, which is also when to plan again at the latest."""
    world = racks(servers=1)
    opens = NOW + timedelta(hours=10)

    plan = world.plan(policy(windows=(NIGHT,)))

    assert told(plan) == {"server/s00": ["OutsideWindow"]}
    assert plan.holds[0].until == opens
    assert plan.holds[0].message == (
        "outside the maintenance windows until 2026-03-04 22:00 UTC; reboot disrupts server/s00"
    )


def test_creation_is_not_bound_to_windows() -> None:
    """What disrupts nothing goes at any hour."""
    world = racks(servers=1)
    world.absent("server/s00")

    assert told(world.plan(policy(windows=(NIGHT,)))) == {"server/s00": ["+create"]}


def test_a_freeze_wins_and_says_why() -> None:
    """The freeze's reason is in the hold."""
    world = racks(servers=1)
    freeze = Freeze(start=NOW, end=NOW + timedelta(days=3), reason="trade fair")

    plan = world.plan(policy(freezes=(freeze,)))

    assert plan.holds[0].message == (
        "frozen until 2026-03-07 12:00 UTC: trade fair; reboot disrupts server/s00"
    )


def test_the_budget_counts_what_this_plan_takes() -> None:
    """One per rack: the first of each rack goes, the others name it."""
    world = racks(servers=8)
    given = policy(budgets=Budgets(rack=1, zone="100%", pool="100%"))

    assert rebooted(world, given) == ["s00", "s04"]
    assert held(world, given)["s01"].message == (
        "rack:eu-1/r0 may have 1 of 4 down; going down: server/s00"
    )


@pytest.mark.parametrize("how", ["broken", "blind", "never seen", "stale"])
def test_the_budget_counts_what_is_down_already(how: str) -> None:
    """Whoever caused it, and also if nobody knows."""
    world = racks(servers=4)
    match how:
        case "broken":
            world.broken("server/s03")
        case "blind":
            world.blind("server/s03")
        case "stale":
            world.up("server/s03", at=NOW - timedelta(hours=1))
        case _:
            del world.view.seen[ref("server/s03")]
    given = policy(budgets=Budgets(rack=1, zone="100%", pool="100%"))

    assert rebooted(world, given) == []
    assert held(world, given)["s00"].message == (
        "rack:eu-1/r0 may have 1 of 4 down; down already: server/s03"
    )


def test_what_never_served_is_not_down() -> None:
    """A server that is not there yet does not stop the others."""
    world = racks(servers=4)
    world.absent("server/s03")
    given = policy(budgets=Budgets(rack=1, zone="100%", pool="100%"))

    assert rebooted(world, given) == ["s00", "s03"]


def test_repairing_what_is_down_costs_nothing() -> None:
    """A step that disrupts only what is down already passes a spent budget."""
    world = racks(servers=4)
    reboot = [todo("reboot", disrupts=["server/s03"])]
    world.broken("server/s03", todo=reboot)
    given = policy(budgets=Budgets(rack=1, zone="100%", pool="100%"))

    assert rebooted(world, given) == ["s03"]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("case", ["in flight", "far side at work", "not looked at since"])
def test_the_budget_counts_attempts(case: str, known: bool) -> None:  # noqa: FBT001
    """From the moment a reboot is asked for until a look shows what became of it."""
    world = racks(servers=4)
    world.up("server/s03")
    disrupts = frozenset({ref("server/s03")}) if known else None
    match case:
        case "in flight":
            world.tried("server/s03", "x", None, disrupts=disrupts)
        case "far side at work":
            working = Waiting("Rebooting", MINUTE)
            world.tried("server/s03", "x", working, not_before=NOW + MINUTE, disrupts=disrupts)
        case _:
            world.tried("server/s03", "x", Done(), ended_at=NOW + MINUTE, disrupts=disrupts)
    given = policy(budgets=Budgets(rack=1, zone="100%", pool="100%"))

    assert rebooted(world, given) == []
    assert "going down: server/s03" in held(world, given)["s00"].message


def test_an_attempt_that_is_over_and_looked_at_does_not_count() -> None:
    """Then what was seen counts."""
    world = racks(servers=4)
    world.up("server/s03")
    world.tried("server/s03", "x", Done(), ended_at=NOW - MINUTE)
    given = policy(budgets=Budgets(rack=1, zone="100%", pool="100%"))

    assert rebooted(world, given) == ["s00"]


def test_two_domains_both_count() -> None:
    """A rack with room does not help in a zone without."""
    world = racks(servers=8, per_rack=1)
    given = policy(budgets=Budgets(rack=1, zone="25%", pool="100%"))

    assert rebooted(world, given) == ["s00", "s01"]
    assert "zone:eu-1/a may have 2 of 8 down" in held(world, given)["s02"].message


def test_what_can_never_fit_is_told_so() -> None:
    """More at once than the budget allows at all."""
    world = racks(servers=4)
    both = ["server/s00", "server/s01"]
    for number in range(4):
        world.up(f"server/s{number:02}")
    world.up("server/s00", todo=[todo("reboot", disrupts=both)])
    given = policy(budgets=Budgets(rack=1, zone="100%", pool="100%"))

    assert "takes 2 at once, which never fits" in held(world, given)["s00"].message


def test_clusters_have_a_budget_per_role() -> None:
    """One hypervisor cluster at a time."""
    names = ["cluster/h1", "cluster/h2"]
    world = World.of(*(thing(name, domains=("role:eu-1/hypervisor",)) for name in names))
    for name in names:
        world.up(name, todo=[todo("upgrade", disrupts=[name])])

    assert rebooted(world, policy(budgets=Budgets())) == ["h1"]


@pytest.mark.parametrize(
    ("share", "members", "expected"),
    [
        (1, 100, 1),
        (0, 100, 0),
        (3, 2, 3),
        ("10%", 100, 10),
        ("10%", 99, 9),
        ("10%", 9, 1),
        ("10%", 1, 1),
        ("100%", 7, 7),
        ("33%", 10, 3),
    ],
)
def test_shares_are_rounded_down_to_at_least_one(
    share: int | str, members: int, expected: int
) -> None:
    """A share of a small domain still lets one go; a plain number is taken as it is."""
    assert budget.allowed(share, members) == expected


def test_what_is_held_back_is_not_overdue() -> None:
    """A thing that waits for its window has one reason, not two."""
    world = World.of(thing("server/s00", limits={"*": MINUTE}))
    world.broken(
        "server/s00", since=NOW - 9 * MINUTE, todo=[todo("reboot", disrupts=["server/s00"])]
    )

    assert told(world.plan(policy(windows=(NIGHT,)))) == {"server/s00": ["OutsideWindow"]}
    assert told(world.plan(policy())) == {"server/s00": ["+reboot", "Overdue"]}


def test_the_budget_counts_what_is_being_destroyed() -> None:
    """A wipe under way takes its server down, though it does not say that it disrupts it."""
    world = racks(servers=4)
    wipe = fleets.step(world.want("server/s03"), "wipe", destroys=["server/s03"])
    world.up("server/s03", todo=[todo("wipe", destroys=["server/s03"])])
    world.tried("server/s03", wipe.id, None)
    given = policy(budgets=Budgets(rack=1, zone="100%", pool="100%"))

    assert rebooted(world, given) == []
    assert "going down: server/s03" in held(world, given)["s00"].message


def upgraded(*, looked: bool) -> World:
    """A cluster's upgrade restarted server s03 a minute ago; the cluster was seen since."""
    world = World.of(
        *(thing(f"server/s0{number}", domains=("rack:eu-1/r0",)) for number in range(4)),
        thing("cluster/hv"),
    )
    world.up(*map(str, world.view.topology.resources), at=NOW - 2 * MINUTE)
    world.up("server/s00", todo=[todo("reboot", disrupts=["server/s00"])])
    world.up("cluster/hv")
    restarted = frozenset({ref("server/s03")})
    world.tried("cluster/hv", "x", Done(), ended_at=NOW - MINUTE, disrupts=restarted)
    if looked:
        world.up("server/s03")
    return world


def test_what_a_step_took_down_counts_until_it_is_seen_itself() -> None:
    """That the cluster was looked at says nothing of its server."""
    given = policy(budgets=Budgets(rack=1))

    assert rebooted(upgraded(looked=False), given) == []
    assert "going down: server/s03" in held(upgraded(looked=False), given)["s00"].message
    assert rebooted(upgraded(looked=True), given) == ["s00"]


def test_what_was_absent_long_ago_is_not_known() -> None:
    """An old look is no fact, also if it found nothing."""
    world = racks(servers=4)
    world.absent("server/s03", at=NOW - timedelta(hours=1))
    given = policy(budgets=Budgets(rack=1, zone="100%", pool="100%"))

    assert rebooted(world, given) == []


def abroad() -> World:
    """A cluster of eu-1 whose upgrade restarts servers of eu-2."""
    world = World.of(
        thing("cluster/hv"),
        thing("server/x0", region="eu-2", domains=("rack:eu-2/r0",)),
        thing("server/x1", region="eu-2", domains=("rack:eu-2/r0",)),
    )
    world.up("server/x0", "server/x1")
    world.up("cluster/hv", todo=[todo("roll", disrupts=["server/x0"])])
    return world


def test_a_step_abroad_asks_the_windows_there() -> None:
    """The freeze of the other region holds it, and says whose it is."""
    world = abroad()
    freeze = Freeze(start=NOW, end=NOW + MINUTE, reason="trade fair")
    given = Policy(regions={"eu-2": RegionPolicy(freezes=(freeze,))})

    plan = world.plan(given)

    assert told(plan) == {"cluster/hv": ["OutsideWindow"]}
    assert plan.holds[0].message == (
        "eu-2 is frozen until 2026-03-04 12:01 UTC: trade fair; roll disrupts server/x0"
    )
    assert plan.again == NOW + MINUTE


def test_a_step_abroad_asks_the_budgets_there() -> None:
    """What is down in the other region counts, and so does what is being taken down there."""
    world = abroad()
    world.broken("server/x1")
    assert told(world.plan()) == {"cluster/hv": ["BudgetSpent"]}

    world = abroad()
    restarted = frozenset({ref("server/x0")})
    world.tried("cluster/hv", "x", None, disrupts=restarted)
    world.up("server/x1", todo=[todo("reboot", disrupts=["server/x1"])])
    far = world.plan(Policy(mass_max=1.0), region="eu-2")
    assert told(far) == {"server/x1": ["BudgetSpent"]}
    assert "going down: server/x0" in far.holds[0].message


def test_what_another_region_takes_down_itself_counts_for_a_step_abroad() -> None:
    """eu-2 restarts x1 by its own doing; the step of eu-1 must not take x0 of the same rack."""
    world = abroad()
    world.tried("server/x1", "x", None, disrupts=frozenset({ref("server/x1")}))

    plan = world.plan()

    assert told(plan) == {"cluster/hv": ["BudgetSpent"]}
    assert "going down: server/x1" in plan.holds[0].message


def test_a_step_at_work_abroad_says_when_to_plan_again() -> None:
    """The other region's plan changes when the far side's time is up."""
    world = abroad()
    world.up("cluster/hv", "server/x0", at=NOW)
    world.up("server/x1", todo=[todo("reboot", disrupts=["server/x1"])])
    working = Waiting("Rolling", MINUTE)
    restarted = frozenset({ref("server/x0")})
    world.tried("cluster/hv", "x", working, not_before=NOW + MINUTE, disrupts=restarted)

    far = world.plan(Policy(mass_max=1.0), region="eu-2")

    assert told(far) == {"server/x1": ["BudgetSpent"]}
    assert far.again == NOW + MINUTE
    later = world.plan(Policy(mass_max=1.0), region="eu-2", now=NOW + MINUTE)
    assert told(later) == {"server/x1": ["+reboot"]}


@pytest.mark.parametrize("scope", ["server/x0", "kind:server", "region:eu-2"])
def test_a_paused_thing_is_left_alone_by_others_too(scope: str) -> None:
    """Whoever pauses a server does not want its cluster to restart it."""
    world = abroad()
    pause = Pause(scope=scope, who="ada", why="hands in it", since=NOW)

    plan = world.plan(Policy(pauses={scope: pause}))

    assert told(plan) == {"cluster/hv": ["Paused"]}
    assert plan.holds[0].message == (
        "roll disrupts server/x0, which is paused by ada since 2026-03-04 12:00 UTC: "
        f"hands in it (pause on {scope})"
    )


def test_an_approval_is_for_what_was_shown() -> None:
    """If the same step comes to destroy more, it needs a new approval."""
    world = World.of(thing("key/a"), thing("key/b"))
    world.up("key/b")
    world.up("key/a", todo=[todo("revoke", destroys=["key/a"])])
    approved = policy(approvals=[world.plan().holds[0].approval])
    assert told(world.plan(approved)) == {"key/a": ["+revoke"]}

    world.up("key/a", todo=[todo("revoke", destroys=["key/a", "key/b"])])

    assert told(world.plan(approved)) == {"key/a": ["NeedsApproval"]}


def test_an_approval_is_for_one_generation() -> None:
    """Another document, another step."""
    world = World.of(thing("key/a"))
    world.up("key/a", todo=[todo("revoke", destroys=["key/a"])])
    approved = policy(approvals=[world.plan().holds[0].approval])
    newer = World.of(thing("key/a", generation=2))
    newer.up("key/a", todo=[todo("revoke", destroys=["key/a"])])

    assert told(newer.plan(approved)) == {"key/a": ["NeedsApproval"]}
