"""
The Nodes that the machine controller makes, drains and takes away; part of `machines`.

A Node carries all labels of its Server, as cloud-provider-metal copies them, and those of its
pool. It is Ready while its machine is on.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fleetd.sim.controllers.base import Key, Obj, age, stamp
from fleetd.sim.controllers.metal_parts import items_of, labels_of, notes_of, part
from fleetd.sim.kube.cluster import GK, Cluster
from fleetd.sim.kube.values import Obj as Mutable
from fleetd.sim.kube.values import at
from fleetd.sim.services.redfish import Redfish
from fleetd.sim.truth import Machine
from fleetd.sim.world import World

if TYPE_CHECKING:
    from fleetd.sim.controllers.machines import MachineControllerManager

NODE: GK = ("", "Node")
POD: GK = ("", "Pod")
TERMINATING = "Terminating"
FORCED = "force-deletion"
"""Label of a Machine that is not to wait for its pods."""
BUDGET: GK = ("policy", "PodDisruptionBudget")
SERVER: GK = ("metal.ironcore.dev", "Server")
BMC: GK = ("metal.ironcore.dev", "BMC")
MANAGER = "kubelet"
FINALIZER = "node.machine.sapcloud.io/machine-controller-manager"
CANDIDATE = "node.machine.sapcloud.io/candidate-for-update"
SELECTED = "node.machine.sapcloud.io/selected-for-update"
RESULT = "node.machine.sapcloud.io/update-result"
POOL = "worker.gardener.cloud/pool"
"""Label of a Node."""
BAD_IMAGES = "sim.fleet.c5c3.io/bad-images"
"""Annotation of a CloudProfile: images whose kubelet never joins, as `name:version,...`."""
_NOTHING: Obj = {}
UPDATE = (300.0, 720.0)
"""Seconds of an update in place."""


def real(world: World, metal: Cluster | None, server: Obj | None) -> Machine | None:
    """The machine behind a Server."""
    if metal is None or server is None:
        return None
    bmc = metal.get(BMC, at(server, "spec.bmcRef.name") or "")
    bmcs = world.services.get("bmc")
    if bmc is None or not isinstance(bmcs, Redfish):
        return None
    return bmcs.machine(at(bmc, "spec.access.ip") or "")


def bad_image(world: World, region: str, spec: Obj) -> bool:
    garden = world.clusters.get(f"garden-{region}")
    for profile in garden.list(("core.gardener.cloud", "CloudProfile")) if garden else ():
        listed = notes_of(profile).get(BAD_IMAGES, "")
        if spec["image"] in listed.split(","):
            return True
    return False


def join(world: World, machine: Obj, server: Obj, there: Machine) -> str:
    """The Node, named as the cluster's policy says. Its name is the answer."""
    spec = machine["spec"]
    shoot = world.clusters[spec["shoot"]]
    policy = spec["nodeNamePolicy"]
    name = str(machine["metadata"]["name"])
    if policy in ("BMCName", "ServerName"):
        named = server["metadata"]["name"] if policy == "ServerName" else ""
        name = str(named or server["spec"]["bmcRef"]["name"])
    labels = {
        **labels_of(server),
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": spec["type"],
        "topology.kubernetes.io/region": spec["region"],
        "topology.kubernetes.io/zone": spec["zone"],
        POOL: spec["pool"],
        "worker.garden.sapcloud.io/group": spec["pool"],
        **spec["labels"],
    }
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "finalizers": [FINALIZER]},
        "spec": {
            "providerID": f"metal://{machine['spec']['claims']}/{machine['metadata']['name']}",
            "taints": list(spec["taints"]),
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": _address(there)},
                {"type": "Hostname", "address": name},
            ],
            "capacity": {"cpu": "64", "memory": "512Gi", "pods": "110"},
            "nodeInfo": _info(spec),
            "conditions": [_ready(world, "True")],
        },
    }
    if shoot.get(NODE, name) is None:
        shoot.create(body, manager=MANAGER)
    there.node = f"{spec['shoot']}/{name}"
    world.tell("joined", spec["shoot"], name)
    return name


