"""What a gardener-apiserver refuses, seen before it is asked: lengths of names, worker pools,
zones, taints, and a drain timeout that would delete hosts with virtual machines on them."""

import re
from collections.abc import Iterator
from datetime import timedelta

from topology import complaints
from topology.checks import labels
from topology.checks.index import Finding, Index, Path
from topology.documents import base
from topology.documents.cluster import Cluster, Role
from topology.documents.region import Provider, Region

PROJECT_MAX = 10
TOGETHER_MAX = 21
"""Project and Shoot name together: they become `shoot--<project>--<name>` in host names."""
WORKER_MAX = 15
ZONES_FOR_ZONE = 3
DRAIN_MIN = timedelta(hours=24)
"""When it has passed, the machine is deleted with all that runs on it. Emptying a full host by
live migration takes hours, and one virtual machine that cannot move takes a person."""

_TAINT = re.compile(rf"{labels.KEY}(={labels.VALUE})?:(NoSchedule|PreferNoSchedule|NoExecute)")


def names(fleet: Index) -> Iterator[Finding]:
    """Names of projects, clusters and workers as Gardener takes them."""
    for region in fleet.every(Region):
        project = region.spec.garden.project
        at: Path = ("spec", "garden", "project")
        if len(project) > PROJECT_MAX:
            yield fleet.complain(
                region,
                at,
                code="project-name-too-long",
                message=f"{project!r} has {len(project)} characters, more than {PROJECT_MAX}",
                hint="shorten it: Gardener refuses longer project names",
            )
        yield from _hyphens(fleet, region, at, project)
    for cluster in fleet.every(Cluster):
        if cluster.spec.adopted is None:
            yield from _of_cluster(fleet, cluster)


def _of_cluster(fleet: Index, cluster: Cluster) -> Iterator[Finding]:
    name = cluster.metadata.name
    region = fleet.regions.get(cluster.spec.region)
    project = region.spec.garden.project if region is not None else ""
    together = len(project) + len(name)
    if region is not None and len(project) <= PROJECT_MAX and together > TOGETHER_MAX:
        place = fleet.place(region, ("spec", "garden", "project"))
        yield fleet.complain(
            cluster,
            ("metadata", "name"),
            code="cluster-name-too-long",
            message=f"{name!r} and the project {project!r} ({place}) have {together} characters "
            f"together, more than {TOGETHER_MAX}",
            hint=f"shorten the name to {TOGETHER_MAX - len(project)} characters: Gardener refuses "
            "more",
        )
    yield from _hyphens(fleet, cluster, ("metadata", "name"), name)
    for number, worker in enumerate(cluster.spec.workers):
        at: Path = ("spec", "workers", number, "name")
        if len(worker.name) > WORKER_MAX:
            yield fleet.complain(
                cluster,
                at,
                code="worker-name-too-long",
                message=f"{worker.name!r} has {len(worker.name)} characters, more than "
                f"{WORKER_MAX}",
                hint="shorten it: Gardener refuses longer worker names",
            )
        yield from _hyphens(fleet, cluster, at, worker.name)


def metal(fleet: Index) -> Iterator[Finding]:
    """Gardener makes nodes out of the servers of metal-operator, and of nobody else's."""
    for cluster in fleet.every(Cluster):
        region = fleet.regions.get(cluster.spec.region)
        if region is None or cluster.spec.adopted is not None:
            continue
        if region.spec.metal.provider is Provider.IRONIC:
            place = fleet.place(region, ("spec", "metal", "provider"))
            yield fleet.complain(
                cluster,
                ("spec", "workers"),
                code="cluster-on-ironic",
                message=f"the metal of Region {region.metadata.name!r} is Ironic's ({place}), and "
                "Gardener makes no nodes out of Ironic's servers",
                hint="make the cluster by other means and have fleetd take it over: adopted "
                "instead of workers; or let metal-operator own the servers: provider: ironcore",
            )


def worker_names(fleet: Index) -> Iterator[Finding]:
    """No two workers of a cluster have one name."""
    for cluster in fleet.every(Cluster):
        taken: dict[str, int] = {}
        for number, worker in enumerate(cluster.spec.workers):
            first = taken.setdefault(worker.name, number)
            if first != number:
                yield fleet.complain(
                    cluster,
                    ("spec", "workers", number, "name"),
                    code="worker-name-taken",
                    message=f"workers[{first}] is called {worker.name!r} too",
                    hint="give each worker of a cluster its own name",
                )


def _hyphens(fleet: Index, document: base.Document, path: Path, name: str) -> Iterator[Finding]:
    if "--" in name:
        yield fleet.complain(
            document,
            path,
            code="name-double-hyphen",
            message=f"{name!r} has two hyphens in a row, which Gardener uses to join names",
            hint=f"write {re.sub('-+', '-', name)!r}",
        )


