"""What a driver says of itself in `quality.yaml` is held against its code and its tests."""

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tidy import files, quality
from tests.tidy.quality import Rules

SOURCES = [path for path in files.tracked(".py") if path.parts[0] == "drivers"]
DRIVERS = sorted({path.parts[1] for path in SOURCES if len(path.parts) > 2})
TESTS = [path for path in files.tracked(".py") if path.match("test_*.py")]


def _any(under: str, *words: str) -> bool:
    """Whether one test file below a folder has all of these."""
    mine = [path for path in TESTS if str(path).startswith(under)]
    return any(all(re.search(word, files.text(path)) for word in words) for path in mine)


def _conformance(driver: str) -> bool:
    return _any(f"tests/drivers/{driver}/", r"tests\.conformance\.driver", r"suite\.check\(")


def _contract(driver: str) -> bool:
    return _any(f"tests/contract/test_{driver}.py", r"\bcrds\.\w+\(")


def _real(driver: str) -> bool:
    return _any("tests/real/", rf"\bdrivers\.{driver}\b")


def _removal(driver: str) -> bool:
    return _any(f"tests/drivers/{driver}/", r"absent|retired?\b")


def _unknown(driver: str) -> bool:
    """The suite cuts the wire; who has none of it looks at what cannot be seen by himself."""
    return _conformance(driver) or _any(f"tests/drivers/{driver}/", r"facts is None|UNKNOWN")


PROOFS: dict[str, Callable[[str], bool]] = {
    "conformance_suite": _conformance,
    "contract_with_crds": _contract,
    "real_server_tests": _real,
    "removal": _removal,
    "unknown_is_not_absent": _unknown,
}


def _of(driver: str) -> quality.Quality:
    return quality.read(Path("drivers") / driver / "quality.yaml")


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_driver_is_graded_under_the_names_that_it_has(driver: str) -> None:
    """The file is there, has the one shape, and names what the module makes."""
    found = _of(driver)
    module = importlib.import_module(f"drivers.{driver}")

    assert found.driver == driver
    assert found.names == list(getattr(module, "DRIVERS", {driver: None}))


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_is_done_has_a_test(driver: str) -> None:
    """A grade of `done` where tests can be named is one that a test of this driver bears out."""
    rules: Rules = _of(driver).rules
    unproven = [
        rule for rule, proof in PROOFS.items() if getattr(rules, rule).done and not proof(driver)
    ]

    assert unproven == []


@pytest.mark.parametrize("driver", DRIVERS)
def test_what_has_a_test_is_not_called_open(driver: str) -> None:
    """Whoever runs the suite, and calls it exempt or to do, has not looked at the file since."""
    rules: Rules = _of(driver).rules

    assert _conformance(driver) == bool(rules.conformance_suite.done)
    assert _real(driver) == bool(rules.real_server_tests.done)
