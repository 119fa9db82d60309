"""
The Kubernetes objects that the openbao driver writes. Pure; nothing secret is in them.

The release is that of the upstream chart with Raft, TLS and a declared audit device. The audit
file has the same path on every member: with different ones no follower could ever take over.
"""

import re
from collections.abc import Mapping
from typing import Any

from drivers.openbao import access
from fleetd import objects
from fleetd.kube import facts
from topology.resource import Facts, Resource

FLUX = "flux-system"
AUDIT_FILE = "/openbao/audit/audit.log"
REVIEWER = "openbao-token-reviewer"
PROOF = "openbao-login-proof"
SYSTEM = "kube-system"
POD_NAME = "statefulset.kubernetes.io/pod-name"
_CERTIFICATES = "/openbao/userconfig/openbao-tls"
STORE = "openbao-cluster-store"
HOURLY = "1h0m0s"
"""As External Secrets writes it back; `1h` would change hands at its first write."""


def release(want: Resource) -> dict[str, Any]:
    """Without waiting: its pods are not ready before they are unsealed."""
    install: Facts = want.spec["install"]
    name, namespace = str(install["name"]), str(install["namespace"])
    replicas = int(want.spec["secrets"]["replicas"])
    once = {"disableWait": True, "remediation": {"retries": 3}}
    return {
        "apiVersion": "helm.toolkit.fluxcd.io",
        "kind": "HelmRelease",
        "metadata": {"name": f"{want.spec['cluster']}-{name}", "namespace": FLUX},
        "spec": {
            "interval": "10m",
            "releaseName": name,
            "targetNamespace": namespace,
            "storageNamespace": namespace,
            "chart": {"spec": _chart(install)},
            "install": {**once, "createNamespace": True},
            "upgrade": once,
            "values": _values(replicas),
        },
    }


def _chart(install: Facts) -> dict[str, Any]:
    """From the repository that the flux driver tells Flux of, named after its address."""
    address = str(install["repository"]).partition("://")[2].lower()
    repository = re.sub(r"[^a-z0-9]+", "-", address).strip("-")[:63].rstrip("-")
    return {
        "chart": str(install.get("chart") or install["name"]),
        "version": str(install.get("version") or "*"),
        "sourceRef": {"kind": "HelmRepository", "name": repository, "namespace": FLUX},
    }


def _values(replicas: int) -> dict[str, Any]:
    return {
        "global": {"tlsDisable": False},
        "injector": {"enabled": False},
        "server": {
            "ha": {
                "enabled": True,
                "replicas": replicas,
                "raft": {"enabled": True, "setNodeId": True, "config": config(replicas)},
            },
            "auditStorage": {"enabled": True},
            "dataStorage": {"enabled": True},
            "service": {"type": "LoadBalancer", "publishNotReadyAddresses": True},
            "volumes": [{"name": "tls", "secret": {"secretName": "openbao-tls"}}],
            "volumeMounts": [{"name": "tls", "mountPath": _CERTIFICATES, "readOnly": True}],
        },
    }


def config(replicas: int) -> str:
    """Of every member alike."""
    joins = "".join(
        "  retry_join {\n"
        f'    leader_api_addr = "https://openbao-{number}.openbao-internal:{access.PORT}"\n'
        f'    leader_ca_cert_file = "{_CERTIFICATES}/ca.crt"\n'
        f'    leader_client_cert_file = "{_CERTIFICATES}/tls.crt"\n'
        f'    leader_client_key_file = "{_CERTIFICATES}/tls.key"\n'
        "  }\n"
        for number in range(replicas)
    )
    return (
        'listener "tcp" {\n'
        f'  address = "[::]:{access.PORT}"\n'
        '  cluster_address = "[::]:8201"\n'
        f'  tls_cert_file = "{_CERTIFICATES}/tls.crt"\n'
        f'  tls_key_file = "{_CERTIFICATES}/tls.key"\n'
        f'  tls_client_ca_file = "{_CERTIFICATES}/ca.crt"\n'
        "}\n"
        'storage "raft" {\n'
        '  path = "/openbao/data"\n'
        f"{joins}"
        "}\n"
        'service_registration "kubernetes" {}\n'
        'audit "file" "file" {\n'
        f'  options {{ file_path = "{AUDIT_FILE}" }}\n'
        "}\n"
        'telemetry {\n  prometheus_retention_time = "1h"\n  disable_hostname = true\n}\n'
    )


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def member(want: Resource, number: int) -> dict[str, Any]:
    """An address for one member: each has to be unsealed and asked by itself, also while it is
    not ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": f"openbao-{number}",
            "namespace": str(want.spec["install"]["namespace"]),
        },
        "spec": {
            "type": "LoadBalancer",
            "publishNotReadyAddresses": True,
            "selector": {POD_NAME: f"openbao-{number}"},
            "ports": [
                {
                    "name": "https",
                    "port": access.PORT,
                    "protocol": "TCP",
                    "targetPort": access.PORT,
                }
            ],
        },
    }


def account(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": SYSTEM},
    }


def reviewer_binding() -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": REVIEWER},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:auth-delegator",
        },
        "subjects": [{"kind": "ServiceAccount", "name": REVIEWER, "namespace": SYSTEM}],
    }


def claim(want: Resource) -> dict[str, Any]:
    """The Secret of the initialisation, before it holds anything: who has it may initialise, and
    whoever finds it without keys knows that an answer was lost."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": access.KEYS,
            "namespace": access.NAMESPACE,
            "labels": {
                facts.MANAGED_BY: facts.MANAGER,
                facts.REGION: want.region,
                facts.OWNER: objects.owner(want),
            },
        },
        "type": "Opaque",
    }


def pulled(name: str, target: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The ExternalSecret that brings a flow's value to a target."""
    return {
        "apiVersion": "external-secrets.io",
        "kind": "ExternalSecret",
        "metadata": {
            "name": str(target["secret"]),
            "namespace": str(target["namespace"]),
            "labels": {"fleet.c5c3.io/flow": name},
        },
        "spec": {
            "refreshInterval": HOURLY,
            "secretStoreRef": {"kind": "ClusterSecretStore", "name": STORE},
            "target": {"name": str(target["secret"]), "creationPolicy": "Owner"},
            "data": [
                {
                    "secretKey": str(target["key"]),
                    "remoteRef": {"key": path, "property": "value"},
                }
            ],
        },
    }


def pushed(name: str, source: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The PushSecret that carries a Secret of a cluster to OpenBao."""
    return {
        "apiVersion": "external-secrets.io",
        "kind": "PushSecret",
        "metadata": {
            "name": f"flow-{name}",
            "namespace": str(source["namespace"]),
            "labels": {"fleet.c5c3.io/flow": name},
        },
        "spec": {
            "refreshInterval": HOURLY,
            "secretStoreRefs": [{"kind": "ClusterSecretStore", "name": STORE}],
            "selector": {"secret": {"name": str(source["name"])}},
            "data": [
                {
                    "match": {
                        "secretKey": str(source["key"]),
                        "remoteRef": {"remoteKey": path, "property": "value"},
                    }
                }
            ],
        },
    }