def counts(fleet: Index) -> Iterator[Finding]:
    """Numbers of nodes that Gardener takes."""
    for cluster in fleet.every(Cluster):
        for number, worker in enumerate(cluster.spec.workers):
            if worker.minimum > worker.maximum:
                yield fleet.complain(
                    cluster,
                    ("spec", "workers", number, "minimum"),
                    code="minimum-above-maximum",
                    message=f"{worker.minimum} is more than maximum {worker.maximum}",
                    hint="lower it or raise maximum",
                )


def nodes(fleet: Index) -> Iterator[Finding]:
    """At least one node to begin with: bare metal does not scale by itself, so a cluster that
    starts with none never gets one."""
    for cluster in fleet.every(Cluster):
        found = cluster.spec.workers
        if found and not any(worker.minimum for worker in found):
            yield fleet.complain(
                cluster,
                ("spec", "workers", 0, "minimum"),
                code="workers-all-zero",
                message="minimum is 0 for every worker, so the cluster never gets its first node",
                hint="raise minimum of one worker to 1 or more",
            )


def unused(fleet: Index) -> Iterator[Finding]:
    """Options that would be passed over in silence: who wrote them expects them to work."""
    for cluster in fleet.every(Cluster):
        spec = cluster.spec
        if spec.adopted is None and spec.zones:
            yield fleet.complain(
                cluster,
                ("spec", "zones"),
                code="option-unused",
                message="only an adopted cluster has zones here, others those of their workers",
                hint="move it into the workers: workers: [{name: ..., zones: [...]}]",
            )
        if spec.adopted is None:
            continue
        for field, name in _MADE.items():
            if field in spec.model_fields_set and getattr(spec, field) is not None:
                yield fleet.complain(
                    cluster,
                    ("spec", name),
                    code="option-unused",
                    message="fleetd does not make or change an adopted cluster, so this has no "
                    "effect",
                    hint="remove it, or remove adopted to let fleetd make the cluster",
                )


_MADE = {
    "kubernetes": "kubernetes",
    "image": "image",
    "failure_tolerance": "failureTolerance",
    "networking": "networking",
    "purpose": "purpose",
    "dns": "dns",
    "exposure_class": "exposureClass",
    "maintenance_window": "maintenanceWindow",
    "hibernation": "hibernation",
    "authentication": "authentication",
    "rotation": "rotation",
    "reconcile": "reconcile",
    "take_over": "takeOver",
}


def tolerance(fleet: Index) -> Iterator[Finding]:
    """A control plane outlives the loss of a zone only where there are three."""
    for cluster in fleet.every(Cluster):
        region = fleet.regions.get(cluster.spec.region)
        if region is None or cluster.spec.failure_tolerance != "zone":
            continue
        zones = list(dict.fromkeys(region.spec.zones))
        if len(zones) < ZONES_FOR_ZONE:
            yield fleet.complain(
                cluster,
                ("spec", "failureTolerance"),
                code="zones-too-few",
                message=f"zone needs {ZONES_FOR_ZONE} zones, and Region {region.metadata.name!r} "
                f"has {len(zones)}: {', '.join(zones)}",
                hint="write failureTolerance: node; it cannot be changed once the cluster stands",
            )


def drains(fleet: Index) -> Iterator[Finding]:
    """Hosts with virtual machines get time to become empty."""
    for cluster in fleet.every(Cluster):
        if cluster.spec.role is not Role.HYPERVISOR:
            continue
        for number, worker in enumerate(cluster.spec.workers):
            timeout = worker.drain_timeout
            if timeout is not None and timeout < DRAIN_MIN:
                yield fleet.complain(
                    cluster,
                    ("spec", "workers", number, "drainTimeout"),
                    code="drain-timeout-too-short",
                    message=f"after {base.show_duration(timeout)} Gardener deletes a hypervisor "
                    "with the virtual machines that are still on it",
                    hint="write 24h or more, or leave it out for 30d",
                )


def taints(fleet: Index) -> Iterator[Finding]:
    for cluster in fleet.every(Cluster):
        for number, worker in enumerate(cluster.spec.workers):
            for which, taint in enumerate(worker.taints):
                if _TAINT.fullmatch(taint):
                    continue
                yield fleet.complain(
                    cluster,
                    ("spec", "workers", number, "taints", which),
                    code="taint-invalid",
                    message=f"{complaints.show(taint)} is not a taint",
                    hint="write key=value:Effect, the effect being NoSchedule, PreferNoSchedule or "
                    "NoExecute",
                )
