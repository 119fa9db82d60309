"""
What fleetd writes for Ceph, as manifests: the CephCluster, its pools and users, the account on the
arbiter cluster, and the monitor there.

Pure, and free of secrets. Ceph stands on the network of its hosts, because those who use it are on
other clusters. Two rules: a cleanup policy is never written, so that deleting a CephCluster leaves
the disks as they are; and `externalMonIDs` and key generations are left to those who keep them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fleetd.objects import Manifest
from topology.resource import Facts, Resource

ROOK = "ceph.rook.io/v1"
COBALTCORE = "ceph.cobaltcore.sap.com/v1alpha1"
RBAC = "rbac.authorization.k8s.io/v1"
IMAGE = "quay.io/ceph/ceph:v19.2.3"
"""Where the catalogue's parameters do not say another one."""
CLUSTER = "rook-ceph"
NAMESPACE = "rook-ceph"
ARBITER_NAMESPACE = "ceph-arbiter"
ACCOUNT = "ceph-arbiter"
KEY = "kubeconfig.yaml"
PREFIX = "ext-"
ZONE = "topology.kubernetes.io/zone"
MONS, MONS_PER_ZONE = 3, 2
"""Of a cluster in one zone; and of each of two zones, where a fifth one elsewhere breaks ties."""
USERS: Mapping[str, Mapping[str, str]] = {
    "nova": {"vms": "rbd", "volumes": "rbd", "images": "rbd-read-only"},
    "cinder": {"volumes": "rbd", "vms": "rbd", "images": "rbd-read-only", "backups": "rbd"},
    "glance": {"images": "rbd"},
}
"""Of each service the pools it uses, and how. A pool that the cluster does not have is left out."""
VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
RIGHTS: tuple[tuple[str, str], ...] = (
    ("apps", "deployments"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "services"),
)
"""What the arbiter operator checks, each with its status and finalizers."""


def ceph_cluster(want: Resource) -> Manifest:
    stretch: Facts | None = want.spec["ceph"].get("stretch")
    mon: dict[str, Any] = {"count": MONS, "allowMultiplePerNode": False}
    if stretch:
        zones = [{"name": str(zone)} for zone in stretch["zones"]]
        mon |= {"count": MONS_PER_ZONE * len(zones), "failureDomainLabel": ZONE, "zones": zones}
    spec: dict[str, Any] = {
        "cephVersion": {"image": image_of(want)},
        "dataDirHostPath": "/var/lib/rook",
        "skipUpgradeChecks": False,
        "continueUpgradeAfterChecksEvenIfNotHealthy": False,
        "upgradeOSDRequiresHealthyPGs": True,
        "mon": mon,
        "mgr": {"count": 2, "allowMultiplePerNode": False},
        "network": {"provider": "host", "connections": {"requireMsgr2": True}},
        "storage": {"useAllNodes": True, "useAllDevices": True},
        "disruptionManagement": {"managePodBudgets": True, "osdMaintenanceTimeout": 30},
    }
    why = f"write the CephCluster of {want.spec['cluster']}"
    return _manifest(want, ROOK, "CephCluster", CLUSTER, spec, why)


def image_of(want: Resource) -> str:
    return str(want.spec.get("parameters", {}).get("image") or IMAGE)


