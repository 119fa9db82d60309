"""
Who may do what on a new Shoot: the roles that its API server and Gardener bring; part of
`gardener`. Only those that somebody binds or is a member of; administrators are system:masters.
"""

from typing import Any

from fleetd.sim.kube.cluster import Cluster

_API = "rbac.authorization.k8s.io"
_VIEWERS = "gardener.cloud:system:viewers"
_LOOK = ["get", "list", "watch"]
_PLAIN = [
    "configmaps",
    "events",
    "namespaces",
    "nodes",
    "persistentvolumeclaims",
    "pods",
    "serviceaccounts",
    "services",
]
_ROLES: dict[str, list[dict[str, Any]]] = {
    # All but Secrets.
    _VIEWERS: [
        {"apiGroups": [""], "resources": _PLAIN, "verbs": _LOOK},
        {
            "apiGroups": ["apps", "batch", "apiextensions.k8s.io"],
            "resources": ["*"],
            "verbs": _LOOK,
        },
    ],
}


_BROUGHT = 2
"""Of the roles that fleetd binds, those that the API server has already: uids count with them."""


def install(there: Cluster) -> None:
    there.writing.made += _BROUGHT
    for name, rules in _ROLES.items():
        body = {"apiVersion": f"{_API}/v1", "kind": "ClusterRole", "metadata": {"name": name}}
        there.create({**body, "rules": rules}, manager="kube-apiserver")
    there.create(
        {
            "apiVersion": f"{_API}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": _VIEWERS},
            "roleRef": {"apiGroup": _API, "kind": "ClusterRole", "name": _VIEWERS},
            "subjects": [{"apiGroup": _API, "kind": "Group", "name": _VIEWERS}],
        },
        manager="gardenlet",
    )
