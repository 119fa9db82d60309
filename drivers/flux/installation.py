"""
The Flux operator as fleetd installs it, before there is a Flux that could: its namespace, kinds,
rights and Deployment, then the FluxInstance that has it install the controllers.

The kinds are written without a schema of their own: the operator checks what it reads, and a
schema that we kept here would be that of some other version.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from drivers.flux.manifests import NAMESPACE
from fleetd.kube import trust
from topology.resource import Resource

OPERATOR = "flux-operator"
_GROUP = "fluxcd.controlplane.io"
_KINDS = {
    "FluxInstance": "fluxinstances",
    "FluxReport": "fluxreports",
    "ResourceSet": "resourcesets",
    "ResourceSetInputProvider": "resourcesetinputproviders",
}
COMPONENTS = (
    "source-controller",
    "kustomize-controller",
    "helm-controller",
    "notification-controller",
)

Body = dict[str, Any]


def account() -> Body:
    """Who Flux is on the clusters that believe tokens of the management cluster. It has no rights
    here."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": trust.ACCOUNT, "namespace": trust.NAMESPACE},
    }


def operator(want: Resource) -> list[Body]:
    """In the order in which they are written."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        *(_definition(kind, plural) for kind, plural in _KINDS.items()),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": OPERATOR, "namespace": NAMESPACE},
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": OPERATOR},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "cluster-admin",
            },
            "subjects": [{"kind": "ServiceAccount", "name": OPERATOR, "namespace": NAMESPACE}],
        },
        _deployment(str(want.spec["parameters"]["operator"])),
    ]


def _definition(kind: str, plural: str) -> Body:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def _deployment(image: str) -> Body:
    labels = {"app.kubernetes.io/name": OPERATOR, "app.kubernetes.io/instance": OPERATOR}
    container = {
        "name": "manager",
        "image": image,
        "env": [
            {
                "name": "RUNTIME_NAMESPACE",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}},
            }
        ],
        "resources": {
            "limits": {"cpu": "1", "memory": "512Mi"},
            "requests": {"cpu": "100m", "memory": "64Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"mountPath": "/tmp", "name": "temp"}],  # noqa: S108 - inside the pod
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": OPERATOR, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app.kubernetes.io/name": OPERATOR}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": OPERATOR,
                    "containers": [container],
                    "volumes": [{"name": "temp", "emptyDir": {}}],
                },
            },
        },
    }


def instance(want: Resource, *, trusts: bool) -> Body:
    """Without sync: fleetd writes the sources. Size medium works on ten objects at once, so that
    a cluster which hangs does not hold up the others. `trusts`: it goes into some of them with
    tokens, which it makes only if it is told that it may."""
    given: Mapping[str, Any] = want.spec["parameters"]
    cluster: Body = {"type": "kubernetes", "size": "medium", "multitenant": False}
    if trusts:
        cluster["objectLevelWorkloadIdentity"] = True
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "FluxInstance",
        "metadata": {"name": "flux", "namespace": NAMESPACE},
        "spec": {
            "distribution": {"version": str(given["version"]), "registry": given["registry"]},
            "components": list(COMPONENTS),
            "cluster": cluster,
        },
    }


def repositories(region: str, resources: Iterable[Resource]) -> list[Body]:
    """A HelmRepository for each place that charts of the region come from."""
    urls = {
        str(one.spec["install"]["repository"])
        for one in resources
        if one.region == region and "repository" in one.spec.get("install", {})
    }
    return [repository(url) for url in sorted(urls)]


def repository(url: str) -> Body:
    spec: dict[str, Any] = {"interval": "1h", "url": url}
    if url.startswith("oci://"):
        spec["type"] = "oci"
    return {
        "apiVersion": "source.toolkit.fluxcd.io",
        "kind": "HelmRepository",
        "metadata": {"name": repository_name(url), "namespace": NAMESPACE},
        "spec": spec,
    }


def repository_name(url: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", url.partition("://")[2].lower()).strip("-")[:63].rstrip("-")
