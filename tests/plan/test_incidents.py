"""A failure is told once, at its cause, with what it affects; what waits or comes up is none."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fleetd.plan import incidents
from fleetd.plan.incidents import Incident, Report, Troubles
from fleetd.plan.policy import Policy
from fleetd.vocabulary import Done, Failed, Truth
from tests.plan.fleets import NOW, World, ref, thing, todo
from topology.resource import Edge, EdgeKind, Ref

AGO = NOW - timedelta(minutes=10)
JUST_NOW = NOW - timedelta(seconds=30)
GRACE = timedelta(seconds=90)
RACK = ("rack:eu-1/r2", "zone:eu-1/a")


def stack() -> World:
    """Servers in one rack feed a pool that hosts a cluster, on which a cloud stands."""
    hour = {"*": timedelta(hours=1)}
    world = World.of(
        *(thing(f"server/s{number}", domains=RACK, limits=hour) for number in range(3)),
        thing("server/elsewhere", domains=("rack:eu-1/r1", "zone:eu-1/a"), limits=hour),
        thing("serverpool/p", limits=hour),
        thing("cluster/hv", "serverpool/p", limits=hour),
        thing("hypervisors/hv", "cluster/hv", limits=hour),
        thing("cloud/prod", "hypervisors/hv", limits=hour),
        thing("region/eu-1", "cloud/prod", limits=hour),
    )
    found = world.view.topology
    feeds = [
        Edge(one, EdgeKind.FEEDS, ref("serverpool/p"))
        for one in found.resources
        if one.kind == "server"
    ]
    world.view.topology = replace(found, edges=(*found.edges, *feeds))
    up(world, *map(str, found.resources))
    return world


def up(world: World, *names: str) -> None:
    """For long."""
    for name in names:
        world.up(name)
        world.judged(name, Truth.TRUE, "Ready", since=AGO)


def fell(world: World, *names: str, reason: str = "Broken", since: datetime = AGO) -> None:
    """They served, and do not any more."""
    world.broken(*names, reason=reason, since=since)
    for name in names:
        world.view.ready[ref(name)] = replace(world.view.ready[ref(name)], served=True)


def troubles(world: World, *failed: str) -> Troubles:
    """`failed`: what the catalogue calls so, of every kind."""
    kept = Troubles(lambda _: frozenset(failed))
    kept.reset(world.view.ready, world.view.ready)
    kept.planned(world.plan(Policy()))
    return kept


def report(world: World, *failed: str, now: datetime = NOW) -> Report:
    kept = troubles(world, *failed)
    return incidents.incidents(world.view, kept, now=now, grace=GRACE)


def told(found: Report) -> list[tuple[str, str, list[str]]]:
    """Severity, cause and what is affected."""
    return [
        (one.severity.value, str(one.cause.ref), [str(hit) for hit in one.affected])
        for one in found.items
    ]


def only(found: Report) -> Incident:
    assert len(found.items) == 1, told(found)
    return found.items[0]


def test_a_failure_is_told_once_at_its_cause() -> None:
    """A cluster fails and all above it: one incident, critical because a cloud served."""
    world = stack()
    fell(world, "cluster/hv", "hypervisors/hv", "cloud/prod", "region/eu-1", reason="ApiDown")
    one = only(report(world))

    assert (one.cause.ref, one.cause.reason) == (ref("cluster/hv"), "ApiDown")
    assert one.affected == (ref("hypervisors/hv"), ref("cloud/prod"), ref("region/eu-1"))
    assert (one.total, one.more, one.severity) == (3, False, "critical")
    assert (one.region, one.cause.since) == ("eu-1", AGO)


def test_what_comes_up_is_no_incident() -> None:
    """Nothing served before: a cluster is being made and everything else waits for it."""
    world = stack()
    world.broken("cluster/hv", reason="Progressing", since=AGO)
    world.absent("hypervisors/hv", "cloud/prod", at=AGO)
    world.broken("region/eu-1", reason="PartsNotReady", since=AGO)

    assert report(world) == Report()


def test_a_failed_state_counts_also_for_what_never_served_when_it_lasts() -> None:
    """As the catalogue has it; in its time of grace it may pass by itself."""
    world = stack()
    world.broken("cluster/hv", reason="QuotaExceeded", since=AGO)
    lasting = report(world, "QuotaExceeded")
    world.broken("cluster/hv", reason="QuotaExceeded", since=JUST_NOW)

    assert only(lasting).cause.reason == "QuotaExceeded"
    assert report(world, "QuotaExceeded") == Report()


def test_what_fleetd_is_mending_is_no_incident_until_that_fails() -> None:
    """A step is planned or under way; a try that failed, and a person who is needed, are news."""
    world = stack()
    fell(world, "hypervisors/hv", reason="Drifted")
    world.saw("hypervisors/hv", {"there": True, "todo": [todo("mend")]})
    planned = report(world)
    world.tried("hypervisors/hv", "x", None)
    running = report(world)
    world.tried("hypervisors/hv", "x", Failed("Refused", "it said no", retry=True))

    assert (planned, running) == (Report(), Report())
    assert only(report(world)).cause.reason == "Drifted"


def test_an_old_deed_does_not_hide_a_new_failure() -> None:
    """What was done an hour before it fell does not mend it now."""
    world = stack()
    fell(world, "hypervisors/hv", since=NOW - timedelta(minutes=5))
    world.tried("hypervisors/hv", "x", Done(), at=NOW - timedelta(hours=1))

    assert only(report(world)).cause.ref == ref("hypervisors/hv")


def test_servers_of_one_rack_are_one_incident() -> None:
    """The cause is the rack; its servers come first in the list, then what stands on them."""
    world = stack()
    fell(world, "server/s0", "server/s1", "server/s2", reason="BmcUnreachable")
    fell(world, "serverpool/p", reason="TooFewServers")
    one = only(report(world))

    assert one.cause.ref == Ref("rack", "r2")
    assert one.cause.message == ("none of its servers is Ready (BmcUnreachable); power or network?")
    assert one.affected == tuple(map(ref, ("server/s0", "server/s1", "server/s2", "serverpool/p")))


def test_one_server_is_its_own_cause() -> None:
    """A pool that is well with one less is not affected."""
    world = stack()
    fell(world, "server/s1", reason="BmcUnreachable")

    assert told(report(world)) == [("warning", "server/s1", [])]


def test_servers_of_several_racks_in_one_state_are_an_incident_of_their_pool() -> None:
    """A class of machines that all fail the same way is one cause that nobody knows yet."""
    world = stack()
    owned = {
        name: replace(one, owner=ref("serverpool/p"))
        for name, one in world.view.topology.resources.items()
    }
    world.view.topology = replace(world.view.topology, resources=owned)
    fell(world, "server/s1", "server/elsewhere", reason="Broken")

    assert told(report(world)) == [("warning", "serverpool/p", ["server/elsewhere", "server/s1"])]


def test_a_whole_zone_is_one_incident() -> None:
    """All servers of two racks are gone: not two racks, one zone."""
    world = stack()
    fell(world, "server/s0", "server/s1", "server/s2", "server/elsewhere", reason="PowerOff")

    assert only(report(world)).cause.ref == Ref("zone", "a")


def blind_world(*, since: datetime) -> World:
    resources = {
        name: replace(one, backend="cluster:hv" if name.kind in ("nova", "ovn") else "")
        for name, one in World.of(
            thing("cluster/hv"), thing("nova/a"), thing("ovn/a")
        ).view.topology.resources.items()
    }
    world = World.of(*resources.values())
    up(world, "cluster/hv")
    world.blind("nova/a", "ovn/a", error="no route", since=since)
    return world


def test_a_far_side_that_does_not_answer_is_one_incident() -> None:
    """What cannot be looked at for longer than the grace is put down to what is asked for it."""
    one = only(report(blind_world(since=AGO)))

    assert one.cause.ref == ref("cluster/hv")
    assert one.cause.message == "2 things cannot be looked at, nova/a, ovn/a: no route"
    assert one.affected == (ref("nova/a"), ref("ovn/a"))
    assert report(blind_world(since=JUST_NOW)) == Report()


def test_who_is_silent_is_the_cause_whoever_was_looked_at() -> None:
    """Things of several far sides cannot be looked at because one of them is silent: one incident,
    of that one, from the first thing on, and what to do is about it."""
    resources = {
        name: replace(one, backend="metal:eu-1" if name.kind == "server" else "garden:eu-1")
        for name, one in World.of(
            thing("server/a"), thing("server/b"), thing("credentials-binding/eu-1")
        ).view.topology.resources.items()
    }
    world = World.of(*resources.values())
    up(world, *map(str, resources))

    def unseen(*names: str) -> None:
        world.blind(*names, error="no route", since=AGO)
        for name in map(ref, names):
            seen = world.view.seen[name]
            world.view.seen[name] = replace(seen, blind="NoAnswer", silent="metal:eu-1")
            world.view.ready[name] = replace(world.view.ready[name], reason="NoAnswer")

    unseen("credentials-binding/eu-1")
    first = only(report(world))
    unseen("server/a", "server/b")
    both = only(report(world))

    assert first.cause.ref == both.cause.ref == Ref("metal", "eu-1")
    assert first.id == both.id
    assert first.cause.message == (
        "1 thing cannot be looked at, credentials-binding/eu-1: no route"
    )
    assert both.total == 3
    assert "metal:eu-1 is up" in both.advice


def test_what_cannot_be_seen_behind_a_broken_thing_is_part_of_its_incident() -> None:
    """OpenBao is sealed, and what is kept in it cannot be read: one incident."""
    world = blind_world(since=AGO)
    fell(world, "cluster/hv", reason="Sealed")

    assert told(report(world)) == [("warning", "cluster/hv", [])]


def test_what_comes_back_gets_time_after_its_cause_did() -> None:
    """Five minutes; then it is an incident of its own."""
    world = stack()
    fell(world, "hypervisors/hv", since=AGO)
    world.judged("cluster/hv", Truth.TRUE, "Ready", since=NOW)

    assert report(world, now=NOW + timedelta(minutes=4)) == Report()
    assert only(report(world, now=NOW + timedelta(minutes=6))).cause.ref == ref("hypervisors/hv")


def test_a_step_that_needs_a_person_is_an_incident_of_a_thing_that_works() -> None:
    """It is Ready and cannot be brought up to date."""
    world = stack()
    world.up("cluster/hv", todo=[todo("upgrade")])
    step = world.plan().steps[0]
    world.tried("cluster/hv", step.id, Failed("Forbidden", "403", retry=False), at=AGO)
    one = only(report(world))

    assert (one.cause.ref, one.cause.reason) == (ref("cluster/hv"), "StepFailed")
    assert one.cause.since == AGO


def test_an_id_stays_while_the_cause_is_the_same() -> None:
    """Whatever else it affects by then; another cause has another."""
    world = stack()
    fell(world, "cluster/hv")
    before = only(report(world)).id
    fell(world, "hypervisors/hv")
    after = only(report(world)).id
    up(world, "cluster/hv")

    assert before == after
    assert only(report(world)).id != before


def test_it_costs_what_is_in_trouble_and_not_more_than_its_limits() -> None:
    """Far more things fail than are told; the rest is counted, lists are cut and say so."""
    count = incidents.ITEMS_MAX + 7
    world = World.of(*(thing(f"agent/a{number:05}") for number in range(count)))
    fell(world, *(f"agent/a{number:05}" for number in range(count)))
    many = report(world)
    wide = World.of(
        thing("cluster/hv"),
        *(thing(f"agent/a{number:05}", "cluster/hv") for number in range(150)),
    )
    fell(wide, *map(str, wide.view.topology.resources))
    one = only(report(wide))

    assert (len(many.items), many.left) == (incidents.ITEMS_MAX, 7)
    assert (len(one.affected), one.total, one.more) == (incidents.AFFECTED_MAX, 150, False)


def test_a_walk_that_is_cut_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is affected is then at least so many."""
    wide = World.of(
        thing("cluster/hv"), *(thing(f"agent/a{number}", "cluster/hv") for number in range(9))
    )
    fell(wide, *map(str, wide.view.topology.resources))
    monkeypatch.setattr(incidents, "REACH_MAX", 4)
    one = only(report(wide))

    assert (one.total, one.more) == (4, True)


def test_conditions_one_at_a_time_give_what_all_at_once_do() -> None:
    """Also for what is as it was before a restart; a change is noticed, an equal look is not."""
    world = stack()
    kept = Troubles()
    fell(world, "cluster/hv", "hypervisors/hv")
    for name, condition in world.view.ready.items():
        kept.judged(name, condition, condition)
    quiet = kept.version
    kept.planned(world.plan())
    both = incidents.incidents(world.view, kept, now=NOW, grace=GRACE)
    all_at_once = report(world)
    was = world.view.ready[ref("cluster/hv")]
    up(world, "cluster/hv")
    kept.judged(ref("cluster/hv"), was, world.view.ready[ref("cluster/hv")])
    kept.planned(world.plan())

    assert (quiet, kept.version) == (0, 3)
    assert both == all_at_once
    assert incidents.incidents(world.view, kept, now=NOW, grace=GRACE) == report(world)
    assert list(kept) == [ref("hypervisors/hv")]
