"""
Built-in kinds as kubectl and other Go clients send them: protobuf in, the same object as JSON out.

Reads only, and only requests; answers are JSON, which every such client takes as well. The layout
of the kinds is data (`kind_fields`). What cannot be read is refused, never guessed at: a field
that the table does not know is an error, for dropping it would change what was sent.
"""

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from fleetd.sim.kube import known, refusal
from fleetd.sim.kube.values import Obj

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_VARINT, _DOUBLE, _BYTES, _SINGLE = 0, 1, 2, 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEEPEST = 60
_EMPTY: tuple[Any, ...] = ("", 0, None, {})
Raw = int | bytes


class _Bad(Exception):
    """It is no message of this kind."""


def decode(body: bytes) -> Obj:
    """Raises `Refused` 400 for what is no object, or one of a kind that is not known here."""
    try:
        return _object(body)
    except (_Bad, UnicodeDecodeError, OverflowError, struct.error) as cause:
        raise refusal.bad_request(f"the object provided is unrecognized: {cause}") from None


def _object(body: bytes) -> Obj:
    if not body.startswith(_MAGIC):
        raise _Bad("it does not begin as a protobuf message of this API does")
    envelope = dict(_parts(body[len(_MAGIC) :]))
    said = {number: _text(value) for number, value in _parts(_held(envelope.get(1, b"")))}
    kind = said.get(2, "")
    if kind not in known.messages():
        raise _Bad(f"no kind {kind!r} is registered for protobuf")
    head: Obj = {"apiVersion": said.get(1, ""), "kind": kind}
    return head | _message(kind, _held(envelope.get(2, b"")), 0)


def _parts(data: bytes) -> Iterator[tuple[int, Raw]]:
    """Number and raw value of each field."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield number, value
            continue
        if kind == _BYTES:
            size, place = _varint(data, place)
        else:
            size = {_DOUBLE: 8, _SINGLE: 4}.get(kind, -1)
        if size < 0 or place + size > len(data):
            raise _Bad("unexpected EOF")
        yield number, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise _Bad("unexpected EOF")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise _Bad("integer overflow")


def _held(value: Raw) -> bytes:
    if isinstance(value, int):
        raise _Bad("a number stands where a message is expected")
    return value


def _text(value: Raw) -> str:
    return _held(value).decode()


def _number(value: Raw) -> int:
    if not isinstance(value, int):
        raise _Bad("something else stands where a number is expected")
    return value - (1 << 64) if value >> 63 else value


def _message(kind: str, data: bytes, depth: int) -> Obj:
    if depth > _DEEPEST:
        raise _Bad("it is nested too deeply")
    fields = known.messages()[kind]
    made: Obj = {}
    for number, raw in _parts(data):
        field = fields.get(number)
        if field is None:
            raise _Bad(f"field {number} of {kind} is not known")
        if field.many == "%":
            entry = dict(_parts(_held(raw)))
            value = _value(field.kind, entry.get(2, _nothing(field.kind)), depth)
            made.setdefault(field.name, {})[_text(entry.get(1, b""))] = value
            continue
        value = _value(field.kind, raw, depth)
        if field.many:
            made.setdefault(field.name, []).append(value)
        elif not field.name:
            made.update(value)
        elif field.kept or value not in _EMPTY:
            made[field.name] = value
    return made


def _nothing(kind: str) -> Raw:
    return 0 if kind in ("i", "b") else b""


def _value(kind: str, raw: Raw, depth: int) -> Any:  # noqa: ANN401 - any JSON value
    match kind:
        case "":
            return _text(raw)
        case "i":
            return _number(raw)
        case "b":
            return bool(_number(raw))
        case "d":
            return struct.unpack("<d", _held(raw))[0]
        case "y":
            return base64.b64encode(_held(raw)).decode()
        case "@time":
            return _moment(_held(raw))
        case "@quantity":
            return _text(dict(_parts(_held(raw))).get(1, b""))
        case "@either":
            either = dict(_parts(_held(raw)))
            return _text(either.get(3, b"")) if either.get(1) else _number(either.get(2, 0))
        case "*":
            return [_text(one) for _, one in _parts(_held(raw))]
        case _:
            return _message(kind, _held(raw), depth + 1)


def _moment(data: bytes) -> str | None:
    """Seconds and nanoseconds since 1970; nothing at all is no time."""
    said = dict(_parts(data))
    if not said:
        return None
    at = _EPOCH + timedelta(
        seconds=_number(said.get(1, 0)), microseconds=_number(said.get(2, 0)) // 1000
    )
    whole = "seconds" if not at.microsecond else "microseconds"
    return at.isoformat(timespec=whole).replace("+00:00", "Z")
