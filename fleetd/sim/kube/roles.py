"""
The roles that an API server brings: what everybody who has logged in may read, what a namespace's
people may do, and the ones that operators bind by name.

Data and its creation; `rbac` judges by it. Only roles of people and of what this world runs: those
of Kubernetes' own controllers are left out, for the controllers here need none.
"""

from typing import TYPE_CHECKING, Any

from fleetd.sim.kube.rbac import GROUP
from fleetd.sim.kube.values import Obj

if TYPE_CHECKING:
    from fleetd.sim.kube.cluster import Cluster

MANAGER = "kube-apiserver"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_LOOK = ["get", "list", "watch"]
_CHANGE = ["create", "delete", "deletecollection", "patch", "update"]
_INFORMATION = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY = [
    *("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*"),
    *("/readyz", "/version", "/version/"),
]
_PLAIN = [
    *("configmaps", "endpoints", "persistentvolumeclaims", "pods", "replicationcontrollers"),
    *("serviceaccounts", "services"),
]
_WORK: dict[str, list[str]] = {
    "apps": [
        *("daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale"),
        *("statefulsets", "statefulsets/scale"),
    ],
    "batch": ["cronjobs", "jobs"],
    "networking.k8s.io": ["ingresses", "networkpolicies"],
    "policy": ["poddisruptionbudgets"],
}


def _rule(groups: list[str], resources: list[str], verbs: list[str]) -> Obj:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}


def _paths(paths: list[str]) -> Obj:
    return {"nonResourceURLs": paths, "verbs": ["get"]}


_READS = [
    _rule([""], [*_PLAIN, "events", "limitranges", "namespaces", "resourcequotas"], _LOOK),
    *(_rule([group], plurals, _LOOK) for group, plurals in _WORK.items()),
]
_WRITES = [
    _rule([""], [*_PLAIN, "secrets"], _CHANGE),
    _rule([""], ["secrets"], _LOOK),
    _rule([""], ["serviceaccounts"], ["impersonate"]),
    _rule([""], ["serviceaccounts/token", "pods/eviction"], ["create"]),
    *(_rule([group], plurals, _CHANGE) for group, plurals in _WORK.items()),
]
_RULES: dict[str, list[Obj]] = {
    "cluster-admin": [
        _rule(["*"], ["*"], ["*"]),
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ],
    "admin": [
        *_READS,
        *_WRITES,
        _rule([GROUP], ["rolebindings", "roles"], [*_LOOK, *_CHANGE]),
        _rule(["authorization.k8s.io"], ["localsubjectaccessreviews"], ["create"]),
    ],
    "edit": [*_READS, *_WRITES],
    "view": _READS,
    "system:discovery": [_paths(_DISCOVERY)],
    "system:public-info-viewer": [_paths(_INFORMATION)],
    "system:basic-user": [
        _rule(
            ["authorization.k8s.io"],
            ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            ["create"],
        ),
        _rule(["authentication.k8s.io"], ["selfsubjectreviews"], ["create"]),
    ],
    "system:auth-delegator": [
        _rule(["authentication.k8s.io"], ["tokenreviews"], ["create"]),
        _rule(["authorization.k8s.io"], ["subjectaccessreviews"], ["create"]),
    ],
}
_BOUND: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("system:masters",),
    "system:basic-user": ("system:authenticated",),
    "system:discovery": ("system:authenticated",),
    "system:public-info-viewer": ("system:authenticated", "system:unauthenticated"),
}


def install(cluster: "Cluster") -> None:
    """What is made after them gets the same uids as without them: the luck of a seed hangs on
    those, and roles are nobody's luck."""
    made = cluster.writing.made
    for name, rules in _RULES.items():
        cluster.create({**_head("ClusterRole", name), "rules": rules}, manager=MANAGER)
    for name, groups in _BOUND.items():
        binding = {
            **_head("ClusterRoleBinding", name),
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": one} for one in groups],
        }
        cluster.create(binding, manager=MANAGER)
    cluster.writing.made = made


def _head(kind: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": dict(_LABELS),
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    }
