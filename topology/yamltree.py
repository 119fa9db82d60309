"""
YAML bytes to plain values: dict, list, str, int, float, bool and None.

It reads event by event and stops at the first event past a limit, because a file of a few
kilobytes can otherwise hang or fill the memory of whoever reads it whole. It knows nothing of
documents or fields. A reader must know one rule: only `true` and `false` are booleans, only plain
decimal, `0x` and `0o` numbers are numbers; `yes`, `off`, `22:00`, `0644` and dates stay text,
because a guess there has broken more files than it helped.

`read` gives values only. Where they stand is found by `topology.yamlplace`, which reads the same
bytes again when there is something to complain about.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from yaml import events

from topology import yamlevents
from topology.yamlevents import Event, Fault, Path, Stop

Value = dict[str, Any] | list[Any] | str | int | float | bool | None

DEPTH_MAX = 64
ALIASES_MAX = 100
VALUES_MAX = 80_000
"""Keys, values and both ends of each list, mapping and document, aliases written out: what costs
time to read and to check. A server of four fields is ten."""
FAULTS_MAX = 50
"""More complaints about one file than this are not read by anybody."""
DIGITS_MAX = 18
"""Fits into 64 bits everywhere the number may travel."""


class YamlRefused(Exception):
    """The bytes are not YAML that fleetd accepts."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(fault.message for fault in faults))
        self.faults = faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What could be read, and what is wrong."""

    documents: list[Value]
    """Empty documents are skipped and not counted."""
    faults: list[Fault]
    broken: frozenset[int]
    """Documents of which a part is missing, so that further complaints would mislead."""
    complete: bool
    """False: reading stopped before the end; there may be more documents."""


def read(data: bytes) -> list[Value]:
    """The documents of a file that is right as a whole; raises `YamlRefused` otherwise."""
    reading = read_all(data)
    if reading.faults:
        raise YamlRefused(reading.faults)
    return reading.documents


def read_all(data: bytes) -> Reading:
    """Never raises: as many documents as can be had, and all faults."""
    builder = _Builder()
    try:
        builder.run(yamlevents.open_events(data))
    except Stop as stop:
        builder.faults.append(stop.fault)
        return builder.reading(complete=False)
    return builder.reading(complete=True)


@dataclass(slots=True)
class _Frame:
    """A list or mapping that is being filled. Exactly one of `items` and `entries` is set."""

    items: list[Any] | None
    entries: dict[str, Any] | None
    anchor: str | None
    count: int
    """How many values had been read when it began."""
    deepest: int
    key: str | None = None


@dataclass(slots=True)
class _Anchored:
    value: Value
    count: int
    height: int


@dataclass(slots=True)
class _Builder:
    documents: list[Value] = field(default_factory=list[Value])
    faults: list[Fault] = field(default_factory=list[Fault])
    broken: set[int] = field(default_factory=set[int])
    stack: list[_Frame] = field(default_factory=list[_Frame])
    anchors: dict[str, _Anchored | None] = field(default_factory=dict[str, _Anchored | None])
    """None while the anchored value is still being read."""
    count: int = 0
    aliases: int = 0
    joined: int = -1
    """The document that goes on into a second one, because '---' is missing between them."""

    def reading(self, *, complete: bool) -> Reading:
        return Reading(
            documents=self.documents,
            faults=self.faults,
            broken=frozenset(self.broken),
            complete=complete,
        )

    def run(self, following: Callable[[], Event | None]) -> None:
        """The loop. All limits are checked in here, one event after the other."""
        handlers: dict[object, Callable[[Event], None]] = {
            events.ScalarEvent: self._scalar,
            events.MappingStartEvent: self._mapping,
            events.SequenceStartEvent: self._sequence,
            events.MappingEndEvent: self._end,
            events.SequenceEndEvent: self._end,
            events.AliasEvent: self._alias,
            events.DocumentStartEvent: self._document,
            events.DocumentEndEvent: _nothing,
            events.StreamStartEvent: _nothing,
            events.StreamEndEvent: _nothing,
        }
        while (event := following()) is not None:
            handlers[type(event)](event)

    def _document(self, event: Event) -> None:
        self._counted(event, 2)
        self.anchors.clear()
        if event.tags:
            raise Stop(
                self._fault(event, "yaml-tag", "%TAG directives are not accepted", "remove them")
            )

    def _scalar(self, event: Event) -> None:
        self.count += 1
        if self.count > VALUES_MAX:
            self._counted(event, 0)
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.entries is not None and frame.key is None:
            self._key(frame, event)
            return
        text = event.value
        value: Value = text
        if event.tag is not None:
            value = self._tagged(event)
        elif event.implicit[0]:
            if text[:1] in _FIRST:
                value = self._resolved(event)
        elif event.style == '"' and not text.isprintable():
            self._no_controls(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(value, 1, 0)
        if frame is not None and frame.items is not None:
            frame.items.append(value)
        else:
            self._put(frame, value)

    def _put(self, frame: _Frame | None, value: Value) -> None:
        if frame is None:
            if value is not None:
                self.documents.append(value)
        elif frame.items is not None:
            frame.items.append(value)
        elif frame.key is not None and frame.entries is not None:
            # After a duplicate key the first value stays; the fault is on record.
            frame.entries.setdefault(frame.key, value)
            frame.key = None

    def _key(self, frame: _Frame, event: Event) -> None:
        key = event.value
        plain = event.implicit[0] and event.tag is None
        frame.key = key
        if plain and key == "<<":
            self._broken(
                event,
                "yaml-merge-key",
                "merge keys ('<<') are not accepted",
                "write the fields out",
            )
        elif plain and key[:1] in _FIRST and not isinstance(resolve(key), str):
            self._broken(
                event,
                "yaml-key-not-text",
                f"{yamlevents.show(key)} is not text, but a key must be",
                f'put it in quotes: "{key[:40]}"' if key else "write the key before the ':'",
            )
        elif frame.entries is not None and key in frame.entries:
            self._twice(event, key)
        elif event.style == '"' and not key.isprintable():
            self._no_controls(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = _Anchored(key, 1, 0)

    def _twice(self, event: Event, key: str) -> None:
        here = len(self.documents)
        if len(self.stack) == 1 and self.joined == here:
            return
        if len(self.stack) == 1 and key in {"apiVersion", "kind"}:
            # The head of another document. Its other keys are there twice for the same reason.
            self.joined = here
            self._broken(
                event,
                "yaml-separator-missing",
                "a second document begins here without '---' above it",
                "put a line with --- above it, or remove this key if it is one too many",
            )
            return
        self._add(
            event,
            "yaml-duplicate-key",
            f"{yamlevents.show(key)} is given twice",
            "keep one of them",
        )

    def _sequence(self, event: Event) -> None:
        self._start(event, _Frame([], None, event.anchor, self.count, 0), _SEQUENCE_TAGS)

    def _mapping(self, event: Event) -> None:
        self._start(event, _Frame(None, {}, event.anchor, self.count, 0), _MAPPING_TAGS)

    def _start(self, event: Event, frame: _Frame, tags: frozenset[str | None]) -> None:
        self._counted(event, 2)
        self._not_as_key(event)
        if event.tag not in tags:
            self._refuse_tag(event)
        if event.anchor is not None:
            self.anchors[event.anchor] = None
        self.stack.append(frame)
        frame.deepest = len(self.stack)
        if frame.deepest > DEPTH_MAX:
            raise Stop(self._too_deep(event))

    def _end(self, _event: Event) -> None:
        frame = self.stack.pop()
        value: Value = frame.items if frame.items is not None else frame.entries
        if frame.anchor is not None:
            self.anchors[frame.anchor] = _Anchored(
                value, self.count - frame.count, frame.deepest - len(self.stack)
            )
        parent = self.stack[-1] if self.stack else None
        if parent is not None and parent.deepest < frame.deepest:
            parent.deepest = frame.deepest
        self._put(parent, value)

    def _alias(self, event: Event) -> None:
        self.aliases += 1
        if self.aliases > ALIASES_MAX:
            raise Stop(
                self._fault(
                    event,
                    "yaml-too-many-aliases",
                    f"there are more than {ALIASES_MAX} aliases in the file",
                    "write the values out",
                )
            )
        self._not_as_key(event)
        name = event.anchor or ""
        target = self.anchors.get(name)
        if target is None:
            itself = name in self.anchors
            self._broken(
                event,
                "yaml-alias-of-itself" if itself else "yaml-alias-unknown",
                "the alias stands inside the value it names"
                if itself
                else "the alias names nothing above it",
                "write the value out; put text that begins with '*' in quotes",
            )
            target = _Anchored(None, 1, 0)
        # Written out, the value counts again: a few aliases of aliases are billions of values.
        self._counted(event, target.count)
        depth = len(self.stack) + target.height
        if depth > DEPTH_MAX:
            raise Stop(self._too_deep(event))
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.deepest < depth:
            frame.deepest = depth
        self._put(frame, target.value)

    def _counted(self, event: Event, more: int) -> None:
        self.count += more
        if self.count > VALUES_MAX:
            raise Stop(
                self._fault(
                    event,
                    "yaml-too-many-values",
                    f"there are more than {VALUES_MAX} keys and values in the file",
                    "split it into several files",
                )
            )

    def _not_as_key(self, event: Event) -> None:
        frame = self.stack[-1] if self.stack else None
        if frame is not None and frame.entries is not None and frame.key is None:
            raise Stop(
                self._fault(
                    event,
                    "yaml-key-not-text",
                    "a key must be text, not a list, a mapping or an alias",
                    "write the key as text; put text that begins with {, [, *, or & in quotes",
                )
            )

    def _resolved(self, event: Event) -> Value:
        value = resolve(event.value)
        if isinstance(value, BadNumber):
            self._broken(event, "yaml-number", value.message, value.hint)
            return 0
        return value

    def _no_controls(self, event: Event) -> None:
        """Written as escapes, characters get in that nothing behind us expects in a text."""
        if _CONTROL.search(event.value):
            self._broken(
                event,
                "yaml-character",
                "the text has an escaped control character",
                "remove it; only \\n and \\t are possible",
            )

    def _tagged(self, event: Event) -> Value:
        wanted = _SCALAR_TAGS.get(event.tag or "")
        if wanted is None:
            self._refuse_tag(event)
            return event.value
        if wanted is str:
            return event.value
        value = self._resolved(event)
        if wanted is float and type(value) is int:
            return float(value)
        if type(value) is not wanted:
            self._broken(
                event,
                "yaml-tag",
                "the value does not fit its tag",
                "remove the part with '!!', and the quotes if there are any",
            )
        return value

    def _refuse_tag(self, event: Event) -> None:
        self._broken(
            event,
            "yaml-tag",
            "tags ('!...') are not accepted",
            "remove it; text that begins with '!' needs quotes",
        )

    def _too_deep(self, event: Event) -> Fault:
        return self._fault(
            event,
            "yaml-too-deep",
            f"there are more than {DEPTH_MAX} lists and mappings inside each other",
            "no document needs that; check the brackets and the indentation",
        )

    def _broken(self, event: Event, code: str, message: str, hint: str) -> None:
        self.broken.add(len(self.documents))
        self._add(event, code, message, hint)

    def _add(self, event: Event, code: str, message: str, hint: str) -> None:
        fault = self._fault(event, code, message, hint)
        if len(self.faults) + 1 >= FAULTS_MAX:
            raise Stop(fault)
        self.faults.append(fault)

    def _fault(self, event: Event, code: str, message: str, hint: str) -> Fault:
        mark = event.start_mark
        return Fault(
            line=mark.line + 1,
            column=mark.column + 1,
            code=code,
            message=message,
            hint=hint,
            path=self._path(),
            document=len(self.documents),
        )

    def _path(self) -> Path:
        path: list[str | int] = []
        for frame in self.stack:
            if frame.items is not None:
                path.append(len(frame.items))
            elif frame.key is not None:
                path.append(frame.key)
        return tuple(path)


def _nothing(_event: Event) -> None:
    """For events that say nothing here."""


def is_empty(event: Event) -> bool:
    """Is this scalar, as a whole document, nothing?"""
    plain = event.implicit[0] and event.tag is None
    return (plain and event.value in _WORDS) or event.tag == _CORE + "null"


class WrittenFloat(float):
    """A number that remembers how it was written: who wrote the version 1.30 is not helped by a
    complaint about 1.3."""

    text: str

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class BadNumber:
    """Looks like a number and is none that can be used."""

    message: str
    hint: str


_FIRST = "-+.0123456789tTfFnN~"
"""First characters of plain text that may not stay text. Empty text is one of them for `in`."""
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_OTHER_BASE = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_BOOLEANS = {"true": True, "false": False}


def resolve(text: str) -> Value | BadNumber:
    """What plain text (without quotes) stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= 5 and (lower := text.lower()) in _BOOLEANS:
        return _BOOLEANS[lower]
    if _INTEGER.fullmatch(text):
        if len(text.lstrip("+-")) > DIGITS_MAX:
            return BadNumber(
                f"the number has more than {DIGITS_MAX} digits", "if it is meant as text, quote it"
            )
        return int(text)
    if _OTHER_BASE.fullmatch(text):
        if len(text) > DIGITS_MAX:
            return BadNumber(
                f"the number has more than {DIGITS_MAX} digits", "if it is meant as text, quote it"
            )
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        number = WrittenFloat(text)
        if math.isfinite(number):
            return number
    elif not _NOT_FINITE.fullmatch(text):
        return text
    return BadNumber("the number is not finite", "if it is meant as text, put it in quotes")


_CORE = "tag:yaml.org,2002:"
_SCALAR_TAGS: dict[str, type] = {
    "!": str,
    _CORE + "str": str,
    _CORE + "int": int,
    _CORE + "float": float,
    _CORE + "bool": bool,
    _CORE + "null": type(None),
}
_SEQUENCE_TAGS = frozenset({None, "!", _CORE + "seq"})
_MAPPING_TAGS = frozenset({None, "!", _CORE + "map"})
