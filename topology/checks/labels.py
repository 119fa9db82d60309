"""Labels that Kubernetes takes, and the ones that fleetd keeps for itself."""

import re
from collections.abc import Iterator, Mapping

from topology import complaints
from topology.checks.index import Finding, Index, Path
from topology.documents import base
from topology.documents.cluster import Cluster
from topology.documents.pool import ServerPool

RESERVED = re.compile(
    r"fleet\.c5c3\.io/.*|app\.kubernetes\.io/managed-by"
    r"|topology\.kubernetes\.io/(zone|region)|kubernetes\.io/hostname"
)
"""fleetd's marks, and what it derives from zone, region and name. A Node whose zone label says
something else than its server cannot be onboarded as a hypervisor."""
_PART = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"(?=[^/]{1,253}/)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
KEY = rf"({_DOMAIN}/)?{_PART}"
VALUE = rf"({_PART})?"
_KEY, _VALUE = re.compile(KEY), re.compile(VALUE)


def valid(fleet: Index) -> Iterator[Finding]:
    for document in fleet.every(base.Document):
        yield from _map(fleet, document, ("metadata", "labels"), document.metadata.labels)
    for cluster in fleet.every(Cluster):
        for number, worker in enumerate(cluster.spec.workers):
            yield from _map(fleet, cluster, ("spec", "workers", number, "labels"), worker.labels)
    for pool in fleet.every(ServerPool):
        yield from _map(fleet, pool, ("spec", "labels"), pool.spec.labels)
        for number, server in enumerate(pool.spec.servers):
            if server.labels:
                yield from _map(fleet, pool, ("spec", "servers", number, "labels"), server.labels)


def _map(
    fleet: Index, document: base.Document, path: Path, labels: Mapping[str, str]
) -> Iterator[Finding]:
    for key, value in labels.items():
        if RESERVED.fullmatch(key):
            yield fleet.complain(
                document,
                (*path, key),
                code="label-reserved",
                message=f"fleetd writes the label {key} itself",
                hint="remove it, or choose a key with a prefix of yours, e.g. example.com/team",
            )
        elif not _KEY.fullmatch(key):
            yield fleet.complain(
                document,
                (*path, key),
                code="label-invalid",
                message=f"{complaints.show(key)} is not the key of a label",
                hint="use at most 63 letters, digits, '-', '_' and '.', after an optional "
                "'<domain>/'",
            )
        elif not _VALUE.fullmatch(value):
            yield fleet.complain(
                document,
                (*path, key),
                code="label-invalid",
                message=f"{complaints.show(value)} is not the value of a label",
                hint="use at most 63 letters, digits, '-', '_' and '.'; longer text goes into "
                "annotations",
            )
