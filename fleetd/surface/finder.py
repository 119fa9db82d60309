"""
Finds anything by a part of its name, as fast as somebody types.

All names stand in one text, one per line, and a search is a search in that text: a few
milliseconds for a hundred thousand things. The text is made once per topology. The best comes
first: the whole name, then its beginning, then the beginning of a word in it, then the rest; among
equals the kinds that people ask for most, then the shorter name.
"""

import bisect
import re
from collections.abc import Container
from typing import NamedTuple

from topology.resource import Ref, Topology

KINDS_FIRST = ("region", "cluster", "cloud", "serverpool", "server")
LOOKED_AT = 500
"""Hits that are ranked. More are not read by anybody: who gets so many types another letter."""
_WORD = re.compile(r"[^a-z0-9]")


class Index(NamedTuple):
    """Names in lower case, where each begins, and whose they are."""

    digest: str
    text: str
    starts: list[int]
    refs: list[Ref]


def index(topology: Topology) -> Index:
    """Sorted so that what is asked for most is among the first hits."""
    order = {kind: place for place, kind in enumerate(KINDS_FIRST)}
    refs = sorted(topology.resources, key=lambda ref: (order.get(ref.kind, len(order)), ref))
    starts: list[int] = []
    at = 0
    lines = [f"{ref.kind}/{ref.name}".lower() for ref in refs]
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    return Index(topology.digest, "\n".join(lines), starts, refs)


def find(where: Index, words: str, limit: int, within: Container[Ref]) -> list[Ref]:
    """What has every word in its `kind/name`; the last word decides the order. Nothing that is not
    in `within` is found or counted."""
    wanted = words.lower().split()
    if not wanted:
        return []
    found: list[tuple[int, int, int]] = []
    for number in _hits(where, max(wanted, key=len), within):
        end = where.starts[number + 1] - 1 if number + 1 < len(where.starts) else None
        line = where.text[where.starts[number] : end]
        if all(word in line for word in wanted):
            found.append((_rank(line, wanted[-1]), len(line), number))
    # Numbers follow the kinds, so among equals the kind counts before the length.
    found.sort(key=lambda hit: (hit[0], _place(where.refs[hit[2]]), hit[1], hit[2]))
    return [where.refs[number] for _, _, number in found[:limit]]


def _hits(where: Index, word: str, within: Container[Ref]) -> list[int]:
    numbers: list[int] = []
    at = where.text.find(word)
    while at >= 0 and len(numbers) < LOOKED_AT:
        number = bisect.bisect_right(where.starts, at) - 1
        if where.refs[number] in within:
            numbers.append(number)
        after = where.starts[number + 1] if number + 1 < len(where.starts) else len(where.text)
        at = where.text.find(word, after)
    return numbers


def _rank(line: str, word: str) -> int:
    kind, _, name = line.partition("/")
    if word in {name, line}:
        return 0
    if name.startswith(word) or line.startswith(word):
        return 1
    if any(part.startswith(word) for part in _WORD.split(name)):
        return 2
    return 3 if word in name else 4 if word in kind else 5


def _place(ref: Ref) -> int:
    return KINDS_FIRST.index(ref.kind) if ref.kind in KINDS_FIRST else len(KINDS_FIRST)
