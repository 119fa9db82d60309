"""An answer is JSON whatever was cut out of it."""

import json
from collections.abc import Iterator

import pytest

from fleetd import secrets
from fleetd.surface import answering
from tests.secrets import canary


@pytest.fixture(autouse=True)
def _known() -> Iterator[None]:
    secrets.REGISTRY.forget()
    yield
    secrets.REGISTRY.forget()


@pytest.mark.parametrize("value", canary.CANARIES.values(), ids=canary.CANARIES.keys())
def test_a_value_that_was_encoded_before_is_found(value: str) -> None:
    """Text of a repr of JSON, in JSON again: no list of spellings has that."""
    secrets.Secret(value).reveal()
    message = repr(json.dumps({"told": value}))
    told = json.loads(answering.encoded({"message": message, "more": [{value: 1}]}))
    assert canary.found(json.dumps(told)) == []
    assert "<secret>" in told["message"]


def test_half_of_an_escape_is_not_cut_out() -> None:
    """A value that begins with the letter after a backslash."""
    secrets.Secret("ncanary-of-a-line").reveal()
    shape = {"message": "one\ncanary-of-a-line", "other": "ncanary-of-a-line"}
    told = json.loads(answering.encoded(shape))
    assert told == {"message": "one\ncanary-of-a-line", "other": "<secret>"}


def test_a_number_stays_one() -> None:
    """A value of digits is hidden in a text, and a number that reads like it is none."""
    secrets.Secret("2718281828459045").reveal()
    told = json.loads(answering.encoded({"seq": 2718281828459045, "of": "2718281828459045"}))
    assert told == {"seq": 2718281828459045, "of": "<secret>"}
