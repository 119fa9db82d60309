"""
Metrics as text, kept: what did not change since the last scrape is not rendered again.

A family is made of blocks, each the lines of one object (a region, a backend ...). A block is made
anew when its mark differs from the last one; a block that nobody names any more goes, and its
series with it. The two formats differ in the names of counters above their lines and in the last
line of all, so they share the blocks.
"""

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from typing import NamedTuple

from fleetd import secrets
from fleetd.surface.panel import Histogram

Samples = Sequence[tuple[tuple[str, ...], "float | Histogram"]]
"""Label values, in the order of the declaration, and what is told of them."""

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_END = b"# EOF\n"
PAGE = 50
"""Blocks that are kept together."""


class Declared(NamedTuple):
    name: str
    type: str
    help: str
    labels: tuple[str, ...] = ()


class Sheet:
    """All families of one endpoint, in order."""

    def __init__(self, families: Sequence[Declared]) -> None:
        self._families = {one.name: _Family(one) for one in families}
        self._values: dict[str, str] = {}
        """Of labels: as they were given, and as they are written."""
        self._scrubbed = -1

    def put(
        self, declared: Declared, key: Hashable, mark: object, samples: Callable[[], Samples]
    ) -> None:
        """The series of one object. `samples` is asked only if the mark is another."""
        family = self._families[declared.name]
        old = family.blocks.get(key)
        if old is None or old[0] != mark:
            family.put(key, mark, "".join(self._lines(declared, samples())).encode())

    def keep(self, declared: Declared, keys: Collection[Hashable]) -> None:
        """Only these objects are still there."""
        family = self._families[declared.name]
        family.drop([key for key in family.blocks if key not in keys])

    def forget_secrets(self) -> bool:
        """Whether a label that was harmless when it was written holds what is secret since; then
        nothing is kept. Looks only when there are new secrets."""
        if self._scrubbed == secrets.REGISTRY.count:
            return False
        self._scrubbed = secrets.REGISTRY.count
        told = "\n".join(self._values)
        if secrets.scrub(told) == told:
            return False
        self._values.clear()
        for one in self._families.values():
            one.drop([*one.blocks])
        return True

    def pieces(self, *, openmetrics: bool) -> Iterator[bytes]:
        """To be sent one after the other; with what others tell, before `end`. Large ones are kept
        as they are, because to copy them costs as much as to send them."""
        for one in self._families.values():
            yield one.open_head if openmetrics else one.head
            yield from one.pages()

    def _lines(self, declared: Declared, samples: Samples) -> Iterator[str]:
        for values, told in samples:
            labels = ",".join(
                f'{name}="{self._values.get(value) or self._written(value)}"'
                for name, value in zip(declared.labels, values, strict=True)
            )
            if isinstance(told, Histogram):
                yield from _buckets(declared.name, labels, told)
            else:
                braces = f"{{{labels}}}" if labels else ""
                yield f"{declared.name}{braces} {number(told)}\n"

    def _written(self, value: str) -> str:
        # Scrubbed as it is, before anything is escaped.
        found = self._values[value] = secrets.scrub(value).translate(_ESCAPES)
        return found


def end(*, openmetrics: bool) -> bytes:
    return _END if openmetrics else b""


class _Family:
    __slots__ = ("_pages", "_place", "blocks", "head", "open_head")

    def __init__(self, declared: Declared) -> None:
        self.head = _head(declared, declared.name)
        self.open_head = _head(declared, declared.name.removesuffix("_total"))
        self.blocks: dict[Hashable, tuple[object, bytes]] = {}
        self._pages: list[_Page] = []
        """Blocks in their order, some on each; one that changes costs its page."""
        self._place: dict[Hashable, _Page] = {}

    def put(self, key: Hashable, mark: object, text: bytes) -> None:
        if key not in self._place:
            if not self._pages or len(self._pages[-1].texts) >= PAGE:
                self._pages.append(_Page())
            self._place[key] = self._pages[-1]
        page = self._place[key]
        page.texts[key] = text
        page.whole = None
        self.blocks[key] = mark, text

    def drop(self, keys: Collection[Hashable]) -> None:
        for key in keys:
            page = self._place.pop(key)
            del page.texts[key], self.blocks[key]
            page.whole = None
        self._pages = [page for page in self._pages if page.texts]

    def pages(self) -> Iterator[bytes]:
        for page in self._pages:
            if page.whole is None:
                page.whole = b"".join(page.texts.values())
            yield page.whole


class _Page:
    __slots__ = ("texts", "whole")

    def __init__(self) -> None:
        self.texts: dict[Hashable, bytes] = {}
        self.whole: bytes | None = None


def _head(declared: Declared, name: str) -> bytes:
    told = declared.help.translate(str.maketrans({"\\": r"\\", "\n": r"\n"}))
    return f"# HELP {name} {told}\n# TYPE {name} {declared.type}\n".encode()


def _buckets(name: str, labels: str, told: Histogram) -> Iterator[str]:
    comma = f"{labels}," if labels else ""
    count = 0
    for bound, here in zip((*told.bounds, math.inf), told.counts, strict=True):
        count += here
        yield f'{name}_bucket{{{comma}le="{number(bound)}"}} {number(count)}\n'
    braces = f"{{{labels}}}" if labels else ""
    yield f"{name}_count{braces} {number(count)}\n"
    yield f"{name}_sum{braces} {number(told.total)}\n"


def number(value: float) -> str:
    """As both formats want it: canonical, so that a bucket has one name."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
