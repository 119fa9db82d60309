"""
What a Node must carry to become a hypervisor, and the rules for host names.

The hypervisor operator reads labels and annotations of Nodes. fleetd puts them there itself, Node
by Node, instead of leaving it to the worker pool: a host is offered only after its aggregates and
traits exist. The one rule of names: none is part of another in the same cloud, and none has a dot,
for Nova finds hosts by parts of their names, and then a host can never leave.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from topology.resource import Facts

VIRT_DRIVER = "nova.openstack.cloud.sap/virt-driver"
LIFECYCLE = "cobaltcore.cloud.sap/node-hypervisor-lifecycle"
AGGREGATES = "nova.openstack.cloud.sap/aggregates"
TRAITS = "nova.openstack.cloud.sap/custom-traits"
SKIP_TESTS = "skip-tests"
WITH_TESTS = "enabled"


def wanted(options: Facts, *, tests: bool) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations. Aggregates are always given, so that a removed one is removed."""
    labels = {VIRT_DRIVER: "kvm", LIFECYCLE: WITH_TESTS if tests else SKIP_TESTS}
    annotations = {
        AGGREGATES: ",".join(options.get("aggregates") or ()),
        TRAITS: ",".join(options.get("traits") or ()),
    }
    return labels, annotations


def carried(node: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Those of them that a Node has."""
    metadata: Facts = node["metadata"]
    labels: Facts = metadata.get("labels") or {}
    annotations: Facts = metadata.get("annotations") or {}
    return (
        {key: str(labels[key]) for key in (VIRT_DRIVER, LIFECYCLE) if key in labels},
        {key: str(annotations[key]) for key in (AGGREGATES, TRAITS) if key in annotations},
    )


def clashes(names: Sequence[str], others: Iterable[str]) -> dict[str, str]:
    """Each of `names` that cannot be a host, with the reason."""
    known = sorted({*names, *others})
    found: dict[str, str] = {}
    for name in names:
        if "." in name:
            found[name] = "its name has a dot"
            continue
        other = next((one for one in known if one != name and (one in name or name in one)), None)
        if other is not None:
            found[name] = f"its name and {other} contain each other"
    return found
