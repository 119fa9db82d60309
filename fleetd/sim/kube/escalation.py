"""
Nobody gives away rights that he does not have: what an API server says to roles and bindings.

Whoever writes a role must hold what is in it, or the verb `escalate`; whoever binds one must hold
what is in it, or the verb `bind` for it. Asked only where roles are enforced; members of
system:masters hold everything.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import User
from fleetd.sim.kube.rbac import GROUP, Ask
from fleetd.sim.kube.values import GK, Obj, encode, name_of, namespace_of

if TYPE_CHECKING:
    from fleetd.sim.kube.cluster import Cluster

_ROLES = {"ClusterRole": "clusterroles", "Role": "roles"}


def install(cluster: "Cluster") -> None:
    for kind in _ROLES:
        cluster.admit((GROUP, kind), _hook(cluster, (GROUP, kind)))
        cluster.admit((GROUP, f"{kind}Binding"), _hook(cluster, (GROUP, f"{kind}Binding")))


def _hook(cluster: "Cluster", gk: GK):  # noqa: ANN202 - as Cluster wants it
    def check(what: str, new: Obj | None, old: Obj | None, user: User) -> Obj | None:
        free = user.master or not cluster.rbac_enforced
        given_by = "rules" if gk[1] in _ROLES else "subjects"
        same = old is not None and new is not None and old.get(given_by) == new.get(given_by)
        if new is None or what == "STATUS" or free or same:
            return None
        given = _given(cluster, gk[1], new, user)
        lacking = [rule for rule in given if not _holds(cluster, user, rule, namespace_of(new))]
        if lacking:
            shown = "\n".join(_shown(rule) for rule in lacking)
            why = (
                f'user "{user.name}" (groups=[{" ".join(user.groups)}]) is attempting to grant '
                f"RBAC permissions not currently held:\n{shown}"
            )
            raise refusal.forbidden(cluster.table(gk).definition, name_of(new), why)
        return None

    return check


def _given(cluster: "Cluster", kind: str, new: Obj, user: User) -> list[Obj]:
    """The rules that the write would give to somebody; none if the user may do so anyway."""
    if kind in _ROLES:
        ask = Ask(verb="escalate", group=GROUP, resource=_ROLES[kind], name=name_of(new))
        return [] if cluster.rbac.allows(user, ask) else list(new.get("rules") or ())
    role = new["roleRef"]
    ask = Ask(verb="bind", group=GROUP, resource=_ROLES[role["kind"]], name=role["name"])
    if cluster.rbac.allows(user, ask):
        return []
    space = namespace_of(new) if role["kind"] == "Role" else ""
    found = cluster.get((GROUP, role["kind"]), role["name"], space)
    return list((found or {}).get("rules") or ())


def _holds(cluster: "Cluster", user: User, rule: Obj, namespace: str) -> bool:
    return all(cluster.rbac.allows(user, ask) for ask in _asks(rule, namespace))


def _asks(rule: Obj, namespace: str) -> Iterator[Ask]:
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield Ask(verb=verb, path=path)
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for name in rule.get("resourceNames") or ("",):
                    yield Ask(
                        verb=verb, group=group, resource=resource, namespace=namespace, name=name
                    )


def _shown(rule: Obj) -> str:
    fields = (("APIGroups", "apiGroups"), ("Resources", "resources"), ("Verbs", "verbs"))
    said = (f"{title}:{encode(rule.get(key) or []).decode()}" for title, key in fields)
    return f"{{{', '.join(said)}}}"