def pool(want: Resource) -> Manifest:
    """With a stretched cluster, which has a remote arbiter, half of the copies in each zone."""
    given: Facts = want.spec["pool"]
    size = int(given["size"])
    replicated: dict[str, Any] = {"size": size, "requireSafeReplicaSize": True}
    domain = "host"
    if stretched(want):
        domain = "zone"
        replicated |= {"replicasPerFailureDomain": size // 2, "subFailureDomain": "host"}
    spec: dict[str, Any] = {
        "failureDomain": domain,
        "replicated": replicated,
        "application": "rbd",
    }
    if given.get("deviceClass"):
        spec["deviceClass"] = str(given["deviceClass"])
    name = str(given["name"])
    return _manifest(want, ROOK, "CephBlockPool", name, spec, f"make pool {name}, {size} copies")


def stretched(want: Resource) -> bool:
    return any(need.kind == "remote-arbiter" for need in want.needs)


def clients(want: Resource) -> list[Manifest]:
    """The Ceph users of one cloud, each allowed only its pools."""
    cloud, cluster = str(want.spec["cloud"]), str(want.spec["cluster"])
    there = pools_of(want)
    return [
        _manifest(
            want,
            ROOK,
            "CephClient",
            f"{cloud}-{user}",
            {"caps": _caps({name: how for name, how in uses.items() if name in there})},
            f"make the Ceph user of {user} of cloud {cloud} on {cluster}",
        )
        for user, uses in USERS.items()
    ]


def pools_of(want: Resource) -> list[str]:
    """Names of the pools that it needs; `st.vms` is pool vms of st."""
    names = (need.name.partition(".")[2] for need in want.needs if need.kind == "cephpool")
    return sorted(names)


def _caps(uses: Mapping[str, str]) -> dict[str, str]:
    osd = ", ".join(f"profile {how} pool={name}" for name, how in uses.items())
    mgr = ", ".join(f"profile rbd pool={name}" for name, how in uses.items() if how == "rbd")
    return {"mon": "profile rbd", "osd": osd, "mgr": mgr}


# The third place.


def arbiter_site(want: Resource) -> list[Manifest]:
    """A namespace, an account, and the rights that the arbiter operator checks."""
    meta = {"name": ACCOUNT, "namespace": ARBITER_NAMESPACE}
    bodies: Sequence[Facts] = (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ARBITER_NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": RBAC, "kind": "Role", "metadata": meta, "rules": _rules()},
        {
            "apiVersion": RBAC,
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "Role",
                "name": ACCOUNT,
            },
            "subjects": [
                {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": ARBITER_NAMESPACE}
            ],
        },
    )
    return [
        Manifest(
            backend=want.backend,
            body=body,
            why=f"prepare the arbiter cluster: {body['kind']} {body['metadata']['name']}",
        )
        for body in bodies
    ]


def _rules() -> list[Facts]:
    made: list[Facts] = []
    for group in ("apps", ""):
        names = [name for of, name in RIGHTS if of == group]
        full = [*names, *(f"{name}/status" for name in names)]
        made.append({"apiGroups": [group], "resources": full, "verbs": list(VERBS)})
        finalizers = [f"{name}/finalizers" for name in names]
        made.append({"apiGroups": [group], "resources": finalizers, "verbs": ["update"]})
    return made


def rights() -> list[tuple[str, str, str]]:
    """Group, resource and verb of each."""
    found: list[tuple[str, str, str]] = []
    for group, name in RIGHTS:
        found += [(group, kind, verb) for kind in (name, f"{name}/status") for verb in VERBS]
        found.append((group, f"{name}/finalizers", "update"))
    return found


def arbiter_of(want: Resource) -> str:
    return str(want.spec["ceph"]["stretch"]["arbiter"])


def secret_of(want: Resource) -> str:
    """Always named in accesskeyRef: the CRD's default is a sentence."""
    return f"{arbiter_of(want)}-kubeconfig"


def remote_cluster(want: Resource) -> Manifest:
    name = arbiter_of(want)
    spec = {
        "namespace": ARBITER_NAMESPACE,
        "accesskeyRef": {"name": secret_of(want), "key": KEY},
        "checkInterval": "1m",
        "timeout": "10s",
    }
    why = f"tell the arbiter operator of cluster {name}"
    return _manifest(want, COBALTCORE, "RemoteCluster", name, spec, why)


def remote_arbiter(want: Resource) -> Manifest:
    """The Service is a LoadBalancer: the default, ClusterIP, is reached by nobody outside."""
    name = arbiter_of(want)
    spec = {
        "remoteCluster": {"name": name},
        "cephCluster": {"name": CLUSTER, "namespace": NAMESPACE},
        "monIdPrefix": PREFIX,
        "service": {"type": "LoadBalancer"},
        "checkInterval": "1m",
    }
    why = f"put a monitor on cluster {name}"
    return _manifest(want, COBALTCORE, "RemoteArbiter", name, spec, why)


def _manifest(  # noqa: PLR0917 - what it is, and why
    want: Resource, api: str, kind: str, name: str, spec: Facts, why: str
) -> Manifest:
    body: Facts = {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }
    return Manifest(backend=want.backend, body=body, why=why)
