"""
What fleetd writes for Flux: releases of charts, folders of Git, sources.

Pure. Everything lies in `flux-system` of the management cluster and is named after the cluster it
is for; other clusters are reached with the kubeconfig of their flux-target, or with tokens where
they trust those. Nothing here is secret.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fleetd.objects import Manifest
from topology.resource import Backend, Ref, Resource

NAMESPACE = "flux-system"
WATCH = "reconcile.fluxcd.io/watch"
HELM = "helm.toolkit.fluxcd.io"
KUSTOMIZE = "kustomize.toolkit.fluxcd.io"
SOURCE = "source.toolkit.fluxcd.io"
KEPT = ("Namespace", "CustomResourceDefinition", "PersistentVolumeClaim")
"""What Flux must never delete because a folder was emptied: all else lies in these."""

Body = dict[str, Any]


def management(want: Resource, others: Iterable[Resource]) -> str:
    """Name of the cluster on which the region's Flux runs."""
    for ref in sorted(want.needs):
        if ref.kind == "flux":
            return ref.name
    if want.spec.get("role") == "management":
        return str(want.spec["cluster"])
    for one in others:
        if one.ref.kind == "flux" and one.region == want.region:
            return one.ref.name
    return Backend.of(want.backend).name


def kubeconfig(cluster: str, hub: str, *, trusts: bool) -> Body:
    """Nothing for the management cluster itself. One that trusts its tokens needs no secret."""
    if cluster == hub:
        return {}
    reference = "configMapRef" if trusts else "secretRef"
    return {"kubeConfig": {reference: {"name": f"{cluster}-kubeconfig"}}}


def helm_release(
    want: Resource, hub: str, depends_on: Iterable[Ref], source: str, *, trusts: bool
) -> Manifest:
    """The release of a chart on `want`'s cluster. `source` is its HelmRepository; `trusts`: whether
    the cluster believes the tokens of the management cluster."""
    install: Mapping[str, Any] = want.spec["install"]
    cluster = str(want.spec["cluster"])
    chart: Body = {
        "chart": install.get("chart") or install["name"],
        "interval": "1h",
        "sourceRef": {"kind": "HelmRepository", "name": source, "namespace": NAMESPACE},
    }
    if install.get("version"):
        chart["version"] = install["version"]
    spec: Body = {
        "interval": "30m",
        "timeout": "10m",
        "releaseName": install["name"],
        "targetNamespace": install["namespace"],
        # Flux keeps its own record on the target, where flux-system need not exist.
        "storageNamespace": install["namespace"],
        "chart": {"spec": chart},
        "install": {
            "crds": "CreateReplace",
            "createNamespace": True,
            "remediation": {"retries": 3},
        },
        "upgrade": {"crds": "CreateReplace", "remediation": {"retries": 3}},
        **kubeconfig(cluster, hub, trusts=trusts),
    }
    waits = [{"name": release_name(ref.name, ref.kind)} for ref in sorted(depends_on)]
    if waits:
        spec["dependsOn"] = waits
    values: Mapping[str, Any] = want.spec.get("parameters", {})
    if values:
        spec["values"] = dict(values)
    return Manifest(
        backend=f"cluster:{hub}",
        body={
            "apiVersion": HELM,
            "kind": "HelmRelease",
            "metadata": {"name": release_name(cluster, want.ref.kind), "namespace": NAMESPACE},
            "spec": spec,
        },
        why=f"have Flux install {install['name']} on {cluster}",
    )


def release_name(cluster: str, component: str) -> str:
    return f"{cluster}-{component}"


def kustomization(want: Resource, hub: str, source: str, *, trusts: bool) -> Manifest:
    """A folder of `source`, applied to `want`'s cluster."""
    cluster, given = str(want.spec["cluster"]), want.spec["parameters"]
    spec: Body = {
        "interval": "10m",
        # An unreachable cluster costs a worker 20 s at each attempt.
        "retryInterval": "2m",
        "timeout": "5m",
        "prune": True,
        "wait": True,
        "path": _path(str(given["path"])),
        "sourceRef": {"kind": "GitRepository", "name": source},
        "patches": [
            {
                "target": {"kind": kind},
                "patch": (
                    f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: any\n  annotations:\n"
                    f"    {KUSTOMIZE}/prune: disabled\n"
                ),
            }
            for kind in KEPT
        ],
        **kubeconfig(cluster, hub, trusts=trusts),
    }
    return Manifest(
        backend=f"cluster:{hub}",
        body={
            "apiVersion": KUSTOMIZE,
            "kind": "Kustomization",
            "metadata": {"name": str(want.spec["object"]["name"]), "namespace": NAMESPACE},
            "spec": spec,
        },
        why=f"have Flux apply the folder {given['path']} to {cluster}",
    )


def _path(path: str) -> str:
    return path if path.startswith("./") else f"./{path}"


def region_source(want: Resource) -> Manifest:
    git: Mapping[str, Any] = want.spec["git"]
    spec: Body = {"interval": "5m", "timeout": "60s", "url": git["url"]}
    spec["ref"] = {"branch": git["branch"]}
    if git.get("access"):
        spec["secretRef"] = {"name": credentials_name(want.region)}
    body = _source(str(want.spec["object"]["name"]), spec)
    return Manifest(backend=want.backend, body=body, why=f"tell Flux of {git['url']}")


def other_source(want: Resource, hub: str) -> Manifest:
    """The repository of somebody else, at one commit or tag."""
    given: Mapping[str, Any] = want.spec["parameters"]
    ref = {key: given[key] for key in ("commit", "tag", "branch") if key in given}
    spec: Body = {"interval": "1h", "timeout": "60s", "url": given["url"], "ref": ref}
    body = _source(str(want.spec["object"]["name"]), spec)
    return Manifest(backend=f"cluster:{hub}", body=body, why=f"tell Flux of {given['url']}")


def _source(name: str, spec: Body) -> Body:
    return {
        "apiVersion": SOURCE,
        "kind": "GitRepository",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def credentials_name(region: str) -> str:
    return f"{region}-git"


def secret(name: str, *, watched: bool) -> Body:
    """Without its data, which is added at the moment of writing."""
    metadata: Body = {"name": name, "namespace": NAMESPACE}
    if watched:
        metadata["labels"] = {WATCH: "Enabled"}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}
