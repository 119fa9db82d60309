"""
An API server in memory, as its controllers see it. Over HTTP it is `server.Server`.

Deterministic and synchronous: the same calls at the same times give the same objects, versions
and names. Controllers call it directly; they bypass HTTP, not the rules: admission, generation,
finalizers, field ownership and garbage collection hold for them as for everybody.

The one rule: an object that was given out is never changed, neither here nor by whoever got it.
`edit` hands out a copy to change.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from fleetd.kube.transport import Request, Response
from fleetd.sim.faces.handler import Stream
from fleetd.sim.kube import (
    access,
    builtin,
    crd,
    defaults,
    disruption,
    escalation,
    refusal,
    reviews,
    roles,
)
from fleetd.sim.kube.access import MASTERS, Tokens, User
from fleetd.sim.kube.calls import Call
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.lifecycle import Asked, Lifecycle
from fleetd.sim.kube.managed import APPLY
from fleetd.sim.kube.rbac import Rbac
from fleetd.sim.kube.server import Server
from fleetd.sim.kube.store import DELETED, Change, Store, Table
from fleetd.sim.kube.values import GK, Obj, clone, gk_of
from fleetd.sim.kube.watch import Watch
from fleetd.sim.kube.writing import By, Hook, Writing
from fleetd.sim.time import Time

Subresource = Callable[[Obj, Call, User], tuple[int, Obj]]
"""Object, request, user: to a status and a body. May raise `Refused`."""


class Cluster:
    def __init__(
        self,
        name: str,
        time: Time,
        *,
        uid_of: Callable[[str], str],
        rbac_enforced: bool = False,
        version: str = "v1.34.3",
        bookmark_every: float = 60.0,
    ) -> None:
        self.name = name
        self.time = time
        self.version = version
        self.rbac_enforced = rbac_enforced
        self.bookmark_every = bookmark_every
        self.store = Store()
        self.tokens = Tokens(name, time, self.store)
        self.writing = Writing(self.store, time, uid_of, name)
        self.lifecycle = Lifecycle(self.store, self.writing, time)
        self.rbac = Rbac(self.store)
        self.plurals: dict[tuple[str, str], Table] = {}
        """By group and plural."""
        self.subresources: dict[tuple[GK, str], Subresource] = {}
        self.writes: Counter[str] = Counter()
        """Changes committed through HTTP, by user."""
        self.log: Callable[[str, Request, int], None] | None = None
        """Called with user, request and status after every request."""
        self.failed: Callable[[Exception], None] | None = None
        """Told what a hook or a subresource raised that is no refusal; the client then gets a
        500. None: it is raised."""
        self._ticking = False
        self._watches: list[Watch] = []
        for definition in builtin.DEFINITIONS:
            self.serve(definition)
        for gk, hook in defaults.HOOKS.items():
            self.admit(gk, hook)
        crd.install(self)
        escalation.install(self)
        reviews.install(self)
        disruption.install(self)
        self._server = Server(self)
        self.store.subscribe(self._account_deleted)
        for namespace in ("default", "kube-system", "kube-public", "kube-node-lease"):
            self.create(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
                manager="kube-apiserver",
            )
        roles.install(self)

    def __repr__(self) -> str:
        return f"<Cluster {self.name}>"

    def handle(self, request: Request, headers: Mapping[str, str]) -> Response | Stream:
        """One request over HTTP: see `fleetd.sim.faces.handler.Handler`."""
        return self._server.handle(request, headers)

    # Kinds

    def serve(self, definition: Definition) -> None:
        """Serves a kind from now on; again with another definition, its objects stay."""
        self.store.pages.clear()
        table = self.store.tables.get(definition.gk)
        if table is None:
            table = self.store.add(definition)
        else:
            self.plurals.pop((table.definition.group, table.definition.plural), None)
            table.definition = definition
        self.plurals[(definition.group, definition.plural)] = table

    def unserve(self, group: str, kind: str) -> None:
        """Stops serving a kind. Its objects are gone with it, and its watches end."""
        table = self.store.tables.pop((group, kind), None)
        if table is None:
            return
        self.store.pages.clear()
        self.plurals.pop((group, table.definition.plural), None)
        for row in table.rows.values():
            self.store.uids.pop(row.obj["metadata"]["uid"], None)
        for watcher in tuple(table.watchers):
            watcher.end()

    def kinds(self) -> "list[GK]":
        """All that is served, in order."""
        return sorted(self.store.tables)

    def table(self, gk: GK) -> Table:
        table = self.store.tables.get(gk)
        if table is None:
            raise refusal.Refused(
                404, "NotFound", f'no matches for kind "{gk[1]}" in group "{gk[0]}"'
            )
        return table

    # Reading

    def get(self, gk: GK, name: str, namespace: str = "") -> Obj | None:
        """Never change what you get."""
        table = self.store.tables.get(gk)
        row = table.rows.get((namespace, name)) if table is not None else None
        return row.obj if row is not None else None

    def list(
        self, gk: GK, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> list[Obj]:
        """By namespace and name; all namespaces if none is given. Never change what you get."""
        table = self.store.tables.get(gk)
        if table is None:
            return []
        found = [row.obj for row in table.all(namespace)]
        if labels:
            found = [obj for obj in found if _matches(obj, labels)]
        return found

    # Writing

    def create(self, obj: Obj, *, manager: str) -> Obj:
        """Raises `Refused`, as all that follow."""
        return self.writing.create(self.table(gk_of(obj)), clone(obj), _by(manager)).obj

    def apply(self, obj: Obj, *, manager: str, force: bool = True, status: bool = False) -> Obj:
        """Server-side apply."""
        subresource = "status" if status else ""
        by = By(manager=manager, user=_user(manager), operation=APPLY, subresource=subresource)
        return self.writing.apply(self.table(gk_of(obj)), clone(obj), by, force=force).obj

    def edit(
        self,
        gk: GK,
        name: str,
        namespace: str,
        change: Callable[[Obj], None],
        *,
        manager: str,
        status: bool = False,
    ) -> Obj | None:
        """Lets `change` work on a copy and stores that, if it differs; with `status`, only the
        status of it. None: there is no such object."""
        table = self.table(gk)
        row = table.rows.get((namespace, name))
        if row is None:
            return None
        new = clone(row.obj)
        change(new)
        by = By(manager=manager, user=_user(manager), subresource="status" if status else "")
        return self.writing.update(table, row, new, by).obj

    def set_status(
        self, gk: GK, name: str, namespace: str, status: Obj, *, manager: str
    ) -> Obj | None:
        """Replaces the status."""
        table = self.table(gk)
        row = table.rows.get((namespace, name))
        if row is None:
            return None
        by = By(manager=manager, user=_user(manager), subresource="status")
        return self.writing.update(table, row, {"status": clone(status)}, by).obj

    def delete(
        self, gk: GK, name: str, namespace: str = "", *, propagation: str = "Background"
    ) -> Obj | None:
        """The object as it is now, gone or marked; None: there is none."""
        table = self.table(gk)
        row = table.rows.get((namespace, name))
        if row is None:
            return None
        asked = Asked(propagation=propagation, grace=-1)
        return self.lifecycle.delete(table, row, asked, _by("controller")).obj

    def remove_finalizer(self, gk: GK, name: str, namespace: str, finalizer: str) -> Obj | None:
        """The last one takes an object that is being deleted with it."""
        return self.lifecycle.drop_finalizer(self.table(gk), (namespace, name), finalizer)

    # Extending

    def subscribe(self, listener: Callable[[Change], None]) -> None:
        """Called after every committed change, in their order, whoever made it. A listener may
        write; what that changes is told when the present round is over."""
        self.store.subscribe(listener)

    def admit(self, gk: GK, hook: Hook) -> None:
        """Has `hook` asked before every write of a kind, in the order of registration."""
        self.writing.hooks.setdefault(gk, []).append(hook)

    def subresource(self, gk: GK, name: str, handler: Subresource) -> None:
        self.subresources[(gk, name)] = handler

    def graceful(self, gk: GK, seconds: Callable[[Obj], int]) -> None:
        """Has objects of a kind end only after a while: a controller must then delete them again,
        as the kubelet does with Pods."""
        self.lifecycle.graceful[gk] = seconds

    # Users

    def token(
        self, user: str, groups: Iterable[str] = (), *, expires: datetime | None = None
    ) -> str:
        return self.tokens.issue(user, tuple(groups), expires=expires)

    def admin_token(self) -> str:
        return self.token("admin", (MASTERS,))

    def kubeconfig(self, server: str, token: str, authority: bytes = b"") -> Obj:
        return access.kubeconfig(self.name, server, token, authority)

    def _account_deleted(self, change: Change) -> None:
        if change.type == DELETED and change.gk == ("", "ServiceAccount"):
            self.tokens.deleted(change.object["metadata"]["uid"])

    # Watches

    def opened(self, watch: Watch) -> None:
        """Keeps bookmarks coming while anybody wants them."""
        if not watch.bookmarked:
            return
        self._watches.append(watch)
        if not self._ticking:
            self._ticking = True
            self.time.after(self.bookmark_every, self._tick)

    def _tick(self) -> None:
        self._watches = [watch for watch in self._watches if watch.bookmarked]
        for watch in self._watches:
            watch.bookmark(self.store.version)
        self._ticking = bool(self._watches)
        if self._ticking:
            self.time.after(self.bookmark_every, self._tick)

    def forget_history(self) -> None:
        """As after a compaction: older resourceVersions and continue tokens answer 410."""
        self.store.forget()

    def open_watches(self) -> int:
        return sum(len(table.watchers) for table in self.store.tables.values())

    def end_watches(self) -> None:
        """As when the server restarts: every open watch ends."""
        for table in self.store.tables.values():
            for watcher in tuple(table.watchers):
                watcher.end()


def _user(manager: str) -> User:
    return User(f"system:controller:{manager}", (MASTERS,))


def _by(manager: str) -> By:
    return By(manager=manager, user=_user(manager))


def _matches(obj: Obj, labels: Mapping[str, str]) -> bool:
    has: Mapping[str, str] = obj["metadata"].get("labels") or {}
    return all(has.get(name) == value for name, value in labels.items())
