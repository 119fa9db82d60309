"""
The backing services of a control plane, as objects for their operators, in three sizes.

Pure. Sizes are those of a Cloud: small for a laboratory, medium for some hundred hypervisors, large
for a thousand and more. Replicas are odd where a majority counts and never fewer than three: a
control plane has three nodes. Passwords are named, never written: External Secrets brings them from
OpenBao, where fleetd made them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from topology.resource import Resource

Body = dict[str, Any]
SIZES = ("small", "medium", "large")

_DISK = {"small": "20Gi", "medium": "100Gi", "large": "400Gi"}
_DATABASE_MEMORY = {"small": "2Gi", "medium": "16Gi", "large": "64Gi"}
_DATABASE_CPU = {"small": "500m", "medium": "4", "large": "16"}
_QUEUE_MEMORY = {"small": "1Gi", "medium": "4Gi", "large": "16Gi"}
_CACHE_MEGABYTES = {"small": 128, "medium": 1024, "large": 4096}
_STORE_DISK = {"small": "50Gi", "medium": "500Gi", "large": "4Ti"}
_OVN_DISK = {"small": "2Gi", "medium": "10Gi", "large": "40Gi"}
_OVN_MEMORY = {"small": "512Mi", "medium": "4Gi", "large": "16Gi"}


def mariadb(want: Resource) -> list[Body]:
    size = _size(want)
    spec: Body = {
        "replicas": 3,
        "galera": {"enabled": True},
        "rootPasswordSecretKeyRef": {"name": "mariadb-root-password", "key": "password"},
        "storage": {"size": _DISK[size]},
        "resources": {
            "requests": {"cpu": _DATABASE_CPU[size], "memory": _DATABASE_MEMORY[size]},
            "limits": {"memory": _DATABASE_MEMORY[size]},
        },
        "updateStrategy": {"type": "ReplicasFirstPrimaryLast"},
        "podDisruptionBudget": {"maxUnavailable": 1},
        "tls": {"enabled": True, "required": True},
    }
    path = f"infrastructure/mariadb-{want.spec['cluster']}"
    return [
        _password(want, "mariadb-root-password", path, {"password": "root-password"}),
        _object(want, "k8s.mariadb.com", "MariaDB", spec),
    ]


def rabbitmq(want: Resource) -> list[Body]:
    size = _size(want)
    memory = {"memory": _QUEUE_MEMORY[size]}
    spec: Body = {
        "replicas": 3,
        "persistence": {"storage": _DISK[size]},
        "resources": {"requests": {"cpu": "500m", **memory}, "limits": {"cpu": "2", **memory}},
        "rabbitmq": {
            "additionalConfig": (
                "default_queue_type = quorum\ncluster_partition_handling = pause_minority\n"
            )
        },
    }
    return [_object(want, "rabbitmq.com", "RabbitmqCluster", spec)]


def memcached(want: Resource) -> list[Body]:
    spec: Body = {
        "replicas": 3,
        "memcached": {"maxMemoryMB": _CACHE_MEGABYTES[_size(want)]},
        "highAvailability": {
            "antiAffinityPreset": "soft",
            "podDisruptionBudget": {"enabled": True, "minAvailable": 2},
        },
    }
    return [_object(want, "memcached.c5c3.io", "Memcached", spec)]


def valkey(want: Resource) -> list[Body]:
    spec: Body = {
        "replicas": 3,
        # Cannot be changed later.
        "sentinel": {"enabled": True},
        "tls": {"enabled": True},
        "persistence": {"enabled": True, "size": _OVN_DISK[_size(want)]},
    }
    return [_object(want, "cache.cs.sap.com", "Valkey", spec)]


def ovn(want: Resource) -> list[Body]:
    size = _size(want)
    databases = [
        _object(
            want,
            "ovn.openstack.org",
            "OVNDBCluster",
            {
                "dbType": kind,
                "replicas": 3,
                "storageRequest": _OVN_DISK[size],
                "containerImage": _OVN_IMAGE,
                "resources": {"requests": {"memory": _OVN_MEMORY[size]}},
            },
            name=f"{_install(want)['name']}-{kind.lower()}",
        )
        for kind in ("NB", "SB")
    ]
    northd = {"replicas": 3, "containerImage": _OVN_NORTHD_IMAGE}
    return [*databases, _object(want, "ovn.openstack.org", "OVNNorthd", northd)]


_OVN_IMAGE = "quay.io/podified-antelope-centos9/openstack-ovn-nb-db-server:current-podified"
_OVN_NORTHD_IMAGE = "quay.io/podified-antelope-centos9/openstack-ovn-northd:current-podified"


def garage(want: Resource) -> list[Body]:
    """The store, the bucket of Glance, and the key that opens it."""
    spec: Body = {
        "replication": {"factor": 3},
        "storage": {
            "replicas": 3,
            "metadata": {"size": _OVN_DISK[_size(want)]},
            "data": {"size": _STORE_DISK[_size(want)]},
        },
        "network": {"service": {"type": "ClusterIP"}},
        "s3Api": {"bindPort": 3900, "region": "garage"},
        "admin": {"adminTokenSecretRef": {"name": "garage-admin-token", "key": "token"}},
    }
    group, name = "garage.rajsingh.info", str(_install(want)["name"])
    reference = {"clusterRef": {"name": name}}
    bucket = {**reference, "globalAlias": "glance-images"}
    key = {
        **reference,
        "importKey": {
            "secretRef": {"name": "garage-s3-credentials"},
            "accessKeyIdKey": "access-key-id",
            "secretAccessKeyKey": "secret-access-key",
        },
        "bucketPermissions": [{"globalAlias": "glance-images", "read": True, "write": True}],
    }
    path = f"bootstrap/openstack-{want.spec['cluster']}/garage"
    own = ("access-key-id", "secret-access-key")
    return [
        _password(want, "garage-admin-token", f"{path}/admin-token", {"token": "token"}),
        _password(
            want, "garage-s3-credentials", f"{path}/s3-credentials", {key: key for key in own}
        ),
        _object(want, group, "GarageCluster", spec),
        _object(want, group, "GarageBucket", bucket, name="glance-images"),
        _object(want, group, "GarageKey", key, name="glance-s3"),
    ]


KINDS: Mapping[str, Callable[[Resource], list[Body]]] = {
    "garage": garage,
    "mariadb": mariadb,
    "memcached": memcached,
    "ovn": ovn,
    "rabbitmq": rabbitmq,
    "valkey": valkey,
}
"""By component."""


def _size(want: Resource) -> str:
    return str(want.spec.get("size", "medium"))


def _install(want: Resource) -> Mapping[str, Any]:
    return want.spec["install"]


def _password(want: Resource, name: str, path: str, keys: Mapping[str, str]) -> Body:
    """Has External Secrets fetch what lies in OpenBao; `keys` are those of the Secret, each with
    its property there."""
    spec: Body = {
        "secretStoreRef": {"kind": "ClusterSecretStore", "name": "openbao-cluster-store"},
        "refreshInterval": "1h",
        "target": {"name": name, "creationPolicy": "Owner", "deletionPolicy": "Retain"},
        "data": [
            {"secretKey": key, "remoteRef": {"key": path, "property": found}}
            for key, found in keys.items()
        ],
    }
    return _object(want, "external-secrets.io", "ExternalSecret", spec, name=name)


def _object(want: Resource, group: str, kind: str, spec: Body, name: str = "") -> Body:
    install = _install(want)
    return {
        "apiVersion": group,
        "kind": kind,
        "metadata": {"name": name or install["name"], "namespace": install["namespace"]},
        "spec": spec,
    }
