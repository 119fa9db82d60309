"""One paragraph about one thing, down to the cause."""

import itertools
from dataclasses import replace
from datetime import timedelta

import pytest

from fleetd.plan import why
from fleetd.plan.policy import Pause, Policy
from fleetd.vocabulary import Failed, Truth
from tests.plan import fleets
from tests.plan.fleets import EU, NOW, World, ref, thing, todo
from topology.resource import Edge, EdgeKind, Ref

FOUR_MINUTES = NOW - timedelta(minutes=4)
REASONS = {
    ("ceph-pull/hv", "cephpool/vms"): "the key is one for the pool",
    ("cephpool/vms", "cephcluster/st"): "the pool lives in it",
}


def because(source: Ref, target: Ref) -> str:
    return REASONS.get((str(source), str(target)), "")


def ask(world: World, name: str, policy: Policy | None = None) -> why.Answer:
    plans = {EU: world.plan(policy)}
    return why.why(ref(name), world.view, plans, now=NOW, because=because)


def chain() -> World:
    """nova-compute needs a key, the key a pool, the pool a Ceph cluster that is ill."""
    servers = [thing(f"server/r2-s{n}", domains=["rack:eu-1/r2", "zone:eu-1/a"]) for n in range(2)]
    world = World.of(
        *servers,
        thing("cephcluster/st"),
        thing("cephpool/vms", "cephcluster/st"),
        thing("ceph-pull/hv", "cephpool/vms"),
        thing("nova-compute/hv", "ceph-pull/hv"),
    )
    topology = world.view.topology
    hosts = [Edge(one.ref, EdgeKind.HOSTS, ref("cephcluster/st")) for one in servers]
    world.view.topology = replace(topology, edges=(*topology.edges, *hosts))
    world.absent("cephpool/vms", "ceph-pull/hv", "nova-compute/hv")
    world.broken("cephcluster/st", reason="CephError", since=FOUR_MINUTES)
    world.view.ready[ref("cephcluster/st")] = replace(
        world.view.ready[ref("cephcluster/st")], message="HEALTH_ERR: 2 of 3 mons down"
    )
    world.broken("server/r2-s0", "server/r2-s1", reason="PowerOff")
    return world


def test_the_chain_ends_at_the_cause() -> None:
    """The whole paragraph: who waits for whom and why, the cause, its age, and the rack."""
    answer = ask(chain(), "nova-compute/hv")

    assert answer.paragraph == (
        "nova-compute/hv waits for ceph-pull/hv; "
        "ceph-pull/hv waits for cephpool/vms (the key is one for the pool); "
        "cephpool/vms waits for cephcluster/st (the pool lives in it), "
        "which is CephError since 4m: HEALTH_ERR: 2 of 3 mons down; "
        "held (NothingToDo): CephError: HEALTH_ERR: 2 of 3 mons down; its driver proposes "
        "nothing, and no time limit is set for this state. "
        "Below it server/r2-s0, server/r2-s1 are not Ready (PowerOff), all in rack r2, "
        "where no server is Ready: has it lost power or network?"
    )
    assert answer.cause == ref("cephcluster/st")
    assert answer.also == (ref("server/r2-s0"), ref("server/r2-s1"))
    assert not answer.ready


def test_what_is_ready_waits_for_nobody() -> None:
    """A Ready thing says since when, and has no cause."""
    world = World.of(thing("cluster/hv"))
    world.up("cluster/hv", at=NOW - timedelta(hours=3))
    answer = why.why(ref("cluster/hv"), world.view, {}, now=NOW)

    assert (answer.ready, answer.cause) == (True, None)
    assert answer.paragraph == "cluster/hv is Ready since 3h."


def test_what_is_about_to_be_done_is_told() -> None:
    """A thing that waits for nobody and will be worked on says what comes next."""
    world = World.of(thing("cluster/hv"))
    world.absent("cluster/hv")

    assert ask(world, "cluster/hv").paragraph == (
        "cluster/hv is Absent since 0s: it is Absent; next: create it."
    )


