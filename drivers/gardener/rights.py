"""
What fleetd may do on a cluster, by its job: the rules of its ClusterRole, as data.

It reads what it judges by and keeps what its drivers write; Secrets it asks for by name and never
lists. Of the API groups of operators that it installs it has all kinds, for they are there to be
driven. Rights it hands on (the arbiter's account) it must hold itself, and roles it binds are named
one by one. On the management cluster it may bind cluster-admin, because Flux has to have it: who
installs Flux can do there what Flux can. What a catalogue of your own brings is added by its group.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from fleetd.kube import trust
from topology.catalogue import Component, Scope
from topology.documents.cluster import Role
from topology.resource import Facts

LOOK = ("get", "list", "watch")
KEEP = (*LOOK, "create", "patch", "update", "delete")
BY_NAME = ("get", "create", "patch", "update", "delete")
CRD = "apiextensions.k8s.io"
RBAC = "rbac.authorization.k8s.io"

_READ = (
    "configmaps",
    "endpoints",
    "events",
    "nodes",
    "persistentvolumeclaims",
    "pods",
    "services",
)
_BAO = ("openbao-login-proof", "openbao-token-reviewer")
"""ServiceAccounts whose tokens OpenBao is shown."""
_OPENSTACK = ("barbican", "cinder", "glance", "horizon", "keystone", "neutron", "nova", "placement")
_GROUPS: Mapping[Role, Sequence[str]] = {
    Role.MANAGEMENT: (
        "fluxcd.controlplane.io",
        "greenhouse.sap",
        "helm.toolkit.fluxcd.io",
        "kustomize.toolkit.fluxcd.io",
        "openbao.org",
        "source.toolkit.fluxcd.io",
    ),
    Role.CONTROL_PLANE: (
        "c5c3.io",
        *(f"{service}.openstack.c5c3.io" for service in _OPENSTACK),
        "cache.cs.sap.com",
        "garage.rajsingh.info",
        "k8s.mariadb.com",
        "memcached.c5c3.io",
        "openstack.k-orc.cloud",
        "ovn.openstack.org",
        "rabbitmq.com",
    ),
    Role.HYPERVISOR: ("kvm.cloud.sap",),
    Role.STORAGE: ("ceph.cobaltcore.sap.com", "ceph.rook.io"),
    Role.ARBITER: (),
}
_STANDS = {
    Scope.CLOUD: Role.CONTROL_PLANE,
    Scope.CLOUD_HYPERVISOR: Role.HYPERVISOR,
    Scope.CLOUD_STORAGE: Role.STORAGE,
    Scope.CEPH_POOL: Role.STORAGE,
}
"""On which clusters a component stands that does not name roles."""


def of(role: str, catalogue: Mapping[str, Component]) -> list[Facts]:
    job = Role(role)
    rules = [*_common(job), *_special(job)]
    known = {group for rule in rules for group in rule["apiGroups"]}
    more = sorted(set(_brought(job, catalogue)) - known)
    return [*rules, *(_rule((group,), ("*",), KEEP) for group in more)]


def _rule(
    groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()
) -> dict[str, Any]:
    made = {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}
    return made | ({"resourceNames": list(names)} if names else {})


def _common(job: Role) -> Iterator[dict[str, Any]]:
    yield _rule(("",), _READ, LOOK)
    yield _rule(("apps",), ("daemonsets", "deployments", "replicasets", "statefulsets"), LOOK)
    yield _rule((CRD,), ("customresourcedefinitions",), LOOK)
    yield _rule(("",), ("namespaces", "serviceaccounts"), KEEP)
    yield _rule(("",), ("secrets",), BY_NAME)
    yield _rule(("",), ("serviceaccounts/token",), ("create",), _BAO)
    yield _rule(("authentication.k8s.io",), ("tokenreviews",), ("create",))
    yield _rule((RBAC,), ("clusterroles", "roles"), LOOK)
    yield _rule((RBAC,), ("clusterrolebindings",), KEEP)
    yield _rule((RBAC,), ("clusterroles",), ("bind",), ("system:auth-delegator",))
    yield _rule(("external-secrets.io",), ("*",), KEEP)
    if _GROUPS[job]:
        yield _rule(_GROUPS[job], ("*",), KEEP)


def _special(job: Role) -> Iterator[dict[str, Any]]:
    match job:
        case Role.MANAGEMENT:
            yield _rule((CRD,), ("customresourcedefinitions",), KEEP)
            yield _rule(("",), ("configmaps", "services"), KEEP)
            yield _rule(("apps",), ("deployments",), KEEP)
            yield _rule(("",), ("persistentvolumeclaims", "pods"), ("delete",))
            yield _rule((RBAC,), ("clusterroles",), ("bind",), ("cluster-admin",))
            yield _rule(("",), ("serviceaccounts/token",), ("create",), (trust.ACCOUNT,))
        case Role.HYPERVISOR:
            yield _rule(("",), ("nodes",), ("patch", "delete"))
            yield _rule(("",), ("nodes/status",), ("patch",))
        case Role.STORAGE:
            yield _rule(("",), ("nodes",), ("patch",))
        case Role.ARBITER:
            given = ("secrets", "configmaps", "services")
            yield _rule(("",), (*given, *(f"{one}/status" for one in given)), KEEP)
            yield _rule(("",), tuple(f"{one}/finalizers" for one in given), ("update",))
            yield _rule(("apps",), ("deployments", "deployments/status"), KEEP)
            yield _rule(("apps",), ("deployments/finalizers",), ("update",))
            yield _rule((RBAC,), ("roles", "rolebindings"), KEEP)
            yield _rule(("",), ("serviceaccounts/token",), ("create",), ("ceph-arbiter",))
        case _:
            return


def _brought(job: Role, catalogue: Mapping[str, Component]) -> Iterator[str]:
    """API groups of what components of this job look at and bring; not those of Kubernetes
    itself, where a right to everything would be a right to everything."""
    for component in catalogue.values():
        spec = component.spec
        roles = spec.roles or [_STANDS.get(spec.scope, job)]
        if spec.backend != "cluster" or job not in roles:
            continue
        watched = spec.health.object
        groups = [watched.group if watched is not None else "", *_manifests(spec.parameters)]
        yield from (group for group in groups if "." in group and not group.endswith(".k8s.io"))


def _manifests(parameters: Mapping[str, Any]) -> Iterator[str]:
    given: Any = parameters.get("manifest")
    for one in cast("list[Any]", given) if isinstance(given, list) else [given]:
        if isinstance(one, dict):
            yield str(cast("dict[str, Any]", one).get("apiVersion", "")).partition("/")[0]
