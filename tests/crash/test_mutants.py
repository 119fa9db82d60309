"""The test of the tests: every planted bug is caught, and for the reason that is its own."""

import pytest

from tests.crash import sweep
from tests.crash.mutants import MUTANTS, Mutant

SEEDS = 40


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run without faults, a crash point or a seed breaks the invariants it should break."""
    workflow = sweep.WORKFLOWS[mutant.workflow]
    healthy = sweep.reference(workflow)
    mutant.patch(monkeypatch)

    found = _findings(mutant, workflow, healthy)

    assert {words.partition(" ")[0] for words in found} == set(mutant.caught_by.split()), found


def test_every_invariant_is_the_only_one_to_catch_some_bug() -> None:
    """No check is there for show: take one away, and a planted bug gets through."""
    alone = {mutant.caught_by for mutant in MUTANTS}

    assert {"I6", "I7", "I8", "I9", "I11", "I12", "I15"} <= alone


def _findings(mutant: Mutant, workflow: sweep.Workflow, healthy: sweep.Reference) -> list[str]:
    """What the first run says that finds anything."""
    try:
        sweep.reference(workflow, mutant.driver)
    except sweep.Broken as broken:
        return broken.found
    # Every third write: they differ enough; all of them are in the full sweep.
    for number in range(0, healthy.writes, 3) if mutant.crashes else ():
        for side in sweep.SIDES:
            found = sweep.crash(workflow, (number, side), healthy, mutant.driver)
            if found:
                return found
    for seed in range(SEEDS):
        found = sweep.seed(workflow, seed, healthy, mutant.driver)
        if found:
            return found
    return []
