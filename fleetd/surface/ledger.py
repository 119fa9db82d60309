"""
The ledger of credentials: what there is, where it lies, who makes and who uses it. Never a value.

Made of the catalogue's `makes` and `uses`, of the flows in the documents, and of what drivers saw:
a maker tells version, age and end (facts `observed.credentials.<name>`), a user which version it
was seen with (`observed.uses.<name>`). One entry for each thing that makes a credential; servers
of one pool are one entry, because a fleet has very many. What needs attention comes first.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, cast

from fleetd.surface import answers, shapes
from fleetd.vocabulary import Observation
from topology import keeping
from topology.catalogue import Component, Made
from topology.documents.base import parse_duration
from topology.resource import Ref, Resource, Topology

USERS_MAX = 20
"""Users named one by one; all are counted."""
SERVER = "server"
FLOW = "credentialflow"
STATES = ("Expired", "Overdue", "Spreading", "Expiring", "OldKept", "Good", "NotSeen")
"""The first needs attention most. Overdue: its rotation should have been. Spreading: somebody
still uses the old one. OldKept: nobody does, and the old one still lies there."""
LAST_TENTH = 10


@dataclass(slots=True)
class _Entry:
    made: Made
    maker: Resource
    count: int = 1
    users: dict[str, str] = field(default_factory=dict[str, str])
    """The proof of each that is looked for."""
    refs: set[Ref] = field(default_factory=set[Ref])
    """Users that are things of their own."""


def entries(
    topology: Topology,
    component: Callable[[str], Component | None],
    seen: Callable[[Ref], Observation | None],
    *,
    now: datetime,
    region: str | None = None,
) -> list[answers.Credential]:
    """In the order of need, then of region, credential and maker."""
    kinds = sorted(topology.kinds)
    known = {kind: found for kind in kinds if (found := component(kind)) is not None}
    # Who uses a credential is in the region of who makes it.
    refs = topology.resources if region is None else topology.regions.get(region, ())
    members = [topology.resources[ref] for ref in refs]
    made = _made(members, known)
    _find_users(members, known, made)
    found = sorted(
        (one for several in made.values() for one in several),
        key=lambda one: (one.maker.region, one.made.name, one.maker.ref),
    )
    shown = [_shape(one, seen, now) for one in [*found, *_flows(members)]]
    return sorted(shown, key=lambda one: (STATES.index(one["state"]), one["region"], one["name"]))


Named = tuple[str, str]
"""Region and name of a credential."""


class Dates(NamedTuple):
    """Of each region and name the first, in order."""

    ends: Mapping[Named, datetime]
    due: Mapping[Named, datetime]
    """Next rotation."""
    states: Counter[tuple[str, str]]
    """How many, by region and state."""


def dates(
    topology: Topology,
    component: Callable[[str], Component | None],
    seen: Callable[[Ref], Observation | None],
    *,
    now: datetime,
) -> Dates:
    """For who asks often. Those of servers, of which a fleet has very many, do not end by
    themselves and are left out."""
    ends: dict[Named, datetime] = {}
    due: dict[Named, datetime] = {}
    states: Counter[tuple[str, str]] = Counter()
    for maker, made in _makers(topology, component):
        told = _told(made.name, seen(maker.ref))
        following = _following(told, made)
        key = maker.region, made.name
        for found, at in ((ends, told.expires), (due, following)):
            if at is not None:
                found[key] = min(at, found.get(key, at))
        states[maker.region, _state(told, following, now)] += 1
    return Dates(dict(sorted(ends.items())), dict(sorted(due.items())), states)


def _makers(
    topology: Topology, component: Callable[[str], Component | None]
) -> Iterator[tuple[Resource, Made]]:
    for kind, refs in topology.kinds.items():
        known = component(kind) if kind != SERVER else None
        for made in known.spec.makes if known is not None else ():
            yield from ((topology.resources[ref], made) for ref in refs)
    for flow in _flows(topology.resources[ref] for ref in topology.kinds.get(FLOW, ())):
        yield flow.maker, flow.made


def _following(told: "_Told", made: Made) -> datetime | None:
    if told.next is None and told.born is not None and made.rotate is not None:
        return told.born + made.rotate
    return told.next


def _made(members: Iterable[Resource], known: Mapping[str, Component]) -> dict[str, list[_Entry]]:
    """By name of the credential."""
    found: dict[str, list[_Entry]] = {}
    pools: dict[tuple[str, Ref | None], _Entry] = {}
    makers = {kind: one.spec.makes for kind, one in known.items() if one.spec.makes}
    for resource in members:
        ref = resource.ref
        for made in makers.get(ref.kind, ()):
            pool = (made.name, resource.owner)
            if ref.kind == SERVER and pool in pools:
                pools[pool].count += 1
                continue
            entry = _Entry(made, resource)
            found.setdefault(made.name, []).append(entry)
            if ref.kind == SERVER:
                pools[pool] = entry
    return found


def _flows(members: Iterable[Resource]) -> list[_Entry]:
    """What the documents bring beside the catalogue."""
    found: list[_Entry] = []
    for resource in members:
        ref, spec = resource.ref, resource.spec
        if ref.kind != FLOW:
            continue
        rule: Mapping[str, Any] | None = spec.get("rotation")
        source = next((kind for kind, given in spec["source"].items() if given), "")
        made = Made(
            name=ref.name,
            path=str(spec["path"]),
            rotate=parse_duration(str(rule["every"])) if rule else None,
            how=_HOW.get(source, "somebody else makes each; fleetd carries it on as it appears"),
        )
        users = {
            f"{one['cluster']}/{one['namespace']}/{one['secret']}": _proof(one)
            for one in spec["targets"]
        }
        found.append(_Entry(made, resource, users=users))
    return found


_HOW = {
    "generate": "fleetd makes a new version; the old one is destroyed when nobody uses it",
    "kubeconfig": "fleetd has Gardener mint a new one; the old one ends by itself",
}


def _proof(target: Mapping[str, Any]) -> str:
    reload: Mapping[str, Any] | None = target.get("reload")
    proof = "the data hash of the Secret is that of the version in OpenBao"
    if not reload:
        return proof
    return f"{proof}, and all pods of {reload['kind']} {reload['name']} started after it came"


def _find_users(
    members: Iterable[Resource],
    known: Mapping[str, Component],
    made: Mapping[str, list[_Entry]],
) -> None:
    """A user of a credential uses that of the maker it stands on, and of several that of its own
    cluster; where it stands on none, those of its region."""
    users = {kind: one.spec.uses for kind, one in known.items() if one.spec.uses}
    below: dict[Ref, frozenset[Ref]] = {}
    makers = {one.maker.ref for several in made.values() for one in several}
    for resource in members:
        ref = resource.ref
        found = {need for need in resource.needs if need in makers}
        below[ref] = frozenset(found.union(*(below.get(need, ()) for need in resource.needs)))
        for use in users.get(ref.kind, ()):
            offered = [one for one in made.get(use.name, ()) if one.maker.region == resource.region]
            near = [one for one in offered if one.maker.ref in below[ref] or _same(one, resource)]
            own = [one for one in near if _of_one_cluster(one.maker, resource)]
            for one in own or near or offered:
                one.users[str(ref)] = use.proof
                one.refs.add(ref)


def _same(entry: _Entry, resource: Resource) -> bool:
    if entry.maker.ref.kind == SERVER == resource.ref.kind:
        return entry.maker.owner == resource.owner
    return entry.maker.ref == resource.ref


def _of_one_cluster(maker: Resource, user: Resource) -> bool:
    cluster = user.spec.get("cluster")
    return cluster is not None and cluster == maker.spec.get("cluster")


def _shape(
    entry: _Entry, seen: Callable[[Ref], Observation | None], now: datetime
) -> answers.Credential:
    made, maker = entry.made, entry.maker
    # Of many servers none speaks for the others.
    told = _told(made.name, seen(maker.ref)) if entry.count == 1 else _Told()
    following = _following(told, made)
    uses = {**told.seen, **_uses(entry, seen)}
    old = {who for who, version in uses.items() if told.version not in {None, version}}
    return {
        "name": made.name,
        "region": maker.region,
        "state": _state(told, following, now),
        "madeBy": str(maker.ref) if entry.count == 1 else f"{entry.count} servers of {maker.owner}",
        "where": keeping.where(made, maker, several=entry.count > 1),
        "how": made.how,
        "rotateSeconds": made.rotate.total_seconds() if made.rotate is not None else None,
        "version": told.version,
        "madeAt": shapes.moment(told.born),
        "ageSeconds": (now - told.born).total_seconds() if told.born is not None else None,
        "nextRotation": shapes.moment(following),
        "expires": shapes.moment(told.expires),
        "olderVersions": list(told.older),
        "usedBy": [
            {"who": who, "version": uses.get(who), "proof": proof}
            for who, proof in sorted(entry.users.items())[:USERS_MAX]
        ],
        "users": len(entry.users),
        "stillOld": sorted(old.union(told.still_old)),
    }


def _state(told: "_Told", following: datetime | None, now: datetime) -> str:
    if told.version is None and told.born is None:
        return "NotSeen"
    if told.expires is not None and told.expires <= now:
        return "Expired"
    if following is not None and following <= now:
        return "Overdue"
    if told.still_old:
        return "Spreading"
    if told.expires is not None and told.born is not None:
        left, life = told.expires - now, told.expires - told.born
        if left < life / LAST_TENTH:
            return "Expiring"
    return "OldKept" if told.older else "Good"


def _uses(entry: _Entry, seen: Callable[[Ref], Observation | None]) -> dict[str, int | str]:
    found: dict[str, int | str] = {}
    if entry.maker.ref.kind == SERVER:
        return found
    for ref in entry.refs:
        version = _inside(seen(ref), "uses").get(entry.made.name)
        if isinstance(version, (int, str)):
            found[str(ref)] = version
    return found


@dataclass(frozen=True, slots=True)
class _Told:
    """What a driver says of a credential: only the fields named here, so that nothing else can
    ever come out."""

    version: int | str | None = None
    born: datetime | None = None
    expires: datetime | None = None
    next: datetime | None = None
    seen: Mapping[str, int] = field(default_factory=dict[str, int])
    """Version that each user was seen with."""
    still_old: tuple[str, ...] = ()
    older: tuple[int, ...] = ()
    """Older versions that still lie there."""


def _told(name: str, seen: Observation | None) -> _Told:
    given: Any = _inside(seen, "credentials").get(name)
    if not isinstance(given, Mapping):
        return _Told()
    said = cast("Mapping[str, Any]", given)
    version = said.get("version")
    uses: Any = said.get("seen")
    return _Told(
        version=version if isinstance(version, (int, str)) else None,
        born=_moment(said.get("madeAt")),
        expires=_moment(said.get("expires")),
        next=_moment(said.get("next")),
        seen={
            str(who): number
            for who, number in cast("Mapping[object, object]", uses).items()
            if isinstance(number, int)
        }
        if isinstance(uses, Mapping)
        else {},
        still_old=tuple(str(one) for one in _listed(said.get("stillOld"))),
        older=tuple(one for one in _listed(said.get("older")) if isinstance(one, int)),
    )


def _inside(seen: Observation | None, part: str) -> Mapping[str, Any]:
    facts: Any = seen.facts if seen is not None else None
    for name in ("observed", part):
        facts = cast("Mapping[str, Any]", facts).get(name) if isinstance(facts, Mapping) else None
    return cast("Mapping[str, Any]", facts) if isinstance(facts, Mapping) else {}


def _listed(given: object) -> list[object]:
    if isinstance(given, Iterable) and not isinstance(given, str):
        return list(cast("Iterable[object]", given))
    return []


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str):
        return value if isinstance(value, datetime) else None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at if at.tzinfo is not None else None
