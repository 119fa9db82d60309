"""A step that takes down more than its own thing: all of it is looked at and remembered."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from fleetd.engine.state import State
from fleetd.plan.policy import Policy
from fleetd.plan.view import Attempt
from fleetd.sim import loop
from fleetd.vocabulary import READY, Condition, Done, Observation, Step, StepId, Truth
from tests.engine.stage import Scripted, Stage, fleet, thing
from tests.toy.universe import START
from topology.resource import Ref, Resource

A, B = Ref("thing", "a"), Ref("thing", "b")
SECOND = timedelta(seconds=1)


class Reaching(Scripted):
    """Making a takes b down for a while."""

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        proposed = super().propose(want, seen)
        return [replace(step, disrupts=frozenset({B})) for step in proposed if step.ref == A]


def test_all_that_a_step_took_down_is_looked_at() -> None:
    """At once, and not when its turn comes half a minute later."""

    async def main() -> Scripted:
        stage = Stage(fleet(thing("a"), thing("b")))
        stage.driver = Reaching(stage.clock, made={B})
        await stage.play(20)
        return stage.driver

    driver = loop.run(main())
    [(acted, _)] = driver.applied
    looks = [at for at, name in driver.looked if name == "b" and at >= acted]
    assert looks
    assert looks[0] - acted < 1


def seen(state: State, ref: Ref, seconds: int) -> None:
    at = START + seconds * SECOND
    facts = {"made": True}
    state.saw(
        Observation(ref=ref, at=at, facts=facts, digest=1),
        Condition(
            type=READY,
            truth=Truth.TRUE,
            reason="Ready",
            message="made",
            generation=1,
            since=at,
            reason_since=at,
        ),
    )


def test_a_step_is_remembered_until_all_it_took_down_was_seen() -> None:
    """The budgets need to know of it as long as the other thing looks as it did before."""
    driver = Scripted(None)  # pyright: ignore[reportArgumentType] - nobody asks it for the time
    state = State({"toy": driver}, Policy())
    state.accept(fleet(thing("a"), thing("b")), {})
    seen(state, A, 0)
    seen(state, B, 0)
    state.attempted(
        A,
        Attempt(
            step=StepId("x"),
            at=START,
            ending=Done(),
            ended_at=START + 5 * SECOND,
            count=1,
            not_before=None,
            disrupts=frozenset({B}),
        ),
    )

    seen(state, A, 6)
    assert A in state.view.attempts
    seen(state, B, 7)
    seen(state, A, 8)
    assert A not in state.view.attempts
