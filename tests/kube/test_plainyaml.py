"""YAML from others: JSON is read as what it is, and all else as YAML."""

import pytest

from fleetd import plainyaml


@pytest.mark.parametrize(
    "text", ['{"users": [{"name": "a"}], "on": true}', "{users: [{name: a}], on: true}"]
)
def test_both_ways_of_writing_are_read_alike(text: str) -> None:
    """A brace at the front may begin either."""
    assert plainyaml.load(text)["users"] == [{"name": "a"}]
    assert plainyaml.load(text.encode()) == plainyaml.load(text)


def test_what_is_neither_is_refused() -> None:
    """With the one error that readers expect."""
    with pytest.raises(plainyaml.Error):
        plainyaml.load('{"users": [')
