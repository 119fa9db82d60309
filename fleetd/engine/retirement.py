"""
What goes away because a person said so: orphans become tombstones, and tombstones go in order.

A tombstone is the old resource, wanted absent, with the needs turned round: what stood on it must
be gone first. The planner, the drivers and the executor treat it like everything else. When it is
gone it is buried: forgotten, with its record. Only orphans can be retired; what a document still
names would be made again, so the document is to be changed first.
"""

import graphlib
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar, overload

from fleetd import errors
from topology.compile import fingerprint
from topology.resource import Edge, EdgeKind, Ref, Resource, Topology

_V = TypeVar("_V")


class CannotRetire(errors.FleetError):
    """Says why, and what to do first."""


class OthersGo(CannotRetire):
    """By now other things would go than those that somebody agreed to."""


def family(ref: Ref, orphans: Mapping[Ref, Resource]) -> list[Ref]:
    """What goes with it: all orphans of the same document, if it stands for that document."""
    mine = orphans[ref]
    if mine.owner != ref:
        return [ref]
    return [other for other, orphan in orphans.items() if orphan.owner == ref]


def check(
    ref: Ref, declared: Topology, orphans: Mapping[Ref, Resource], retired: AbstractSet[Ref]
) -> None:
    """Raises CannotRetire."""
    if ref in declared.resources:
        owner = declared.resources[ref].owner
        where = f"the document of {owner}" if owner not in (None, ref) else "the documents"
        raise CannotRetire(
            f"{ref} is still named by a document, so it would be made again; remove it from "
            f"{where} first, then retire it"
        )
    if ref not in orphans:
        raise CannotRetire(f"{ref} is not known; `fleetctl get orphans` lists what can be retired")
    going = set(family(ref, orphans))
    for other, resource in declared.resources.items():
        needed = sorted(going & resource.needs)
        if needed:
            raise CannotRetire(f"{other} still needs {needed[0]}; remove that need first")
    # A sum needs its parts to be Ready, not to be: their going breaks nothing of it.
    free = going | retired | _sums(orphans).keys()
    for other, orphan in orphans.items():
        needed = sorted(going & orphan.needs) if other not in free else []
        if needed:
            head = orphan.owner if orphan.owner in orphans else other
            raise CannotRetire(
                f"{other} is an orphan too and still needs {needed[0]}; retire {head} first"
            )


def tombstones(orphans: Mapping[Ref, Resource], retired: AbstractSet[Ref]) -> dict[Ref, Resource]:
    """The retired orphans as resources that are wanted absent, with their needs reversed. Only a
    sum (a cloud, a region, a pool) goes after what it is the sum of: as long as there is something
    of it, others ask what it was. And what needs a sum needs its parts. What watches over others
    goes after them."""
    going = {ref: orphan for ref, orphan in orphans.items() if ref in retired}
    sums = _sums(going)
    waits: dict[Ref, set[Ref]] = {ref: set() for ref in going}
    for ref, orphan in going.items():
        for need in orphan.needs & going.keys():
            if ref in sums:
                waits[ref].add(need)
            else:
                waits[need].add(ref)
                for part in sums.get(need, ()):
                    waits[part].add(ref)
    for ref, parts in sums.items():
        waits[ref].update(parts)
    for ref, guarded in _outlived(going).items():
        waits[ref].update(guarded)
    ranks: dict[Ref, int] = {}
    for ref in graphlib.TopologicalSorter(waits).static_order():
        ranks[ref] = max((ranks[need] + 1 for need in waits[ref]), default=0)
    return {
        ref: replace(
            orphan,
            absent=True,
            needs=frozenset(waits[ref]),
            rank=ranks[ref],
            generation=fingerprint(orphan.driver, {**orphan.spec, "absent": True}),
        )
        for ref, orphan in going.items()
    }


def _outlived(going: Mapping[Ref, Resource]) -> dict[Ref, set[Ref]]:
    """What watches over others of its cluster, with those."""
    kinds = {kind for one in going.values() for kind in one.spec.get("outlives", ())}
    there: dict[tuple[str, str], set[Ref]] = {}
    for ref, one in going.items():
        if ref.kind in kinds:
            there.setdefault((ref.kind, str(one.spec.get("cluster"))), set()).add(ref)
    return {
        ref: {
            other
            for kind in one.spec["outlives"]
            for other in there.get((kind, str(one.spec.get("cluster"))), ())
        }
        for ref, one in going.items()
        if one.spec.get("outlives")
    }


