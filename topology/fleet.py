"""
The documents as one fleet: found by name, with the region's defaults filled in, and with the
answers to "which clouds use this cluster" and the like.

Pure, and made for valid documents: a name that leads nowhere is left out, not complained about
(`topology.checks` does that). The rule to know: every list here is sorted by name, so that
nothing later depends on the order of files.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, Protocol

from topology.documents import base
from topology.documents.cloud import Cloud
from topology.documents.cluster import Ceph, Cluster, Hypervisor, Role, Worker
from topology.documents.flow import CredentialFlow
from topology.documents.pool import Server, ServerPool
from topology.documents.region import Region

DRAIN_CAREFUL = timedelta(days=30)
"""Gardener deletes a machine when this has passed, full or not. On a host with VMs or disks that
is loss of data, so the limit is longer than any evacuation."""
DRAIN_PLAIN = timedelta(hours=2)
UPKEEP = {"from": "22:00", "to": "23:00"}
"""Gardener wants a window. What it may change in it by itself is nothing that a document says."""
COPIES = 3
COPIES_STRETCHED = 4
"""Two in each zone: one zone may be lost and the other still has a spare."""


class HasDocument(Protocol):
    """What `compile` takes: anything that carries a document."""

    @property
    def document(self) -> base.Document: ...


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Documents by kind and name, sorted by name."""

    regions: Mapping[str, Region]
    clusters: Mapping[str, Cluster]
    pools: Mapping[str, ServerPool]
    clouds: Mapping[str, Cloud]
    flows: Mapping[str, CredentialFlow]

    @cached_property
    def clusters_in(self) -> Mapping[str, tuple[str, ...]]:
        return _group((c.spec.region, name) for name, c in self.clusters.items())

    @cached_property
    def pools_in(self) -> Mapping[str, tuple[str, ...]]:
        return _group((p.spec.region, name) for name, p in self.pools.items())

    @cached_property
    def clouds_in(self) -> Mapping[str, tuple[str, ...]]:
        return _group((c.spec.region, name) for name, c in self.clouds.items())

    @cached_property
    def flows_in(self) -> Mapping[str, tuple[str, ...]]:
        return _group((flow.spec.region, name) for name, flow in self.flows.items())

    @cached_property
    def management_of(self) -> Mapping[str, tuple[str, ...]]:
        """Management clusters of each region; one, in any region that passed the checks."""
        return _group(
            (c.spec.region, name)
            for name, c in self.clusters.items()
            if c.spec.role is Role.MANAGEMENT
        )

    @cached_property
    def clusters_of_cloud(self) -> Mapping[str, tuple[str, ...]]:
        """Control plane, hypervisors, storage, and the arbiters of that storage."""
        return {
            name: tuple(sorted({*_parts(cloud), *self._arbiters(cloud.spec.storage)}))
            for name, cloud in self.clouds.items()
        }

    @cached_property
    def clouds_of(self) -> Mapping[str, tuple[str, ...]]:
        """The clouds that use a cluster."""
        return _group(
            (cluster, cloud)
            for cloud, clusters in self.clusters_of_cloud.items()
            for cluster in clusters
        )

    @cached_property
    def pools_of(self) -> Mapping[str, tuple[str, ...]]:
        """The server pools from which a cluster's workers come."""
        return {
            name: tuple(
                sorted({w.pool for w in cluster.spec.workers if w.pool} & self.pools.keys())
            )
            for name, cluster in self.clusters.items()
        }

    @cached_property
    def users_of(self) -> Mapping[str, tuple[str, ...]]:
        """The clusters whose workers come from a server pool."""
        return _group((pool, name) for name, pools in self.pools_of.items() for pool in pools)

    @cached_property
    def stretched_by(self) -> Mapping[str, tuple[str, ...]]:
        """The storage clusters for which an arbiter breaks ties."""
        return _group(
            (arbiter, name) for name in self.clusters for arbiter in self._arbiters([name])
        )

    def wanted_of(self, pool: str) -> int:
        """How many servers the clusters ask of a pool at least."""
        workers = (
            w for name in self.users_of.get(pool, ()) for w in self.clusters[name].spec.workers
        )
        return sum(worker.minimum for worker in workers if worker.pool == pool)

    def role(self, cluster: str) -> Role | None:
        found = self.clusters.get(cluster)
        return found.spec.role if found else None

    def ceph(self, cluster: str) -> Ceph:
        """Ceph options of a storage cluster; the defaults if it gives none."""
        return self.clusters[cluster].spec.ceph or Ceph()

    def arbiter(self, cluster: str) -> str | None:
        stretch = self.ceph(cluster).stretch
        return stretch.arbiter if stretch and stretch.arbiter in self.clusters else None

    def _arbiters(self, names: Iterable[str]) -> list[str]:
        storages = [name for name in names if self.role(name) is Role.STORAGE]
        return [arbiter for name in storages if (arbiter := self.arbiter(name))]

    @cached_property
    def region_facts(self) -> Mapping[str, Mapping[str, Any]]:
        """Each Region as plain data, as its user would write it with nothing left out."""
        return {name: _region(region) for name, region in self.regions.items()}

    @cached_property
    def cluster_facts(self) -> Mapping[str, Mapping[str, Any]]:
        """Each Cluster as plain data, with the defaults of its region and role filled in."""
        return {name: self._cluster(cluster) for name, cluster in self.clusters.items()}

    @cached_property
    def cloud_facts(self) -> Mapping[str, Mapping[str, Any]]:
        return {name: _head(c) | dump(c.spec) for name, c in self.clouds.items()}

    @cached_property
    def cloud_views(self) -> Mapping[str, Mapping[str, Any]]:
        """Each Cloud as the catalogue may ask about it: its facts, the release of nova-compute
        also where it is that of the cloud, and what its hypervisors need in Nova."""
        return {name: self._cloud_view(name) for name in self.clouds}

    def _cloud_view(self, name: str) -> dict[str, Any]:
        facts = self.cloud_facts[name]
        mine = [self.cluster_facts[c] for c in facts["hypervisors"] if c in self.clusters]
        options = [cluster["hypervisor"] for cluster in mine if "hypervisor" in cluster]
        # Nodes of an adopted cluster have no workers here to tell their zones.
        workers = [one for cluster in mine for one in (cluster, *cluster["workers"])]
        zones: set[str] = {zone for worker in workers for zone in worker["zones"]}
        return {
            "hypervisorRelease": facts["release"],
            **facts,
            "aggregates": sorted({one for each in options for one in each["aggregates"]}),
            "traits": sorted({one for each in options for one in each["traits"]}),
            "zones": sorted(zones),
        }

    def _cluster(self, cluster: Cluster) -> dict[str, Any]:
        spec = cluster.spec
        facts = _head(cluster) | dump(spec)
        if spec.role is Role.STORAGE:
            facts["ceph"] = self._ceph(cluster.metadata.name)
        if spec.role is Role.HYPERVISOR:
            facts["hypervisor"] = dump(spec.hypervisor or Hypervisor())
        if spec.adopted is not None:
            return facts
        region = self.regions.get(spec.region)
        if region is not None:
            defaults = dump(region.spec.defaults)
            facts = defaults | facts
            garden = self.region_facts[spec.region]["garden"]
            facts["garden"] = {key: garden[key] for key in garden if key != "access"}
            facts["provider"] = str(region.spec.metal.provider)
            if region.spec.trust is not None and spec.role is not Role.MANAGEMENT:
                facts["trust"] = dump(region.spec.trust)
        window = facts.pop("maintenanceWindow", UPKEEP)
        facts["maintenance"] = {
            "autoUpdateKubernetes": False,
            "autoUpdateImage": False,
            "window": window,
        }
        workers = sorted(spec.workers, key=lambda worker: worker.name)
        facts["workers"] = [self._worker(worker, cluster, region) for worker in workers]
        return facts

    def _worker(self, worker: Worker, cluster: Cluster, region: Region | None) -> dict[str, Any]:
        facts = dump(worker)
        careful = cluster.spec.role in (Role.HYPERVISOR, Role.STORAGE)
        timeout = worker.drain_timeout or (DRAIN_CAREFUL if careful else DRAIN_PLAIN)
        facts["drainTimeout"] = base.show_duration(timeout)
        if not worker.zones and region is not None:
            facts["zones"] = list(region.spec.zones)
        if worker.pool is not None and worker.pool in self.pools:
            facts["machineType"] = self.pools[worker.pool].spec.class_
        return facts

    def _ceph(self, cluster: str) -> dict[str, Any]:
        ceph = self.ceph(cluster)
        facts = dump(ceph)
        copies = COPIES_STRETCHED if ceph.stretch else COPIES
        pools = sorted(ceph.pools, key=lambda pool: pool.name)
        facts["pools"] = [{"size": copies} | dump(pool) for pool in pools]
        return facts


