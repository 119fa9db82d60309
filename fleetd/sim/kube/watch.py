"""
One open watch: changes go in, lines come out.

It knows nothing of sockets or tasks: whoever carries it takes the lines that are there and asks
to be woken when there are more. An object that stops matching the selector is DELETED for this
watch, one that begins to match is ADDED.
"""

from collections.abc import Callable

from fleetd.sim.kube.selectors import Test
from fleetd.sim.kube.store import ADDED, DELETED, Event, Row, Table
from fleetd.sim.kube.values import Obj, encode

Form = Callable[[Row], bytes]


def line(kind: str, body: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"


class Watch:
    """Also what a face carries: see `fleetd.sim.faces.handler.Stream`."""

    def __init__(
        self,
        table: Table,
        *,
        namespace: str = "",
        test: Test | None = None,
        form: Form = lambda row: row.body,
        bookmark: Callable[[int], Obj] | None = None,
    ) -> None:
        self._table = table
        self._namespace = namespace
        self._test = test
        self._form = form
        self._bookmark = bookmark
        self._lines: list[bytes] = []
        self._wake: Callable[[], None] | None = None
        self.ended = False

    @property
    def bookmarked(self) -> bool:
        return self._bookmark is not None and not self.ended

    def start(self, since: int | None, *, initial: bool, now: int, mark: bool = False) -> None:
        """Fills in what has happened already: all objects, or the history since a version."""
        if initial:
            for row in self._table.all(self._namespace):
                if self._test is None or self._test(row.obj):
                    self._lines.append(line(ADDED, self._form(row)))
            if mark and self._bookmark is not None:
                self._lines.append(line("BOOKMARK", encode(self._marked(now))))
        elif since is not None:
            for event in self._table.history:
                if event.version > since:
                    self.offer(event)
        self._table.watchers.append(self)

    def _marked(self, version: int) -> Obj:
        made = self._bookmark(version) if self._bookmark is not None else {}
        made["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
        return made

    def offer(self, event: Event) -> None:
        if self.ended or (self._namespace and event.key[0] != self._namespace):
            return
        kind = event.type
        if self._test is not None:
            is_in = kind != DELETED and self._test(event.row.obj)
            was_in = event.old is not None and self._test(event.old.obj)
            if not is_in and not was_in:
                return
            if kind != DELETED or not was_in:
                kind = DELETED if not is_in else kind if was_in else ADDED
        self._say(line(kind, self._form(event.row)))

    def bookmark(self, version: int) -> None:
        if self._bookmark is not None and not self.ended:
            self._say(line("BOOKMARK", encode(self._bookmark(version))))

    def _say(self, text: bytes) -> None:
        self._lines.append(text)
        if self._wake is not None:
            self._wake()

    def take(self) -> list[bytes]:
        """The lines that have come since the last time."""
        taken, self._lines = self._lines, []
        return taken

    def on_ready(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        if self._lines or self.ended:
            wake()

    def end(self) -> None:
        """The server ends it. Lines that are there can still be taken."""
        if self.ended:
            return
        self.ended = True
        if self in self._table.watchers:
            self._table.watchers.remove(self)
        if self._wake is not None:
            self._wake()

    def close(self) -> None:
        """The reader has gone."""
        self._wake = None
        self.end()


class Ending:
    """A stream of a few lines that is over at once: how a watch says 410."""

    def __init__(self, *lines: bytes) -> None:
        self._lines = list(lines)
        self.ended = True

    def take(self) -> list[bytes]:
        taken, self._lines = self._lines, []
        return taken

    def on_ready(self, wake: Callable[[], None]) -> None:
        wake()

    def close(self) -> None:
        pass