def test_an_overdue_state_comes_with_advice() -> None:
    """Past its limit the cause says so once, and the advice is the limit's."""
    world = World.of(
        thing("openbao/mgmt", limits={"Sealed": timedelta(minutes=1)}),
        thing("cloud/prod", "openbao/mgmt"),
    )
    world.broken("openbao/mgmt", reason="Sealed", since=FOUR_MINUTES)
    world.absent("cloud/prod")

    assert ask(world, "cloud/prod").paragraph == (
        "cloud/prod waits for openbao/mgmt, which is Sealed since 4m: it is Sealed; overdue, "
        "longer than 1m. look after Sealed."
    )


def test_a_person_comes_before_the_order_of_work() -> None:
    """Of several needs the one that only a person can move is followed, whatever its rank."""
    world = World.of(
        thing("server/a"),
        thing("pool/p"),
        thing("cluster/hv", "pool/p"),
        thing("cloud/prod", "server/a", "cluster/hv"),
    )
    world.up("pool/p")
    world.absent("server/a", "cloud/prod")
    world.broken("cluster/hv", todo=[todo("repair")])
    wish = fleets.step(world.want("cluster/hv"), "repair")
    world.tried("cluster/hv", wish.id, Failed("Refused", "no", retry=False), verb="repair")
    answer = ask(world, "cloud/prod")

    assert answer.cause == ref("cluster/hv")
    assert answer.advice == f"To let it happen: fleetctl approve {wish.id}"
    assert answer.chain[0].text == "cloud/prod waits for cluster/hv and 1 more"
    assert "cluster/hv and 1 more; cluster/hv is Broken" in answer.paragraph


def test_the_worst_of_equals_is_the_cause() -> None:
    """Of needs of one rank the one that is known to be bad is followed."""
    world = World.of(thing("server/a"), thing("server/b"), thing("pool/p", "server/a", "server/b"))
    world.absent("server/a", "pool/p")
    world.broken("server/b")

    assert ask(world, "pool/p").cause == ref("server/b")


def test_a_pause_says_how_to_go_on() -> None:
    """What is paused names who and why, and the command that ends it."""
    world = World.of(thing("server/a"), thing("cluster/hv", "server/a"))
    world.absent("server/a", "cluster/hv")
    pause = Pause(scope="kind:cluster", who="ada", why="moving", since=NOW)
    answer = ask(world, "cluster/hv", Policy(pauses={pause.scope: pause}))

    assert "paused by ada since 2026-03-04 12:00 UTC: moving" in answer.paragraph
    assert answer.advice == "To go on: fleetctl resume kind:cluster"
    assert answer.cause is None


def test_a_long_chain_is_told_by_its_ends() -> None:
    """A paragraph stays readable; the chain as data is whole."""
    names = [f"link/n{n:02}" for n in range(20)]
    world = World.of(
        thing(names[0]), *(thing(one, last) for last, one in itertools.pairwise(names))
    )
    world.absent(*names)
    answer = ask(world, names[-1])

    assert len(answer.chain) == 20
    assert answer.cause == ref(names[0])
    assert "; and so on, through 13 more; " in answer.paragraph
    assert answer.paragraph.count("waits for") == 6


def test_an_orphan_says_what_can_be_done() -> None:
    """Nothing waits for an orphan's sake; a person decides about it."""
    world = World.of(thing("region/eu-1"))
    world.view.orphans[ref("cluster/old")] = thing("cluster/old")

    assert ask(world, "cluster/old").paragraph == (
        "cluster/old is an orphan: no document names it any more, so it is left as it is. "
        "To remove it: fleetctl retire cluster old. To keep it: put it back into the documents."
    )


def test_what_goes_waits_until_others_are_gone() -> None:
    """Of what was retired, the needs say who goes first."""
    below = replace(thing("cluster/old", "flux/old"), absent=True)
    world = World.of(replace(thing("flux/old"), absent=True), below)
    world.up("flux/old")
    world.broken("flux/old", "cluster/old", reason="Retiring")

    assert ask(world, "cluster/old").chain[0].text == (
        "cluster/old was retired and waits until flux/old is gone"
    )


