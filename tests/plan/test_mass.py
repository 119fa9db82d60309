"""The mass-change guard: much at once, or any cluster, does not go without consent."""

from tests.plan import fleets
from tests.plan.fleets import World, ref, thing, todo, told
from tests.plan.test_gates import MASS, held, policy, racks, rebooted


def test_a_mass_change_needs_consent() -> None:
    """More than a tenth of the servers: all of those steps are held, with the sum and the id."""
    world = racks(servers=20)
    for number in range(3, 20):
        world.up(f"server/s{number:02}")

    plan = world.plan(policy(consents=()))

    assert told(plan) == {f"server/s{number:02}": ["NeedsApproval"] for number in range(3)}
    assert plan.holds[0].approval == MASS
    assert plan.holds[0].message == (
        "all that is proposed in eu-1 together disrupts or destroys 3 of 20 servers "
        f"(more than 10 % need consent); approve {MASS} to let it happen"
    )


def test_a_tenth_needs_no_consent() -> None:
    """Exactly the share is still allowed."""
    world = racks(servers=20)
    for number in range(2, 20):
        world.up(f"server/s{number:02}")

    assert rebooted(world, policy(consents=())) == ["s00", "s01"]


def test_consent_is_written_into_the_plan() -> None:
    """With consent the steps go, and the plan says on what they rest."""
    world = racks(servers=4)

    plan = world.plan(policy())

    assert len(plan.steps) == 4
    assert plan.approved == {MASS}


def test_consent_is_to_one_topology() -> None:
    """Other documents, another consent."""
    world = racks(servers=4)
    world.view.topology = fleets.topology(
        world.view.topology.resources.values(), digest="fedcba9876543210"
    )

    assert {hold.approval for hold in world.plan(policy()).holds} == {"mass-eu-1-fedcba987654"}


def test_destroying_a_cluster_needs_consent_and_approval() -> None:
    """Any cluster is a mass change; the step itself still needs its own approval."""
    world = World.of(thing("cluster/hv"))
    world.up("cluster/hv", todo=[todo("delete", destroys=["cluster/hv"])])
    wanted = fleets.step(world.want("cluster/hv"), "delete", destroys=["cluster/hv"]).id

    assert held(world, policy(consents=(), approvals=[wanted]))["hv"].approval == MASS
    assert held(world, policy())["hv"].approval == wanted
    assert rebooted(world, policy(approvals=[wanted])) == ["hv"]


def test_a_mass_change_holds_nothing_else() -> None:
    """Steps that touch no server go on."""
    world = World.of(thing("server/s00"), thing("agent/a"))
    world.up("server/s00", todo=[todo("reboot", disrupts=["server/s00"])])
    world.absent("agent/a")

    plan = world.plan(policy(consents=()))

    assert told(plan) == {"agent/a": ["+create"], "server/s00": ["NeedsApproval"]}


def test_a_mass_change_does_not_come_in_drops() -> None:
    """After a start servers are seen one by one. As long as the rest may be a mass change too,
    nothing of it begins; once all are seen, the size decides."""
    world = racks(servers=20)
    for number in range(2, 20):
        del world.view.seen[ref(f"server/s{number:02}")]

    plan = world.plan(policy(consents=()))

    assert told(plan)["server/s00"] == ["StaleObservation"]
    assert plan.holds[0].message == (
        "18 of 20 servers were not looked at yet, so nobody knows how many this change disrupts "
        "(more than 10 % need consent); the next looks tell"
    )
    assert plan.holds[0].approval == ""
    for number in range(2, 20):
        world.up(f"server/s{number:02}")
    assert rebooted(world, policy(consents=())) == ["s00", "s01"]
    for number in range(2, 20):
        world.blind(f"server/s{number:02}")
    assert rebooted(world, policy(consents=())) == ["s00", "s01"]


def test_servers_without_a_driver_hold_nobody() -> None:
    """Nobody will ever look at them."""
    world = World.of(
        *(thing(f"server/s{number:02}", driver="none") for number in range(1, 10)),
        thing("server/s00"),
    )
    world.up("server/s00", todo=[todo("reboot", disrupts=["server/s00"])])

    assert rebooted(world, policy(consents=())) == ["s00"]


def test_what_is_under_way_is_part_of_the_mass() -> None:
    """Two servers restart and are no longer proposed; two more would make a fifth of all."""
    world = racks(servers=20)
    for number in range(4, 20):
        world.up(f"server/s{number:02}")
    for name in ("server/s02", "server/s03"):
        world.up(name)
        world.tried(name, "x", None, disrupts=frozenset({ref(name)}))

    plan = world.plan(policy(consents=()))

    assert [str(hold.reason) for hold in plan.holds] == ["NeedsApproval"] * 2
    assert "4 of 20 servers" in plan.holds[0].message
