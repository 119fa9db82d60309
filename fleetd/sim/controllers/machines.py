"""
machine-controller-manager with the driver of ironcore-metal: MachineDeployments become Machines,
a Machine becomes a ServerClaim of the same name, a booted server becomes a Node.

It runs in the seed. Rolling follows maxSurge and maxUnavailable. A node is cordoned and drained
first; disruption budgets are respected until the drain timeout is over, then the machine is
deleted with all that is on it. A machine that does not join in time, or whose node is silent for
too long, is replaced. In-place pools wait for the label `selected-for-update` (by hand) or choose
one node at a time (auto). Left out: MachineSets, the autoscaler, preservation of failed machines.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from fleetd.sim.controllers import machines_nodes as nodes
from fleetd.sim.controllers.base import Controller, Key, Obj, age, key_of, stamp
from fleetd.sim.controllers.metal_kinds import CLAIM
from fleetd.sim.controllers.metal_parts import labels_of, part
from fleetd.sim.kube.cluster import GK, Change, Cluster
from fleetd.sim.kube.definitions import Column, Definition
from fleetd.sim.kube.store import DELETED
from fleetd.sim.kube.values import Obj as Mutable
from fleetd.sim.truth import Machine
from fleetd.sim.world import World

GROUP = "machine.sapcloud.io"
DEPLOYMENT: GK = (GROUP, "MachineDeployment")
MACHINE: GK = (GROUP, "Machine")
FINALIZER = "machine.sapcloud.io/machine-controller-manager"
LABEL = "machine.sapcloud.io/deployment"
BOOT = (240.0, 600.0)
"""Seconds from power-on to the Node being Ready: firmware, two boots, image, kubelet."""
DRAIN = 600.0
"""Seconds between rounds of a drain in which nothing happens; a pod that goes wakes it."""
BEAT = 60.0
"""Seconds between looks at a machine that something is the matter with."""
NOTICED = 40.0
"""Seconds until a silent kubelet is noticed: `node-monitor-grace-period`."""

DEFINITIONS = (
    Definition(
        group=GROUP,
        kind="MachineDeployment",
        plural="machinedeployments",
        versions=("v1alpha1",),
        short_names=("mcd",),
        columns=(Column("Ready", "status.readyReplicas"), Column("Desired", "spec.replicas")),
    ),
    Definition(
        group=GROUP,
        kind="Machine",
        plural="machines",
        versions=("v1alpha1",),
        short_names=("mc",),
        columns=(Column("Status", "status.currentStatus.phase"), Column("Node", "spec.nodeName")),
    ),
)


class MachineControllerManager(Controller):
    name = "machine-controller-manager"
    watches = (DEPLOYMENT, MACHINE)

    def __init__(self, world: World, cluster: Cluster) -> None:
        super().__init__(world, cluster)
        self.region = cluster.name.removeprefix("seed-")

    @property
    def metal(self) -> Cluster | None:
        return self.world.clusters.get(f"metal-{self.region}")

    def start(self) -> None:
        super().start()
        if self.metal is not None:
            self.metal.subscribe(self._claim_changed)
        self.world.truth.listeners.append(self._power_changed)

    def _power_changed(self, machine: Machine) -> None:
        shoot, _, node = machine.node.partition("/")
        if not node or self._stopped:
            return
        for one in self.cluster.list(MACHINE):
            if one["spec"]["shoot"] == shoot and one["spec"].get("nodeName") == node:
                self.wake(key_of(MACHINE, one), NOTICED)

    def adopt(self, shoot: Cluster) -> None:
        """Follow the nodes of a new cluster."""
        shoot.subscribe(lambda change: self._node_changed(shoot.name, change))

    def _claim_changed(self, change: Change) -> None:
        if change.gk == CLAIM and not self._stopped:
            for machine in self._called(change.object["metadata"]["name"]):
                self.wake(key_of(MACHINE, machine))

    def _node_changed(self, shoot: str, change: Change) -> None:
        if change.gk in (nodes.POD, nodes.BUDGET) and not self._stopped:
            self._drain_on(shoot)
        if change.gk != nodes.NODE or self._stopped:
            return
        old, new = change.old or {"metadata": {}}, change.object
        moved = any(
            old["metadata"].get(part) != new["metadata"].get(part)
            for part in ("labels", "deletionTimestamp")
        )
        if moved or change.type == DELETED:
            for machine in self.cluster.list(MACHINE):
                spec = machine["spec"]
                if spec["shoot"] == shoot and spec.get("nodeName") == new["metadata"]["name"]:
                    self.wake(key_of(MACHINE, machine))

    def _drain_on(self, shoot: str) -> None:
        """A pod went, or may go now: whoever waits for that looks again."""
        for machine in self.cluster.list(MACHINE):
            if phase(machine) == "Terminating" and machine["spec"]["shoot"] == shoot:
                self.wake(key_of(MACHINE, machine), 5.0)

    def _called(self, name: str) -> list[Mutable]:
        return [one for one in self.cluster.list(MACHINE) if one["metadata"]["name"] == name]

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk == MACHINE:
            yield Key(
                DEPLOYMENT,
                change.object["metadata"]["namespace"],
                change.object["metadata"]["labels"][LABEL],
            )
        if change.gk in self.watches and change.type != DELETED:
            yield key_of(change.gk, change.object)

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None:
            return None
        return self._deployment(key, obj) if key.gk == DEPLOYMENT else self._machine(key, obj)

    # Deployments

    def machines(self, namespace: str, deployment: str) -> list[Mutable]:
        return self.cluster.list(MACHINE, namespace, labels={LABEL: deployment})

    def _deployment(self, key: Key, deployment: Obj) -> float | None:
        spec = deployment["spec"]
        gone = "deletionTimestamp" in deployment["metadata"]
        wanted = 0 if gone else int(spec["replicas"])
        there = self.machines(key.namespace, key.name)
        if gone and not there:
            self.cluster.remove_finalizer(DEPLOYMENT, key.name, key.namespace, FINALIZER)
            return None
        alive = [one for one in there if "deletionTimestamp" not in one["metadata"]]
        for machine in [one for one in alive if phase(one) == "Failed"]:
            self.cluster.delete(MACHINE, machine["metadata"]["name"], key.namespace)
            alive.remove(machine)
        if spec["strategy"]["type"] == "InPlaceUpdate":
            fresh, old = alive, list[Mutable]()
            nodes.in_place(self, deployment, alive)
        else:
            fresh = [one for one in alive if one["spec"]["hash"] == spec["template"]["hash"]]
            old = [one for one in alive if one["spec"]["hash"] != spec["template"]["hash"]]
            self._pass_on(key, spec["template"], fresh)
        self._roll(key, deployment, wanted, fresh, old)
        self._count(key, deployment, wanted)
        return None

    def _pass_on(self, key: Key, template: Obj, fresh: Sequence[Obj]) -> None:
        """What changes without a new machine: labels, timeouts, the kubelet's patch version."""
        for machine in fresh:
            if any(machine["spec"].get(name) != template[name] for name in template):

                def renew(live: Mutable) -> None:
                    live["spec"] = {**live["spec"], **template}

                name = machine["metadata"]["name"]
                self.cluster.edit(MACHINE, name, key.namespace, renew, manager=self.name)

    def _roll(
        self, key: Key, deployment: Obj, wanted: int, fresh: Sequence[Obj], old: Sequence[Obj]
    ) -> None:
        spec = deployment["spec"]
        surge = int(spec["strategy"].get("maxSurge", 0))
        away = int(spec["strategy"].get("maxUnavailable", 1))
        room = wanted + (surge if old else 0) - len(fresh) - len(old)
        for _ in range(min(wanted - len(fresh), room)):
            self._make(key, deployment)
        for machine in fresh[wanted:] if len(fresh) > wanted else ():
            self.cluster.delete(MACHINE, machine["metadata"]["name"], key.namespace)
        running = sum(1 for one in (*fresh, *old) if phase(one) == "Running")
        spare = running - max(wanted - away, 0)
        for machine in old:
            if phase(machine) == "Running":
                if spare <= 0:
                    continue
                spare -= 1
            self.cluster.delete(MACHINE, machine["metadata"]["name"], key.namespace)

    def _make(self, key: Key, deployment: Obj) -> None:
        template = deployment["spec"]["template"]
        number = int(part(self.get(key), "status").get("made", 0)) + 1
        self.status(key, {"made": number})
        suffix = self.world.token(self.cluster.name, key.name, str(number))[:5]
        self.cluster.create(
            {
                "apiVersion": f"{GROUP}/v1alpha1",
                "kind": "Machine",
                "metadata": {
                    "name": f"{key.name}-{template['hash'][:5]}-{suffix}",
                    "namespace": key.namespace,
                    "labels": {LABEL: key.name},
                    "finalizers": [FINALIZER],
                },
                "spec": dict(template),
            },
            manager=self.name,
        )

    def _count(self, key: Key, deployment: Obj, wanted: int) -> None:
        template = deployment["spec"]["template"]
        there = self.machines(key.namespace, key.name)
        running = [one for one in there if phase(one) == "Running"]
        updated = [one for one in running if one["spec"]["hash"] == template["hash"]]
        self.status(
            key,
            {
                "observedGeneration": deployment["metadata"]["generation"],
                "replicas": len(there),
                "readyReplicas": len(running),
                "updatedReplicas": min(len(updated), wanted),
            },
        )

    # Machines

    def _machine(self, key: Key, machine: Obj) -> float | None:
        if "deletionTimestamp" in machine["metadata"]:
            return self._end(key, machine)
        match phase(machine):
            case "":
                return self._claim(key, machine)
            case "Pending":
                return self._join(key, machine)
            case "Running" | "InPlaceUpdating":
                return self._run(key, machine)
            case _:
                return None

    def set_phase(self, key: Key, state: str, said: str) -> None:
        now = stamp(self.world)
        self.status(
            key,
            {
                "currentStatus": {"phase": state, "lastUpdateTime": now},
                "lastOperation": {"description": said, "lastUpdateTime": now},
            },
        )

    def _claim(self, key: Key, machine: Obj) -> float | None:
        spec, metal = machine["spec"], self.metal
        if metal is None:
            return BEAT
        if metal.get(CLAIM, key.name, spec["claims"]) is None:
            if metal.get(("", "Namespace"), spec["claims"]) is None:
                return BEAT
            metal.create(
                {
                    "apiVersion": "metal.ironcore.dev/v1alpha1",
                    "kind": "ServerClaim",
                    "metadata": {"name": key.name, "namespace": spec["claims"]},
                    "spec": {
                        "power": "Off",
                        "image": spec["image"],
                        "ignitionSecretRef": {"name": key.name},
                        "serverSelector": {"matchLabels": dict(spec["serverLabels"])},
                    },
                },
                manager=self.name,
            )
        self.set_phase(key, "Pending", "Creating machine on cloud provider")
        return None

    def server(self, machine: Obj) -> Obj | None:
        """The Server its claim was given."""
        metal = self.metal
        if metal is None:
            return None
        claim = metal.get(CLAIM, machine["metadata"]["name"], machine["spec"]["claims"])
        if claim is None or part(claim, "status").get("phase") != "Bound":
            return None
        return metal.get(nodes.SERVER, claim["spec"]["serverRef"]["name"])

    def real(self, server: Obj | None) -> Machine | None:
        return nodes.real(self.world, self.metal, server)

    def _join(self, key: Key, machine: Obj) -> float | None:
        spec = machine["spec"]
        waited = age(self.world, machine["metadata"]["creationTimestamp"])
        if waited > spec["creationTimeout"]:
            self.set_phase(
                key,
                "Failed",
                f"Machine {key.name} failed to join the cluster in "
                f"{spec['creationTimeout'] // 60:.0f}m0s minutes.",
            )
            return None
        left = spec["creationTimeout"] - waited + 1
        server, metal = self.server(machine), self.metal
        real = self.real(server)
        if server is None or metal is None or real is None:
            return min(left, 300.0)
        claim = metal.get(CLAIM, key.name, spec["claims"])
        if claim is not None and claim["spec"]["power"] != "On":

            def on(live: Mutable) -> None:
                live["spec"]["power"] = "On"

            metal.edit(CLAIM, key.name, spec["claims"], on, manager=self.name)
            return 10.0
        if not real.on:
            return 15.0
        began = part(machine, "status").get("booted")
        if began is None:
            self.status(key, {"booted": stamp(self.world)})
            return self.span(*BOOT, key, "boot", str(real.deployed))
        rest = self.span(*BOOT, key, "boot", str(real.deployed)) - age(self.world, began)
        if rest > 0:
            return min(rest + 1, left)
        if nodes.bad_image(self.world, self.region, spec):
            return left
        name = nodes.join(self.world, machine, server, real)
        self._named(key, name)
        self.set_phase(key, "Running", f"Machine {key.name} successfully joined the cluster")
        return BEAT

    def _named(self, key: Key, node: str) -> None:
        def name(live: Mutable) -> None:
            live["spec"]["nodeName"] = node

        self.cluster.edit(MACHINE, key.name, key.namespace, name, manager=self.name)

    def _run(self, key: Key, machine: Obj) -> float | None:
        spec = machine["spec"]
        shoot = self.world.clusters.get(spec["shoot"])
        node = shoot.get(nodes.NODE, spec["nodeName"]) if shoot is not None else None
        if shoot is None:
            return BEAT
        if node is None or "deletionTimestamp" in node["metadata"]:
            # Whoever deletes a Node wants its machine replaced.
            self.cluster.delete(MACHINE, key.name, key.namespace)
            return None
        real = self.real(self.server(machine))
        nodes.beat(self.world, shoot, node, real, spec)
        nodes.update(self, key, machine, node, real)
        silent = nodes.silent(self.world, shoot, spec["nodeName"])
        if silent > spec["healthTimeout"] and not spec["disableHealthTimeout"]:
            self.set_phase(key, "Failed", f"Machine {key.name} is not healthy since 10 minutes")
            return None
        labels = labels_of(node)
        return BEAT if silent or nodes.SELECTED in labels else None

    def _end(self, key: Key, machine: Obj) -> float | None:
        spec, metal = machine["spec"], self.metal
        shoot = self.world.clusters.get(spec["shoot"])
        if phase(machine) != "Terminating":
            self.set_phase(key, "Terminating", "Drain: machine is being drained")
            return self.span(1.0, 5.0, key, "drain")
        node = spec.get("nodeName", "")
        if shoot is not None and node and shoot.get(nodes.NODE, node) is not None:
            nodes.terminating(self.world, shoot, node)
            left = nodes.drain(shoot, node)
            waited = age(self.world, machine["metadata"]["deletionTimestamp"])
            dead = nodes.silent(self.world, shoot, node) > 300.0
            forced = nodes.FORCED in labels_of(machine)
            if left and waited < spec["drainTimeout"] and not dead and not forced:
                return DRAIN
            if left:
                self.world.tell("force-deleted", self.cluster.name, f"{key.name}: {left} pods left")
        if metal is not None and metal.get(CLAIM, key.name, spec["claims"]) is not None:
            metal.delete(CLAIM, key.name, spec["claims"])
            if metal.get(CLAIM, key.name, spec["claims"]) is not None:
                return 5.0
        real = self.world.truth.of_node(spec["shoot"], node) if node else None
        if real is not None:
            real.vms.clear()
            real.node = ""
        nodes.leave(self.world, spec["shoot"], node)
        self.cluster.remove_finalizer(MACHINE, key.name, key.namespace, FINALIZER)
        return None


def phase(machine: Obj) -> str:
    status: dict[str, Any] = part(machine, "status")
    return str(part(status, "currentStatus").get("phase") or "")
