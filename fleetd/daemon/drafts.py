"""
Plans for documents that somebody sent: what they would change, whether that may be, and its name.

Compiled away from the event loop, together with the documents the daemon has: what was sent takes
the place of a document of the same kind and name, the rest stays. A draft's id says both what is
asked for and how the world was that the draft is about; when either moves, the id is another, and
the old draft cannot be applied any more. Nothing here changes anything.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from fleetd.daemon import outlook, pointers
from fleetd.daemon.handed import Handed
from fleetd.engine import acceptance
from fleetd.engine.state import State
from fleetd.plan.offline import Wave
from fleetd.surface import reach
from fleetd.surface.desk import Given, Owned
from topology import diff, load, read, yamlplace
from topology.catalogue import Component
from topology.documents import accesses
from topology.problem import Problem
from topology.resource import EMPTY, Ref, Topology

Key = tuple[str, str]
"""Kind and name of a document."""
Content = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    id: str
    digest: str
    """Of the topology that would be."""
    change: diff.Change
    waves: tuple[Wave, ...]
    given: tuple[Key, ...]
    """The documents that were sent."""
    keep: Mapping[Key, Content]
    """All that would be kept beside the store."""
    fresh: tuple[Key, ...]
    """Those of `given` that are new, or say something else than before. Some make no resource: a
    window of maintenance, the waves of a rollout."""
    pruned: tuple[Key, ...]
    owned: tuple[Owned, ...]
    consent: str
    """What must be agreed to; empty if nothing."""
    why: str
    """Why that is asked."""
    regions: frozenset[str]
    """All that it touches; `""` stands for the whole fleet."""
    strange: tuple[pointers.Pointer, ...]
    """Secrets that were not named in these regions before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """What was sent cannot become a fleet."""

    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the daemon's own documents come from."""

    paths: Sequence[Path]
    catalogue: Sequence[Path]
    handed: Handed


class _Piece:
    """One document on its way into a set: what it says, and where that is written."""

    def __init__(self, item: load.Item, source: bytes, folder: Path | None = None) -> None:
        self.key: Key = (item.kind, item.name)
        self.file = item.file
        self.item = item
        self.folder = folder or item.folder
        self.line = yamlplace.locate(source, item.index, ())
        self.written = _plain(item, None)
        self.content = _plain(item, folder)
        """The same, with the files it names made absolute where it would move."""


def draft(
    given: Sequence[Given],
    *,
    prune: bool,
    source: Source,
    world: outlook.World,
    declared: Topology,
    drop: Key | None = None,
) -> Draft | Wrong:
    """In a thread; `world` is a copy. `drop` goes if it was handed over, and `prune` lets all go
    that is not among `given`."""
    sent = load.load_bytes({one.file: one.text.encode() for one in given})
    if sent.problems:
        return Wrong(problems=sent.problems)
    folders = {one.file: Path(one.folder) for one in given if one.folder}
    new = _pieces(sent, folders)
    files = load.load(source.paths)
    if files.problems:
        return Wrong(problems=files.problems)
    own, before = _pieces(files), _handed(source.handed)
    lost = [one for one in pointers.homeless(sent) if not ({one.file} & folders.keys())]
    if lost := [one for one in lost if (one.kind, one.name) not in own]:
        return Wrong(problems=tuple(lost))
    gone = before.keys() - new.keys() if prune else before.keys() & {drop}
    pruned = tuple(sorted(gone))
    keep = {key: one for key, one in before.items() if key not in (*pruned, *own)}
    keep.update((key, one) for key, one in new.items() if key not in own)
    edited = {
        key: one for key, one in new.items() if key in own and one.written != own[key].written
    }
    wanted = {key: one.content for key, one in {**own, **keep}.items()}
    # What stands in a file would be changed in that file, so its relative names stay relative.
    wanted.update((key, one.written) for key, one in edited.items())
    reading = _compile(wanted, {**own, **keep, **edited}, source)
    if isinstance(reading, Wrong):
        return reading
    found, catalogue = reading
    change = diff.diff(declared, found)
    regions = tuple(sorted({one.region for one in _touched(change)} & found.regions.keys()))
    consent, why = _consent(change, found) if declared is not EMPTY else ("", "")
    fresh = {*edited, *_fresh(keep, before)}
    told = [new[key] if key in new else keep[key] for key in fresh]
    there = {**before, **own}
    told += [there[key] for key in {*fresh, *gone} & there.keys()]
    return Draft(
        id=identity(found.digest, world, declared, change=change, keep=keep),
        digest=found.digest,
        change=change,
        waves=tuple(outlook.waves(world, found, catalogue, regions)),
        given=tuple(sorted(new)),
        keep={key: one.content for key, one in sorted(keep.items())},
        fresh=tuple(sorted(fresh)),
        pruned=pruned,
        owned=tuple(Owned(*key, own[key].file) for key in sorted(edited)),
        consent=consent,
        why=why,
        regions=frozenset(
            {one.region for one in _touched(change)}
            | {one.old.region for one in change.changed}
            | {reach.region_of(one.content) for one in told}
        ),
        strange=pointers.strange(
            _pointers(new[key] for key in fresh & new.keys() & keep.keys()),
            _pointers(there.values()),
        ),
    )


