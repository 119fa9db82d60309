"""
The ledger of credentials: what there is, where it lies, who makes and who uses it. Never a value.

Made of the catalogue's `makes` and `uses` and of the topology; version and age come from what a
driver saw, where it tells them (facts `observed.credentials.<name>`). One entry for each thing
that makes a credential; servers of one pool are one entry, because a fleet has very many.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from fleetd.surface import shapes
from fleetd.surface.shapes import Shape
from fleetd.vocabulary import Observation
from topology import catalogue
from topology.catalogue import Component, Made
from topology.resource import Ref, Resource, Topology

USERS_MAX = 20
"""Users named one by one; all are counted."""
SERVER = "server"


@dataclass(slots=True)
class _Entry:
    made: Made
    maker: Resource
    count: int = 1
    users: set[Ref] = field(default_factory=set[Ref])


def entries(
    topology: Topology,
    component: Callable[[str], Component | None],
    seen: Callable[[Ref], Observation | None],
    *,
    now: datetime,
    region: str | None = None,
) -> list[Shape]:
    """In the order of region, credential and maker."""
    kinds = sorted({ref.kind for ref in topology.resources})
    known = {kind: found for kind in kinds if (found := component(kind)) is not None}
    made = _made(topology, known, region)
    _find_users(topology, known, made)
    proofs = {(kind, use.name): use.proof for kind, one in known.items() for use in one.spec.uses}
    found = sorted(
        (one for several in made.values() for one in several),
        key=lambda one: (one.maker.region, one.made.name, one.maker.ref),
    )
    return [_shape(one, proofs, seen(one.maker.ref), now) for one in found]


def _made(
    topology: Topology, known: Mapping[str, Component], region: str | None
) -> dict[str, list[_Entry]]:
    """By name of the credential."""
    found: dict[str, list[_Entry]] = {}
    pools: dict[tuple[str, Ref | None], _Entry] = {}
    makers = {kind: one.spec.makes for kind, one in known.items() if one.spec.makes}
    for ref, resource in topology.resources.items():
        if ref.kind not in makers or region not in {None, resource.region}:
            continue
        for made in makers[ref.kind]:
            pool = (made.name, resource.owner)
            if ref.kind == SERVER and pool in pools:
                pools[pool].count += 1
                continue
            entry = _Entry(made, resource)
            found.setdefault(made.name, []).append(entry)
            if ref.kind == SERVER:
                pools[pool] = entry
    return found


def _find_users(
    topology: Topology, known: Mapping[str, Component], made: Mapping[str, list[_Entry]]
) -> None:
    """A user of a credential uses that of the maker it stands on; where it stands on none, those
    of its region."""
    users = {kind: one.spec.uses for kind, one in known.items() if one.spec.uses}
    below: dict[Ref, frozenset[Ref]] = {}
    makers = {one.maker.ref for several in made.values() for one in several}
    for ref, resource in topology.resources.items():
        found = {need for need in resource.needs if need in makers}
        below[ref] = frozenset(found.union(*(below.get(need, ()) for need in resource.needs)))
        for use in users.get(ref.kind, ()):
            offered = [one for one in made.get(use.name, ()) if one.maker.region == resource.region]
            near = [one for one in offered if one.maker.ref in below[ref] or _same(one, resource)]
            for one in near or offered:
                one.users.add(ref)


def _same(entry: _Entry, resource: Resource) -> bool:
    if entry.maker.ref.kind == SERVER == resource.ref.kind:
        return entry.maker.owner == resource.owner
    return entry.maker.ref == resource.ref


def _shape(
    entry: _Entry, proofs: Mapping[tuple[str, str], str], seen: Observation | None, now: datetime
) -> Shape:
    made, maker = entry.made, entry.maker
    told = _told(made.name, seen)
    born = told.get("madeAt")
    age = (now - born).total_seconds() if isinstance(born, datetime) else None
    every = made.rotate.total_seconds() if made.rotate is not None else None
    return {
        "name": made.name,
        "region": maker.region,
        "madeBy": str(maker.ref) if entry.count == 1 else f"{entry.count} servers of {maker.owner}",
        "where": where(made, maker, several=entry.count > 1),
        "how": made.how,
        "rotateSeconds": every,
        "version": told.get("version"),
        "ageSeconds": age,
        "nextRotation": shapes.moment(born + made.rotate)
        if isinstance(born, datetime) and made.rotate is not None
        else None,
        "expires": told.get("expires"),
        "usedBy": [
            {"ref": str(ref), "proof": proofs.get((ref.kind, made.name), "")}
            for ref in sorted(entry.users)[:USERS_MAX]
        ],
        "users": len(entry.users),
        "stillOld": told.get("stillOld", []),
    }


def where(made: Made, maker: Resource, *, several: bool = False) -> list[str]:
    """`openbao:infrastructure/kubeconfig-hv`, `secret:rook-ceph/rook-ceph-mon`."""
    places = (("openbao", made.path), ("secret", made.secret))
    return [f"{kind}:{_filled(text, maker, several=several)}" for kind, text in places if text]


def _filled(text: str, maker: Resource, *, several: bool) -> str:
    spec, ref = maker.spec, maker.ref
    garden: Any = spec.get("garden")
    words = {
        "region": maker.region,
        "name": ref.name,
        "server": "<server>" if several else ref.name,
        "cluster": spec.get("cluster") or _cluster(maker),
        "cloud": spec.get("cloud") or (ref.name if ref.kind == "cloud" else None),
        "project": cast("Mapping[str, Any]", garden).get("project")
        if isinstance(garden, Mapping)
        else None,
    }
    return catalogue.fill(text, lambda word: str(words.get(word) or f"<{word}>"))


def _cluster(maker: Resource) -> str | None:
    if maker.ref.kind == "cluster":
        return maker.ref.name
    kind, _, name = maker.backend.partition(":")
    return name if kind == "cluster" else None


def _told(name: str, seen: Observation | None) -> dict[str, Any]:
    """What a driver says of a credential: only the fields named here, so that nothing else can
    ever come out."""
    facts: Any = seen.facts if seen is not None else None
    for part in ("observed", "credentials", name):
        facts = cast("Mapping[str, Any]", facts).get(part) if isinstance(facts, Mapping) else None
    if not isinstance(facts, Mapping):
        return {}
    given = cast("Mapping[str, Any]", facts)
    found: dict[str, Any] = {}
    if isinstance(given.get("version"), (int, str)):
        found["version"] = given["version"]
    for key in ("madeAt", "expires"):
        if (at := _moment(given.get(key))) is not None:
            found[key] = at if key == "madeAt" else shapes.moment(at)
    old = given.get("stillOld")
    if isinstance(old, Iterable) and not isinstance(old, str):
        found["stillOld"] = [str(one) for one in cast("Iterable[object]", old)]
    return found


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return value if isinstance(value, datetime) else None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
