"""
Where the objects of one API server are, and what happened to them lately.

One counter gives every change its resourceVersion. Each kind keeps a bounded history, from which
watches start and old lists are made again; what is older than its horizon is gone (410).
Objects in here are never changed, only replaced: whoever is given one must not touch it.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.values import GK, Obj, encode, name_of, namespace_of

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"

HISTORY = 1000
"""Changes a kind remembers, about as many as the watch cache of a real server."""

Key = tuple[str, str]
"""Namespace and name."""


class Row:
    """One version of one object, and its JSON once somebody asked for it."""

    __slots__ = ("_bare", "_body", "obj")

    def __init__(self, obj: Obj) -> None:
        self.obj = obj
        self._body: bytes | None = None
        self._bare: bytes | None = None

    @property
    def body(self) -> bytes:
        if self._body is None:
            self._body = encode(self.obj)
        return self._body

    @property
    def bare(self) -> bytes:
        """Without kind and apiVersion, as built-in kinds stand in lists."""
        if self._bare is None:
            apart = ("kind", "apiVersion")
            self._bare = encode({k: v for k, v in self.obj.items() if k not in apart})
        return self._bare


@dataclass(frozen=True, slots=True)
class Change:
    """One committed change. `object` is the last state, also of a deleted one."""

    type: str
    gk: GK
    object: Obj
    old: Obj | None


@dataclass(frozen=True, slots=True)
class Event:
    version: int
    type: str
    key: Key
    row: Row
    old: Row | None


class Watcher(Protocol):
    def offer(self, event: Event) -> None: ...

    def end(self) -> None: ...


class Table:
    """The objects of one kind."""

    def __init__(self, definition: Definition, version: int) -> None:
        self.definition = definition
        self.rows: dict[Key, Row] = {}
        self.history: deque[Event] = deque()
        self.horizon = version
        """The oldest resourceVersion from which the history is whole."""
        self.watchers: list[Watcher] = []
        self._order: list[Key] | None = None

    def keys(self) -> list[Key]:
        """As etcd has them: by namespace, then by name."""
        if self._order is None:
            self._order = sorted(self.rows)
        return self._order

    def all(self, namespace: str = "") -> Iterator[Row]:
        rows = self.rows
        for key in self.keys():
            if not namespace or key[0] == namespace:
                yield rows[key]

    def put(self, event: Event) -> None:
        if event.type == DELETED:
            del self.rows[event.key]
            self._order = None
        else:
            if event.key not in self.rows:
                self._order = None
            self.rows[event.key] = event.row
        self.history.append(event)
        if len(self.history) > HISTORY:
            self.horizon = self.history.popleft().version

    def as_of(self, version: int) -> dict[Key, Row]:
        """The rows as they were. The caller has checked the horizon."""
        rows = dict(self.rows)
        for event in reversed(self.history):
            if event.version <= version:
                break
            if event.old is None:
                rows.pop(event.key, None)
            else:
                rows[event.key] = event.old
        return rows


class Store:
    def __init__(self) -> None:
        self.version = 100
        self.tables: dict[GK, Table] = {}
        self.uids: dict[str, tuple[GK, Key]] = {}
        """Of everything there is: who it is."""
        self.dependents: dict[str, set[tuple[GK, Key]]] = {}
        """Owner's uid to the objects that name it in their ownerReferences."""
        self._listeners: list[Callable[[Change], None]] = []
        self._waiting: deque[Change] = deque()
        self._telling = False
        self.pages: dict[str, bytes] = {}
        """What is said of the kinds, as long as they stay the same."""

    def subscribe(self, listener: Callable[[Change], None]) -> None:
        self._listeners.append(listener)

    def add(self, definition: Definition) -> Table:
        table = Table(definition, self.version)
        self.tables[definition.gk] = table
        return table

    def commit(self, table: Table, kind: str, obj: Obj, old: Row | None) -> Row:
        """Stores `obj`, which from now on belongs to the store, with a new resourceVersion."""
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        row = Row(obj)
        key = (namespace_of(obj), name_of(obj))
        event = Event(self.version, kind, key, row, old)
        table.put(event)
        self._index(table.definition.gk, event)
        for watcher in tuple(table.watchers):
            watcher.offer(event)
        change = Change(kind, table.definition.gk, obj, old.obj if old is not None else None)
        self._waiting.append(change)
        self._tell()
        return row

    def _tell(self) -> None:
        """Listeners hear of changes in their order, also of those that listeners make."""
        if self._telling:
            return
        self._telling = True
        try:
            while self._waiting:
                change = self._waiting.popleft()
                for listener in self._listeners:
                    listener(change)
        finally:
            self._telling = False

    def _index(self, gk: GK, event: Event) -> None:
        metadata = event.row.obj["metadata"]
        me = (gk, event.key)
        if event.type == ADDED:
            self.uids[metadata["uid"]] = me
        elif event.type == DELETED:
            self.uids.pop(metadata["uid"], None)
        now = () if event.type == DELETED else metadata.get("ownerReferences") or ()
        before = event.old.obj["metadata"].get("ownerReferences") or () if event.old else ()
        if now is before or now == before:
            return
        for owner in before:
            members = self.dependents.get(owner["uid"])
            if members is not None:
                members.discard(me)
                if not members:
                    del self.dependents[owner["uid"]]
        for owner in now:
            self.dependents.setdefault(owner["uid"], set()).add(me)

    def forget(self) -> None:
        """As after a compaction: nothing can be watched or continued from before now."""
        for table in self.tables.values():
            table.history.clear()
            table.horizon = self.version
