"""
What the openbao driver wants to know of the rest of the fleet: clusters, clouds, flows, pushes.

Pure; all of it is in the topology, and nothing is kept.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from topology.resource import Facts, Ref, Resource, Topology

NO_DATABASE = ("horizon",)
"""Services that keep nothing in MariaDB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    name: str
    control_plane: str
    hypervisors: tuple[str, ...]
    storage: tuple[str, ...]
    services: tuple[str, ...]

    @property
    def databases(self) -> tuple[str, ...]:
        return tuple(one for one in self.services if one not in NO_DATABASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    name: str
    path: str
    source: Mapping[str, Any]
    targets: tuple[str, ...]
    """Clusters."""

    @property
    def pushed_from(self) -> str:
        """The cluster from which External Secrets pushes it; empty if nobody pushes."""
        for kind in ("secret", "cephClient"):
            if self.source.get(kind):
                return str(self.source[kind]["cluster"])
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    name: str
    role: str


def region(topology: Topology, name: str) -> Resource | None:
    return topology.resources.get(Ref("region", name))


def secrets_of(topology: Topology, want: Resource) -> Facts:
    """How the region's OpenBao is reached, as the documents say."""
    given: Facts | None = want.spec.get("secrets")
    if given is not None:
        return given
    found = region(topology, want.region)
    return found.spec["secrets"] if found is not None else {"address": "managed", "mount": "kv-v2"}


def management(topology: Topology, want: Resource) -> str:
    """The cluster that a managed OpenBao stands on."""
    if want.spec.get("role") == "management":
        return str(want.spec["cluster"])
    return next(
        (one.name for one in clusters(topology, want.region) if one.role == "management"), ""
    )


def clusters(topology: Topology, region_name: str) -> Iterator[Cluster]:
    """Those that log in to OpenBao."""
    for resource in _of_kind(topology, region_name, "cluster"):
        role = str(resource.spec.get("role", ""))
        if role and role != "arbiter":
            yield Cluster(name=resource.ref.name, role=role)


def clouds(topology: Topology, region_name: str) -> Iterator[Cloud]:
    for resource in _of_kind(topology, region_name, "cloud"):
        spec = resource.spec
        yield Cloud(
            name=resource.ref.name,
            control_plane=str(spec["controlPlane"]),
            hypervisors=tuple(spec["hypervisors"]),
            storage=tuple(spec["storage"]),
            services=tuple(spec["services"]),
        )


def flows(topology: Topology, region_name: str) -> Iterator[Flow]:
    for resource in _of_kind(topology, region_name, "credentialflow"):
        spec = resource.spec
        yield Flow(
            name=resource.ref.name,
            path=str(spec["path"]),
            source={key: value for key, value in spec["source"].items() if value},
            targets=tuple(sorted({str(target["cluster"]) for target in spec["targets"]})),
        )


def document(topology: Topology, cluster: str) -> Facts:
    """What the documents say of the cluster; empty if they do not name it."""
    found = topology.resources.get(Ref("cluster", cluster))
    return found.spec if found is not None else {}


def _of_kind(topology: Topology, region_name: str, kind: str) -> Iterator[Resource]:
    for ref in topology.regions.get(region_name, ()):
        if ref.kind == kind:
            yield topology.resources[ref]
