"""
What is kept of an object: who it is, and its bytes; it becomes a dict when somebody reads it.

A dict costs five times the bytes that it came from, and the garbage collector walks over all of it;
a slim object costs less than its bytes, and the collector does not see it. Most of what a watch
tells is never read. The one rule: what is read here is shared, so nobody changes it.
"""

import functools
import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from fleetd.kube import errors
from fleetd.kube.kinds import Kind

Object = dict[str, Any]
"""As it came. Whoever wants to change one copies it first: it may be in a cache as well."""
Key = tuple[str, str]
"""Namespace and name."""

MEMO = 4 * 1024 * 1024
"""Bytes of JSON whose dicts are remembered; those take five times as much."""
_FIELDS = b'"managedFields":'
_SOUGHT = b',"managedF'
"""Ends with a rare letter, which makes it quickly found."""
_OPENED = _FIELDS + b"["
_EMPTY = b"[]"
_LISTS = 8
"""Brackets that are looked at on the way to those of managedFields."""
_SHORT = 16
"""Bytes of managedFields that are not worth to be cut out."""


class Slim(msgspec.Struct, frozen=True, gc=False):
    namespace: str
    name: str
    uid: str
    version: str
    body: bytes

    @property
    def key(self) -> Key:
        return self.namespace, self.name

    def object(self) -> Object:
        """Raises `Unreachable` for what is no object, however it got here."""
        try:
            made = _OBJECT.decode(self.body)
        except errors.UNREADABLE:
            raise errors.Garbled("the server sent what is not an object") from None
        meta = made.get("metadata")
        if isinstance(meta, dict) and cast("Object", meta).get("managedFields") == []:
            del meta["managedFields"]  # it had some, which were not kept
        return made


class Change(msgspec.Struct, frozen=True, gc=False):
    type: str
    """ADDED, MODIFIED, DELETED or BOOKMARK."""
    object: Slim


class _Meta(
    msgspec.Struct, gc=False, rename={"version": "resourceVersion", "managed": "managedFields"}
):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    version: str = ""
    labels: msgspec.Raw = msgspec.Raw(b"")
    annotations: msgspec.Raw = msgspec.Raw(b"")
    managed: msgspec.Raw = msgspec.Raw(b"")


class _Head(msgspec.Struct, gc=False, rename={"api_version": "apiVersion"}):
    metadata: _Meta
    kind: str = ""
    api_version: str = ""


class _ToldMeta(
    msgspec.Struct, gc=False, rename={"version": "resourceVersion", "managed": "managedFields"}
):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    version: str = ""
    managed: msgspec.Raw = msgspec.Raw(b"")


class _Told(msgspec.Struct, gc=False):
    metadata: _ToldMeta