def _address(there: Machine) -> str:
    number = int(there.uuid.replace("-", "")[:6], 16)
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _info(spec: Obj) -> dict[str, str]:
    image = str(spec["image"])
    return {
        "kubeletVersion": f"v{spec['kubernetes']}",
        "osImage": image.replace(":", " "),
        "kernelVersion": "6.12.40-amd64",
        "architecture": "amd64",
        "operatingSystem": "linux",
        "containerRuntimeVersion": "containerd://2.1.4",
    }


def _ready(world: World, status: str) -> dict[str, Any]:
    good = status == "True"
    return {
        "type": "Ready",
        "status": status,
        "reason": "KubeletReady" if good else "NodeStatusUnknown",
        "message": "kubelet is posting ready status"
        if good
        else "Kubelet stopped posting node status.",
        "lastTransitionTime": stamp(world),
    }


def ready_of(node: Obj) -> Obj:
    conditions: list[Obj] = items_of(node, "status.conditions")
    return next((one for one in conditions if one["type"] == "Ready"), _NOTHING)


def beat(world: World, shoot: Cluster, node: Obj, there: Machine | None, spec: Obj) -> None:
    """Ready as long as the machine is on; the kubelet's version is that of the pool."""
    wanted = "True" if there is not None and there.on else "Unknown"
    info = part(node, "status.nodeInfo")
    same = info.get("kubeletVersion") == f"v{spec['kubernetes']}"
    labels: dict[str, str] = spec["labels"]
    if not labels.items() <= labels_of(node).items():
        _label(shoot, node["metadata"]["name"], dict(labels))
    if ready_of(node).get("status") == wanted and same:
        return

    def change(live: Mutable) -> None:
        status = live.setdefault("status", {})
        rest = [one for one in items_of(status, "conditions") if one["type"] != "Ready"]
        if ready_of(live).get("status") != wanted:
            status["conditions"] = [*rest, _ready(world, wanted)]
        status["nodeInfo"] = {**info, "kubeletVersion": f"v{spec['kubernetes']}"}

    shoot.edit(NODE, node["metadata"]["name"], "", change, manager=MANAGER, status=True)


def silent(world: World, shoot: Cluster, name: str) -> float:
    """Seconds since the node stopped being Ready; 0 while it is."""
    node = shoot.get(NODE, name)
    ready = ready_of(node) if node is not None else _NOTHING
    if not ready or ready["status"] == "True":
        return 0.0
    return age(world, ready["lastTransitionTime"])


def terminating(world: World, shoot: Cluster, node: str) -> None:
    """Said on the Node before it is drained; operators of what runs there wait for it."""
    live = shoot.get(NODE, node)
    known = items_of(live, "status.conditions") if live is not None else ()
    if live is None or any(one["type"] == TERMINATING for one in known):
        return
    said = {
        "type": TERMINATING,
        "status": "True",
        "reason": "ScaleDown" if ready_of(live).get("status") == "True" else "Unhealthy",
        "message": "",
        "lastTransitionTime": stamp(world),
    }

    def change(live: Mutable) -> None:
        status = live.setdefault("status", {})
        status["conditions"] = [*items_of(status, "conditions"), said]

    shoot.edit(NODE, node, "", change, manager=MANAGER, status=True)


def drain(shoot: Cluster, node: str) -> int:
    """One round: what may go is evicted. The number of pods that stay."""

    def cordon(live: Mutable) -> None:
        live.setdefault("spec", {})["unschedulable"] = True

    shoot.edit(NODE, node, "", cordon, manager="machine-controller-manager")
    left = 0
    for pod in shoot.list(POD):
        metadata = pod["metadata"]
        owners = [one["kind"] for one in items_of(metadata, "ownerReferences")]
        if at(pod, "spec.nodeName") != node or "DaemonSet" in owners:
            continue
        if _guarded(shoot, pod):
            left += 1
        else:
            shoot.delete(POD, metadata["name"], metadata["namespace"])
    return left


def _guarded(shoot: Cluster, pod: Obj) -> bool:
    """Whether a disruption budget keeps it. One without a status lets nothing go."""
    labels = labels_of(pod)
    for budget in shoot.list(BUDGET, pod["metadata"]["namespace"]):
        wanted = part(budget, "spec.selector.matchLabels")
        if all(labels.get(key) == value for key, value in wanted.items()):
            allowed = at(budget, "status.disruptionsAllowed") or 0
            if not allowed:
                return True
    return False


