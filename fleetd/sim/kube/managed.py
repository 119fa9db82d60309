"""
Who owns which field: `metadata.managedFields`, and server-side apply on top of it.

An ordinary write takes over what it changes. An apply says all that its manager wants: what it
names it owns, what it named last time and does not name now goes away unless somebody else owns
it, and what somebody else owns with another value is a conflict unless forced.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from fleetd.sim.kube import fields, refusal
from fleetd.sim.kube.definitions import Definition, Shape
from fleetd.sim.kube.fields import Tree
from fleetd.sim.kube.values import Obj, is_list, is_map, name_of

UPDATE = "Update"
APPLY = "Apply"

_NOT_OWNED = frozenset(
    (
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "generation",
        "managedFields",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generateName",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes, in which role, and when."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""
    time: str = ""

    def wrote(self, entry: Mapping[str, Any]) -> bool:
        return (
            entry["manager"] == self.manager
            and entry["operation"] == self.operation
            and entry.get("subresource", "") == self.subresource
            and (entry["apiVersion"] == self.api_version or self.operation == APPLY)
        )

    def entry(self, tree: Tree) -> Obj:
        made: Obj = {
            "manager": self.manager,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": tree,
        }
        if self.subresource:
            made["subresource"] = self.subresource
        return made


def ownable(obj: Obj) -> Obj:
    """The part of an object that can belong to somebody."""
    metadata = {
        name: value
        for name, value in obj.get("metadata", {}).items()
        if name not in _NOT_OWNED and value is not None
    }
    made = {
        name: value for name, value in obj.items() if name not in ("apiVersion", "kind", "metadata")
    }
    if metadata:
        made["metadata"] = metadata
    return made


def entries_of(obj: Obj | None) -> list[Obj]:
    return obj["metadata"].get("managedFields", []) if obj is not None else []


def after_update(old: Obj | None, new: Obj, definition: Definition, writer: Writer) -> list[Obj]:
    """The entries after an ordinary write."""
    before = ownable(old) if old is not None else {}
    changed, removed = fields.compare(before, ownable(new), definition.shape)
    entries = entries_of(old)
    if changed is None and removed is None:
        return entries
    gone = fields.union(changed, removed)
    made: list[Obj] = []
    mine: Tree | None = None
    for entry in entries:
        if writer.wrote(entry):
            mine = fields.difference(entry["fieldsV1"], removed)
        else:
            _keep(made, entry, fields.difference(entry["fieldsV1"], gone))
    mine = fields.union(mine, changed)
    if mine is not None:
        made.append(writer.entry(mine))
    return made


def _keep(made: list[Obj], entry: Obj, left: Tree | None) -> None:
    """The entry with what is left to it: itself, if that is all it had."""
    if left is None:
        return
    made.append(entry if left == entry["fieldsV1"] else {**entry, "fieldsV1": left})


def applied(
    live: Obj | None, config: Obj, definition: Definition, writer: Writer, *, force: bool
) -> tuple[Obj, list[Obj]]:
    """The object after an apply, and its entries. Raises `Refused` on a conflict."""
    shape = definition.shape
    wanted = ownable(config)
    mine = fields.owned(wanted, shape) if wanted else None
    if live is None:
        return config, [] if mine is None else [writer.entry(mine)]
    entries = entries_of(live)
    others = [entry for entry in entries if not writer.wrote(entry)]
    last = next((entry for entry in entries if writer.wrote(entry)), None)
    before = ownable(live)
    after = merge(before, wanted, shape)
    if last is not None and last["fieldsV1"] != mine:
        theirs: Tree | None = None
        for entry in others:
            theirs = fields.union(theirs, entry["fieldsV1"])
        after = _prune(after, _Sets(last["fieldsV1"], mine, theirs), shape)
    changed, removed = fields.compare(before, after, shape)
    conflicts = [
        (entry, both)
        for entry in others
        if (both := fields.intersection(entry["fieldsV1"], changed)) is not None
    ]
    if conflicts and not force:
        raise _conflict(definition, name_of(live), conflicts)
    gone = fields.union(changed, removed)
    made: list[Obj] = []
    for entry in others:
        _keep(made, entry, fields.difference(entry["fieldsV1"], gone))
    if mine is not None:
        same = last is not None and last["fieldsV1"] == mine
        same = same and last is not None and last["apiVersion"] == writer.api_version
        made.append(last if same and last is not None else writer.entry(mine))
    return _joined(live, after), _in_order(made, entries)


def _in_order(made: list[Obj], entries: list[Obj]) -> list[Obj]:
    """Unchanged entries keep their order, so that an apply that changes nothing is seen as such."""
    return entries if len(made) == len(entries) and all(one in entries for one in made) else made


def _joined(live: Obj, after: Obj) -> Obj:
    """`after` with what nobody owns: name, uid and the like."""
    kept = {name: value for name, value in live["metadata"].items() if name in _NOT_OWNED}
    made: Obj = {
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {**kept, **after.get("metadata", {})},
    }
    made |= {name: value for name, value in after.items() if name != "metadata"}
    return made


def merge(live: Any, wanted: Any, shape: Shape) -> Any:  # noqa: ANN401 - JSON values
    if is_map(live) and is_map(wanted) and not shape.atomic:
        made: Obj = dict(live)
        for name, value in wanted.items():
            if made.get(name) == value:
                continue
            made[name] = merge(made[name], value, shape.child(name)) if name in made else value
        return made
    if is_list(live) and is_list(wanted) and shape.keys is not None:
        inner = fields.item_shape(shape)
        items: Obj = fields.by_key(live, shape)
        for key, item in fields.by_key(wanted, shape).items():
            items[key] = merge(items[key], item, inner) if key in items else item
        return list(items.values())
    return wanted


class _Sets(NamedTuple):
    """What a manager had, what it wants now, and what belongs to others, all below one place."""

    last: Tree
    mine: Tree | None
    theirs: Tree | None


def _prune(value: Any, sets: _Sets, shape: Shape) -> Any:  # noqa: ANN401
    """Without what was named last time, is not named now, and belongs to nobody else."""
    if is_map(value) and not shape.atomic:
        made: Obj = dict(value)
        for name in list(made):
            key = f"f:{name}"
            if key in sets.last:
                left = _left(made[name], key, sets, shape.child(name))
                if left is _GONE:
                    del made[name]
                else:
                    made[name] = left
        return made
    if is_list(value) and shape.keys is not None:
        inner = fields.item_shape(shape)
        kept: list[Any] = []
        for key, item in fields.by_key(value, shape).items():
            left = _left(item, key, sets, inner) if key in sets.last else item
            if left is not _GONE:
                kept.append(left)
        return kept
    return value


_GONE = object()


def _left(value: Any, key: str, sets: _Sets, shape: Shape) -> Any:  # noqa: ANN401
    now = sets.mine.get(key) if sets.mine else None
    foreign = sets.theirs.get(key) if sets.theirs else None
    if now is None and foreign is None:
        return _GONE
    return _prune(value, _Sets(sets.last[key], now, foreign), shape)


def _conflict(
    definition: Definition, name: str, conflicts: list[tuple[Obj, Tree]]
) -> refusal.Refused:
    causes: list[Obj] = []
    said: list[str] = []
    for entry, tree in conflicts:
        who = f'"{entry["manager"]}"'
        if entry.get("subresource"):
            who += f' with subresource "{entry["subresource"]}"'
        if entry["operation"] == UPDATE:
            who += f" using {entry['apiVersion']}"
        places = list(fields.paths(tree))
        causes.extend(
            {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": place}
            for place in places
        )
        if len(places) == 1:
            said.append(f"conflict with {who}: {places[0]}")
        else:
            said.append(f"conflicts with {who}:\n" + "\n".join(f"- {place}" for place in places))
    count = len(causes)
    message = f"Apply failed with {count} conflict{'s' if count > 1 else ''}: " + "\n".join(said)
    details: Obj = {"name": name, "kind": definition.plural, "causes": causes}
    if definition.group:
        details["group"] = definition.group
    return refusal.Refused(409, "Conflict", message, details=details)
