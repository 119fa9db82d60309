"""
The openstack-hypervisor-operator v1.0: a Hypervisor for each labelled Node, in and out of service.

Imitates real-hypervisor.md 2 to 7 (onboarding stages are `hypervisor_onboarding`, evictions are
`eviction`). What was seen is kept, traps included: it compares the spec with its own conditions
only, so a service disabled by hand goes unnoticed; `termination` without the Node's condition
stops for ever; a name that is part of another blocks, and that message is not retried until
somebody touches the object; the PDB is looked at on Node events only. One rule: while Nova does
not answer, conditions stay as they were.

Simplified: a pod that exits at start (no Keystone, no test project) is an operator that does
nothing until it can log in; there is no HA service, as outside its makers' company.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers import eviction, hypervisor_leaving, hypervisor_onboarding
from fleetd.sim.controllers.base import Controller, Key, Obj, merge_conditions
from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import User
from fleetd.sim.kube.cluster import Change, Cluster
from fleetd.sim.kube.definitions import Column, Definition
from fleetd.sim.services import openstack
from fleetd.sim.services import openstack_shape as shape
from fleetd.sim.services.openstack import Cloud
from fleetd.sim.services.openstack_compute import Host
from fleetd.sim.world import World

NODE = ("", "Node")
HYPERVISOR = ("kvm.cloud.sap", "Hypervisor")
VIRT_DRIVER = "nova.openstack.cloud.sap/virt-driver"
LIFECYCLE = "cobaltcore.cloud.sap/node-hypervisor-lifecycle"
AGGREGATES = "nova.openstack.cloud.sap/aggregates"
TRAITS = "nova.openstack.cloud.sap/custom-traits"
ZONE = "topology.kubernetes.io/zone"
COPIED = (
    "kubernetes.io/hostname",
    "worker.garden.sapcloud.io/group",
    "worker.gardener.cloud/pool",
    "topology.kubernetes.io/region",
    ZONE,
)
SKIP = "skip-tests"
RETRY = 15.0
LOGIN = 30.0
COMPUTE_POLL = 60.0
"""Seconds until a host without nova-compute is asked for again."""
KUBELET = 300.0
"""A kubelet touches its Node at least this often, and so wakes what listens to Nodes."""

DEFINITION = Definition(
    group="kvm.cloud.sap",
    kind="Hypervisor",
    plural="hypervisors",
    namespaced=False,
    short_names=("hv",),
    lists={
        "status.conditions": ("type",),
    },
    columns=(
        Column("Ready", "status.conditions[Ready]"),
        Column("Maintenance", "spec.maintenance"),
    ),
)
_MODES = ("", "manual", "auto", "ha", "termination")


class HypervisorOperator(Controller):
    name = "hypervisor-operator"
    watches = (NODE, HYPERVISOR)

    def __init__(self, world: World, cluster: Cluster) -> None:
        super().__init__(world, cluster)
        cluster.admit(HYPERVISOR, admit)
        self.stalled: dict[str, str] = {}
        """Hosts whose offboarding gave up, and what the object looked like then."""
        self.loops: dict[str, int] = {}
        """How often a missing trait was written, by host."""
        self._in = False

    def keys(self, change: Change) -> Iterable[Key]:
        yield from super().keys(change)
        name = change.object["metadata"]["name"]
        if change.gk in (NODE, eviction.EVICTION):
            yield Key(HYPERVISOR, "", name)

    def reconcile(self, key: Key) -> float | None:
        cloud = openstack.of_hypervisors(self.world, self.cluster.name)
        if cloud is None or not self._logged_in(cloud):
            return LOGIN
        if key.gk == NODE:
            return self._node(key)
        return self._hypervisor(key, cloud)

    def _logged_in(self, cloud: Cloud) -> bool:
        """It logs in when it starts, in its own project and in the test project, and finds the
        endpoints it needs; or exits."""
        if self._in:
            return True
        domain = cloud.find("Domain", "cc3test")
        test = cloud.find("Project", "test", domain_id=domain.id) if domain else None
        user = cloud.find("User", "admin")
        allowed = user and test and cloud.allowed(user.id, test.id)
        found = {"compute", "placement", "image", "network"} <= set(cloud.endpoints)
        self._in = bool(cloud.up("keystone") and allowed and found)
        return self._in

    # Nodes.

    def _node(self, key: Key) -> float | None:
        node = self.get(key)
        if node is None or node["metadata"].get("deletionTimestamp"):
            return None
        labels: Mapping[str, str] = node["metadata"].get("labels") or {}
        if VIRT_DRIVER not in labels:
            return None
        live = self.cluster.get(HYPERVISOR, key.name)
        if live is None:
            self._create(node, labels)
        else:
            self._follow(key.name, node, labels)
        hypervisor_leaving.release(self, node)
        return KUBELET if terminating(node) else None

    def _create(self, node: Obj, labels: Mapping[str, str]) -> None:
        spec: dict[str, Any] = {
            "lifecycleEnabled": False,
            "skipTests": False,
            "highAvailability": True,
            "installCertificate": True,
            "createCertManagerCertificate": False,
            "evacuateOnReboot": False,
            "reboot": False,
            "aggregates": [],
            "customTraits": [],
            "allowedProjects": [],
        }
        wanted(spec, node, labels)
        if terminating(node):
            spec["maintenance"] = "termination"
        metadata = node["metadata"]
        self.cluster.create(
            {
                "apiVersion": "kvm.cloud.sap/v1",
                "kind": "Hypervisor",
                "metadata": {
                    "name": metadata["name"],
                    "labels": {name: labels[name] for name in COPIED if name in labels},
                    "ownerReferences": [
                        {
                            "apiVersion": "v1",
                            "kind": "Node",
                            "name": metadata["name"],
                            "uid": metadata["uid"],
                            "controller": True,
                        }
                    ],
                },
                "spec": spec,
            },
            manager=self.name,
        )
        hypervisor_leaving.guard(self, node)

    def _follow(self, name: str, node: Obj, labels: Mapping[str, str]) -> None:
        """Labels and annotations of the Node go into the spec; removing the label changes
        nothing."""

        def change(obj: dict[str, Any]) -> None:
            if obj["spec"].get("maintenance") != "termination":
                wanted(obj["spec"], node, labels)
            copied = {key: labels[key] for key in COPIED if key in labels}
            obj["metadata"]["labels"] = {**shape.part(obj, "metadata.labels"), **copied}

        self.cluster.edit(HYPERVISOR, name, "", change, manager=self.name)

    # Hypervisors.

    def _hypervisor(self, key: Key, cloud: Cloud) -> float | None:
        obj, node = self.get(key), self.cluster.get(NODE, key.name)
        if obj is None or node is None or obj["metadata"].get("deletionTimestamp"):
            return None
        self._taint(key, obj)
        if not obj["spec"].get("lifecycleEnabled"):
            return None
        if not cloud.up("nova") or not cloud.up("keystone"):
            return RETRY
        if terminating(node):
            hypervisor_leaving.announce(self, key, node)
            obj = self.get(key) or obj
        if shape.condition(obj, "Offboarded") == "True":
            return None
        host = cloud.nova.hosts.get(key.name)
        if host is None:
            return COMPUTE_POLL
        if shape.part(obj, "status").get("hypervisorId") != host.hypervisor:
            ids = {"hypervisorId": host.hypervisor, "serviceId": host.id}
            self.status(key, {**ids, "numInstances": 0})
            obj = self.get(key) or obj
        if shape.condition(obj, "Onboarding") != "False":
            return hypervisor_onboarding.step(self, key, obj, cloud, host)
        again = None if terminating(node) else hypervisor_onboarding.keep(self, key, obj, cloud)
        after = self._maintain(key, self.get(key) or obj, cloud, host)
        return after if again is None else again

    def _taint(self, key: Key, obj: Obj) -> None:
        managers = [str(one.get("manager")) for one in obj["metadata"].get("managedFields") or ()]
        by_hand = any(manager.startswith("kubectl") for manager in managers)
        status, reason = ("True", "Kubectl") if by_hand else ("False", "NoKubectl")
        self.say(key, ("Tainted", status, reason, ""))

    def _maintain(self, key: Key, obj: Obj, cloud: Cloud, host: Host) -> float | None:
        mode = str(obj["spec"].get("maintenance") or "")
        disabled = shape.condition(obj, "HypervisorDisabled") == "True"
        leaving = shape.condition(obj, "Terminating") == "True"
        if not mode:
            if disabled:
                host.disabled, host.reason = False, ""
                hypervisor_onboarding.admitted(self, key.name, cloud)
                self.cluster.delete(eviction.EVICTION, key.name)
                self.forget(key, "Evicting")
                self.status(key, {"evicted": False})
            if not leaving:
                self.say(
                    key,
                    ("HypervisorDisabled", "False", "Succeeded", ""),
                    ("Ready", "True", "Ready", ""),
                )
            return None
        if not disabled:
            host.disabled, host.reason = True, f"Hypervisor CRD: spec.maintenance={mode}"
            self.say(key, ("HypervisorDisabled", "True", "Succeeded", host.reason))
        if mode == "ha":
            self.say(key, ("Ready", "False", "Maintenance", ""))
            return None
        return self._empty(key, obj, cloud, mode)

    def _empty(self, key: Key, obj: Obj, cloud: Cloud, mode: str) -> float | None:
        live = self.cluster.get(eviction.EVICTION, key.name)
        if live is None:
            eviction.create(self, obj, mode)
        if live is None or shape.condition(live, "Evicting") != "False":
            self.say(
                key,
                ("Evicting", "True", "Running", ""),
                ("Ready", "False", "Evicting", ""),
            )
            return None
        self.status(key, {"evicted": True})
        self.say(key, ("Evicting", "False", "Succeeded", ""))
        if mode == "termination":
            return hypervisor_leaving.offboard(self, key, cloud)
        self.say(key, ("Ready", "False", "Evicted", ""))
        return None

    # Conditions.

    def say(self, key: Key, *said: tuple[str, str, str, str]) -> None:
        """Writes only what differs: a write wakes everybody who listens."""
        held = (self.get(key) or {}).get("status", {}).get("conditions") or ()
        known = {one["type"]: (one["status"], one["reason"], one["message"]) for one in held}
        new = [one for one in said if known.get(one[0]) != one[1:]]
        if new:
            self.status(key, {"conditions": [self.condition(*one) for one in new]})

    def forget(self, key: Key, kind: str) -> None:
        status = dict((self.get(key) or {}).get("status") or {})
        left = [one for one in status.get("conditions") or () if one["type"] != kind]
        status["conditions"] = merge_conditions((), left)
        self.cluster.set_status(key.gk, key.name, key.namespace, status, manager=self.name)


def terminating(node: Obj) -> bool:
    return shape.condition(node, "Terminating") == "True"


def wanted(spec: dict[str, Any], node: Obj, labels: Mapping[str, str]) -> None:
    """What the Node says of the spec."""
    annotations: Mapping[str, str] = node["metadata"].get("annotations") or {}
    if LIFECYCLE in labels:
        spec["lifecycleEnabled"] = True
        spec["skipTests"] = labels[LIFECYCLE] == SKIP
    if AGGREGATES in annotations:
        names = [one for one in annotations[AGGREGATES].split(",") if one]
        spec["aggregates"] = [*names, *([labels[ZONE]] if ZONE in labels else [])]
    if TRAITS in annotations:
        spec["customTraits"] = [one for one in annotations[TRAITS].split(",") if one]


def admit(operation: str, new: Obj | None, old: Obj | None, user: User) -> None:
    """The rules of the CRD that say more than types."""
    del user
    if new is None or operation not in ("CREATE", "UPDATE"):
        return
    spec: Mapping[str, Any] = new["spec"]
    before: Mapping[str, Any] = old["spec"] if old else {}
    mode, name = spec.get("maintenance", ""), new["metadata"]["name"]
    wrong = ""
    if mode not in _MODES:
        wrong = f'Unsupported value: "{mode}"'
    elif mode == "manual" and not spec.get("maintenanceReason"):
        wrong = "maintenanceReason must be non-empty when maintenance is 'manual'"
    elif before.get("maintenance") == "termination" and mode != "ha" and spec != before:
        wrong = (
            "spec is immutable when maintenance is 'termination'; can only change maintenance "
            "to 'ha'"
        )
    if wrong:
        raise refusal.invalid(DEFINITION, name, ("FieldValueInvalid", "spec", wrong))


CHARTS: Mapping[str, Chart] = {
    "openstack-hypervisor-operator": Chart(
        definitions=(DEFINITION, eviction.DEFINITION),
        controllers=(HypervisorOperator, eviction.Evictions),
        deployments=("openstack-hypervisor-operator",),
    )
}