class _RawEvent(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_BEGINS = {
    ord(type_[0]): (type_, b'{"type":"%b","object":' % type_.encode())
    for type_ in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
}
"""How a line begins, as API servers write it, by the letter at `_LETTER`."""
_LETTER = len('{"type":"')
_BRACE = ord("}")
_HEAD = msgspec.json.Decoder(_Head)
_TOLD = msgspec.json.Decoder(_Told)
_RAW_EVENT = msgspec.json.Decoder(_RawEvent)
_OBJECT = msgspec.json.Decoder(Object)
_PARTS = msgspec.json.Decoder(dict[str, msgspec.Raw])


def of_event(line: bytes, *, managed: bool = False) -> Change:
    """A line of a watch. `managed`: with managedFields, which are a
    third of an object's size. Raises `MsgspecError` for what is no such line, and the error itself
    for one that tells of an error."""
    try:
        type_, prefix = _BEGINS[line[_LETTER]]
        if line.startswith(prefix) and line[-1] == _BRACE:
            return Change(type_, _told(line, len(prefix), len(line) - 1, managed=managed))
    except (IndexError, KeyError, msgspec.MsgspecError):
        pass  # it has more to say, or says it otherwise: slowly
    raw = _RAW_EVENT.decode(line)
    if raw.type == "ERROR":
        raise errors.of_status(_OBJECT.decode(raw.object))
    return Change(raw.type, of_bytes(bytes(raw.object), managed=managed))


def of_answer(body: bytes) -> Slim:
    """What a server said of an object that it had just written, without managedFields. Raises
    `MsgspecError` for what is no object."""
    try:
        return _told(body, 0, len(body), managed=False)
    except msgspec.MsgspecError:
        return of_bytes(body)


def _told(line: bytes, start: int, stop: int, *, managed: bool) -> Slim:
    """The object from `start` to `stop`. Its managedFields are emptied before anything is decoded:
    to skip them takes longer than all the rest. Raises `MsgspecError` if that does not come out
    even, or it is no object."""
    cut = end = 0
    if not managed:
        # Single letters are found ten times as quickly as words are.
        cut = line.find(b"[", start) + 1
        if line[cut - len(_OPENED) : cut] != _OPENED:
            cut = _opened(line, cut, stop)
        end = line.find(b"]", cut)
    # What is cut out is proven by decoding the rest. The fields were the object's own if its
    # metadata has an empty list now, as no server sends one. The bracket was that of their list:
    # within a list in it, another would be left over; within a string, what follows would go on
    # where strings and all between them have changed places, with a string that begins with a
    # colon, and no name of a field does.
    body = line[start:cut] + line[end:stop] if cut else line[start:stop]
    meta = _TOLD.decode(body).metadata
    if not managed and (len(meta.managed) != len(_EMPTY) if cut else len(meta.managed) > _SHORT):
        return of_bytes(line[start:stop])
    return Slim(sys.intern(meta.namespace), meta.name, meta.uid, meta.version, body)


def _opened(data: bytes, at: int, stop: int) -> int:
    """Behind the bracket that opens managedFields, past that before `at`; 0: not soon."""
    for _ in range(_LISTS):
        at = data.find(b"[", at, stop) + 1
        if data[at - len(_OPENED) : at] == _OPENED:
            return at
    return 0


def of_bytes(body: bytes, kind: Kind | None = None, *, managed: bool = False) -> Slim:
    """`kind`: what it is, where it does not say so: servers list built-in kinds without. Raises
    `MsgspecError` for what is no object."""
    head = _HEAD.decode(body)
    unnamed = kind is not None and not (head.kind and head.api_version)
    named = _named(kind) if kind is not None and unnamed else b""
    return _slim(head, body.lstrip(), 0, len(body), managed=managed, named=named)


@functools.lru_cache(1024)
def _named(kind: Kind) -> bytes:
    """The beginning of an object. Twice is once: of two fields of one name the last counts."""
    return b'{"apiVersion":"%b","kind":"%b",' % (kind.api_version.encode(), kind.kind.encode())


def of_object(obj: Mapping[str, Any], *, managed: bool = False) -> Slim:
    """Of one that is decoded already."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        raise errors.Garbled("the server sent an object without metadata")
    fields = cast("dict[str, Any]", meta)
    if not managed and "managedFields" in fields:
        kept = {name: value for name, value in fields.items() if name != "managedFields"}
        obj = {**obj, "metadata": kept}
    return Slim(
        sys.intern(str(fields.get("namespace") or "")),
        str(fields.get("name") or ""),
        str(fields.get("uid") or ""),
        str(fields.get("resourceVersion") or ""),
        msgspec.json.encode(obj),
    )


def _slim(
    head: _Head, data: bytes, start: int, end: int, *, managed: bool, named: bytes = b""
) -> Slim:
    """Of the bytes from `start` to `end`; `named` takes the place of the first brace."""
    meta = head.metadata
    inner = start + 1 if named else start
    if managed or len(meta.managed) <= _SHORT:
        body = named + data[inner:end]
    else:
        # No string can hold the quotes of a field's name unescaped, so whatever is found is a
        # field; that one with just the same bytes comes before it is as good as impossible.
        # Servers write labels and annotations before it, so it is not looked for there.
        at = data.find(_SOUGHT, start + len(meta.labels) + len(meta.annotations), end)
        value = at + 1 + len(_FIELDS)
        if at >= 0 and data.startswith(_FIELDS, at + 1) and data.startswith(meta.managed, value):
            body = named + data[inner:at] + data[value + len(meta.managed) : end]
        else:
            body = named + _without(data[start:end])[inner - start :]
    return Slim(sys.intern(meta.namespace), meta.name, meta.uid, meta.version, body)


def _without(body: bytes) -> bytes:
    """The same object without its managedFields, which are the first field of its metadata, or have
    blanks around them."""
    parts = _PARTS.decode(body)
    meta = _PARTS.decode(parts["metadata"])
    del meta["managedFields"]
    parts["metadata"] = msgspec.Raw(msgspec.json.encode(meta))
    return msgspec.json.encode(parts)


def older(one: str, other: str) -> bool:
    """Whether a resourceVersion is surely older. One that is no number says nothing. They are
    compared as texts: a server may send more digits than make a number."""
    return one.isdecimal() and other.isdecimal() and (len(one), one) < (len(other), other)


def newer(one: str, other: str) -> str:
    return one if older(other, one) else other


class Memo:
    """The dicts of what was read last, so that reading again costs nothing."""

    def __init__(self, most: int = MEMO) -> None:
        self.most = most
        self._size = 0
        self._known: OrderedDict[bytes, Object] = OrderedDict()

    def know(self, slim: Slim, made: Object) -> None:
        """Somebody has decoded it."""
        if slim.body not in self._known:
            self._keep(slim, made)

    def read(self, slim: Slim, *, keep: bool = True) -> Object:
        """`keep`: False for one of so many that they would drive out all others."""
        known = self._known.get(slim.body)
        if known is not None:
            self._known.move_to_end(slim.body)
            return known
        made = slim.object()
        if keep:
            self._keep(slim, made)
        return made

    def _keep(self, slim: Slim, made: Object) -> None:
        self._known[slim.body] = made
        self._size += len(slim.body)
        while self._size > self.most:
            gone, _ = self._known.popitem(last=False)
            self._size -= len(gone)
