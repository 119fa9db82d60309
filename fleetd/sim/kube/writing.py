"""
The way into the store: what happens to an object between being sent and being kept.

In the order of a real server: defaults and admission, names and namespaces, status and metadata
that a writer cannot set, generation, field ownership; and a write that changes nothing is no
write. Everything that creates or changes an object comes through here, controllers included.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from fleetd.sim.kube import managed, refusal, schema
from fleetd.sim.kube import metadata as metadata_rules
from fleetd.sim.kube.access import User
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.managed import UPDATE, Writer
from fleetd.sim.kube.store import ADDED, DELETED, MODIFIED, Row, Store, Table
from fleetd.sim.kube.values import GK, Obj, at, is_map, name_of, namespace_of, stamp
from fleetd.sim.time import Time

Hook = Callable[[str, Obj | None, Obj | None, User], Obj | None]
"""Operation (CREATE, UPDATE, STATUS, DELETE), new, old, user. Returns a changed object, or None
for "as it is"; raises `Refused`. It may not change what it is given."""

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"
_SERVERS = ("uid", "creationTimestamp", "selfLink", "deletionTimestamp", "generation")
_KEPT = (*_SERVERS, "name", "namespace", "deletionGracePeriodSeconds", "generateName")


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """Who writes and how."""

    manager: str
    user: User
    version: str = ""
    """Of the API, if not the preferred one."""
    operation: str = UPDATE
    subresource: str = ""
    dry_run: bool = False
    validation: str = ""
    """What becomes of fields the schema does not know: Strict refuses them, Warn tells of them and
    Ignore drops them; empty is a controller, whose objects of built-in kinds are as they are."""
    told: Callable[[list[str]], None] | None = None
    """Gets the warnings."""


@dataclass(slots=True)
class Outcome:
    obj: Obj
    changed: bool
    created: bool = False
    gone: bool = False
    """It was only waiting for its last finalizer."""


@dataclass(slots=True)
class Writing:
    store: Store
    time: Time
    uid_of: Callable[[str], str]
    name: str
    hooks: dict[GK, list[Hook]] = field(default_factory=dict[GK, list[Hook]])
    made: int = 0

    def create(self, table: Table, obj: Obj, by: By, entries: list[Obj] | None = None) -> Outcome:
        """`obj` belongs to us. `entries` are the managed fields, if an apply made them."""
        definition = table.definition
        metadata_rules.decode(definition, obj)
        metadata: Obj = dict(obj.get("metadata") or {})
        if metadata.get("resourceVersion"):
            raise refusal.plain("resourceVersion should not be set on objects to be created")
        for name in (*_SERVERS, "resourceVersion", "managedFields", "deletionGracePeriodSeconds"):
            metadata.pop(name, None)
        self._give_name(definition, metadata)
        obj = {**obj, "apiVersion": definition.api_version(), "metadata": metadata}
        metadata_rules.check(definition, obj)
        self._check_namespace(definition, obj)
        if definition.status and not definition.keeps_status:
            obj.pop("status", None)
        obj = self._defaulted(definition, self._pruned(definition, obj, by))
        obj = self._admit("CREATE", definition, obj, None, by)
        self._check_schema(definition, obj)
        key = (namespace_of(obj), name_of(obj))
        if key in table.rows:
            raise refusal.already_exists(definition, key[1])
        metadata = obj["metadata"] = dict(obj["metadata"])
        self.made += 1
        metadata["uid"] = self.uid_of(
            f"{self.name}/{definition.resource}/{key[0]}/{key[1]}/{self.made}"
        )
        metadata["creationTimestamp"] = stamp(self.time.now())
        if definition.counts:
            metadata["generation"] = 1
        if entries is None:
            entries = managed.after_update(None, obj, definition, self._writer(definition, by))
        if entries:
            metadata["managedFields"] = entries
        if not by.dry_run:
            self.store.commit(table, ADDED, obj, None)
        return Outcome(obj, changed=True, created=True)

    def _writer(self, definition: Definition, by: By) -> Writer:
        return Writer(
            manager=by.manager,
            operation=by.operation,
            api_version=definition.api_version(by.version),
            subresource=by.subresource,
            time=stamp(self.time.now()),
        )

    def apply(self, table: Table, config: Obj, by: By, *, force: bool) -> Outcome:
        """Server-side apply of `config`, which belongs to us and has a name."""
        definition = table.definition
        metadata_rules.decode(definition, config)
        row = table.rows.get((namespace_of(config), name_of(config)))
        if by.subresource and row is None:
            raise refusal.not_found(definition, name_of(config))
        # Before anything is owned: what the schema does not know belongs to nobody.
        config = self._pruned(definition, self._appliable(definition, config, by), by)
        writer = self._writer(definition, by)
        live = row.obj if row is not None else None
        merged, entries = managed.applied(live, config, definition, writer, force=force)
        if row is None:
            return self.create(table, merged, by, entries)
        return self.update(table, row, merged, by, entries)

    def _appliable(self, definition: Definition, config: Obj, by: By) -> Obj:
        """Without the parts that this way in does not reach."""
        config = {**config, "apiVersion": definition.api_version()}
        if by.subresource == "status":
            metadata = {
                name: value
                for name, value in config["metadata"].items()
                if name in ("name", "namespace", "uid", "resourceVersion")
            }
            kept = {
                name: config[name] for name in ("apiVersion", "kind", "status") if name in config
            }
            return {**kept, "metadata": metadata}
        if definition.status and not (definition.keeps_status):
            config.pop("status", None)
        return config

    def update(
        self, table: Table, row: Row, new: Obj, by: By, entries: list[Obj] | None = None
    ) -> Outcome:
        """`new` belongs to us. Metadata that is the server's is taken from the old one."""
        definition = table.definition
        old = row.obj
        metadata_rules.decode(definition, new)
        new = self._reach(definition, old, new, by)
        metadata: Obj = dict(new.get("metadata") or {})
        reset = metadata.pop("managedFields", None) in ([], [{}]) and entries is None
        for name in _KEPT:
            if name in old["metadata"]:
                metadata[name] = old["metadata"][name]
            else:
                metadata.pop(name, None)
        metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
        new = {**new, "apiVersion": old["apiVersion"], "kind": old["kind"], "metadata": metadata}
        metadata_rules.check(definition, new)
        self._check_finalizers(definition, old, new)
        operation = "STATUS" if by.subresource == "status" else "UPDATE"
        new = self._defaulted(definition, self._pruned(definition, new, by))
        new = self._admit(operation, definition, new, old, by)
        self._check_schema(definition, new)
        self._check_immutable(definition, old, new)
        metadata = new["metadata"] = dict(new["metadata"])
        if definition.counts and self._bumps(definition, old, new):
            metadata["generation"] = old["metadata"].get("generation", 0) + 1
        if entries is None:
            writer = self._writer(definition, by)
            entries = [] if reset else managed.after_update(old, new, definition, writer)
        if entries:
            metadata["managedFields"] = entries
        if new == old:
            return Outcome(old, changed=False)
        return self._kept(table, row, new, by)

    def _kept(self, table: Table, row: Row, new: Obj, by: By) -> Outcome:
        metadata = new["metadata"]
        gone = "deletionTimestamp" in metadata and not metadata.get("finalizers")
        gone = gone and not metadata.get("deletionGracePeriodSeconds")
        gone = gone and not at(new, "spec.finalizers")
        if not by.dry_run:
            self.store.commit(table, DELETED if gone else MODIFIED, new, row)
        return Outcome(new, changed=True, gone=gone)

    def remove(self, table: Table, row: Row) -> Obj:
        """Takes it out of the store, finalizers or not; the rules are `lifecycle`'s."""
        last = {**row.obj, "metadata": dict(row.obj["metadata"])}
        self.store.commit(table, DELETED, last, row)
        return last

    def mark(self, table: Table, row: Row, change: Callable[[Obj], None]) -> Obj:
        """A change of the server's own, past admission and ownership. `change` is given the
        metadata, which is a copy; what is below it is not."""
        metadata = dict(row.obj["metadata"])
        change(metadata)
        new = {**row.obj, "metadata": metadata}
        if new == row.obj:
            return row.obj
        return self.store.commit(table, MODIFIED, new, row).obj

    def admit_deletion(self, table: Table, row: Row, by: By) -> None:
        for hook in self.hooks.get(table.definition.gk, ()):
            hook("DELETE", None, row.obj, by.user)

    def _reach(self, definition: Definition, old: Obj, new: Obj, by: By) -> Obj:
        if by.subresource == "status":
            kept = {name: value for name, value in old.items() if name != "status"}
            if "status" in new:
                kept["status"] = new["status"]
            return kept
        if not definition.status:
            return new
        new = dict(new)
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)
        return new

    def _admit(
        self, operation: str, definition: Definition, new: Obj, old: Obj | None, by: By
    ) -> Obj:
        for hook in self.hooks.get(definition.gk, ()):
            changed = hook(operation, new, old, by.user)
            if changed is not None:
                new = changed
        return new

    def _pruned(self, definition: Definition, obj: Obj, by: By) -> Obj:
        known = definition.known if by.validation else None
        given = definition.schema or known
        if given is None:
            return obj
        dropped: list[str] = []
        obj = schema.pruned(obj, given, dropped)
        if by.validation and is_map(obj.get("metadata")):
            obj = {**obj, "metadata": metadata_rules.known_part(obj["metadata"], dropped)}
        if by.told is not None and by.validation == "Warn":
            by.told([f'unknown field "{place}"' for place in dropped])
        if dropped and by.validation == "Strict":
            said = ", ".join(f'unknown field "{place}"' for place in dropped)
            raise refusal.bad_request(
                f'{definition.kind} in version "{by.version or definition.version}" cannot be '
                f"handled as a {definition.kind}: strict decoding error: {said}"
            )
        return obj

    def _defaulted(self, definition: Definition, obj: Obj) -> Obj:
        return schema.defaulted(obj, definition.schema) if definition.schema is not None else obj

    def _check_schema(self, definition: Definition, obj: Obj) -> None:
        if definition.schema is None:
            return
        found = schema.problems(obj, definition.schema)
        if found:
            raise refusal.invalid(definition, name_of(obj), *found)

    def _bumps(self, definition: Definition, old: Obj, new: Obj) -> bool:
        if definition.bumps is not None:
            return definition.bumps(old, new)
        apart = ("metadata", "status") if definition.status else ("metadata",)
        names = dict.fromkeys((*old, *new))
        return any(name not in apart and old.get(name) != new.get(name) for name in names)

    def _give_name(self, definition: Definition, metadata: Obj) -> None:
        if metadata.get("name"):
            return
        prefix = metadata.get("generateName", "")
        if not prefix:
            raise refusal.invalid(
                definition,
                "",
                (
                    "FieldValueRequired",
                    "metadata.name",
                    "Required value: name or generateName is required",
                ),
            )
        text = self.uid_of(f"{self.name}/generated/{prefix}/{self.made}")
        number = int.from_bytes(text.encode(), "big")
        suffix = ""
        for _ in range(5):
            number, digit = divmod(number, len(_SUFFIX))
            suffix += _SUFFIX[digit]
        metadata["name"] = prefix + suffix

    def _check_namespace(self, definition: Definition, obj: Obj) -> None:
        namespace = namespace_of(obj)
        if not definition.namespaced:
            obj["metadata"].pop("namespace", None)
            return
        spaces = self.store.tables[("", "Namespace")]
        row = spaces.rows.get(("", namespace))
        if row is None:
            raise refusal.not_found(spaces.definition, namespace)
        if "deletionTimestamp" in row.obj["metadata"]:
            raise refusal.forbidden(
                definition,
                name_of(obj),
                f"unable to create new content in namespace {namespace} because it is being "
                "terminated",
                [
                    {
                        "reason": "NamespaceTerminating",
                        "message": f"namespace {namespace} is being terminated",
                        "field": "metadata.namespace",
                    }
                ],
            )

    def _check_finalizers(self, definition: Definition, old: Obj, new: Obj) -> None:
        if "deletionTimestamp" not in old["metadata"]:
            return
        had: list[str] = old["metadata"].get("finalizers") or []
        has: list[str] = new["metadata"].get("finalizers") or []
        added = [one for one in has if one not in had]
        if added:
            raise refusal.invalid(
                definition,
                name_of(old),
                (
                    "FieldValueForbidden",
                    "metadata.finalizers",
                    "Forbidden: no new finalizers can be added if the object is being deleted, "
                    "found new finalizers []string{" + ", ".join(f'"{one}"' for one in added) + "}",
                ),
            )

    def _check_immutable(self, definition: Definition, old: Obj, new: Obj) -> None:
        problems = [
            metadata_rules.bad(path, at(new, path), "field is immutable")
            for path in definition.immutable
            if (before := at(old, path)) is not None and before != at(new, path)
        ]
        if problems:
            raise refusal.invalid(definition, name_of(old), *problems)
