"""The window onto the engine answers, whatever a driver does."""

import random
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from fleetd.clock import LoopClock
from fleetd.daemon.window import Window
from fleetd.engine.answers import FAULT
from fleetd.engine.core import Core
from fleetd.gate import Gates
from fleetd.reads import Reads
from fleetd.store.memory import MemoryStore
from fleetd.vocabulary import Condition, Driver, Truth
from tests import defaults
from tests.plan.fleets import NOW, World, ref, thing
from tests.toy.universe import START


class Failing:
    """Fails over what it saw, or says something that is no condition."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def propose(self, *_: object) -> tuple[()]:
        return ()

    def judge(self, *_: object) -> Any:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def made(core: Core, clock: Any = None) -> Window:
    none = cast("Any", None)
    return Window(
        state=core.state,
        store=none,
        clock=clock,
        gates=core.gates,
        looks=core.looks,
        executor=core.executor,
        stats=core.stats,
        documents_source=none,
        rules=none,
        grace=timedelta(seconds=90),
    )


def engine(driver: object) -> Core:
    return Core(
        drivers={"data": cast("Driver", driver)},
        store=MemoryStore(),
        clock=LoopClock(START),
        rng=random.Random(1),
        tuning=defaults.TUNING,
        reads=Reads(),
        gates=Gates(defaults.LIMITS, LoopClock(START)),
    )


@pytest.mark.parametrize("said", [KeyError("status"), [42], None], ids=repr)
def test_a_driver_that_fails_over_its_facts_is_a_condition_and_not_an_error(said: Any) -> None:
    """`/resources/x` and `/regions` are answered, and say which driver is at fault."""
    core = engine(Failing(said))
    world = World.of(thing("agent/a"))
    world.up("agent/a")
    core.state.accept(world.view.topology, {})
    core.state.saw(world.view.seen[ref("agent/a")], world.view.ready[ref("agent/a")])

    (found,) = made(core).conditions(ref("agent/a"))

    assert isinstance(found, Condition)
    assert (found.truth, found.reason) == (Truth.UNKNOWN, FAULT)


def broken(_kind: str) -> frozenset[str]:
    return frozenset({"Broken"})


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


def test_incidents_follow_what_is_seen_at_most_once_a_second() -> None:
    """Who asks in between gets the last answer; time alone is noticed within five seconds."""
    core, clock = engine(Failing([])), Hand()
    window = made(core, clock)
    world = World.of(thing("agent/a"))
    core.state.accept(world.view.topology, {})

    def saw() -> None:
        core.state.saw(world.view.seen[ref("agent/a")], world.view.ready[ref("agent/a")])

    world.broken("agent/a")
    core.state.troubles.failed = broken
    saw()
    told = [len(window.incidents().items)]
    world.up("agent/a")
    saw()
    told.append(len(window.incidents().items))
    clock.seconds += 1
    told.append(len(window.incidents().items))
    world.blind("agent/a", since=clock.now() - timedelta(seconds=88))
    saw()
    for seconds in (1, 4, 1):
        clock.seconds += seconds
        told.append(len(window.incidents().items))

    assert told == [1, 1, 0, 0, 0, 1]


def test_servers_are_counted_one_look_at_a_time() -> None:
    """What looks change is what a count of all would find; new documents count anew."""
    core = engine(Failing([]))
    world = World.of(*(thing(f"server/{name}") for name in "abc"))
    core.state.accept(world.view.topology, {})
    held = {"spec": {"serverClaimRef": {"name": "x"}}}
    counts: list[tuple[int, int, int]] = []
    for name, facts in (("a", {"there": 1}), ("b", held), ("a", held), ("b", {"there": 1})):
        world.up(f"server/{name}")
        world.saw(f"server/{name}", facts)
        core.state.saw(world.view.seen[ref(f"server/{name}")], world.view.ready[ref("server/a")])
        (count,) = made(core).capacity().places.values()
        counts.append((count.total, count.free, count.used))
    core.state.accept(World.of(digest="another").view.topology, {})

    assert counts == [(3, 1, 0), (3, 1, 1), (3, 0, 2), (3, 1, 1)]
    assert made(core).capacity().places == {}
