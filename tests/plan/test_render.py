"""Plans as people read them: golden text."""

import textwrap
from collections.abc import Sequence
from datetime import timedelta

import pytest

from fleetd.plan import names, offline, render
from fleetd.plan.policy import Pause, Policy, RegionPolicy
from fleetd.plan.render import Line, Style
from fleetd.plan.windows import Freeze
from fleetd.vocabulary import Plan
from tests.plan.fleets import NOW, World, thing, todo


def text(lines: Sequence[Line]) -> str:
    return "\n".join(line.text for line in lines)


def golden(expected: str, **values: str) -> str:
    return textwrap.dedent(expected).strip("\n").format(**values)


def night() -> World:
    """A rack of 24 servers half way up, and what stands on it."""
    servers = [f"server/r1-s{number:02}" for number in range(1, 25)]
    world = World.of(
        *(thing(name, domains=("rack:eu-1/r1",)) for name in servers),
        thing("cluster/mgmt", *servers),
        thing("access/mgmt", "cluster/mgmt"),
        thing("key/old"),
    )
    world.absent(*servers, "cluster/mgmt", "access/mgmt")
    world.blind("server/r1-s05", error="BMC timed out")
    world.up("server/r1-s06", todo=[todo("drain"), todo("reboot", disrupts=["server/r1-s06"])])
    world.up("key/old", todo=[todo("revoke", destroys=["key/old"])])
    return world


def test_a_plan() -> None:
    """Groups, reasons, what would be done, and what to type."""
    plan = night().plan()
    approval = next(hold.approval for hold in plan.holds if hold.approval)

    assert text(render.plan(plan, width=80, each=True)) == golden(
        """
        plan {id} for eu-1: 23 steps, 5 held, 0 waiting
          + create server r1-s01 .. r1-s04, r1-s07 .. r1-s24 (22)
              create it
          + drain server r1-s06
              drain it
          ! NeedsApproval key old
              revoke destroys it, which cannot be had back; approve {approval}
              to let it happen
              would revoke
          ! StaleObservation server r1-s05
              it cannot be looked at since 2026-03-04 12:00 UTC: BMC timed out
          ! BudgetSpent server r1-s06
              rack:eu-1/r1 may have 1 of 24 down; down already: server/r1-s05
              would reboot
          ! DependencyNotReady cluster mgmt
              waits for server/r1-s01 and 22 more; server/r1-s01 Absent since 2026-03-04
              12:00 UTC
              would create
          ! DependencyNotReady access mgmt
              waits for cluster/mgmt; cause: server/r1-s01 Absent since 2026-03-04 12:00
              UTC
              would create
        """,
        id=plan.id,
        approval=approval,
    )


def test_a_difference() -> None:
    """What is no longer so, and what is now."""
    world = night()
    old = world.plan()
    world.absent("server/r1-s05")
    new = world.plan()

    assert text(render.difference(old, new, width=120)) == golden(
        """
        plan {old} -> {new}
        no longer
          ! StaleObservation server r1-s05
              it cannot be looked at since 2026-03-04 12:00 UTC: BMC timed out
          ! BudgetSpent server r1-s06
              rack:eu-1/r1 may have 1 of 24 down; down already: server/r1-s05
              would reboot
        now
          + create server r1-s05
              create it
          + reboot server r1-s06
              reboot it
              disrupts itself
        """,
        old=old.id,
        new=new.id,
    )


def test_one_cause_instead_of_many_complaints() -> None:
    """What waits for the same broken thing stands in one place under it; a lone one is told in
    its own words; at most four lines of names."""
    rest = [
        f"agent/{name}-{number}" for name in ("ovn", "kvm", "log") for number in range(1, 41, 2)
    ]
    world = World.of(
        thing("cluster/hv"),
        thing("access/hv", "cluster/hv"),
        *(thing(name, "access/hv") for name in rest),
        thing("key/a"),
        thing("store/a", "key/a"),
    )
    world.absent(*map(str, world.view.topology.resources))
    plan = world.plan()

    assert text(render.plan(plan, width=80)) == golden(
        """
        plan {id} for eu-1: 2 steps, 62 held, 0 waiting
          + create cluster hv
              create it
          + create key a
              create it
          ! DependencyNotReady store a
              waits for key/a; key/a Absent since 2026-03-04 12:00 UTC
              would create
          ! DependencyNotReady 61 things behind one cause
              cluster/hv Absent since 2026-03-04 12:00 UTC
              waiting: access hv; agent kvm-1, kvm-3, kvm-5, kvm-7, kvm-9, kvm-11,
              kvm-13, kvm-15, kvm-17, kvm-19, kvm-21, kvm-23, kvm-25, kvm-27, kvm-29,
              kvm-31, kvm-33, kvm-35, kvm-37, kvm-39, log-1, log-3, log-5, log-7, log-9,
              log-11, log-13, log-15, log-17, log-19, log-21, log-23, log-25, log-27,
              ... (-o wide tells all)
        """,
        id=plan.id,
    )


def test_no_difference() -> None:
    """Equal plans are told as such."""
    assert text(render.difference(night().plan(), night().plan())) == "no difference"


def test_an_empty_plan() -> None:
    """A converged region is one line and a word."""
    world = World.of(thing("agent/a"))
    world.up("agent/a")
    plan = world.plan()

    assert text(render.plan(plan)) == (
        f"plan {plan.id} for eu-1: 0 steps, 0 held, 0 waiting\n  nothing to do"
    )


