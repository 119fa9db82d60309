"""
Where a value stands in a YAML file: line and column of a path.

Positions are not kept while reading, because nearly all files are right and a fleet has millions
of values. When there is a complaint, the same bytes are read again, this time for the positions
only; those of the last few files are kept for the next question.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from yaml import events

from topology import yamlevents, yamltree
from topology.yamlevents import Event, Path, Stop

Place = tuple[int, int]
"""Line and column, from 1."""


@dataclass(slots=True)
class _Branch:
    """A list or a mapping: exactly one of `items` and `entries` is set."""

    place: Place
    items: "list[_Mark] | None"
    entries: "dict[str, tuple[Place, _Mark]] | None"


_Mark = _Branch | Place
"""A single value is only its place: most values are single, and a file may have many."""


def locate(data: bytes, document: int, path: Path, *, key: bool = False) -> Place:
    """The place of the value at `path` in the document of that index (as `yamltree.read` counts
    them); with `key`, of the last key itself. What does not exist is placed at the nearest thing
    around it that does."""
    roots = _marks(data)
    if document >= len(roots):
        return (1, 1)
    mark = roots[document]
    for position, part in enumerate(path):
        if not isinstance(mark, _Branch):
            break
        if mark.items is not None and isinstance(part, int) and 0 <= part < len(mark.items):
            mark = mark.items[part]
        elif mark.entries is not None and isinstance(part, str) and part in mark.entries:
            at_key, mark = mark.entries[part]
            if key and position == len(path) - 1:
                return at_key
        else:
            break
    return mark.place if isinstance(mark, _Branch) else mark


@lru_cache(maxsize=8)
def _marks(data: bytes) -> "list[_Mark]":
    marker = _Marker()
    try:
        marker.run(yamlevents.open_events(data))
    except Stop:
        # What was read up to here has a place; the fault itself was reported by the first reading.
        marker.abandon()
    return marker.roots


@dataclass(slots=True)
class _Marker:
    roots: list[_Mark] = field(default_factory=list[_Mark])
    stack: list[_Branch] = field(default_factory=list[_Branch])
    keys: list[tuple[str, Place] | None] = field(default_factory=list[tuple[str, Place] | None])
    """The key that waits for its value, for each mapping on the stack."""
    anchors: dict[str, _Mark] = field(default_factory=dict[str, _Mark])

    def run(self, following: Callable[[], Event | None]) -> None:
        handlers: dict[object, Callable[[Event], None]] = {
            events.ScalarEvent: self._scalar,
            events.MappingStartEvent: self._mapping,
            events.SequenceStartEvent: self._sequence,
            events.MappingEndEvent: self._end,
            events.SequenceEndEvent: self._end,
            events.AliasEvent: self._alias,
            events.DocumentStartEvent: self._document,
        }
        count = 0
        while (event := following()) is not None:
            count += 1
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)
            # The first reading went no further than this either.
            if count > yamltree.VALUES_MAX or len(self.stack) > yamltree.DEPTH_MAX:
                self.abandon()
                return

    def abandon(self) -> None:
        """Give what was open the parts it has so far."""
        while self.stack:
            self._close()

    def _document(self, _event: Event) -> None:
        self.anchors.clear()

    def _scalar(self, event: Event) -> None:
        mark = event.start_mark
        place = (mark.line + 1, mark.column + 1)
        parent = self.stack[-1] if self.stack else None
        if parent is None:
            if not yamltree.is_empty(event):
                self.roots.append(place)
        elif parent.items is not None:
            parent.items.append(place)
        elif (waiting := self.keys[-1]) is None:
            self.keys[-1] = (event.value, place)
            return
        elif parent.entries is not None:
            parent.entries.setdefault(waiting[0], (waiting[1], place))
            self.keys[-1] = None
        if event.anchor is not None:
            self.anchors[event.anchor] = place

    def _mapping(self, event: Event) -> None:
        self._open(event, _Branch(_place(event), None, {}))

    def _sequence(self, event: Event) -> None:
        self._open(event, _Branch(_place(event), [], None))

    def _open(self, event: Event, mark: _Branch) -> None:
        if event.anchor is not None:
            self.anchors[event.anchor] = mark
        self.stack.append(mark)
        self.keys.append(None)

    def _end(self, _event: Event) -> None:
        self._close()

    def _close(self) -> None:
        mark = self.stack.pop()
        self.keys.pop()
        self._add(mark)

    def _alias(self, event: Event) -> None:
        # The alias itself is the place; what lies below it stands where it was written.
        target = self.anchors.get(event.anchor or "")
        place = _place(event)
        if isinstance(target, _Branch):
            self._add(_Branch(place, target.items, target.entries))
        else:
            self._add(place)

    def _add(self, mark: _Mark) -> None:
        if not self.stack:
            self.roots.append(mark)
            return
        parent = self.stack[-1]
        if parent.items is not None:
            parent.items.append(mark)
        elif parent.entries is not None and (waiting := self.keys[-1]) is not None:
            key, place = waiting
            parent.entries.setdefault(key, (place, mark))
            self.keys[-1] = None


def _place(event: Event) -> Place:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1)
