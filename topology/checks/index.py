"""
The index that all checks read: documents by kind and name, and how to complain about them.

A check is a function `(Index) -> Iterator[Finding]`. It sees only documents that are good in
themselves. One rule matters: what is *absent* may be complained about only if nothing of that
kind was refused (`Index.whole`), or else the reader would be told of a consequence as if it
were a second fault.

A finding has no line yet, because finding lines means reading a file again: `checks.placing`
does that once per file, for all findings together.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from topology import load
from topology.checks import spelling
from topology.documents import base
from topology.documents.cloud import Cloud
from topology.documents.cluster import Cluster, Worker
from topology.documents.pool import ServerPool
from topology.documents.region import Region

Path = tuple[str | int, ...]
Some = TypeVar("Some", bound=base.Document)


MARK = "\x02{}\x03"
"""Cannot be in the text of a document: control characters are not printable YAML."""


class Spot(NamedTuple):
    """A place in a document."""

    item: load.Item
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem whose line is not known yet."""

    spot: Spot
    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    bundle: load.Bundle
    regions: Mapping[str, Region]
    pools: Mapping[str, ServerPool]
    clusters: Mapping[str, Cluster]
    clouds: Mapping[str, Cloud]
    repeated: tuple[tuple[base.Document, base.Document], ...]
    """Documents whose kind and name were taken already, each after the one that has them."""
    speller: spelling.Speller = field(default_factory=spelling.Speller)
    items: Mapping[int, load.Item]
    """By identity of the document, because names may be taken twice."""
    spots: list[Spot] = field(default_factory=list[Spot])
    """Places that sentences mention."""

    def every(self, kind: type[Some]) -> Iterator[Some]:
        """All documents of a kind, those with a taken name too."""
        for item in self.bundle.items:
            if isinstance(item.document, kind):
                yield item.document

    def complain(
        self, document: base.Document, path: Path, *, code: str, message: str, hint: str
    ) -> Finding:
        spot = Spot(self.items[id(document)], path)
        return Finding(spot=spot, code=code, message=message, hint=hint)

    def place(self, document: base.Document, path: Path) -> str:
        """Stands for `FILE:LINE` in a sentence about another place, until `placing` fills it in."""
        self.spots.append(Spot(self.items[id(document)], path))
        return MARK.format(len(self.spots) - 1)

    def whole(self, *kinds: str) -> bool:
        """Whether every document of these kinds could be read, so that a missing one is missing."""
        return not any(kind in {"", *kinds} for kind, _ in self.bundle.refused)

    def unknown(
        self, document: base.Document, path: Path, kind: str, name: str, known: Iterable[str]
    ) -> Iterator[Finding]:
        """The complaint about a name that no document of the kind has, unless one was refused."""
        refused = self.bundle.refused
        if any(k in {"", kind} and n in {"", name} for k, n in refused):
            return
        code = {
            "Region": "unknown-region",
            "ServerPool": "unknown-pool",
            "Cluster": "unknown-cluster",
            "Cloud": "unknown-cloud",
        }[kind]
        yield self.complain(
            document,
            path,
            code=code,
            message=f"there is no {kind} {name!r}",
            hint=self.speller.hint(
                name,
                [*known, *(other for k, other in refused if k == kind and other)],
                f"add a {kind} document of that name",
            ),
        )


def index(bundle: load.Bundle) -> Index:
    """The fleet of a bundle. Of two documents with one name the first one counts."""
    found: dict[tuple[str, str], base.Document] = {}
    repeated: list[tuple[base.Document, base.Document]] = []
    for item in bundle.items:
        key = (type(item.document).__name__, item.document.metadata.name)
        first = found.setdefault(key, item.document)
        if first is not item.document:
            repeated.append((first, item.document))
    return Index(
        bundle=bundle,
        regions=_named(found, Region),
        pools=_named(found, ServerPool),
        clusters=_named(found, Cluster),
        clouds=_named(found, Cloud),
        repeated=tuple(repeated),
        items={id(item.document): item for item in bundle.items},
    )


def beside(fleet: Index, items: Sequence[load.Item]) -> Index:
    """An index in which these documents stand beside the fleet: `every` gives them, and all names
    lead to documents of the fleet."""
    known = {(one.kind, one.name): one.document for one in reversed(fleet.bundle.items)}
    repeated = [
        (first, item.document)
        for item in items
        if (first := known.get((item.kind, item.name))) is not None
    ]
    return dataclasses.replace(
        fleet,
        bundle=dataclasses.replace(fleet.bundle, items=tuple(items)),
        repeated=tuple(repeated),
        items={**fleet.items, **{id(item.document): item for item in items}},
    )


def _named(found: Mapping[tuple[str, str], base.Document], kind: type[Some]) -> dict[str, Some]:
    return {name: one for (_, name), one in found.items() if isinstance(one, kind)}


def zones_of(worker: Worker, region: Region) -> Sequence[str]:
    """The zones in which a worker's nodes stand."""
    return worker.zones or region.spec.zones


def share_of_zone(count: int, zones: Sequence[str], zone: str) -> int:
    """How many of `count` nodes Gardener puts into one of the zones: it deals them out in turn,
    in the order in which the zones are listed."""
    if zone not in zones:
        return 0
    each, left = divmod(count, len(zones))
    return each + (1 if zones.index(zone) < left else 0)


def count(number: int, noun: str) -> str:
    """`1 server`, `2 servers`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names for a sentence; a long list is cut, because nobody reads fifty names."""
    all_names = list(names)
    text = ", ".join(all_names[:most])
    left = len(all_names) - most
    return f"{text} and {left} more" if left > 0 else text
