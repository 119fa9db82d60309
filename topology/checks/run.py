"""
All checks across documents, in one call.

The order below is only for readers: the problems come back sorted by place. Checks see the
documents that are good in themselves and run whether or not others were refused, so that an
operator sees everything at once.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from topology import load
from topology.checks import (
    accesses,
    addresses,
    ceph,
    clouds,
    cycles,
    flows,
    gardener,
    hosts,
    labels,
    machines,
    maintenances,
    names,
    networks,
    placing,
    references,
    roles,
    rollouts,
    shoots,
    urls,
    versions,
    windows,
)
from topology.checks import index as indexes
from topology.problem import Problem

Check = Callable[[indexes.Index], Iterator[indexes.Finding]]

CHECKS: tuple[Check, ...] = (
    names.documents,
    names.servers,
    names.lists,
    references.regions,
    references.pools,
    references.clusters,
    references.secrets,
    references.zones,
    accesses.paths,
    cycles.bootstrap,
    urls.reachable,
    urls.folders,
    windows.open_,
    windows.freezes,
    windows.budgets,
    addresses.unique,
    addresses.uuids,
    machines.enough,
    hosts.distinct,
    hosts.lengths,
    hosts.aggregates,
    labels.valid,
    roles.management,
    roles.openbao,
    roles.arbiters,
    clouds.shared,
    clouds.complete,
    clouds.services,
    clouds.ceph_pools,
    ceph.nodes,
    ceph.stretched,
    versions.present,
    versions.kubernetes,
    versions.images,
    versions.releases,
    gardener.names,
    gardener.metal,
    gardener.worker_names,
    gardener.counts,
    gardener.nodes,
    gardener.unused,
    gardener.tolerance,
    gardener.drains,
    gardener.taints,
    shoots.upkeep,
    shoots.sleep,
    shoots.domains,
    shoots.issuers,
    networks.fit,
    flows.names,
    flows.paths,
    flows.writers,
    flows.circles,
    rollouts.names,
    rollouts.waves,
    rollouts.breaches,
    rollouts.steps,
    rollouts.targets,
    maintenances.targets,
)


OF_ONE_FIELD: tuple[Check, ...] = (
    names.documents,
    references.regions,
    references.pools,
    references.clusters,
    references.secrets,
    references.zones,
    accesses.paths,
    urls.reachable,
    urls.folders,
    windows.open_,
    windows.freezes,
    windows.budgets,
    hosts.aggregates,
    labels.valid,
    gardener.names,
    gardener.tolerance,
    gardener.drains,
    gardener.taints,
    shoots.upkeep,
    shoots.issuers,
    versions.images,
    flows.names,
    flows.paths,
    rollouts.names,
    maintenances.targets,
)
"""Those whose findings follow from the place they point at and from documents that are good. They
may look at a document with holes; the others would complain about the holes."""


OF_SOME_FIELDS: Mapping[Check, frozenset[str]] = {
    clouds.complete: frozenset({"hypervisors", "storage", "services"}),
    clouds.services: frozenset({"hypervisors", "services"}),
    ceph.stretched: frozenset({"ceph"}),
    gardener.counts: frozenset({"minimum", "maximum"}),
    gardener.nodes: frozenset({"workers"}),
    shoots.sleep: frozenset({"purpose", "hibernation"}),
    networks.fit: frozenset({"pods", "services", "nodes"}),
    versions.present: frozenset({"kubernetes", "image", "workers"}),
    versions.kubernetes: frozenset({"kubernetes"}),
    versions.releases: frozenset({"release"}),
}
"""Those that compare fields of one document, and the fields: they may look at a document whose
holes are elsewhere."""


def check(bundle: load.Bundle) -> list[Problem]:
    """Everything that is wrong between the documents, sorted by place."""
    fleet = indexes.index(bundle)
    findings = [finding for one in CHECKS for finding in one(fleet)]
    if bundle.rests:
        findings.extend(_of_rests(fleet))
    return placing.place(fleet, findings)


def _of_rests(fleet: indexes.Index) -> Iterator[indexes.Finding]:
    """What is wrong with the good parts of refused documents."""
    rests = {id(item.document): rest for item, rest in fleet.bundle.rests}
    beside = indexes.beside(fleet, [item for item, _ in fleet.bundle.rests])
    for one in (*OF_ONE_FIELD, *OF_SOME_FIELDS):
        needed = OF_SOME_FIELDS.get(one, frozenset())
        for finding in one(beside):
            item, path = finding.spot
            rest = rests[id(item.document)]
            written = rest.written(path)
            if written is not None and not rest.lacks(needed):
                yield dataclasses.replace(finding, spot=indexes.Spot(item, written))
