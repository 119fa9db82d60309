"""A bad plan is refused, each with the right words."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from fleetd.plan import lint, steps
from fleetd.vocabulary import Hold, HoldReason, Plan, PlanId, Step, StepId, Wait
from tests.plan import fleets
from tests.plan.fleets import World, ref, thing, todo
from topology.resource import Topology


def world() -> World:
    made = World.of(
        thing("agent/a"),
        thing("agent/b", "agent/a"),
        thing("agent/c", region="eu-2"),
        thing("agent/d", driver="nobody"),
    )
    made.up("agent/a", todo=[todo("fix")])
    made.up("agent/b", todo=[todo("fix"), todo("tidy")])
    return made


def signed(plan: Plan) -> Plan:
    return replace(plan, id=steps.id_of(plan))


def with_steps(plan: Plan, *changed: Step) -> Plan:
    return signed(replace(plan, steps=changed))


def faults(plan: Plan, topology: Topology) -> list[str]:
    return lint.lint(plan, topology, {"data": fleets.DataDriver()})


def test_a_good_plan_passes() -> None:
    """What the planner makes has no fault."""
    made = world()
    plan = made.plan()

    assert len(plan.steps) == 3
    assert faults(plan, made.view.topology) == []


def own(step: Step, **changes: object) -> Step:
    """Changed, and with the id that fits."""
    changed = replace(step, **changes)  # pyright: ignore[reportArgumentType]
    made = steps.step_id(
        changed.ref, changed.verb, changed.args, changed.generation, changed.destroys
    )
    return replace(changed, id=made)


BAD: list[tuple[str, Callable[[Plan], Plan], str]] = [
    (
        "another topology",
        lambda plan: signed(replace(plan, topology="beef")),
        "the plan answers topology beef, but 0123456789abcdef is wanted now",
    ),
    (
        "id of another plan",
        lambda plan: replace(plan, id=PlanId("made-up")),
        "the plan's id is made-up, but its contents give ",
    ),
    (
        "unknown thing",
        lambda plan: with_steps(plan, own(plan.steps[0], ref=ref("agent/zz"))),
        "fix agent/zz: no document names agent/zz",
    ),
    (
        "other region",
        lambda plan: with_steps(plan, own(plan.steps[0], ref=ref("agent/c"))),
        "fix agent/c: is in eu-2, the plan is for eu-1",
    ),
    (
        "no driver",
        lambda plan: with_steps(plan, own(plan.steps[0], ref=ref("agent/d"))),
        "fix agent/d: there is no driver 'nobody'",
    ),
    (
        "older generation",
        lambda plan: with_steps(plan, own(plan.steps[0], generation=7)),
        "fix agent/a: is for generation 7, but 1 is wanted",
    ),
    (
        "id that does not fit",
        lambda plan: with_steps(plan, replace(plan.steps[0], id=StepId("mine"))),
        "fix agent/a: its id is mine, but what it does gives ",
    ),
    (
        "twice",
        lambda plan: with_steps(plan, plan.steps[0], plan.steps[0]),
        f"fix agent/a: the id {fleets.step(thing('agent/a'), 'fix').id} is there 2 times",
    ),
    (
        "no reason",
        lambda plan: with_steps(plan, replace(plan.steps[0], why=" ")),
        "fix agent/a: does not say why",
    ),
    (
        "no verb",
        lambda plan: with_steps(plan, own(plan.steps[0], verb="")),
        "? agent/a: has no verb",
    ),
    (
        "no time",
        lambda plan: with_steps(plan, replace(plan.steps[0], deadline=timedelta())),
        "fix agent/a: its deadline 0:00:00 leaves no time",
    ),
    (
        "after nothing",
        lambda plan: with_steps(plan, replace(plan.steps[0], after=frozenset({StepId("x")}))),
        "fix agent/a: comes after x, which is not in the plan",
    ),
    (
        "after itself",
        lambda plan: with_steps(plan, replace(plan.steps[0], after=frozenset({plan.steps[0].id}))),
        "fix agent/a: comes after itself",
    ),
    (
        "after a later one",
        lambda plan: with_steps(
            plan, replace(plan.steps[1], after=frozenset({plan.steps[2].id})), plan.steps[2]
        ),
        "which stands later in the plan",
    ),
    (
        "in a circle",
        lambda plan: with_steps(
            plan,
            replace(plan.steps[1], after=frozenset({plan.steps[2].id})),
            replace(plan.steps[2], after=frozenset({plan.steps[1].id})),
        ),
        "steps wait for each other in a cycle: ",
    ),
    (
        "before what it needs",
        lambda plan: with_steps(plan, plan.steps[1], plan.steps[0]),
        "fix agent/b: stands before a step of agent/a, which it needs",
    ),
    (
        "disrupts the unknown",
        lambda plan: with_steps(
            plan, replace(plan.steps[0], disrupts=frozenset({ref("server/x")}))
        ),
        "fix agent/a: disrupts server/x, which no document names",
    ),
    (
        "destroys the unknown",
        lambda plan: with_steps(plan, own(plan.steps[0], destroys=frozenset({ref("server/x")}))),
        "fix agent/a: destroys server/x, which no document names",
    ),
    (
        "destroys unapproved",
        lambda plan: with_steps(plan, own(plan.steps[0], destroys=frozenset({ref("agent/a")}))),
        "fix agent/a: destroys agent/a unapproved",
    ),
    (
        "acts and waits",
        lambda plan: signed(
            replace(
                plan,
                holds=(
                    Hold(
                        ref=ref("agent/a"),
                        reason=HoldReason.DEPENDENCY,
                        message="waits",
                        blocker=ref("agent/b"),
                    ),
                ),
            )
        ),
        "agent/a: has a step and waits for agent/b at the same time",
    ),
    (
        "holds in silence",
        lambda plan: signed(
            replace(plan, holds=(Hold(ref=ref("agent/a"), reason=HoldReason.PAUSED, message=""),))
        ),
        "agent/a: is held (Paused) without a word",
    ),
    (
        "plans what it holds",
        lambda plan: signed(
            replace(
                plan,
                holds=(
                    Hold(
                        ref=ref("agent/a"),
                        reason=HoldReason.WINDOW,
                        message="frozen",
                        steps=plan.steps[:1],
                    ),
                ),
            )
        ),
        "fix agent/a: is planned and held (OutsideWindow) at the same time",
    ),
    (
        "acts and looks on",
        lambda plan: signed(
            replace(plan, waits=(Wait(ref=ref("agent/a"), reason="InFlight", message="x"),))
        ),
        "agent/a: has a step and waits (InFlight) at the same time",
    ),
    (
        "holds the unknown",
        lambda plan: signed(
            replace(plan, holds=(Hold(ref=ref("agent/z"), reason=HoldReason.PAUSED, message="x"),))
        ),
        "agent/z: is held, but no document names it",
    ),
    (
        "waits for the unknown",
        lambda plan: signed(
            replace(plan, waits=(Wait(ref=ref("agent/z"), reason="Slow", message="x"),))
        ),
        "agent/z: is waited for, but no document names it",
    ),
]


@pytest.mark.parametrize(("spoil", "words"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_a_bad_plan_is_refused(spoil: Callable[[Plan], Plan], words: str) -> None:
    """Each fault is found and named."""
    made = world()

    found = faults(spoil(made.plan()), made.view.topology)

    assert [fault for fault in found if words in fault], found


def test_many_chains_are_checked_in_one_pass() -> None:
    """Ten thousand servers that are drained and then restarted: a moment, not minutes."""
    made = World.of(*(thing(f"agent/a{number:05}") for number in range(10_000)))
    chains: list[Step] = []
    for want in made.view.topology.resources.values():
        drain = fleets.step(want, "drain")
        chains += [drain, replace(fleets.step(want, "restart"), after=frozenset({drain.id}))]
    plan = with_steps(made.plan(), *chains)
    plan = signed(replace(plan, holds=(), waits=()))
    began = time.process_time()

    assert faults(plan, made.view.topology) == []
    assert time.process_time() - began < 2


def test_an_orphan_is_no_fault() -> None:
    """It is held although no document names it: that is the point."""
    made = world()
    made.view.orphans[ref("cluster/old")] = thing("cluster/old")

    assert faults(made.plan(), made.view.topology) == []


class _Counted(str):
    """An id that counts how often somebody looks it up."""

    __slots__ = ()
    looked_up = 0

    def __hash__(self) -> int:
        _Counted.looked_up += 1
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other)


def _look_ups(count: int) -> int:
    """What the lint of a chain of so many steps looks up."""
    names = [f"agent/a{number:04}" for number in range(count)]
    made = World.of(*(thing(name) for name in names))
    for name in names:
        made.up(name, todo=[todo("fix")])
    plan = made.plan()
    ids = [StepId(_Counted(step.id)) for step in plan.steps]
    chained = [
        replace(step, id=ids[place], after=frozenset(ids[max(0, place - 1) : place]))
        for place, step in enumerate(plan.steps)
    ]
    plan = with_steps(plan, *chained)
    _Counted.looked_up = 0
    assert faults(plan, made.view.topology) == []
    return _Counted.looked_up


def test_twice_the_steps_are_twice_the_work() -> None:
    """A region of many servers has as many steps, and each plan of it is looked through."""
    assert _look_ups(200) <= 2.1 * _look_ups(100)
