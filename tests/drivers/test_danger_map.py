"""Each danger that was seen on a real server has a guard, and tests of it that are there."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tidy import files, quality

HERE = Path(__file__).parent
TESTS = HERE.parent
MAP: dict[int, dict[str, Any]] = yaml.safe_load((HERE / "dangers.yaml").read_text())
LAST = 34
NOT_SHOWN = {*range(10, 15), 27}
"""What the conformance tests of API servers and of the garden show, on both faces."""
GRADED = [
    (path.parts[1], number)
    for path in files.tracked(".yaml")
    if path.name == "quality.yaml"
    for number in quality.read(path).rules.dangers_guarded.done
]


def _there(named: str, under: Path) -> bool:
    path, _, name = named.partition("::")
    found = (under / path).resolve()
    return found.exists() and bool(re.search(rf"def {name}\(", found.read_text()))


def test_no_danger_is_left_out() -> None:
    """By the numbers of the list."""
    assert sorted(MAP) == list(range(1, LAST + 1))


@pytest.mark.parametrize("number", MAP)
def test_a_danger_has_a_guard_and_tests_that_are_there(number: int) -> None:
    """Of fleetd, and of the simulated world, where it could not be met otherwise."""
    entry = MAP[number]
    named = [(one, HERE) for one in entry["tests"]]
    named += [(one, TESTS) for one in entry.get("shown", ())]
    assert entry["guard"]
    assert entry["tests"]
    assert [one for one, under in named if not _there(one, under)] == []
    assert bool(entry.get("shown")) is (number not in NOT_SHOWN)


@pytest.mark.parametrize(("driver", "number"), GRADED)
def test_a_grade_of_a_driver_has_a_test_of_that_driver(driver: str, number: int) -> None:
    """Whoever says that he guards against it shows where."""
    assert [one for one in MAP[number]["tests"] if one.startswith(f"{driver}/")]
