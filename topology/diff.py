"""
What changed between two topologies, and what that means for the running fleet.

Pure. The rule to know: nothing is deleted because a document became shorter. What is no longer
asked for becomes an orphan, stays as it is, and is reported until a person retires it. And a
change of much at once needs consent: that is the guard.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from topology import effects
from topology.effects import Effect, Field
from topology.resource import Facts, Ref, Resource, Topology

SHARE_FREE = 10
"""Percent of a region's servers that may go or be replaced without consent. A shortened file or a
wrong default shows as more than that; a rack that was taken out does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One thing that is asked for differently."""

    old: Resource
    new: Resource
    fields: tuple[Field, ...]
    effect: Effect
    nodes: int = 0
    """How many nodes are drained by it."""
    notes: tuple[str, ...] = ()
    """What happens, one sentence part each."""
    refusals: tuple[str, ...] = ()
    """What the far side refuses, and why."""

    @property
    def ref(self) -> Ref:
        return self.new.ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """How much of a region goes away or is replaced."""

    region: str
    servers: int
    servers_gone: int
    clusters: int
    clusters_gone: tuple[Ref, ...]
    nodes: int = 0
    """Nodes that are drained and come back. The planner asks about these when their time comes,
    because such work may well be spread over weeks."""

    @property
    def rolls(self) -> bool:
        """Whether more is drained than a plan takes without consent."""
        return self.nodes * 100 > self.servers * SHARE_FREE

    @property
    def consent(self) -> bool:
        return bool(self.clusters_gone) or self.servers_gone * 100 > self.servers * SHARE_FREE

    def __str__(self) -> str:
        parts: list[str] = []
        if self.servers_gone:
            share = self.servers_gone * 100 / self.servers
            parts.append(f"{self.servers_gone} of {self.servers} servers ({share:.0f} %)")
        if self.clusters_gone:
            names = ", ".join(ref.name for ref in self.clusters_gone[:5])
            more = len(self.clusters_gone) - 5
            also = f" and {more} more" if more > 0 else ""
            parts.append(f"{len(self.clusters_gone)} of {self.clusters} clusters ({names}{also})")
        return f"region {self.region}: {' and '.join(parts)} would go or be replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """All differences, each in the order of its topology."""

    added: tuple[Resource, ...] = ()
    changed: tuple[Changed, ...] = ()
    removed: tuple[Resource, ...] = ()
    """Orphans from now on; never deletions."""
    guard: tuple[Sum, ...] = ()
    """The regions in which something goes or is replaced, with the sums."""

    @property
    def empty(self) -> bool:
        return not (self.added or self.changed or self.removed)

    @property
    def consent(self) -> bool:
        """Whether a person must agree before any of it is done."""
        return any(total.consent for total in self.guard)

    @property
    def refusals(self) -> tuple[tuple[Ref, str], ...]:
        return tuple((entry.ref, text) for entry in self.changed for text in entry.refusals)


def diff(old: Topology, new: Topology) -> Change:
    """From `old` to `new`. Equal topologies give an empty change."""
    added = tuple(new.resources[ref] for ref in new.resources if ref not in old.resources)
    removed = tuple(old.resources[ref] for ref in old.resources if ref not in new.resources)
    changed = tuple(
        entry
        for ref, resource in new.resources.items()
        if ref in old.resources and (entry := _compare(old.resources[ref], resource)) is not None
    )
    return Change(
        added=added, changed=changed, removed=removed, guard=_guard(old, changed, removed)
    )


def show(change: Change) -> list[str]:
    """The change for people: one line per thing, or per many things that change alike."""
    lines = [f"+ {text}" for text in _listed(change.added)]
    alike: dict[tuple[object, ...], list[Changed]] = {}
    for entry in change.changed:
        paths = tuple(field.path for field in entry.fields)
        key = (_heading(entry.new), paths, entry.effect, entry.nodes, entry.notes)
        alike.setdefault(key, []).append(entry)
    for entries in alike.values():
        story = _story(entries)
        lines += [f"~ {who}: {story}" for who in _listed([entry.new for entry in entries])]
    lines += [
        f"- {text}: no longer asked for; orphaned, and kept until you retire "
        + ("them" if " " in text else "it")
        for text in _listed(change.removed)
    ]
    lines += [f"! {ref}: {text}" for ref, text in change.refusals]
    lines += [f"! {total}: needs your consent" for total in change.guard if total.consent]
    lines += [
        f"! region {total.region}: {total.nodes} nodes would be drained, with {total.servers} "
        f"servers in all: a plan asks for consent above {SHARE_FREE} %"
        for total in change.guard
        if total.rolls
    ]
    return lines


def _story(entries: list[Changed]) -> str:
    """What changes and what that does, for things that change in the same fields. Values are
    told only where all have the same."""
    entry = entries[0]
    parts = [
        _told(field)
        if field.old != field.new and all(other.fields[at] == field for other in entries)
        else f"{field.path} changes"
        for at, field in enumerate(entry.fields)
    ]
    what = "; ".join(parts[:4]) + (f"; and {len(parts) - 4} more" if len(parts) > 4 else "")
    nodes = f" {entry.nodes} node{'' if entry.nodes == 1 else 's'}" if entry.nodes else ""
    match entry.effect:
        case Effect.IN_PLACE:
            how = f"in place, updates{nodes}" if nodes else "in place"
        case Effect.ROLLS:
            how = f"rolls{nodes}"
        case Effect.REPLACES:
            how = "replaces it"
    notes = f": {'; '.join(entry.notes)}" if entry.notes else ""
    return f"{what} ({how}{notes})"


def _told(field: Field) -> str:
    """One difference in words. Of what comes or goes whole only that is told, and of a list its
    members that come or go."""
    old, new = cast("object", field.old), cast("object", field.new)
    if old is None and isinstance(new, Mapping):
        return f"{field.path} is new"
    if new is None and isinstance(old, Mapping):
        return f"{field.path} is gone"
    if isinstance(old, list) and isinstance(new, list):
        words = _members(cast("list[Any]", old), cast("list[Any]", new))
        if words:
            return f"{field.path} {words}"
    return f"{field.path} {effects.shown(old)} -> {effects.shown(new)}"


def _members(before: list[Any], after: list[Any]) -> str:
    """Empty where nothing of the old list is left, so that it is best told whole."""
    gone = [member for member in before if member not in after]
    come = [member for member in after if member not in before]
    if not gone and not come:
        return "in another order"
    if come and len(gone) == len(before):
        return ""
    words = [f"without {effects.shown(gone)}"] if gone else []
    words += [f"with {effects.shown(come)}"] if come else []
    return f"now {' and '.join(words)}"


def _listed(resources: Iterable[Resource]) -> list[str]:
    """Things in few lines: servers by pool, components by their document, others one by one."""
    groups: dict[tuple[str, str], list[Resource]] = {}
    for resource in resources:
        groups.setdefault(_heading(resource), []).append(resource)
    lines: list[str] = []
    for (noun, whose), members in groups.items():
        if len(members) == 1:
            lines.append(str(members[0].ref))
            continue
        kinds = sorted({one.ref.kind for one in members})
        names = kinds if noun == "component" else [one.ref.name for one in members]
        lines.append(f"{len(members)} {noun}s{whose}: {_abridged(names)}")
    return lines


def _heading(resource: Resource) -> tuple[str, str]:
    kind = resource.ref.kind
    if kind == "server":
        return (kind, f" of pool {resource.spec.get('pool', '?')}")
    if resource.owner is None or kind == resource.owner.kind:
        return (kind, f" of region {resource.region}")
    return ("component", f" of {resource.owner}")


def _abridged(names: list[str]) -> str:
    if len(names) <= 6:
        return ", ".join(names)
    return f"{names[0]}, {names[1]}, {names[2]} ... {names[-1]}"


def fields_of(old: Facts, new: Facts) -> tuple[Field, ...]:
    """Where two specs differ. Lists of named things are compared by name, other lists whole."""
    found: list[Field] = []
    todo: list[tuple[str, Any, Any]] = [("", old, new)]
    while todo:
        path, was, now = todo.pop()
        if was == now:
            continue
        if _hidden(path):
            found.append(Field(path=path, old=effects.HIDDEN, new=effects.HIDDEN))
            continue
        parts = _parts(path, was, now)
        if parts is None:
            found.append(Field(path=path, old=_veiled(was), new=_veiled(now)))
        else:
            todo.extend(parts)
    return tuple(sorted(found, key=lambda field: field.path))


def _compare(old: Resource, new: Resource) -> Changed | None:
    fields: list[Field] = []
    if old.generation != new.generation:
        fields.extend(fields_of(old.spec, new.spec))
    for name in ("driver", "region", "backend", "domains", "limits"):
        was, now = getattr(old, name), getattr(new, name)
        if was != now and not any(field.path == name for field in fields):
            fields.append(Field(path=name, old=_plain(was), new=_plain(now)))
    if old.needs != new.needs:
        fields.append(
            Field(
                path="needs",
                old=[str(ref) for ref in sorted(old.needs - new.needs)] or None,
                new=[str(ref) for ref in sorted(new.needs - old.needs)] or None,
            )
        )
    if not fields:
        return None
    verdict = effects.judge(new.ref.kind, fields, old.spec, new.spec)
    return Changed(
        old=old,
        new=new,
        fields=tuple(fields),
        effect=verdict.effect,
        nodes=verdict.nodes,
        notes=verdict.notes,
        refusals=verdict.refusals,
    )


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, tuple):
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, Mapping):
        return sorted(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return value


def _veiled(value: Any) -> Any:  # noqa: ANN401
    """A value without what is below an access in it."""
    if isinstance(value, Mapping):
        inner: Mapping[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {k: effects.HIDDEN if k == "access" else _veiled(v) for k, v in inner.items()}
    if isinstance(value, list):
        return [_veiled(member) for member in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _hidden(path: str) -> bool:
    return path.rpartition(".")[2] == "access"


def _parts(path: str, was: Any, now: Any) -> list[tuple[str, Any, Any]] | None:  # noqa: ANN401
    """The inner differences, or None if the two can only be compared whole."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        dot = f"{path}." if path else ""
        return [(f"{dot}{key}", was.get(key), now.get(key)) for key in _keys(was, now)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    before, after = _named(was), _named(now)
    if before is None or after is None:
        return None
    return [(f"{path}[{key}]", before.get(key), after.get(key)) for key in _keys(before, after)]


def _keys(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return sorted({*was, *now})


def _named(value: Any) -> dict[str, Any] | None:  # noqa: ANN401
    if not isinstance(value, list):
        return None
    members: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
    if not all(isinstance(member, Mapping) and "name" in member for member in members):
        return None
    return {str(member["name"]): member for member in members}


def _guard(
    old: Topology, changed: Iterable[Changed], removed: Iterable[Resource]
) -> tuple[Sum, ...]:
    changed = tuple(changed)
    gone = [*removed, *(entry.old for entry in changed if entry.effect is Effect.REPLACES)]
    servers: dict[str, int] = {}
    clusters: dict[str, list[Ref]] = {}
    nodes: dict[str, int] = {}
    for entry in changed:
        if entry.nodes and entry.effect is not Effect.REPLACES:
            nodes[entry.old.region] = nodes.get(entry.old.region, 0) + entry.nodes
    for resource in gone:
        if resource.ref.kind == "server":
            servers[resource.region] = servers.get(resource.region, 0) + 1
        elif resource.ref.kind == "cluster":
            clusters.setdefault(resource.region, []).append(resource.ref)
    return tuple(
        Sum(
            region=region,
            servers=sum(ref.kind == "server" for ref in old.regions[region]),
            servers_gone=servers.get(region, 0),
            clusters=sum(ref.kind == "cluster" for ref in old.regions[region]),
            clusters_gone=tuple(sorted(clusters.get(region, ()))),
            nodes=nodes.get(region, 0),
        )
        for region in sorted({*servers, *clusters, *nodes})
    )
