"""What a person is told to do can be typed as it stands."""

import re
from pathlib import Path

import pytest

from fleetd.plan import words
from topology import read
from topology.resource import Ref

EXAMPLES = Path(__file__).parents[2] / "topology" / "examples"
COMMAND = re.compile(r"`fleetctl (?:why|describe) ([a-z0-9-]+) ([\w.-]+)`")


@pytest.mark.parametrize("example", ["minimal", "racks", "two-zones"])
def test_advice_names_what_exists(example: str) -> None:
    """No `<name>` is left to be guessed, and every thing that a command names is there."""
    topology = read.read([EXAMPLES / example]).topology
    assert topology is not None
    told = {
        (want.ref, words.filled(limit.action, want))
        for want in topology.resources.values()
        for limit in want.limits.values()
    }
    assert [one for one in told if re.search(r"<[a-z]", one[1])] == []
    named = {Ref(*found) for _, text in told for found in COMMAND.findall(text)}
    assert named
    assert named - topology.resources.keys() == set()
