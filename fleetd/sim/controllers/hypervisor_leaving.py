"""
How a host leaves: the guard against a drain, the announcement, the offboarding.

Imitates real-hypervisor.md 6. Both are needed, the Node's condition Terminating and
`spec.maintenance=termination`; either alone gets stuck or does nothing but switch HA off. What
gave up is not tried again until the object is touched, and the PDB is looked at on Node events.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fleetd.sim.controllers.base import Key, Obj
from fleetd.sim.services import openstack_shape as shape
from fleetd.sim.services.openstack import Cloud

if TYPE_CHECKING:
    from fleetd.sim.controllers.hypervisor import HypervisorOperator as Operator

NODE = ("", "Node")
HYPERVISOR = ("kvm.cloud.sap", "Hypervisor")
PDB = ("policy", "PodDisruptionBudget")
DEPLOYMENT = ("apps", "Deployment")
POD = ("", "Pod")
WHERE = "kube-system"


def guard(op: "Operator", node: Obj) -> None:
    """A pod on the Node with a budget of one: while it stands, no drain ends."""
    name = f"maint-{node['metadata']['name']}"
    labels = {"app": name}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": WHERE,
        "ownerReferences": [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "name": node["metadata"]["name"],
                "uid": node["metadata"]["uid"],
            }
        ],
    }
    budget = {"minAvailable": 1, "selector": {"matchLabels": labels}}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "maint"}]}}
    workload = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    for version, kind, spec in (
        ("policy/v1", "PodDisruptionBudget", budget),
        ("apps/v1", "Deployment", workload),
    ):
        body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        op.cluster.apply(body, manager=op.name)
    _start_pod(op, node["metadata"]["name"], labels)


def _start_pod(op: "Operator", node: str, labels: Mapping[str, str]) -> None:
    """The pod that the drain meets, made here because pods are not objects elsewhere."""
    name = f"maint-{node}"
    holder = op.cluster.get(DEPLOYMENT, name, WHERE) or {}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": name,
        "uid": holder["metadata"]["uid"],
    }
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": WHERE,
            "labels": dict(labels),
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": node, "containers": [{"name": "maint", "image": "busybox:1"}]},
    }
    op.cluster.apply(body, manager=op.name)
    op.cluster.set_status(PDB, name, WHERE, {"disruptionsAllowed": 0}, manager=op.name)


def release(op: "Operator", node: Obj) -> None:
    """On a Node event after Offboarded, with HA off: the drain may end."""
    name = node["metadata"]["name"]
    live = op.cluster.get(HYPERVISOR, name)
    if live is None or shape.condition(live, "Offboarded") != "True":
        return
    if (
        shape.condition(live, "HaEnabled") != "False"
        or shape.condition(node, "Terminating") != "True"
    ):
        return

    def open_budget(obj: dict[str, Any]) -> None:
        obj["spec"]["minAvailable"] = 0

    def scale_down(obj: dict[str, Any]) -> None:
        obj["spec"]["replicas"] = 0

    op.cluster.edit(PDB, f"maint-{name}", WHERE, open_budget, manager=op.name)
    op.cluster.edit(DEPLOYMENT, f"maint-{name}", WHERE, scale_down, manager=op.name)
    op.cluster.set_status(PDB, f"maint-{name}", WHERE, {"disruptionsAllowed": 1}, manager=op.name)
    op.cluster.delete(POD, f"maint-{name}", WHERE)


def announce(op: "Operator", key: Key, node: Obj) -> None:
    """The Node is to go: said on the Hypervisor, misleadingly; nothing is evicted by it."""
    live = op.get(key) or {}
    if shape.condition(live, "Terminating") == "True":
        return
    held = shape.conditions(node)
    one = next(one for one in held if one["type"] == "Terminating")
    reason, message = one.get("reason") or "Terminating", one.get("message", "")
    op.say(
        key,
        ("Terminating", "True", reason, message),
        ("Ready", "False", reason, message),
        ("AggregatesUpdated", "False", "EvictionInProgress", ""),
        ("Onboarding", "False", "Aborted", "Aborted due to LifecycleEnabled being false"),
    )


def offboard(op: "Operator", key: Key, cloud: Cloud) -> float | None:
    """After the eviction: out of the aggregates, out of Nova."""
    obj = op.get(key)
    node = op.cluster.get(NODE, key.name)
    if obj is None or node is None:
        return None
    looks = _looks(obj)
    if op.stalled.get(key.name) == looks:
        return None
    mine = [one.name for one in cloud.nova.of_host(key.name)]
    if shape.condition(node, "Terminating") != "True":
        _decommissioning(
            op, key, f"Waiting for aggregates to be removed, current: [{' '.join(mine)}]"
        )
        return None
    cloud.nova.put_in(key.name, [])
    op.say(key, ("AggregatesUpdated", "False", "Terminating", ""))
    if len(cloud.nova.like(key.name)) > 1:
        why = f"cannot get hypervisor by name {key.name} due to multiple hypervisors found"
        _decommissioning(op, key, why)
        op.stalled[key.name] = looks
        return None
    if any(not vm.test for vm in cloud.nova.on(key.name)):
        _decommissioning(op, key, "cannot delete service: it is hosting instances")
        op.stalled[key.name] = looks
        return None
    cloud.nova.unregister(key.name)
    op.status(key, {"aggregates": []})
    op.say(
        key,
        ("Offboarded", "True", "Offboarded", "Offboarding successful"),
        ("Ready", "False", "Offboarded", ""),
    )
    op.world.tell("offboarded", op.cluster.name, key.name)
    return None


def _decommissioning(op: "Operator", key: Key, why: str) -> None:
    op.say(key, ("Ready", "False", "Decommissioning", why))


def _looks(obj: Obj) -> str:
    """What a touch of the object changes."""
    metadata = obj["metadata"]
    parts = (obj["spec"], metadata.get("annotations"), metadata.get("labels"))
    return json.dumps(parts, sort_keys=True)
