"""
Who fleetd is on a cluster: a ServiceAccount with a ClusterRole of its own, and its token.

An administrator's kubeconfig is used to make these objects (and the binding for Flux, where that
comes with tokens), and for nothing else of fleetd's own; afterwards fleetd goes in with a token of
the account, which it renews by itself, so that a garden that is away locks nobody out. The role
names what the drivers do on a cluster of that job (`rights`). Pure, but for `token`.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from drivers.gardener import rights
from drivers.gardener.client import Minted
from fleetd import plainyaml
from fleetd.kube import tokens, trust
from fleetd.kube.client import KubeClient
from fleetd.objects import Manifest
from fleetd.secrets import Secret
from topology.catalogue import Component
from topology.resource import Facts, Resource

NAMESPACE = "fleetd-system"
NAME = "fleetd"


def manifests(
    want: Resource, catalogue: Mapping[str, Component], *, trusts: bool
) -> tuple[Manifest, ...]:
    """`trusts`: Flux comes with a token of the management cluster, and may do there what it may
    with an administrator's kubeconfig."""
    inside = {"name": NAME, "namespace": NAMESPACE}
    bodies: tuple[Facts, ...] = (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": inside},
        {
            "apiVersion": rights.RBAC,
            "kind": "ClusterRole",
            "metadata": {"name": NAME},
            "rules": [*rights.of(str(want.spec["role"]), catalogue), _itself()],
        },
        {
            "apiVersion": rights.RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": rights.RBAC, "kind": "ClusterRole", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", **inside}],
        },
    )
    made = [_manifest(want, body, "let fleetd in with rights of its own") for body in bodies]
    if trusts:
        made.append(_manifest(want, _flux(), "let Flux in with tokens of the management cluster"))
    return tuple(made)


def _manifest(want: Resource, body: Facts, why: str) -> Manifest:
    return Manifest(backend=want.backend, body=body, why=f"{why}: {body['kind']}")


def _flux() -> Facts:
    return {
        "apiVersion": rights.RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{NAME}-flux"},
        "roleRef": {"apiGroup": rights.RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": rights.RBAC, "kind": "User", "name": trust.USER}],
    }


def _itself() -> Facts:
    """It may renew its own token, and nobody else's."""
    return {
        "apiGroups": [""],
        "resources": ["serviceaccounts/token"],
        "resourceNames": [NAME],
        "verbs": ["create"],
    }


async def token(there: KubeClient, admin: Secret, seconds: int) -> Minted:
    """A kubeconfig with a new token of the account, for the cluster that `admin` leads to."""
    minted = await tokens.of_account(there, NAMESPACE, NAME, seconds)
    config: Any = plainyaml.load(admin.reveal())
    cluster = cast("dict[str, Any]", config["clusters"][0]["cluster"])
    made = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": minted.secret.reveal()}}],
        "contexts": [{"name": NAME, "context": {"cluster": "cluster", "user": NAME}}],
        "current-context": NAME,
    }
    return Minted(Secret(json.dumps(made)), minted.expires)
