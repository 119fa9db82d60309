"""The toy driver keeps the contract of drivers; drivers that do not are caught by the suite."""

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fleetd.clock import LoopClock
from fleetd.sim import loop
from fleetd.vocabulary import Condition, Driver, Observation, Outcome, Step, Truth
from tests.conformance.driver import suite
from tests.toy import fleet
from tests.toy.driver import ToyDriver
from tests.toy.universe import Fault, InProcessWire, Power
from tests.toy.world import World
from topology.resource import Ref, Resource

START = datetime(2026, 3, 2, tzinfo=UTC)


class _Numbers(dict[str, int]):
    """Every step counts as the first write: nothing is cut here."""

    def __missing__(self, key: str) -> int:
        return 0


async def _check(make: type[ToyDriver], ref: Ref) -> list[str]:
    world = World()
    clock = LoopClock(START)
    wire = InProcessWire(world, clock, Power(numbers=_Numbers()), Fault(rng=None))  # pyright: ignore[reportArgumentType]
    want = fleet.bring_up().resources[ref]
    driver: Driver = make(wire, clock)

    async def settle() -> None:
        await asyncio.sleep(1000)

    bench = suite.Bench(
        driver=driver,
        want=want,
        bad=replace(want, spec={"version": "old"}),
        settle=settle,
        cut=lambda: world.dead.add(ref),
        writes=lambda: len(world.deeds),
        state=lambda: copy.deepcopy(world.things),
    )
    return await suite.check(bench)


@pytest.mark.parametrize("ref", fleet.bring_up().resources, ids=str)
def test_the_toy_driver_keeps_the_contract(ref: Ref) -> None:
    """For every kind of thing that it drives."""
    assert loop.run(_check(ToyDriver, ref)) == []


class _Writes(ToyDriver):
    async def observe(self, want: Resource) -> Observation:
        seen = await super().observe(want)
        if seen.facts == {}:
            await self.wire.write(want.ref, "generate", {}, "none")
        return seen


class _Guesses(ToyDriver):
    async def observe(self, want: Resource) -> Observation:
        seen = await super().observe(want)
        return replace(seen, facts={}) if seen.facts is None else seen


class _Impure(ToyDriver):
    count = 0

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        self.count += 1
        steps = super().propose(want, seen)
        return [replace(step, why=f"attempt {self.count}") for step in steps]


class _Optimist(ToyDriver):
    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        empty = replace(seen, facts=seen.facts or {"done": []})
        return [replace(one, truth=Truth.TRUE) for one in super().judge(want, empty)]


class _Shouts(ToyDriver):
    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        if not seen.facts:
            return ()
        return [replace(one, reason="it works!") for one in super().judge(want, seen)]


class _Fails(ToyDriver):
    async def apply(self, step: Step) -> Outcome:
        assert isinstance(self.wire, InProcessWire)
        self.wire.world.things.clear()
        return await super().apply(step)


class _Lazy(ToyDriver):
    def check(self, want: Resource) -> Sequence[str]:
        return ()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (_Writes, "observe changes the world"),
        (_Guesses, "not observed as unknown"),
        (_Impure, "propose is not pure"),
        (_Optimist, "judged True"),
        (_Shouts, "not CamelCase"),
        (_Fails, "not idempotent"),
        (_Lazy, "takes a bad spec"),
    ],
)
def test_the_suite_catches_a_driver_that_breaks_the_contract(
    bad: type[ToyDriver], words: str
) -> None:
    """Each broken promise is found and named."""
    found = loop.run(_check(bad, Ref("key", "hv")))

    assert any(words in complaint for complaint in found), found