@pytest.mark.parametrize("truth", list(Truth))
def test_needs_in_a_circle_end(truth: Truth) -> None:
    """Whatever the needs are, the walk ends."""
    world = World.of(thing("a/a"), thing("b/b", "a/a"))
    world.absent("a/a", "b/b")
    world.judged("b/b", truth, "Odd")
    resources = dict(world.view.topology.resources)
    resources[ref("a/a")] = replace(resources[ref("a/a")], needs=frozenset({ref("b/b")}))
    world.view.topology = replace(world.view.topology, resources=resources)

    answer = why.why(ref("a/a"), world.view, {}, now=NOW)
    assert len(answer.chain) <= 2


def test_what_cannot_be_looked_at_says_so_once() -> None:
    """Neither the state nor the hold repeats the other's words."""
    world = World.of(thing("server/x"))
    world.blind("server/x", error="no way there", since=NOW - timedelta(hours=1))
    was = world.view.ready[ref("server/x")]
    world.view.ready[ref("server/x")] = replace(was, message="no way there")
    paragraph = ask(world, "server/x").paragraph

    assert "held (StaleObservation)" in paragraph
    assert paragraph.count("no way there") == 1


def test_what_is_ready_and_paused_says_both() -> None:
    """It has no hold, for there is nothing to do; still nothing would be done."""
    world = World.of(thing("cluster/hv"))
    world.up("cluster/hv")
    pause = Pause(scope="kind:cluster", who="ann", why="audit", since=FOUR_MINUTES)
    answer = why.why(
        ref("cluster/hv"), world.view, {}, now=NOW, policy=Policy.of((), pauses=[pause])
    )

    assert answer.ready
    assert "; paused by ann since" in answer.paragraph
    assert answer.paragraph.endswith("To go on: fleetctl resume kind:cluster.")


def test_a_lost_rack_is_named_once() -> None:
    """The pool that is short of servers does not stand between them and what they share."""
    world = chain()
    pool = thing("serverpool/disks")
    topology = world.view.topology
    feeds = [
        Edge(ref("server/r2-s0"), EdgeKind.FEEDS, pool.ref),
        Edge(ref("server/r2-s1"), EdgeKind.FEEDS, pool.ref),
        Edge(pool.ref, EdgeKind.HOSTS, ref("cephcluster/st")),
    ]
    kept = [edge for edge in topology.edges if edge.kind is EdgeKind.NEEDS]
    world.view.topology = replace(
        topology, edges=(*kept, *feeds), resources={**topology.resources, pool.ref: pool}
    )
    world.broken("serverpool/disks", reason="TooFewServers")

    assert ask(world, "nova-compute/hv").beside == (
        "Below it server/r2-s0, server/r2-s1 are not Ready (PowerOff), all in rack r2, "
        "where no server is Ready: has it lost power or network?"
    )


def test_a_rack_with_a_server_that_works_has_power() -> None:
    """Nobody is sent to its power supply."""
    world = chain()
    other = thing("server/r2-s9", domains=["rack:eu-1/r2", "zone:eu-1/a"])
    topology = world.view.topology
    world.view.topology = replace(topology, resources={**topology.resources, other.ref: other})
    world.up("server/r2-s9")

    assert ask(world, "nova-compute/hv").beside == (
        "Below it server/r2-s0, server/r2-s1 are not Ready (PowerOff), all in rack r2"
    )


def test_a_region_leads_to_the_part_that_fails() -> None:
    """Also to a part that nobody who is not Ready needs, and to what fails in the same rack."""
    rack = ["rack:eu-1/r2", "zone:eu-1/a"]
    world = World.of(
        thing("server/r2-s0", domains=rack),
        thing("server/r2-s1", domains=rack),
        thing("cluster/st"),
        thing("region/eu-1", "cluster/st"),
    )
    world.up("cluster/st")
    world.broken("server/r2-s0", "server/r2-s1", reason="BmcUnreachable", since=FOUR_MINUTES)
    world.broken("region/eu-1", reason="PartsFailed")
    answer = ask(world, "region/eu-1")

    assert answer.cause == ref("server/r2-s0")
    assert answer.chain[0].text == (
        "region/eu-1 is PartsFailed and waits for server/r2-s0 and 1 more"
    )
    assert answer.beside == (
        "Beside it server/r2-s1 is not Ready (BmcUnreachable), in rack r2 too, "
        "where no server is Ready: has it lost power or network?"
    )