def _sums(going: Mapping[Ref, Resource]) -> dict[Ref, list[Ref]]:
    """What stands for a document and is no ground for its parts, with the parts."""
    parts: dict[Ref, list[Ref]] = {ref: [] for ref, one in going.items() if one.owner == ref}
    for ref, one in going.items():
        if one.owner is not None and one.owner != ref and one.owner in parts:
            parts[one.owner].append(ref)
    return {
        ref: found
        for ref, found in parts.items()
        if found and not any(ref in going[part].needs for part in found)
    }


class _Both(Mapping[Ref, _V]):
    """Two mappings without a key in common, read as one: neither is copied."""

    __slots__ = ("_first", "_second")

    def __init__(self, first: Mapping[Ref, _V], second: Mapping[Ref, _V]) -> None:
        self._first = first
        self._second = second

    def __getitem__(self, ref: Ref) -> _V:
        return self._first[ref] if ref in self._first else self._second[ref]

    def __contains__(self, ref: object) -> bool:
        return ref in self._first or ref in self._second

    def __iter__(self) -> Iterator[Ref]:
        return itertools.chain(self._first, self._second)

    def __len__(self) -> int:
        return len(self._first) + len(self._second)


class _Edges(Sequence[Edge]):
    """Those of the documents, then those of the tombstones; worked out only if somebody reads."""

    def __init__(self, first: Sequence[Edge], tombs: Mapping[Ref, Resource]) -> None:
        self._first = first
        self._tombs = tombs

    @cached_property
    def _all(self) -> tuple[Edge, ...]:
        needs = ((tomb.ref, need) for tomb in self._tombs.values() for need in sorted(tomb.needs))
        return (*self._first, *(Edge(ref, EdgeKind.NEEDS, need) for ref, need in needs))

    @overload
    def __getitem__(self, place: int) -> Edge: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Edge]: ...
    def __getitem__(self, place: int | slice) -> Edge | Sequence[Edge]:
        return self._all[place]

    def __len__(self) -> int:
        return len(self._all)


@dataclass(frozen=True, kw_only=True)
class Joined(Topology):
    """What should be there, and what should go. A tombstone needs other tombstones only, so the
    two stand side by side: one that is buried costs nothing of the fleet's size."""

    declared: Topology
    tombs: Mapping[Ref, Resource]

    @cached_property
    def needed_by(self) -> Mapping[Ref, tuple[Ref, ...]]:
        return _Both(self.declared.needed_by, self._apart.needed_by)

    @cached_property
    def carriers(self) -> Mapping[Ref, tuple[Ref, ...]]:
        return self.declared.carriers

    @cached_property
    def carries(self) -> Mapping[Ref, tuple[Ref, ...]]:
        return self.declared.carries

    @cached_property
    def regions(self) -> Mapping[str, tuple[Ref, ...]]:
        found = dict(self.declared.regions)
        for region, refs in self._apart.regions.items():
            found[region] = (*found.get(region, ()), *refs)
        return found

    @cached_property
    def domains(self) -> Mapping[str, tuple[Ref, ...]]:
        found = dict(self.declared.domains)
        for domain, refs in self._apart.domains.items():
            found[domain] = (*found.get(domain, ()), *refs)
        return found

    @cached_property
    def _apart(self) -> Topology:
        return Topology(digest="", resources=self.tombs, edges=())


def together(declared: Topology, tombs: Mapping[Ref, Resource]) -> Topology:
    """What should be there, and what is there besides: tombstones for the planner, orphans for
    drivers that look something up."""
    if not tombs:
        return declared
    order = sorted(tombs.values(), key=lambda tomb: (tomb.rank, tomb.ref))
    mark = hashlib.blake2b(
        repr((declared.digest, [(t.ref, t.generation) for t in order])).encode(), digest_size=16
    ).hexdigest()
    return _joined(declared, {tomb.ref: tomb for tomb in order}, mark)


def without(joined: Joined, ref: Ref) -> Topology:
    """The same with one tombstone less. The digest stays while any is left: consents are given to
    what a person asked for, and that does not change because some of it is done."""
    left = {
        other: replace(tomb, needs=tomb.needs - {ref}) if ref in tomb.needs else tomb
        for other, tomb in joined.tombs.items()
        if other != ref
    }
    return _joined(joined.declared, left, joined.digest) if left else joined.declared


def _joined(declared: Topology, tombs: Mapping[Ref, Resource], digest: str) -> Joined:
    return Joined(
        digest=digest,
        resources=_Both(declared.resources, tombs),
        edges=_Edges(declared.edges, tombs),
        declared=declared,
        tombs=tombs,
    )
