"""One bad driver holds its own thing, with the reason, and nobody else."""

from collections.abc import Sequence
from typing import Any

import pytest

from fleetd.plan import lint
from fleetd.vocabulary import Observation
from tests.plan import fleets
from tests.plan.fleets import DataDriver, World, ref, thing, told
from topology.resource import Resource


def world() -> World:
    """Agent a has the bad driver's facts, b is to be created."""
    made = World.of(thing("agent/a"), thing("agent/b"))
    made.absent("agent/b")
    return made


CASES = [
    ("raises", "could not decide: KeyError: 'a fact of agent/a that is not there'"),
    ("no step", "proposes a bad step: a str is no step"),
    ("another thing", "proposes a bad step: spoil is about agent/n00x"),
    (
        "another generation",
        "proposes a bad step: spoil is for generation 77, 1 is wanted",
    ),
    ("made-up id", "proposes a bad step: spoil: its id is mine, but what it does gives"),
    ("no words", "proposes a bad step: spoil: does not say why"),
    ("no time", "proposes a bad step: spoil: its deadline 0:00:00 leaves no time"),
    ("twice", "proposes a bad step: spoil is there twice"),
    (
        "out of order",
        "proposes a bad step: spoil comes after a step that does not stand before it",
    ),
    (
        "unknown disrupted",
        "proposes a bad step: spoil disrupts server/nowhere-else, which no document names",
    ),
    (
        "unknown destroyed",
        "proposes a bad step: spoil destroys server/nowhere-else, which no document names",
    ),
]


@pytest.mark.parametrize(("fault", "words"), CASES)
@pytest.mark.parametrize("ready", [True, False])
def test_a_bad_proposal_holds_its_own_thing(fault: str, words: str, ready: bool) -> None:  # noqa: FBT001
    """Ready or not, it is told; the plan of the others passes the lint."""
    made = world()
    made.up("agent/a") if ready else made.broken("agent/a")
    made.saw("agent/a", {"there": 1, "fault": fault})

    plan = made.plan()

    assert told(plan) == {"agent/a": ["NothingToDo"], "agent/b": ["+create"]}
    assert plan.holds[0].message.startswith(f"its driver data {words}")
    assert lint.lint(plan, made.view.topology, {"data": made.driver}) == []


def test_the_list_of_faults_is_complete() -> None:
    """Every fault that generated fleets have is told in words above, but for the next one."""
    named = {fault for fault, _ in CASES}

    assert named == set(fleets.FAULTS) - {"nothing at all"}


class Silent(DataDriver):
    """Answers with something that is no sequence."""

    def propose(self, want: Resource, seen: Observation) -> Sequence[Any]:
        return None if want.ref == ref("agent/a") else super().propose(want, seen)  # pyright: ignore[reportReturnType]


def test_an_answer_that_is_no_sequence_is_a_fault() -> None:
    """`None` is not the same as nothing to do."""
    made = world()
    made.up("agent/a")
    made.driver = Silent()

    plan = made.plan()

    assert told(plan)["agent/a"] == ["NothingToDo"]
    assert "could not decide: TypeError" in plan.holds[0].message


class Wordy(DataDriver):
    """Fails with a page of text."""

    def propose(self, want: Resource, seen: Observation) -> Sequence[Any]:
        raise ValueError("line\n" * 500)


def test_a_page_of_text_is_cut() -> None:
    """A hold is read in a list: one line, and not without end."""
    made = World.of(thing("agent/a"))
    made.up("agent/a")
    made.driver = Wordy()

    message = made.plan().holds[0].message

    assert "\n" not in message
    assert len(message) < 300
