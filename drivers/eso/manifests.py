"""
What fleetd writes for External Secrets. Pure; nothing secret is in it.

A refresh interval is never zero: such an ExternalSecret is deaf to every poke. It is written as
Go writes it (`1h0m0s`), because External Secrets writes it back so, and would own the field then.
The Secrets of the Ceph keys belong to nobody (`Orphan`): an ExternalSecret that is deleted by
mistake must not take the key from running machines, and Kubernetes would collect an owned one
whatever `Retain` says.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from topology.resource import Resource

GROUP = "external-secrets.io"
STORE = "openbao-cluster-store"
OPERATOR = "external-secrets"
AUDIENCE = "openbao"
HOURLY = "1h0m0s"
CLIENTS = ("nova", "cinder", "glance")
PROPERTIES = ("userID", "userKey")
"""Of a Secret that Rook makes for a CephClient."""

Body = dict[str, Any]


def store(want: Resource, mount: str) -> Body:
    """Without the server: where that is, is found out at the moment of writing."""
    cluster = str(want.spec["cluster"])
    account = {"name": OPERATOR, "namespace": OPERATOR, "audiences": [AUDIENCE]}
    login = {
        "mountPath": f"kubernetes/{cluster}",
        "role": f"eso-{cluster}",
        "serviceAccountRef": account,
    }
    vault = {"path": mount, "version": "v2", "auth": {"kubernetes": login}}
    return {
        "apiVersion": GROUP,
        "kind": "ClusterSecretStore",
        "metadata": {"name": str(want.spec["install"]["name"])},
        "spec": {"provider": {"vault": vault}},
    }


def reached(body: Mapping[str, Any], server: str, authority: str) -> Body:
    """A store that knows where OpenBao is, and whom to trust there."""
    vault: Body = {**body["spec"]["provider"]["vault"], "server": server}
    if authority:
        vault["caBundle"] = authority
    return {**body, "spec": {**body["spec"], "provider": {"vault": vault}}}


def push(want: Resource, client: str) -> Body:
    """The key of one Ceph client, to OpenBao."""
    cluster, cloud = str(want.spec["cluster"]), str(want.spec["cloud"])
    return {
        "apiVersion": GROUP,
        "kind": "PushSecret",
        "metadata": {
            "name": f"{cloud}-client-{client}",
            "namespace": str(want.spec["install"]["namespace"]),
        },
        "spec": {
            "refreshInterval": interval(want),
            "secretStoreRefs": [{"kind": "ClusterSecretStore", "name": STORE}],
            "selector": {"secret": {"name": f"rook-ceph-client-{cloud}-{client}"}},
            "data": [
                {
                    "match": {
                        "secretKey": name,
                        "remoteRef": {
                            "remoteKey": path(cluster, cloud, client),
                            "property": name,
                        },
                    }
                }
                for name in PROPERTIES
            ],
        },
    }


def pull(want: Resource, name: str, client: str) -> Body:
    """The key of one Ceph client, from OpenBao; of several storage clusters the first has the
    plain names."""
    cloud = str(want.spec["cloud"])
    storage: Sequence[str] = want.spec["storage"]
    data = [
        {
            "secretKey": key if number == 0 else f"{cluster}.{key}",
            "remoteRef": {"key": path(cluster, cloud, client), "property": key},
        }
        for number, cluster in enumerate(storage)
        for key in PROPERTIES
    ]
    return {
        "apiVersion": GROUP,
        "kind": "ExternalSecret",
        "metadata": {"name": name, "namespace": str(want.spec["install"]["namespace"])},
        "spec": {
            "refreshInterval": interval(want),
            "secretStoreRef": {"kind": "ClusterSecretStore", "name": STORE},
            "target": {"name": name, "creationPolicy": "Orphan", "deletionPolicy": "Retain"},
            "data": data,
        },
    }


def path(cluster: str, cloud: str, client: str) -> str:
    return f"ceph/{cluster}/{cloud}/client-{client}"


def interval(want: Resource) -> str:
    given: Mapping[str, Any] = want.spec.get("parameters") or {}
    return str(given.get("refreshInterval") or HOURLY)
