"""No canary comes out of any sink; and each sink would show one that is not known."""

from collections.abc import Generator

import pytest

from fleetd import secrets
from tests.secrets import canary, sinks


@pytest.fixture(autouse=True)
def _forgetful() -> Generator[None]:  # pyright: ignore[reportUnusedFunction]
    """What one test reveals, the next does not know."""
    secrets.REGISTRY.forget()
    yield
    secrets.REGISTRY.forget()


@pytest.mark.parametrize("sink", sinks.SINKS, ids=lambda sink: sink.name)
@pytest.mark.parametrize("name", canary.CANARIES)
def test_nothing_comes_out(sink: canary.Sink, name: str) -> None:
    """A value that was revealed once comes out of no sink, in no encoding."""
    value = secrets.Secret(canary.CANARIES[name]).reveal()
    for encode in canary.ENCODINGS.values():
        written = sink.write(f"before {encode(value)} after")
        assert canary.found(written, [name]) == []
        assert secrets.HIDDEN in str(written)


@pytest.mark.parametrize("sink", sinks.SINKS, ids=lambda sink: sink.name)
def test_a_leak_is_caught(sink: canary.Sink) -> None:
    """The test of the test: a value that the filters do not know shows in every sink."""
    written = sink.write(canary.CANARIES["password"])
    assert canary.Leak("password", "plain") in canary.found(written)


@pytest.mark.parametrize("name", canary.CANARIES)
@pytest.mark.parametrize("encoding", canary.ENCODINGS)
def test_every_encoding_is_caught(name: str, encoding: str) -> None:
    """The test of the test: a canary in any encoding is found in a text."""
    text = f"x {canary.ENCODINGS[encoding](canary.CANARIES[name])} y"
    assert name in {leak.canary for leak in canary.found(text)}
    assert name in {leak.canary for leak in canary.found(text.encode())}


def test_there_are_enough_canaries() -> None:
    """24 values, none of which is part of another."""
    values = list(canary.CANARIES.values())
    assert len(values) == 24
    assert [(a, b) for a in values for b in values if a != b and a in b] == []