def gather(items: Iterable[HasDocument]) -> Fleet:
    """Sort the documents into a fleet. Rollout and Maintenance ask for work; they are not things
    that should exist, so they are left out."""
    documents = sorted((item.document for item in items), key=lambda d: d.metadata.name)
    return Fleet(
        regions={d.metadata.name: d for d in documents if isinstance(d, Region)},
        clusters={d.metadata.name: d for d in documents if isinstance(d, Cluster)},
        pools={d.metadata.name: d for d in documents if isinstance(d, ServerPool)},
        clouds={d.metadata.name: d for d in documents if isinstance(d, Cloud)},
        flows={d.metadata.name: d for d in documents if isinstance(d, CredentialFlow)},
    )


def dump(model: base.Model) -> dict[str, Any]:
    """A part of a document as plain data, spelt as in YAML; what is not given is not there."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def servers(pool: ServerPool) -> list[Server]:
    """The servers of a pool one by one. Those of a range are numbered from 1, with as many digits
    as the last number has, so that they sort as they stand."""
    span = pool.spec.range
    if span is None:
        return list(pool.spec.servers)
    addresses = span.addresses()
    width = len(str(len(addresses)))
    prefix = f"{pool.metadata.name}-" if span.prefix is None else span.prefix
    return [
        Server.model_construct(
            name=f"{prefix}{number:0{width}d}",
            bmc=str(address),
            zone=span.zone,
            rack=span.rack,
            uuid=None,
            labels={},
        )
        for number, address in enumerate(addresses, start=1)
    ]


def clusters_of_flow(flow: CredentialFlow) -> tuple[str, ...]:
    """The clusters a credential comes from and goes to."""
    source = flow.spec.source
    origins = (source.kubeconfig, source.ceph_client, source.secret)
    found = {origin.cluster for origin in origins if origin is not None}
    return tuple(sorted(found | {target.cluster for target in flow.spec.targets}))


def _parts(cloud: Cloud) -> list[str]:
    return [cloud.spec.control_plane, *cloud.spec.hypervisors, *cloud.spec.storage]


def _head(document: base.Document) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": document.metadata.name}
    if document.metadata.labels:
        facts["labels"] = dict(document.metadata.labels)
    return facts


def _region(region: Region) -> dict[str, Any]:
    facts = _head(region) | dump(region.spec)
    facts["garden"].setdefault("region", region.metadata.name)
    return facts


def _group(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, set[str]] = {}
    for key, member in pairs:
        found.setdefault(key, set()).add(member)
    return {key: tuple(sorted(found[key])) for key in sorted(found)}