def leave(world: World, shoot: str, node: str) -> None:
    cluster = world.clusters.get(shoot)
    if cluster is None or not node or cluster.get(NODE, node) is None:
        return
    cluster.delete(NODE, node)
    cluster.remove_finalizer(NODE, node, "", FINALIZER)
    world.tell("left", shoot, node)


# Updates in place


def in_place(manager: "MachineControllerManager", deployment: Obj, alive: Sequence[Obj]) -> None:
    """Nodes of an older template become candidates; with Auto one of them is selected."""
    template = deployment["spec"]["template"]
    behind = [one for one in alive if one["spec"]["hash"] != template["hash"]]
    shoot = manager.world.clusters.get(template["shoot"])
    if shoot is None:
        return
    auto = deployment["spec"]["strategy"].get("orchestration") == "Auto"
    busy = any(_labels(shoot, one).get(SELECTED) for one in behind)
    for machine in behind:
        name = machine["spec"].get("nodeName", "")
        mark = {CANDIDATE: "true"}
        if auto and not busy:
            mark[SELECTED] = "true"
            busy = True
        if name and not mark.items() <= _labels(shoot, machine).items():
            _label(shoot, name, mark)


def _labels(shoot: Cluster, machine: Obj) -> dict[str, str]:
    node = shoot.get(NODE, machine["spec"].get("nodeName", ""))
    return dict(labels_of(node)) if node is not None else {}


def _label(shoot: Cluster, node: str, mark: dict[str, str], drop: tuple[str, ...] = ()) -> None:
    def change(live: Mutable) -> None:
        labels = {**labels_of(live), **mark}
        live["metadata"]["labels"] = {key: labels[key] for key in labels if key not in drop}

    shoot.edit(NODE, node, "", change, manager="machine-controller-manager")


def update(
    manager: "MachineControllerManager", key: Key, machine: Obj, node: Obj, there: Machine | None
) -> None:
    """Carry on an update in place: selected, drained, updated, back."""
    labels = labels_of(node)
    if CANDIDATE not in labels or SELECTED not in labels:
        return
    shoot, name = manager.world.clusters[machine["spec"]["shoot"]], node["metadata"]["name"]
    began = part(machine, "status").get("updating")
    if began is None:
        if drain(shoot, name):
            return
        if there is not None and there.vms:
            manager.world.truth.hurt(f"{name} was updated in place with virtual machines on it")
        manager.status(key, {"updating": stamp(manager.world)})
        return
    hash_ = str(machine["spec"]["hash"])
    if age(manager.world, began) < manager.span(*UPDATE, key, "update", hash_):
        return
    _renewed(manager, key, machine, there)


def _renewed(
    manager: "MachineControllerManager", key: Key, machine: Obj, there: Machine | None
) -> None:
    """The node is back with the new image, under its old name."""
    name = machine["spec"]["nodeName"]
    shoot = manager.world.clusters[machine["spec"]["shoot"]]
    deployment = manager.cluster.get(
        ("machine.sapcloud.io", "MachineDeployment"),
        machine["metadata"]["labels"]["machine.sapcloud.io/deployment"],
        key.namespace,
    )
    if deployment is None:
        return
    template = deployment["spec"]["template"]

    def renew(live: Mutable) -> None:
        live["spec"] = {**template, "nodeName": name}

    def back(live: Mutable) -> None:
        live["spec"].pop("unschedulable", None)

    def image(live: Mutable) -> None:
        live["status"]["nodeInfo"] = _info(template)

    manager.cluster.edit(key.gk, key.name, key.namespace, renew, manager=manager.name)
    status = {k: v for k, v in part(machine, "status").items() if k != "updating"}
    manager.cluster.set_status(key.gk, key.name, key.namespace, status, manager=manager.name)
    shoot.edit(NODE, name, "", back, manager=manager.name)
    shoot.edit(NODE, name, "", image, manager=MANAGER, status=True)
    if there is not None:
        there.image = template["image"]
    _label(shoot, name, {RESULT: "successful"}, (CANDIDATE, SELECTED))