def test_the_whole_order_offline() -> None:
    """From an empty world, wave by wave; what is held stays at the end with its reason."""
    servers = [f"server/s{number}" for number in range(1, 13)]
    world = World.of(
        *(thing(name) for name in servers),
        thing("cluster/mgmt", *servers),
        thing("access/mgmt", "cluster/mgmt"),
        thing("cluster/hv", *servers, region="eu-2"),
        thing("access/hv", "cluster/hv", region="eu-2"),
    )
    pause = Pause(scope="cluster/hv", who="ada", why="not yet", since=NOW)
    policy = Policy(pauses={pause.scope: pause})

    deeds = {"server": "register the server", "cluster": "create the shoot"}
    waves = offline.forecast(world.view.topology, policy, deeds, NOW)

    assert text(render.forecast(waves)) == golden(
        """
        wave 1: 12 steps
          + ensure server s1 .. s12 (12)
              register the server
        wave 2: 1 step
          + ensure cluster mgmt
              create the shoot
        wave 3: 1 step
          + ensure access mgmt
              it is not there
        never begun: 2 things
          ! Paused cluster hv
              paused by ada since 2026-03-04 12:00 UTC: not yet (pause on it)
              would ensure
          ! DependencyNotReady access hv
              waits for cluster/hv; cluster/hv Absent since 2026-03-04 12:00 UTC
              would ensure
        """
    )


def test_an_end_is_told_once() -> None:
    """What the message says already is not said again; what it cannot say for all is."""
    servers = ["server/a1", "server/a2"]
    world = World.of(*map(thing, servers))
    for name in servers:
        world.up(name, todo=[todo("reboot", disrupts=[name])])
    freeze = Freeze(start=NOW, end=NOW + timedelta(hours=1), reason="trade fair")
    policy = Policy(regions={"eu-1": RegionPolicy(freezes=(freeze,))}, mass_max=1.0)
    plan = world.plan(policy)

    assert text(render.plan(plan, width=80)) == golden(
        """
        plan {id} for eu-1: 0 steps, 2 held, 0 waiting
          ! OutsideWindow server a1, a2 (2)
              frozen until 2026-03-04 13:00 UTC: trade fair; reboot disrupts it
              would reboot
        """,
        id=plan.id,
    )


@pytest.mark.parametrize("other", ["s10", "s1-b", "s1.b", "s1/b"])
def test_only_the_whole_name_becomes_it(other: str) -> None:
    """A name that begins like the thing's own is left as it is."""
    world = World.of(thing(f"agent/{other}"), thing("agent/s1", f"agent/{other}"))
    world.absent("agent/s1", f"agent/{other}")

    lines = text(render.plan(world.plan())).splitlines()

    assert (
        f"      waits for agent/{other}; agent/{other} Absent since 2026-03-04 12:00 UTC" in lines
    )


@pytest.mark.parametrize("width", [10, 80, 100, 160, 500])
def test_lines_keep_to_the_width(width: int) -> None:
    """Between 80 and 160 columns, whatever is asked for."""
    world = World.of(*(thing(f"agent/{'x' * (number % 9)}-{number * 7}") for number in range(300)))
    world.absent(*map(str, world.view.topology.resources))
    plans: list[Plan] = [night().plan(), world.plan()]

    widest = max(len(line.text) for plan in plans for line in render.plan(plan, width=width))

    assert widest <= min(max(width, 80), 160)


def test_spans_carry_meaning() -> None:
    """What disrupts is marked as danger, what is held as held."""
    world = World.of(thing("agent/a"), thing("agent/b"))
    world.up("agent/a", todo=[todo("restart", disrupts=["agent/a"])])
    styles = {
        span.text.strip(): span.style for line in render.plan(world.plan()) for span in line.spans
    }

    assert styles["+ restart"] is Style.ACT
    assert styles["disrupts itself"] is Style.DANGER
    assert styles["~ NotObserved"] is Style.WAITS


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        (["a"], ["a"]),
        (["s1", "s2"], ["s1", "s2"]),
        (["s3", "s1", "s2"], ["s1 .. s3"]),
        (["s9", "s10", "s11"], ["s9 .. s11"]),
        (["r1-s01", "r1-s02", "r1-s03", "r2-s01"], ["r1-s01 .. r1-s03", "r2-s01"]),
        (["s1-a", "s2-a", "s3-a"], ["s1-a .. s3-a"]),
        (["s1", "s2", "s4"], ["s1", "s2", "s4"]),
        (["b", "a"], ["a", "b"]),
    ],
)
def test_many_names_in_few_words(given: list[str], expected: list[str]) -> None:
    """Ranges where names count up one by one, in natural order."""
    assert names.compress(given) == expected


def test_one_complaint_of_many_is_one_even_if_they_came_one_by_one() -> None:
    """Seventy-five servers that cannot be looked at, each since another second: the names, and the
    complaint once, since the first of them."""
    servers = [f"server/s{number:02}" for number in range(75)]
    world = World.of(*(thing(name) for name in servers))
    for number, name in enumerate(servers):
        world.blind(name, error="no password", since=NOW - timedelta(seconds=100 + number))
    lines = text(render.plan(world.plan(), width=100)).splitlines()

    assert lines[1:] == [
        "  ! StaleObservation server s00 .. s74 (75)",
        "      it cannot be looked at since 2026-03-04 11:57:06 UTC: no password",
    ]
