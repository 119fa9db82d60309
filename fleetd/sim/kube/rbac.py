"""
Who may do what: roles and bindings of one cluster, evaluated as they stand in it.

The answer is read from the objects at every change of one of them and kept until the next.
Membership in system:masters allows everything, before any rule is looked at.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fleetd.sim.kube.access import User
from fleetd.sim.kube.store import Change, Store
from fleetd.sim.kube.values import GK, Obj

GROUP = "rbac.authorization.k8s.io"
_KINDS = frozenset(
    (GROUP, kind) for kind in ("ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    verb: str
    group: str = ""
    resource: str = ""
    """With its subresource: `shoots/adminkubeconfig`."""
    namespace: str = ""
    name: str = ""
    path: str = ""
    """Of a request that is about no resource, as `/version`."""


class Rbac:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[User, Ask], bool] = {}
        store.subscribe(self._changed)

    def _changed(self, change: Change) -> None:
        if change.gk in _KINDS:
            self._known.clear()

    def allows(self, user: User, ask: Ask) -> bool:
        if user.master:
            return True
        key = (user, ask)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._evaluate(user, ask)
        return known

    def _evaluate(self, user: User, ask: Ask) -> bool:
        return any(_rule_allows(rule, ask) for rule in self.rules(user, ask.namespace))

    def rules(self, user: User, namespace: str) -> Iterator[Obj]:
        """All that hold for somebody there."""
        for binding in self._all((GROUP, "ClusterRoleBinding")):
            if _binds(binding, user, ""):
                yield from self._role("ClusterRole", binding["roleRef"]["name"], "")
        if not namespace:
            return
        for binding in self._all((GROUP, "RoleBinding"), namespace):
            if _binds(binding, user, namespace):
                reference = binding["roleRef"]
                yield from self._role(reference["kind"], reference["name"], namespace)

    def _all(self, gk: GK, namespace: str = "") -> Iterable[Obj]:
        return (row.obj for row in self._store.tables[gk].all(namespace))

    def _role(self, kind: str, name: str, namespace: str) -> Iterable[Obj]:
        key = ("", name) if kind == "ClusterRole" else (namespace, name)
        row = self._store.tables[(GROUP, kind)].rows.get(key)
        return (row.obj.get("rules") or ()) if row is not None else ()


def _binds(binding: Obj, user: User, namespace: str) -> bool:
    for subject in binding.get("subjects") or ():
        match subject["kind"]:
            case "User" if subject["name"] == user.name:
                return True
            case "Group" if subject["name"] in user.groups:
                return True
            case "ServiceAccount":
                where = subject.get("namespace", namespace)
                if user.name == f"system:serviceaccount:{where}:{subject['name']}":
                    return True
            case _:
                pass
    return False


def _rule_allows(rule: Obj, ask: Ask) -> bool:
    if not _has(rule.get("verbs"), ask.verb):
        return False
    if ask.path:
        return any(
            path in ("*", ask.path) or (path.endswith("*") and ask.path.startswith(path[:-1]))
            for path in rule.get("nonResourceURLs") or ()
        )
    names = rule.get("resourceNames")
    return (
        _has(rule.get("apiGroups"), ask.group)
        and _resource(rule.get("resources") or (), ask.resource)
        and (not names or ask.name in names)
    )


def _has(values: Iterable[str] | None, wanted: str) -> bool:
    return any(value in ("*", wanted) for value in values or ())


def _resource(values: Iterable[str], wanted: str) -> bool:
    _, _, sub = wanted.partition("/")
    return any(value in ("*", wanted) or (bool(sub) and value == f"*/{sub}") for value in values)
