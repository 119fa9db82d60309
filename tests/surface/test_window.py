"""The window onto the engine answers, whatever a driver does."""

import random
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
from tests.plan.fleets import World, ref, thing
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


@pytest.mark.parametrize("said", [KeyError("status"), [42], None], ids=repr)
def test_a_driver_that_fails_over_its_facts_is_a_condition_and_not_an_error(said: Any) -> None:
    """`/resources/x` and `/regions` are answered, and say which driver is at fault."""
    core = Core(
        drivers={"data": cast("Driver", Failing(said))},
        store=MemoryStore(),
        clock=LoopClock(START),
        rng=random.Random(1),
        tuning=defaults.TUNING,
        reads=Reads(),
        gates=Gates(defaults.LIMITS, LoopClock(START)),
    )
    world = World.of(thing("agent/a"))
    world.up("agent/a")
    core.state.accept(world.view.topology, {})
    core.state.saw(world.view.seen[ref("agent/a")], world.view.ready[ref("agent/a")])
    none = cast("Any", None)
    window = Window(
        state=core.state,
        store=none,
        clock=none,
        gates=core.gates,
        looks=core.looks,
        executor=core.executor,
        stats=core.stats,
        documents_source=none,
        rules=none,
        lag=lambda: 0.0,
    )

    (found,) = window.conditions(ref("agent/a"))

    assert isinstance(found, Condition)
    assert (found.truth, found.reason) == (Truth.UNKNOWN, FAULT)
