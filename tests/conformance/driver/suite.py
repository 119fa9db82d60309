"""
What every driver must keep, whatever it drives. A driver's own tests make a `Bench` and call it.

The contract is in `fleetd.vocabulary.Driver`; each check here is one sentence of it.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from fleetd.vocabulary import Condition, Done, Driver, Failed, Step, Truth, Waiting
from topology.resource import Resource


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A driver with a far side that can be inspected and switched off."""

    driver: Driver
    want: Resource
    """Something that does not exist yet."""
    bad: Resource
    """The same with a spec that the driver must refuse."""
    settle: Callable[[], Awaitable[None]]
    """Let the far side finish what it is doing."""
    cut: Callable[[], None]
    """From now on the far side does not answer."""
    writes: Callable[[], int]
    """How many writes reached the far side."""
    state: Callable[[], object]
    """All of the far side's state, comparable."""


async def check(bench: Bench) -> list[str]:
    """What the driver breaks; empty if nothing."""
    broken = [*_check_specs(bench), *await _check_looking(bench), *await _check_absent(bench)]
    broken += await _check_road_to_ready(bench)
    broken += await _check_unreachable(bench)
    return broken


def _check_specs(bench: Bench) -> list[str]:
    broken: list[str] = []
    if bench.driver.check(bench.want):
        broken.append("check refuses a good spec")
    complaints = bench.driver.check(bench.bad)
    if not complaints or not all(complaint.strip() for complaint in complaints):
        broken.append("check takes a bad spec, or says nothing about it")
    return broken


async def _check_looking(bench: Bench) -> list[str]:
    before = bench.state()
    await bench.driver.observe(bench.want)
    return ["observe changes the world"] if bench.state() != before else []


async def _check_absent(bench: Bench) -> list[str]:
    seen = await bench.driver.observe(bench.want)
    if seen.facts is None or seen.facts:
        return ["what is not there is not observed as an empty mapping"]
    steps = bench.driver.propose(bench.want, seen)
    if not steps:
        return ["nothing is proposed for what is not there"]
    again = bench.driver.propose(bench.want, seen)
    return [] if list(steps) == list(again) else ["propose is not pure"]


async def _check_road_to_ready(bench: Bench) -> list[str]:
    """Follow the proposals, each applied twice, until the driver is content."""
    broken: list[str] = []
    for _ in range(50):
        seen = await bench.driver.observe(bench.want)
        conditions = bench.driver.judge(bench.want, seen)
        broken += _check_conditions(bench.want, conditions)
        before = bench.state()
        steps = bench.driver.propose(bench.want, seen)
        if list(steps) != list(bench.driver.propose(bench.want, seen)) or bench.state() != before:
            broken.append("propose is not pure")
        if not steps:
            if conditions and all(condition.truth is Truth.TRUE for condition in conditions):
                return broken
            await bench.settle()
            continue
        broken += _check_steps(bench.want, steps)
        for step in steps:
            broken += await _check_twice(bench, step)
        await bench.settle()
    return [*broken, "50 rounds of its own proposals do not make it Ready"]


async def _check_twice(bench: Bench, step: Step) -> list[str]:
    first = await bench.driver.apply(step)
    after_first = bench.state()
    second = await bench.driver.apply(step)
    if not isinstance(first, Done | Waiting | Failed):  # pyright: ignore[reportUnnecessaryIsInstance]
        return [f"apply of {step.verb} gives {first!r}, which is no outcome"]
    if isinstance(first, Failed):
        return [f"{step.verb} fails on a healthy far side: {first.message}"]
    if bench.state() != after_first or isinstance(second, Failed):
        return [f"{step.verb} is not idempotent"]
    return []


def _check_conditions(want: Resource, conditions: Sequence[Condition]) -> list[str]:
    broken: list[str] = []
    for condition in conditions:
        if not condition.reason.isalnum() or not condition.reason[:1].isupper():
            broken.append(f"reason {condition.reason!r} is not CamelCase")
        if condition.generation != want.generation:
            broken.append(f"condition {condition.type} is of another generation")
        if condition.since.tzinfo is None:
            broken.append(f"condition {condition.type} has a time without a zone")
    return broken


def _check_steps(want: Resource, steps: Sequence[Step]) -> list[str]:
    broken: list[str] = []
    earlier: set[str] = set()
    for one in steps:
        if one.ref != want.ref or one.generation != want.generation:
            broken.append(f"{one.verb} is for another thing or generation")
        if not one.why.strip() or one.deadline.total_seconds() <= 0:
            broken.append(f"{one.verb} has no reason or no deadline")
        if not one.after <= earlier:
            broken.append(f"{one.verb} comes after a step that is not before it")
        earlier.add(one.id)
    return broken


async def _check_unreachable(bench: Bench) -> list[str]:
    bench.cut()
    writes = bench.writes()
    seen = await bench.driver.observe(bench.want)
    broken: list[str] = []
    if seen.facts is not None or not seen.error:
        broken.append("a far side that does not answer is not observed as unknown, with a reason")
    if bench.driver.propose(bench.want, seen):
        broken.append("something is proposed although nothing could be seen")
    judged = bench.driver.judge(bench.want, seen)
    if any(condition.truth is Truth.TRUE for condition in judged):
        broken.append("what could not be seen is judged True")
    if bench.writes() != writes:
        broken.append("observe wrote")
    return broken
