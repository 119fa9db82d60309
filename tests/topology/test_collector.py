"""Making a fleet leaves the collector of garbage as it was."""

import gc
from collections.abc import Iterator

import pytest

from tests.topology import fleets
from topology import collector


@pytest.fixture(autouse=True)
def _on_again() -> Iterator[None]:
    yield
    gc.enable()


def test_the_collector_rests_only_inside() -> None:
    """Nested or not, it works again afterwards."""
    with collector.at_rest():
        with collector.at_rest():
            assert not gc.isenabled()
        assert not gc.isenabled()

    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    """Whoever turned it off had a reason."""
    gc.disable()

    with collector.at_rest():
        pass

    assert not gc.isenabled()


def test_a_failure_inside_turns_it_on_again() -> None:
    """A set of documents that cannot be compiled does not leave a daemon without a collector."""
    round_and_round = fleets.component("metal", "region", "metal", needs=[("project", "same")])
    other = fleets.component("project", "region", "garden", needs=[("metal", "same")])

    with pytest.raises(ValueError, match="needs"):
        fleets.topology(None, round_and_round, other)

    assert gc.isenabled()
