"""The test of the tests: every bug planted in a region is caught, and for its own reason."""

from pathlib import Path

import pytest

from tests.twin.mutants import KINDS, MUTANTS, Mutant, table
from tests.twin.trials import Trial

README = Path(__file__).parent / "README.md"
TRIALS = tuple({str(mutant.trial): mutant.trial for mutant in MUTANTS}.values())


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_caught(mutant: Mutant) -> None:
    """Its trial finds what it should find broken, and nothing else."""
    found = mutant.trial.run(mutant.patch)

    assert {_number(words) for words in found} == set(mutant.caught_by.split()), found


@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_a_trial_finds_nothing_in_sound_code(trial: Trial) -> None:
    """No false alarm: the same trial on the code as it is."""
    assert trial.run() == []


def test_there_are_enough_bugs_of_every_class() -> None:
    """Thirty at least, with other names, and stale state the largest class."""
    count = {kind: sum(mutant.kind == kind for mutant in MUTANTS) for kind in KINDS}

    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 30
    assert min(count.values()) >= 4
    assert max(count, key=lambda kind: count[kind]) == "stale state"


def test_the_table_is_current() -> None:
    """What the README says is what is tried; `python -m tests.twin.mutants` prints it."""
    assert table() in README.read_text("utf-8")


def _number(words: str) -> str:
    """`I6` of `I6 not converged: ...`."""
    return words.split(maxsplit=1)[0].rstrip(":")
