"""
Evictions of the hypervisor operator: one virtual machine after the other, each ten seconds.

Imitates real-hypervisor.md 5. The list is taken once, at preflight, and worked on from its end.
Where Nova has no valid host nothing is shown and the same machine is tried for ever; a machine in
ERROR goes to the other end. Nothing limits the time. One rule: what was done is in the object, so
an operator that starts again goes on.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fleetd.sim.controllers.base import Controller, Key, Obj
from fleetd.sim.kube.definitions import Column, Definition
from fleetd.sim.services import openstack
from fleetd.sim.services import openstack_shape as shape
from fleetd.sim.services.openstack import Cloud

if TYPE_CHECKING:
    from fleetd.sim.controllers.hypervisor import HypervisorOperator as Operator

EVICTION = ("kvm.cloud.sap", "Eviction")
HYPERVISOR = ("kvm.cloud.sap", "Hypervisor")
POLL = 10.0
DEFINITION = Definition(
    group="kvm.cloud.sap",
    kind="Eviction",
    plural="evictions",
    namespaced=False,
    short_names=("evi",),
    immutable=("spec.hypervisor",),
    lists={"status.conditions": ("type",)},
    columns=(Column("Evicting", "status.conditions[Evicting]"),),
)


def create(op: "Operator", hypervisor: Obj, mode: str) -> None:
    metadata = hypervisor["metadata"]
    op.cluster.create(
        {
            "apiVersion": "kvm.cloud.sap/v1",
            "kind": "Eviction",
            "metadata": {
                "name": metadata["name"],
                "ownerReferences": [
                    {
                        "apiVersion": hypervisor["apiVersion"],
                        "kind": "Hypervisor",
                        "name": metadata["name"],
                        "uid": metadata["uid"],
                        "controller": True,
                    }
                ],
            },
            "spec": {
                "hypervisor": metadata["name"],
                "reason": f"hypervisor-operator: {mode}",
            },
        },
        manager=op.name,
    )


class Evictions(Controller):
    name = "hypervisor-operator-eviction"
    watches = (EVICTION,)

    def keys(self, change: Any) -> Any:  # noqa: ANN401 - as the base has it
        """Its own writes do not wake it; the next poll does."""
        if change.type == "ADDED":
            yield from super().keys(change)

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        cloud = openstack.of_hypervisors(self.world, self.cluster.name)
        if obj is None or cloud is None or shape.condition(obj, "Evicting") == "False":
            return None
        if not cloud.up("nova"):
            return POLL
        status: Mapping[str, Any] = shape.part(obj, "status")
        if shape.condition(obj, "PreflightChecksSucceeded") != "True":
            return self._preflight(key, obj, cloud)
        left: list[str] = list(status.get("outstandingInstances") or [])
        return self._next(key, left, cloud)

    def _preflight(self, key: Key, obj: Obj, cloud: Cloud) -> float | None:
        name = obj["spec"]["hypervisor"]
        hypervisor = self.cluster.get(HYPERVISOR, name) or {}
        running = self.condition("Evicting", "True", "Running")
        if cloud.nova.hosts.get(name) is None:
            why = f"no hypervisor {name} found"
            failed = self.condition("Evicting", "False", "Failed", why)
            self.status(key, {"conditions": [failed]})
            return None
        first = not obj.get("status")
        if first or shape.condition(hypervisor, "HypervisorDisabled") != "True":
            # The first look nearly always comes before the service is disabled.
            why = "hypervisor not disabled"
            early = self.condition("PreflightChecksSucceeded", "False", "Failed", why)
            self.status(key, {"conditions": [running, early]})
            return POLL
        passed = self.condition("PreflightChecksSucceeded", "True", "Succeeded")
        found = [vm.id for vm in cloud.nova.on(name) if not vm.test]
        self.status(
            key,
            {
                "conditions": [running, passed],
                "hypervisorServiceId": cloud.nova.hosts[name].id,
                "outstandingInstances": found,
                "outstandingRamMb": 0,
            },
        )
        return self._next(key, found, cloud)

    def _next(self, key: Key, left: list[str], cloud: Cloud) -> float | None:
        """One machine: leave it out if it has left, move it if it has not."""
        if not left:
            done = self.condition(
                "Evicting", "False", "Succeeded", "eviction completed successfully"
            )
            self.status(key, {"conditions": [done], "outstandingInstances": []})
            return None
        vm = cloud.nova.vms.get(left[-1])
        if vm is None or vm.host != key.name:
            why = f"Migration of instance {left[-1]} finished"
            moved = self.condition("MigratingInstance", "False", "Succeeded", why)
            self.status(key, {"conditions": [moved], "outstandingInstances": left[:-1]})
            # The end of one is the beginning of the next, in the same look.
            return self._next(key, left[:-1], cloud)
        if vm.status == "ERROR":
            why = f"Migration of instance {vm.id} failed: {vm.fault}"
            failed = self.condition("MigratingInstance", "False", "Failed", why)
            self.status(key, {"conditions": [failed], "outstandingInstances": [vm.id, *left[:-1]]})
            return POLL
        if vm.status != "MIGRATING":
            cloud.nova.migrate(vm, cloud.computing)
        return POLL
