"""
Between the nouns and the bytes on disk.

Every value starts with a tag that names its shape and version (`intent/1`). A shape never changes
once it was written somewhere: a new one gets a new tag and joins the union beside the old one, so
that old bytes stay readable. A tag or a shape that nobody knows is `StoreCorrupt`, never a guess.

Only plain data goes in. `args` of an intent may hold null, booleans, numbers, text, lists and
mappings, each of exactly that type; a wrapper around a secret is none of these, whatever it
derives from, and is refused with a TypeError before anything is written.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeVar, cast

import msgspec

from fleetd import errors
from fleetd.store.base import Intent
from fleetd.vocabulary import (
    Condition,
    Done,
    Ending,
    Event,
    Failed,
    Lost,
    PlanId,
    StepId,
    Truth,
    Waiting,
)
from topology.resource import Ref

_Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_Shape = TypeVar("_Shape", bound=msgspec.Struct)


class _Intent1(msgspec.Struct, tag="intent/1", array_like=True, frozen=True):
    step: str
    kind: str
    name: str
    verb: str
    args: dict[str, Any]
    generation: int
    plan: str
    at: _Moment


class _Done1(msgspec.Struct, tag="done/1", array_like=True, frozen=True):
    at: _Moment


class _Waiting1(msgspec.Struct, tag="waiting/1", array_like=True, frozen=True):
    at: _Moment
    reason: str
    again_us: int


class _Failed1(msgspec.Struct, tag="failed/1", array_like=True, frozen=True):
    at: _Moment
    reason: str
    message: str
    retry: bool


class _Lost1(msgspec.Struct, tag="lost/1", array_like=True, frozen=True):
    at: _Moment
    message: str


class _Event1(msgspec.Struct, tag="event/1", array_like=True, frozen=True):
    at: _Moment
    kind: str
    name: str
    reason: str
    message: str
    plan: str | None


class _Condition1(msgspec.Struct, tag="condition/1", array_like=True, frozen=True):
    about: str
    truth: Truth
    reason: str
    message: str
    generation: int
    since: _Moment
    reason_since: _Moment


_Ending1 = _Done1 | _Waiting1 | _Failed1 | _Lost1

# Deterministic: mappings are written in the order of their keys, so equal values are equal bytes.
_encoder = msgspec.msgpack.Encoder(order="deterministic")
_intents = msgspec.msgpack.Decoder(_Intent1)
_endings: msgspec.msgpack.Decoder[_Ending1] = msgspec.msgpack.Decoder(_Ending1)
_events = msgspec.msgpack.Decoder(_Event1)
_conditions = msgspec.msgpack.Decoder(_Condition1)


def encode_intent(intent: Intent) -> bytes:
    ref = intent.ref
    # By position, which is quicker, in the order of the fields.
    return _encoder.encode(
        _Intent1(
            intent.step,
            ref.kind,
            ref.name,
            intent.verb,
            _plain_mapping(intent.args),
            intent.generation,
            intent.plan,
            _aware(intent.at),
        )
    )


def decode_intent(data: bytes) -> Intent:
    wire = _decode(_intents, data)
    return Intent(
        step=StepId(wire.step),
        ref=Ref(wire.kind, wire.name),
        verb=wire.verb,
        args=wire.args,
        generation=wire.generation,
        plan=PlanId(wire.plan),
        at=wire.at,
    )


def encode_ending(ending: Ending, at: datetime) -> bytes:
    return _encoder.encode(_ending_shape(ending, _aware(at)))


def decode_ending(data: bytes) -> tuple[Ending, datetime]:
    wire = _decode(_endings, data)
    match wire:
        case _Done1():
            return Done(), wire.at
        case _Waiting1():
            return Waiting(wire.reason, timedelta(microseconds=wire.again_us)), wire.at
        case _Failed1():
            return Failed(wire.reason, wire.message, wire.retry), wire.at
        case _Lost1():
            return Lost(wire.message), wire.at


def encode_event(event: Event) -> bytes:
    return _encoder.encode(
        _Event1(
            at=_aware(event.at),
            kind=event.ref.kind,
            name=event.ref.name,
            reason=event.reason,
            message=event.message,
            plan=event.plan,
        )
    )


def decode_event(data: bytes) -> Event:
    wire = _decode(_events, data)
    return Event(
        at=wire.at,
        ref=Ref(wire.kind, wire.name),
        reason=wire.reason,
        message=wire.message,
        plan=None if wire.plan is None else PlanId(wire.plan),
    )


def encode_condition(condition: Condition) -> bytes:
    """For the value of a record; the key is the Ref it judges."""
    return _encoder.encode(
        _Condition1(
            about=condition.type,
            truth=condition.truth,
            reason=condition.reason,
            message=condition.message,
            generation=condition.generation,
            since=_aware(condition.since),
            reason_since=_aware(condition.reason_since),
        )
    )


def decode_condition(data: bytes) -> Condition:
    wire = _decode(_conditions, data)
    return Condition(
        type=wire.about,
        truth=wire.truth,
        reason=wire.reason,
        message=wire.message,
        generation=wire.generation,
        since=wire.since,
        reason_since=wire.reason_since,
    )


def _ending_shape(ending: Ending, at: datetime) -> _Ending1:
    match ending:
        case Done():
            return _Done1(at)
        case Waiting(reason, again):
            return _Waiting1(at, reason, again // timedelta(microseconds=1))
        case Failed(reason, message, retry):
            return _Failed1(at, reason, message, retry)
        case Lost(message):
            return _Lost1(at, message)


def _decode(decoder: msgspec.msgpack.Decoder[_Shape], data: bytes) -> _Shape:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as cause:
        raise errors.StoreCorrupt(f"a stored value cannot be read: {cause}") from cause


def _aware(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError(f"{at} has no time zone; every stored moment must have one")
    return at


_SCALARS = frozenset({type(None), bool, int, float, str})


def _plain_mapping(values: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, value in values.items():
        if type(key) is not str:
            raise TypeError(f"a key of type {type(key).__name__} cannot be stored; use text")
        plain[key] = value if type(value) in _SCALARS else _plain(value)
    return plain


def _plain(value: object) -> object:
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return _plain_mapping(cast("Mapping[str, Any]", value))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[object]", value)]
    # The value stays out of the message: it may be the very thing nobody should see.
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored; use plain data")
