"""Nouns to bytes and back; what is unknown is corrupt, what is not plain is refused."""

import contextlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetd import errors
from fleetd.store import codec
from fleetd.vocabulary import Condition, Done, Ending, Failed, Lost, Truth, Waiting
from tests.store import samples

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
MOMENTS = st.datetimes(
    min_value=datetime(1970, 1, 2),  # noqa: DTZ001 - the strategy adds the zone
    max_value=datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
ENDINGS: st.SearchStrategy[Ending] = st.one_of(
    st.just(Done()),
    st.builds(Waiting, st.text(), st.timedeltas(timedelta(0), timedelta(days=400))),
    st.builds(Failed, st.text(), st.text(), st.booleans()),
    st.builds(Lost, st.text()),
)


@given(args=st.dictionaries(st.text(), PLAIN, max_size=4), at=MOMENTS)
def test_an_intent_survives(args: dict[str, Any], at: datetime) -> None:
    """Any plain arguments and any moment come back; equal intents are equal bytes."""
    intent = replace(samples.intent(1), args=args, at=at)
    data = codec.encode_intent(intent)

    # Compared by bytes, because a NaN among the arguments is not equal to itself.
    assert codec.encode_intent(codec.decode_intent(data)) == data
    turned = dict(reversed(list(args.items())))
    assert codec.encode_intent(replace(intent, args=turned)) == data


@given(ending=ENDINGS, at=MOMENTS)
def test_an_ending_survives(ending: Ending, at: datetime) -> None:
    """Every ending and its moment come back equal."""
    assert codec.decode_ending(codec.encode_ending(ending, at)) == (ending, at)


@given(message=st.text(), generation=st.integers(0, 2**64 - 1), at=MOMENTS)
def test_a_condition_survives(message: str, generation: int, at: datetime) -> None:
    """A condition comes back equal."""
    condition = Condition(
        type="Ready",
        truth=Truth.UNKNOWN,
        reason="NotObserved",
        message=message,
        generation=generation,
        since=at,
        reason_since=at + timedelta(seconds=1),
    )

    assert codec.decode_condition(codec.encode_condition(condition)) == condition


@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_value_or_corrupt(data: bytes) -> None:
    """Whatever stands on disk, reading it is a value or StoreCorrupt, and nothing else."""
    for decode in (
        codec.decode_intent,
        codec.decode_ending,
        codec.decode_event,
        codec.decode_condition,
    ):
        with contextlib.suppress(errors.StoreCorrupt):
            assert decode(data) is not None


def test_an_unknown_tag_is_corrupt() -> None:
    """A shape of a version nobody knows is not guessed at."""
    known = msgspec.msgpack.decode(codec.encode_intent(samples.intent(1)))
    unknown = msgspec.msgpack.encode(["intent/2", *known[1:]])

    with pytest.raises(errors.StoreCorrupt):
        codec.decode_intent(unknown)
    with pytest.raises(errors.StoreCorrupt):
        codec.decode_ending(codec.encode_intent(samples.intent(1)))


def test_the_shapes_on_disk_stay_as_they_are() -> None:
    """Bytes written by an earlier fleetd are read by this one: these never change."""
    intent = bytes.fromhex(
        "99a8696e74656e742f31a6737465702d31a6736572766572a672312d733031a8706f7765725f6f6e"
        "82a3626d63aa3139322e302e322e3131a66e756d6265720101a6706c616e2d31d6ff70dbd881"
    )

    assert codec.decode_intent(intent) == samples.intent(1)
    assert codec.encode_intent(samples.intent(1)) == intent


def test_other_mappings_and_zones_are_taken_by_value() -> None:
    """A read-only mapping, a tuple and another time zone are stored as what they say."""
    there = timezone(timedelta(hours=2))
    intent = replace(
        samples.intent(1),
        args=MappingProxyType({"a": (1, 2)}),
        at=samples.at(0).astimezone(there),
    )

    read = codec.decode_intent(codec.encode_intent(intent))

    assert read.args == {"a": [1, 2]}
    assert read.at == samples.at(0)


@dataclass(frozen=True)
class Wrapper:
    value: str = "hunter2"


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "bad", [Wrapper(), Text("hunter2"), b"hunter2", {"hunter2"}, [[Wrapper()]], {"a": Text("x")}]
)
def test_what_is_not_plain_is_refused_unseen(bad: Any) -> None:
    """Wrappers, also those that derive from text, are refused, and the value is not repeated."""
    with pytest.raises(TypeError) as caught:
        codec.encode_intent(replace(samples.intent(1), args={"password": bad}))

    assert "hunter2" not in str(caught.value)


def test_a_moment_without_a_zone_is_refused() -> None:
    """Nobody would know later when it was."""
    naive = samples.at(0).replace(tzinfo=None)

    with pytest.raises(ValueError, match="has no time zone"):
        codec.encode_intent(replace(samples.intent(1), at=naive))
