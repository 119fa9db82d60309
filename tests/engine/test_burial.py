"""One thing that is buried, or one approval that is used, costs one thing and not the fleet."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from fleetd.engine.executor import Executor
from fleetd.engine.state import State
from fleetd.plan.planner import Planner
from fleetd.plan.policy import Policy
from fleetd.vocabulary import Plan, Truth
from tests.plan.fleets import EU, NOW, DataDriver, World, ref, thing, todo
from topology.resource import Ref, Topology

SIZE = 1000
REGIONS = (EU, "eu-2")


class Counted(dict[Ref, Any]):
    """Counts how often something is read for some thing."""

    reads = 0

    def get(self, key: Ref, default: Any = None) -> Any:
        self.reads += 1
        return super().get(key, default)

    def __getitem__(self, key: Ref) -> Any:
        self.reads += 1
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[Ref]:
        self.reads += len(self)
        return super().__iter__()


def large() -> tuple[State, DataDriver]:
    """Two regions of servers that all want a reboot, and a retired family of three, all planned."""
    things = [
        thing(f"server/{region}-{number}", region=region)
        for region in REGIONS
        for number in range(SIZE)
    ]
    old = [thing("cluster/old"), thing("agent/a", "cluster/old"), thing("agent/b", "cluster/old")]
    world = World.of(*things, *old)
    for one in (*things, *old):
        name = str(one.ref)
        world.up(name, todo=[todo("reboot", disrupts=[name])] if one.ref.kind == "server" else [])
    state = State({"data": world.driver}, Policy())
    declared = World.of(*things).view.topology
    state.retired = frozenset(one.ref for one in old)
    state.view.seen = Counted()
    state.accept(declared, {one.ref: one for one in old})
    for one, want in state.view.topology.resources.items():
        good = replace(world.view.ready[one], generation=want.generation)
        state.saw(world.view.seen[one], good)
    for region in REGIONS:
        plan(state, region)
    world.driver.asked.clear()
    return state, world.driver


def plan(state: State, region: str) -> Plan:
    made = state.planner.plan(state.view, state.policy, region=region, now=NOW)
    state.planned(made)
    state.dirty.discard(region)
    return made


def afresh(state: State, region: str) -> Plan:
    """What a planner says that remembers nothing."""
    planner = Planner(state.drivers)
    planner.reset(state.view)
    return planner.plan(state.view, state.policy, region=region, now=NOW)


def reads(state: State) -> int:
    assert isinstance(state.view.seen, Counted)
    found, state.view.seen.reads = state.view.seen.reads, 0
    return found


def test_a_burial_touches_the_buried_thing_and_what_waited_for_it() -> None:
    """Of two thousand things three are looked up, no driver is asked about another one, and the
    other region is not even planned again."""
    state, driver = large()
    reads(state)

    state.bury(ref("agent/a"))
    found = plan(state, EU)

    assert reads(state) < 40
    assert set(driver.asked) <= {ref("cluster/old")}
    assert state.dirty == set()
    assert found == afresh(state, EU)
    assert sum(state.counts.values()) == len(state.view.topology.resources)


def test_a_family_is_forgotten_one_by_one() -> None:
    """At the end the topology is that of the documents, and every plan is as if made anew."""
    state, _ = large()
    declared: Topology = state.declared

    for name in ("agent/b", "agent/a", "cluster/old"):
        state.bury(ref(name))
        assert {region: plan(state, region) for region in REGIONS} == {
            region: afresh(state, region) for region in REGIONS
        }

    assert state.view.topology is declared
    assert not state.retired
    assert not state.view.orphans
    assert state.counts["server", EU, Truth.TRUE] == SIZE


def test_what_stood_on_the_buried_is_free_to_go() -> None:
    """The needs of a tombstone are those who stood on it; the last of them gone, it has none."""
    state, _ = large()

    state.bury(ref("agent/a"))
    assert state.view.topology.resources[ref("cluster/old")].needs == {ref("agent/b")}
    state.bury(ref("agent/b"))

    assert state.view.topology.resources[ref("cluster/old")].needs == frozenset()
    assert state.view.topology.needed_by.get(ref("cluster/old")) is None


def test_an_approval_touches_one_thing() -> None:
    """Given or taken back, nobody else is decided anew, and the other region goes on."""
    state, driver = large()
    wipe = ref(f"server/{EU}-7")
    other = state.plans["eu-2"]
    reads(state)

    state.allow(approvals=frozenset({"x"}), refs=[wipe])
    found = plan(state, EU)

    assert reads(state) < 40
    assert driver.asked == []
    assert state.dirty == set()
    assert state.knows(other)
    assert found == afresh(state, EU)


def test_a_new_plan_replaces_the_steps_of_its_region_alone() -> None:
    """What the last plan of a region had waiting is forgotten, and what another's has is not."""
    names = {region: f"server/{region}" for region in REGIONS}
    world = World.of(*(thing(name, region=region) for region, name in names.items()))
    state = State({"data": world.driver}, Policy())
    state.accept(world.view.topology, {})
    for name in names.values():
        world.up(name, todo=[todo("relabel")])
        state.saw(world.view.seen[ref(name)], world.view.ready[ref(name)])
    mine, other = (plan(state, region) for region in REGIONS)
    unused = cast("Any", None)
    executor = Executor(
        state=state,
        drivers={},
        gates=unused,
        store=unused,
        clock=unused,
        looks=unused,
        backoff=unused,
        rng=unused,
        stats=unused,
    )
    executor.submit(other)
    executor.submit(mine)
    both = executor.pending()

    executor.submit(replace(mine, steps=()))

    assert both == len(mine.steps) + len(other.steps) == 2
    assert executor.pending() == 1
