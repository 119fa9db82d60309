"""
The metal of each region: machines in their racks, their BMCs, and the metal API with its
operators, as they stand before fleetd comes.

A machine accepts the user and password that the documents name; it is off, and nobody has told
the metal API of it.
"""

import json
from typing import Any

import msgspec

from fleetd.sim import keys
from fleetd.sim.controllers.bootoperator import BootOperator
from fleetd.sim.controllers.metal import MetalOperator
from fleetd.sim.controllers.metal_kinds import BOOT_NAMESPACE, DEFINITIONS, MANAGER_NAMESPACE
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.services.redfish import Redfish
from fleetd.sim.truth import Machine
from fleetd.sim.world import World
from topology.resource import Resource, Topology

BMC = "bmc"
MANAGER = "site"


def furnish(world: World, topology: Topology, *, parks: bool = False) -> None:
    """`parks`: the metal operators know the operations of the newer generation."""
    world.services.setdefault(BMC, Redfish(world))
    passwords = _passwords(world, topology)
    for resource in topology.resources.values():
        if resource.ref.kind == "region" and resource.spec["metal"]["provider"] == "ironcore":
            _api(world, resource.ref.name, parks=parks)
        elif resource.ref.kind == "server":
            machine = _machine(world, resource, passwords[_place(resource)])
            world.truth.machines.setdefault(machine.name, machine)


def _api(world: World, region: str, *, parks: bool) -> None:
    name = f"metal-{region}"
    if name in world.clusters:
        return
    cluster = world.add_cluster(name)
    for definition in DEFINITIONS:
        cluster.serve(definition)
    for namespace, deployment in (
        (MANAGER_NAMESPACE, "metal-operator-controller-manager"),
        (BOOT_NAMESPACE, "boot-operator-controller-manager"),
    ):
        _deployment(cluster, namespace, deployment)
    operator = MetalOperator(world, cluster)
    operator.parks = parks
    operator.start()
    BootOperator(world, cluster).start()


def _deployment(cluster: Cluster, namespace: str, name: str) -> None:
    """Installed by others, and up. The metal API has nodes of its own, which nobody here asks
    about, so its Deployments are not looked after by a simulated scheduler."""
    cluster.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        manager=MANAGER,
    )
    made = cluster.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {"containers": [{"name": "manager", "image": f"{name}:v0.3.0"}]},
                },
            },
        },
        manager=MANAGER,
    )
    since = made["metadata"]["creationTimestamp"]
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": reason,
            "message": "",
            "lastTransitionTime": since,
            "lastUpdateTime": since,
        }
        for kind, reason in (
            ("Available", "MinimumReplicasAvailable"),
            ("Progressing", "NewReplicaSetAvailable"),
        )
    ]
    status: dict[str, Any] = {
        "observedGeneration": 1,
        "replicas": 1,
        "updatedReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "conditions": conditions,
    }
    cluster.set_status(("apps", "Deployment"), name, namespace, status, manager=MANAGER)


def _place(resource: Resource) -> tuple[str, str]:
    access = {key: value for key, value in resource.spec["access"].items() if value is not None}
    return resource.region, msgspec.json.encode(access, order="deterministic").decode()


def _passwords(world: World, topology: Topology) -> dict[tuple[str, str], dict[str, str]]:
    """By region and access, as `fleetd.sim.keys` has them: pools that name the same access have
    the same password."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for resource in topology.resources.values():
        if resource.ref.kind in ("server", "serverpool"):
            pool = str(resource.spec.get("pool") or resource.spec["name"])
            place = _place(resource)
            if place not in found:
                found[place] = json.loads(keys.bmc(world, pool))
    return found


def _machine(world: World, server: Resource, login: dict[str, str]) -> Machine:
    spec = server.spec
    return Machine(
        name=server.ref.name,
        address=str(spec["bmc"]),
        uuid=str(spec.get("uuid") or world.uid(f"machine/{server.ref.name}")),
        user=login["username"],
        password=login["password"],
        region=server.region,
        zone=str(spec["zone"]),
        rack=str(spec.get("rack") or ""),
        size=str(spec["class"]),
    )
