"""
What runs on each hypervisor: nova-compute, and beside it ovn-controller and the node agent.

nova-compute registers its host with Nova under the Node's name, once in its life: after the service
was deleted (offboarding) it only complains, until it starts again on a new Node
(real-hypervisor.md 6). ovn-controller counts only as alive or not. The node agent reports libvirt
in the Hypervisor's conditions; it never fills numInstances here, as was seen without it.
"""

from collections.abc import Iterable, Mapping

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Controller, Key
from fleetd.sim.kube.cluster import Change
from fleetd.sim.services import openstack
from fleetd.sim.services import openstack_shape as shape

NODE = ("", "Node")
HYPERVISOR = ("kvm.cloud.sap", "Hypervisor")
RETRY = 15.0


class NovaCompute(Controller):
    name = "nova-compute"
    watches = (NODE,)

    def keys(self, change: Change) -> Iterable[Key]:
        """Its pod starts with the Node; what happens to the Node later is not its business."""
        if change.gk == NODE and change.type == "ADDED":
            yield from super().keys(change)

    def reconcile(self, key: Key) -> float | None:
        node = self.get(key)
        cloud = openstack.of_hypervisors(self.world, self.cluster.name)
        if node is None or cloud is None:
            return None
        uid = node["metadata"]["uid"]
        if cloud.nova.registered.get(key.name) == uid:
            return None
        ready = shape.condition(node, "Ready") == "True"
        if not ready or not cloud.up("nova") or not cloud.up("placement"):
            return RETRY
        cloud.nova.register(key.name, self.cluster.name)
        cloud.nova.registered[key.name] = uid
        self.world.tell("registered", f"nova-{cloud.name}", key.name)
        return None


class OvnController(Controller):
    name = "ovn-controller"

    def reconcile(self, key: Key) -> float | None:
        del key


class KvmNodeAgent(Controller):
    name = "kvm-node-agent"
    watches = (HYPERVISOR,)

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None or shape.condition(obj, "libvirtd.service"):
            return None
        said = [
            self.condition(kind, "True", "Running")
            for kind in ("libvirtd.service", "openvswitch-switch.service", "LibVirtConnection")
        ]
        self.status(key, {"conditions": said})
        return None


CHARTS: Mapping[str, Chart] = {
    "nova-compute": Chart(
        controllers=(NovaCompute,), daemonsets=("nova-compute",), seconds=(20.0, 60.0)
    ),
    "ovn-controller": Chart(
        controllers=(OvnController,), daemonsets=("ovn-controller",), seconds=(10.0, 30.0)
    ),
    "kvm-node-agent": Chart(
        controllers=(KvmNodeAgent,), daemonsets=("kvm-node-agent",), seconds=(10.0, 30.0)
    ),
}
