"""
What goes away because a person said so: orphans become tombstones, and tombstones go in order.

A tombstone is the old resource, wanted absent, with the needs turned round: what stood on it must
be gone first. The planner, the drivers and the executor treat it like everything else. When it is
gone it is buried: forgotten, with its record. Only orphans can be retired; what a document still
names would be made again, so the document is to be changed first.
"""

import hashlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from fleetd import errors
from topology.compile import fingerprint
from topology.resource import Edge, EdgeKind, Ref, Resource, Topology


class CannotRetire(errors.FleetError):
    """Says why, and what to do first."""


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
    for other, orphan in orphans.items():
        needed = sorted(going & orphan.needs) if other not in going | retired else []
        if needed:
            head = orphan.owner if orphan.owner in orphans else other
            raise CannotRetire(
                f"{other} is an orphan too and still needs {needed[0]}; retire {head} first"
            )


def tombstones(orphans: Mapping[Ref, Resource], retired: AbstractSet[Ref]) -> dict[Ref, Resource]:
    """The retired orphans as resources that are wanted absent, with their needs reversed."""
    going = {ref: orphan for ref, orphan in orphans.items() if ref in retired}
    users: dict[Ref, set[Ref]] = {ref: set() for ref in going}
    for ref, orphan in going.items():
        for need in orphan.needs:
            if need in users:
                users[need].add(ref)
    highest = max((orphan.rank for orphan in going.values()), default=0)
    return {
        ref: replace(
            orphan,
            absent=True,
            needs=frozenset(users[ref]),
            rank=highest - orphan.rank,
            generation=fingerprint(orphan.driver, {**orphan.spec, "absent": True}),
        )
        for ref, orphan in going.items()
    }


def together(declared: Topology, tombs: Mapping[Ref, Resource]) -> Topology:
    """What the planner works on: what should be there, and what should go."""
    if not tombs:
        return declared
    order = sorted(tombs.values(), key=lambda tomb: (tomb.rank, tomb.ref))
    edges = [Edge(t.ref, EdgeKind.NEEDS, need) for t in order for need in sorted(t.needs)]
    mark = hashlib.blake2b(
        repr((declared.digest, [(t.ref, t.generation) for t in order])).encode(), digest_size=16
    ).hexdigest()
    return Topology(
        digest=mark,
        resources={**declared.resources, **{tomb.ref: tomb for tomb in order}},
        edges=(*declared.edges, *edges),
    )