def _pointers(pieces: Iterable[_Piece]) -> Iterator[pointers.Pointer]:
    return (found for one in pieces for found in pointers.of(one.item, one.folder))


def _fresh(keep: Mapping[Key, _Piece], before: Mapping[Key, _Piece]) -> list[Key]:
    return [
        key for key, one in keep.items() if key not in before or before[key].content != one.content
    ]


def identity(
    digest: str,
    world: outlook.World,
    declared: Topology,
    *,
    change: diff.Change,
    keep: Iterable[Key],
) -> str:
    """What is asked for, and the world as far as this change meets it: what is in force, what
    people said, and how the things are that change and those around them."""
    near = {one.ref for one in _touched(change)}
    known = declared.resources
    for ref in sorted(near & known.keys()):
        near.update(known[ref].needs)
        near.update(declared.needed_by.get(ref, ()))
    policy = world.policy
    told = [
        (str(ref), str(one.truth), one.reason, one.generation)
        for ref in sorted(near)
        if (one := world.view.ready.get(ref)) is not None
    ]
    said = (sorted(policy.pauses), sorted(policy.approvals), sorted(policy.consents))
    kept = sorted(f"{kind}/{name}" for kind, name in keep)
    text = repr((digest, declared.digest, kept, said, told))
    return hashlib.blake2b(text.encode(), digest_size=10).hexdigest()


def world(state: State, now: datetime, make: outlook.MakeDrivers) -> outlook.World:
    """A copy of what is known. On the loop: nothing moves while it is made."""
    view = state.view
    return outlook.World(
        view=replace(
            view,
            seen=dict(view.seen),
            ready=dict(view.ready),
            attempts=dict(view.attempts),
            orphans=dict(view.orphans),
        ),
        policy=state.policy,
        now=now,
        make=make,
    )


def _touched(change: diff.Change) -> list[Any]:
    return [*change.added, *change.removed, *(one.new for one in change.changed)]


def _consent(change: diff.Change, new: Topology) -> tuple[str, str]:
    if not change.consent:
        return "", ""
    return acceptance.consent_id(new), "; ".join(str(t) for t in change.guard if t.consent)


def _handed(handed: Handed) -> dict[Key, _Piece]:
    return _pieces(load.load([handed.folder])) if handed.there else {}


def _pieces(bundle: load.Bundle, folders: Mapping[str, Path] | None = None) -> dict[Key, _Piece]:
    made = (
        _Piece(item, bundle.sources[item.file], (folders or {}).get(item.file))
        for item in bundle.items
    )
    return {piece.key: piece for piece in made}


def _plain(item: load.Item, folder: Path | None) -> dict[str, Any]:
    """As it was written. Files that it names are made absolute where the document moves."""
    content = item.document.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for path, access in accesses.of(item.document) if folder is not None else ():
        if access.file is None or folder is None or Path(access.file).is_absolute():
            continue
        at: Any = content
        for part in path:
            at = at[part]
        at["file"] = str(folder / access.file)
    return content


def _compile(
    wanted: Mapping[Key, Content], pieces: Mapping[Key, _Piece], source: Source
) -> tuple[Topology, Mapping[str, Component]] | Wrong:
    """The same door as files have: JSON is YAML. With the catalogue that counts then."""
    names = {f"{kind}-{name}.yaml": piece for (kind, name), piece in sorted(pieces.items())}
    found = read.read_bytes(
        {name: json.dumps(wanted[piece.key]).encode() for name, piece in names.items()},
        source.catalogue,
    )
    if found.topology is not None:
        return found.topology, found.catalogue
    return Wrong(problems=tuple(_placed(one, names.get(one.file)) for one in found.problems))


def _placed(problem: Problem, piece: _Piece | None) -> Problem:
    """At the document as people know it; which line inside is lost with its text."""
    if piece is None:
        return problem
    return replace(problem, file=piece.file, line=piece.line[0], column=piece.line[1])


def refs(change: diff.Change) -> list[Ref]:
    return sorted(one.ref for one in _touched(change))
