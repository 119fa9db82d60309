"""
Small fleets and a small catalogue for tests of compile, diff and draw.

The catalogue here has one component of each scope and nothing else, so that a test's expected
edges can be written down whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topology import compile as compiler
from topology.catalogue import Component
from topology.documents import kinds
from topology.documents.base import API_VERSION, Document
from topology.resource import Topology

ROLES = ["management", "control-plane", "hypervisor", "storage", "arbiter"]


@dataclass(frozen=True)
class Item:
    document: Document


def item(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> Item:
    head = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, **metadata}}
    return Item(kinds.KINDS[kind].model_validate({**head, "spec": dict(spec)}))


def region(name: str = "eu-1", **spec: Any) -> Item:
    given: dict[str, Any] = {
        "zones": ["a", "b"],
        "garden": {"access": {"file": "g"}, "project": "cobalt", "cloudProfile": "metal"},
        "metal": {"provider": "ironcore", "access": {"file": "m"}},
        "git": {"url": "https://git.example/x.git"},
        "defaults": {
            "kubernetes": "1.33.4",
            "image": {"name": "gardenlinux", "version": "1877.4.0"},
        },
    }
    return item("Region", name, given | spec)


def pool(name: str, size: int = 4, *, net: int = 1, **spec: Any) -> Item:
    servers = [
        {
            "name": f"{name}-s{n}",
            "bmc": f"192.0.{net}.{n + 1}",
            "zone": "ab"[n % 2],
            "rack": f"r{n}",
        }
        for n in range(size)
    ]
    given = {"region": "eu-1", "class": "std", "servers": servers, "access": {"file": "bmc"}}
    return item("ServerPool", name, given | spec)


def cluster(name: str, role: str, pool_name: str = "general", **spec: Any) -> Item:
    worker = {"name": "w", "pool": pool_name, "minimum": 1, "maximum": 3}
    return item("Cluster", name, {"region": "eu-1", "role": role, "workers": [worker], **spec})


def cloud(name: str = "prod", **spec: Any) -> Item:
    given: dict[str, Any] = {
        "region": "eu-1",
        "release": "2025.2",
        "controlPlane": "cp",
        "hypervisors": ["hv"],
        "storage": ["st"],
    }
    return item("Cloud", name, given | spec)


def small() -> list[Item]:
    """One region, one pool, four clusters, one cloud."""
    return [
        region(),
        pool("general", 12),
        cluster("mgmt", "management"),
        cluster("cp", "control-plane"),
        cluster("hv", "hypervisor"),
        cluster("st", "storage"),
        cloud(),
    ]


def component(
    name: str,
    scope: str,
    backend: str = "none",
    *,
    needs: Sequence[tuple[str, str]] = (),
    feeds: Sequence[tuple[str, str]] = (),
    **spec: Any,
) -> Component:
    given: dict[str, Any] = {
        "title": name,
        "description": name,
        "scope": scope,
        "driver": "test",
        "backend": backend,
        "create": "make it",
        "needs": [{"component": other, "on": on, "why": "because"} for other, on in needs],
        "feeds": [{"component": other, "on": on, "why": "because"} for other, on in feeds],
        "health": {"healthy": [{"when": [{"path": "ok", "present": True}]}]},
        "limits": [{"state": "*", "within": "1h", "action": f"look at {name}"}],
    }
    head = {"apiVersion": API_VERSION, "kind": "Component", "metadata": {"name": name}}
    return Component.model_validate({**head, "spec": given | spec})


def changed(one: Component, **spec: Any) -> Component:
    """A component with some fields of its spec given anew."""
    whole = one.model_dump(mode="json", by_alias=True, exclude_none=True)
    return Component.model_validate({**whole, "spec": {**whole["spec"], **spec}})


def components(*more: Component) -> dict[str, Component]:
    """One of each scope; `more` are added or take the place of those of the same name."""
    found = [
        component("metal", "region", "metal"),
        component("project", "region", "garden"),
        component("server", "server", "metal", needs=[("metal", "same")]),
        component("serverpool", "serverpool"),
        component("cluster", "cluster-document", "garden", driver="gardener"),
        component("access", "cluster", "cluster", roles=ROLES, needs=[("cluster", "same")]),
        component(
            "openbao", "cluster", "openbao", roles=["management"], needs=[("access", "same")]
        ),
        component(
            "store", "cluster", "cluster", roles=ROLES[:4], needs=[("openbao", "management")]
        ),
        component(
            "ceph",
            "cluster",
            "cluster",
            roles=["storage"],
            told=["ceph"],
            install={"by": "apply"},
        ),
        component("ceph-pool", "ceph-pool", "cluster", needs=[("ceph", "same")]),
        component("ceph-key", "cloud-storage", "openbao", needs=[("ceph-pool", "same")]),
        component(
            "controlplane",
            "cloud",
            "cluster",
            told=["release", "services", "size", "storage"],
            needs=[("store", "same")],
        ),
        component(
            "compute",
            "cloud-hypervisor",
            "cluster",
            told=["hypervisor", "release", "hosts"],
            needs=[("controlplane", "same"), ("ceph-key", "same"), ("store", "same")],
        ),
        component("cloud", "cloud-document", needs=[("compute", "same")]),
        component("region", "region-document"),
        component("credentialflow", "flow", "openbao", needs=[("openbao", "management")]),
        *more,
    ]
    return {one.metadata.name: one for one in found}


def topology(items: Sequence[Item] | None = None, *more: Component) -> Topology:
    return compiler.compile(small() if items is None else items, components(*more))


def with_(items: Sequence[Item], *new: Item) -> list[Item]:
    """The items with some of them replaced by those of the same kind and name, or added."""
    found = {(type(one.document).__name__, one.document.metadata.name): one for one in items}
    for one in new:
        found[type(one.document).__name__, one.document.metadata.name] = one
    return list(found.values())


def without(items: Sequence[Item], kind: str, name: str) -> list[Item]:
    return [
        one
        for one in items
        if (type(one.document).__name__, one.document.metadata.name) != (kind, name)
    ]
