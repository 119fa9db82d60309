"""
How objects end: finalizers, owners, namespaces.

A delete only marks an object that has finalizers; it goes when the last of them is taken off.
What depended on a thing that has gone is collected a moment later, and a namespace takes its
content with it. On a real cluster the controller manager does the latter two; here they belong
to the server, because no cluster of a fleet is without them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import MASTERS, User
from fleetd.sim.kube.store import DELETED, MODIFIED, Change, Row, Store, Table
from fleetd.sim.kube.values import GK, Obj, at, name_of, namespace_of, stamp
from fleetd.sim.kube.writing import By, Outcome, Writing
from fleetd.sim.time import Time

NAMESPACE: GK = ("", "Namespace")
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
COLLECTS_AFTER = 0.2
"""Seconds until the collector has noticed. A real one takes about as long when idle."""
EMPTIES_AFTER = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a delete."""

    propagation: str = "Background"
    uid: str = ""
    version: str = ""
    grace: int = 0
    dry_run: bool = False


class Lifecycle:
    def __init__(self, store: Store, writing: Writing, time: Time) -> None:
        self._store = store
        self._writing = writing
        self._time = time
        self._emptying: set[str] = set()
        self.graceful: dict[GK, Callable[[Obj], int]] = {}
        """Kinds that end later by themselves: object to seconds, 0 for at once."""
        store.subscribe(self._changed)

    def delete(self, table: Table, row: Row, asked: Asked, by: By) -> Outcome:
        """Gone, or marked to go. An object that is going already stays as it is."""
        definition = table.definition
        metadata = row.obj["metadata"]
        name = metadata["name"]
        if asked.uid and asked.uid != metadata["uid"]:
            raise refusal.conflict(
                definition,
                name,
                f"Precondition failed: UID in precondition: {asked.uid}, UID in object meta: "
                f"{metadata['uid']}",
            )
        if asked.version and asked.version != metadata["resourceVersion"]:
            raise refusal.conflict(
                definition,
                name,
                f"Precondition failed: ResourceVersion in precondition: {asked.version}, "
                f"ResourceVersion in object meta: {metadata['resourceVersion']}",
            )
        self._writing.admit_deletion(table, row, by)
        finalizers: list[str] = list(metadata.get("finalizers") or ())
        if asked.propagation == "Foreground" and FOREGROUND not in finalizers:
            finalizers.append(FOREGROUND)
        if asked.propagation == "Orphan" and not by.dry_run:
            self._orphan(metadata["uid"])
        if definition.gk == NAMESPACE:
            return self._end_namespace(table, row, finalizers, by)
        grace = self.graceful.get(definition.gk, _at_once)(row.obj)
        grace = min(grace, asked.grace) if asked.grace >= 0 else grace
        if not finalizers and not grace:
            if by.dry_run:
                return Outcome(row.obj, changed=True, gone=True)
            return Outcome(self._writing.remove(table, row), changed=True, gone=True)
        return self._mark(table, row, finalizers, by, grace)

    def _mark(self, table: Table, row: Row, finalizers: list[str], by: By, grace: int) -> Outcome:
        if "deletionTimestamp" in row.obj["metadata"]:
            return Outcome(row.obj, changed=False)
        now = stamp(self._time.now() + timedelta(seconds=grace))

        def change(metadata: Obj) -> None:
            metadata["deletionTimestamp"] = now
            metadata["deletionGracePeriodSeconds"] = grace
            if finalizers:
                metadata["finalizers"] = finalizers
            if "generation" in metadata:
                metadata["generation"] += 1

        if by.dry_run:
            return Outcome(row.obj, changed=True)
        obj = self._writing.mark(table, row, change)
        if FOREGROUND in finalizers:
            self._later(COLLECTS_AFTER, lambda: self._foreground(obj["metadata"]["uid"]))
        return Outcome(obj, changed=True)

    def _changed(self, change: Change) -> None:
        metadata = change.object["metadata"]
        uid = metadata["uid"]
        if change.type == DELETED:
            if uid in self._store.dependents:
                self._later(COLLECTS_AFTER, lambda: self._collect(uid))
            for owner in metadata.get("ownerReferences") or ():
                if owner["uid"] in self._store.uids and owner.get("blockOwnerDeletion"):
                    self._foreground(owner["uid"])
            if change.gk == NAMESPACE:
                self._emptying.discard(metadata["name"])
            elif self._emptying and (space := namespace_of(change.object)) in self._emptying:
                self._check_empty(space)
            return
        for owner in metadata.get("ownerReferences") or ():
            if owner["uid"] not in self._store.uids:
                self._later(COLLECTS_AFTER, lambda lost=owner["uid"]: self._collect(lost))

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self._time.after(seconds, call)

    def _members(self, uid: str) -> list[tuple[Table, Row]]:
        """The dependents there are, in an order that does not depend on hashing."""
        found: list[tuple[Table, Row]] = []
        for gk, key in sorted(self._store.dependents.get(uid, ())):
            table = self._store.tables.get(gk)
            row = table.rows.get(key) if table is not None else None
            if table is not None and row is not None:
                found.append((table, row))
        return found

    def _collect(self, uid: str) -> None:
        """The owner has gone: so does what has no other."""
        if uid in self._store.uids:
            return
        for table, row in self._members(uid):
            owners = row.obj["metadata"].get("ownerReferences") or ()
            left = [owner for owner in owners if owner["uid"] in self._store.uids]
            if left:
                self._writing.mark(table, row, _owned_by(left))
            else:
                self._delete(table, row)

    def _orphan(self, uid: str) -> None:
        for table, row in self._members(uid):
            owners = row.obj["metadata"].get("ownerReferences") or ()
            left = [owner for owner in owners if owner["uid"] != uid]
            self._writing.mark(table, row, _owned_by(left))

    def _foreground(self, uid: str) -> None:
        """Dependents first; the owner when none is left that blocks it."""
        found = self._store.uids.get(uid)
        if found is None:
            return
        gk, key = found
        table = self._store.tables[gk]
        row = table.rows[key]
        if FOREGROUND not in (row.obj["metadata"].get("finalizers") or ()):
            return
        blocking = False
        for member, dependent in self._members(uid):
            owners = dependent.obj["metadata"].get("ownerReferences") or ()
            mine = next(owner for owner in owners if owner["uid"] == uid)
            blocking = blocking or bool(mine.get("blockOwnerDeletion"))
            if "deletionTimestamp" not in dependent.obj["metadata"]:
                self._delete(member, dependent, "Foreground")
        if not blocking:
            self.drop_finalizer(table, key, FOREGROUND)

    def drop_finalizer(self, table: Table, key: tuple[str, str], finalizer: str) -> Obj | None:
        """Takes one off, and with the last one the object, if it is going."""
        row = table.rows.get(key)
        if row is None:
            return None
        finalizers: list[str] = row.obj["metadata"].get("finalizers") or []
        if finalizer not in finalizers:
            return row.obj
        left = [one for one in finalizers if one != finalizer]
        new: Obj = {**row.obj, "metadata": {**row.obj["metadata"], "finalizers": left}}
        if not left:
            del new["metadata"]["finalizers"]
        return self._writing.update(table, row, new, _COLLECTOR).obj

    def _delete(self, table: Table, row: Row, propagation: str = "Background") -> None:
        """What the collector does is refused like anybody's; then it stays."""
        try:
            self.delete(table, row, Asked(propagation=propagation), _COLLECTOR)
        except refusal.Refused:
            return

    def _end_namespace(self, table: Table, row: Row, finalizers: list[str], by: By) -> Outcome:
        name = name_of(row.obj)
        if by.dry_run or "deletionTimestamp" in row.obj["metadata"]:
            return Outcome(row.obj, changed=not by.dry_run)
        if name in ("default", "kube-system", "kube-public"):
            raise refusal.forbidden(table.definition, name, "this namespace may not be deleted")
        self._mark(table, row, finalizers, by, 0)
        row = table.rows[("", name)]
        new = {**row.obj, "status": {**row.obj.get("status", {}), "phase": "Terminating"}}
        obj = self._store.commit(table, MODIFIED, _fresh(new), row).obj
        self._emptying.add(name)
        self._later(EMPTIES_AFTER, lambda: self._empty(name))
        return Outcome(obj, changed=True)

    def finalize(self, namespace: Obj, finalizers: list[str]) -> Obj:
        """Sets what a namespace still waits for; without any, one that is going is gone, and its
        content stays behind."""
        table = self._store.tables[NAMESPACE]
        row = table.rows[("", name_of(namespace))]
        new = _fresh({**row.obj, "spec": {"finalizers": finalizers} if finalizers else {}})
        going = "deletionTimestamp" in new["metadata"] and not finalizers
        return self._store.commit(table, DELETED if going else MODIFIED, new, row).obj

    def _content(self, namespace: str) -> list[tuple[Table, Row]]:
        return [
            (table, row)
            for _, table in sorted(self._store.tables.items())
            if table.definition.namespaced
            for row in table.all(namespace)
        ]

    def _empty(self, namespace: str) -> None:
        for table, row in self._content(namespace):
            if "deletionTimestamp" not in row.obj["metadata"]:
                self._delete(table, row)
        self._check_empty(namespace)

    def _check_empty(self, namespace: str) -> None:
        table = self._store.tables[NAMESPACE]
        row = table.rows.get(("", namespace))
        if row is None or self._content(namespace):
            return
        if at(row.obj, "spec.finalizers"):
            spec = {k: v for k, v in row.obj["spec"].items() if k != "finalizers"}
            new = _fresh({**row.obj, "spec": spec})
            if not new["metadata"].get("finalizers"):
                self._store.commit(table, DELETED, new, row)
            else:
                self._store.commit(table, MODIFIED, new, row)


_COLLECTOR = By(
    manager="kube-controller-manager", user=User("system:kube-controller-manager", (MASTERS,))
)


def _fresh(obj: Obj) -> Obj:
    return {**obj, "metadata": dict(obj["metadata"])}


def _at_once(_obj: Obj) -> int:
    return 0


def _owned_by(owners: list[Obj]) -> Callable[[Obj], None]:
    def change(metadata: Obj) -> None:
        if owners:
            metadata["ownerReferences"] = owners
        else:
            metadata.pop("ownerReferences", None)

    return change
