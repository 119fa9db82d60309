"""
Many spellings looked for at once in one text.

Whatever is looked for and has at least seven bytes holds one whole group of four that begins at
a multiple of four; from fifteen bytes on, one of eight. So a text is read as numbers of four and of
eight bytes, in C, and each is looked up; what a spelling may have in such a place is filed for
each of the ways in which it can lie. The rule: all of it is about bytes of UTF-8, in which a
spelling is found where it is in the text and nowhere else.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, Literal, final

SHORTEST: Final = 8
"""Bytes. Seven would do."""
TELLING: Final = 32
"""Bytes of a longer spelling that are found even where the rest was cut off."""
_WIDE_FROM = 15


@final
class _Table:
    """Beginnings of spellings, by each group of so many bytes that can be their first whole one."""

    __slots__ = ("_filed", "_letter", "_number", "_width")

    def __init__(self, letter: Literal["I", "Q"]) -> None:
        self._letter: Literal["I", "Q"] = letter
        self._number = struct.Struct(f"@{letter}")
        self._width = self._number.size
        self._filed: dict[int, list[bytes] | bytes] = {}
        """One, or several: a list for each would double what it takes."""

    def _groups(self, head: bytes) -> set[int]:
        return {self._number.unpack_from(head, at)[0] for at in range(self._width)}

    def add(self, head: bytes) -> None:
        filed = self._filed
        for group in self._groups(head):
            there = filed.get(group)
            if there is None:
                filed[group] = head
            elif isinstance(there, bytes):
                filed[group] = [there, head]
            else:
                there.append(head)

    def remove(self, head: bytes) -> None:
        for group in self._groups(head):
            there = self._filed[group]
            if isinstance(there, bytes):
                del self._filed[group]
                continue
            there.remove(head)
            if len(there) == 1:
                self._filed[group] = there[0]

    def clear(self) -> None:
        self._filed.clear()

    def found(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        """Where one of them stands, and which."""
        filed, width = self._filed, self._width
        if not filed:
            return
        groups = memoryview(text)[: len(text) // width * width].cast(self._letter)
        if filed.keys().isdisjoint(groups):
            return
        for number, group in enumerate(groups):
            there = filed.get(group)
            if there is None:
                continue
            for head in (there,) if isinstance(there, bytes) else there:
                for at in self._here(text, number * width, head):
                    yield at, head

    def _here(self, text: bytes, place: int, head: bytes) -> Iterator[int]:
        group, last = text[place : place + self._width], 2 * self._width - 1
        before = head.find(group, 0, last)
        while before >= 0:
            if place >= before and text.startswith(head, place - before):
                yield place - before
            before = head.find(group, before + 1, last)


@final
class Sieve:
    __slots__ = ("_by_head", "_narrow", "_wide")

    def __init__(self) -> None:
        self._narrow, self._wide = _Table("I"), _Table("Q")
        self._by_head: dict[bytes, list[bytes]] = {}
        """Kubeconfigs all begin alike; each would be tried at every beginning of one."""

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self._by_head)

    def _of(self, head: bytes) -> _Table:
        return self._narrow if len(head) < _WIDE_FROM else self._wide

    def add(self, spelling: bytes) -> None:
        """One of at least `SHORTEST` bytes."""
        head = spelling[:TELLING]
        there = self._by_head.setdefault(head, [])
        if not there:
            self._of(head).add(head)
        there.append(spelling)

    def remove(self, spelling: bytes) -> None:
        """As often as it was added."""
        head = spelling[:TELLING]
        there = self._by_head[head]
        there.remove(spelling)
        if not there:
            del self._by_head[head]
            self._of(head).remove(head)

    def clear(self) -> None:
        self._narrow.clear()
        self._wide.clear()
        self._by_head.clear()

    def holds(self, text: bytes) -> bool:
        """Whether there is anything to find."""
        return any(True for _ in self._heads(text))

    def replaced(self, text: bytes, instead: bytes) -> bytes:
        """The text with `instead` where something was found; once where two overlap."""
        found = [
            (at, at + max(_overlap(text, at, one) for one in self._by_head[head]))
            for at, head in {*self._heads(text)}
        ]
        return b"".join(_pieces(text, sorted(found), instead)) if found else text

    def _heads(self, text: bytes) -> Iterator[tuple[int, bytes]]:
        yield from self._wide.found(text)
        yield from self._narrow.found(text)


def _overlap(text: bytes, at: int, spelling: bytes) -> int:
    """How much of a spelling stands where its beginning does: what was cut off ("...") must not
    show its beginning either. Whole letters only."""
    if text.startswith(spelling, at):
        return len(spelling)
    same, most = min(TELLING, len(spelling)), min(len(spelling), len(text) - at)
    while same < most:  # by halves: byte by byte would be dear for a file of certificates
        half = (same + most + 1) // 2
        if text[at + same : at + half] == spelling[same:half]:
            same = half
        else:
            most = half - 1
    while at + same < len(text) and text[at + same] & 0xC0 == 0x80:
        same += 1
    return same


def _pieces(text: bytes, found: Sequence[tuple[int, int]], instead: bytes) -> Iterator[bytes]:
    kept, (first, end) = 0, found[0]
    for begin, until in found:
        if begin >= end:
            yield text[kept:first]
            yield instead
            kept, first = end, begin
        end = max(end, until)
    yield text[kept:first]
    yield instead
    yield text[end:]
