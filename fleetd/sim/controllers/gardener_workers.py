"""
What gardenlet and the worker extension make of a Shoot's pools: one MachineDeployment per zone.

Part of `gardener`. The hash of a template is what rolls a pool when it changes: machine type,
image, the minor version of Kubernetes, and a mark that the rotation of credentials moves.
"""

import base64
import binascii
import hashlib
import re
from typing import TYPE_CHECKING, Any

from fleetd.sim.controllers import gardener_identities as identities
from fleetd.sim.controllers.base import Key, Obj, age
from fleetd.sim.controllers.gardenadmission import (
    BINDING,
    IDENTITY,
    OWN_PROFILE,
    PROFILE,
    SHOOT,
)
from fleetd.sim.controllers.gardenadmission_shoot import MANUAL, ROLLING, numbers, version_of
from fleetd.sim.controllers.machines import DEPLOYMENT, FINALIZER, GROUP, MACHINE, phase
from fleetd.sim.controllers.machines_nodes import FORCED, NODE, POOL, ready_of
from fleetd.sim.controllers.metal_kinds import CLAIM
from fleetd.sim.controllers.metal_parts import items_of, labels_of, notes_of, part
from fleetd.sim.kube.access import BadToken
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.values import Obj as Mutable
from fleetd.sim.kube.values import at

if TYPE_CHECKING:
    from fleetd.sim.controllers.gardener import Gardenlet

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
ROLLOUT = "fleet.sim/rollout"
"""Annotation of a Shoot: marks by pool that the rotation of credentials moves."""


def space(shoot: Obj) -> str:
    """The Shoot's namespace in the seed."""
    return str(at(shoot, "status.technicalID") or "")


def seconds(text: str, otherwise: float) -> float:
    found = _DURATION.fullmatch(text or "")
    if not text or found is None:
        return otherwise
    hours, minutes, rest = (int(part or 0) for part in found.groups())
    return hours * 3600.0 + minutes * 60.0 + rest


def _secret(gardenlet: "Gardenlet", shoot: Obj) -> dict[str, str]:
    """The credentials for the metal API, decoded."""
    garden = gardenlet.cluster
    binding = garden.get(
        BINDING, shoot["spec"]["credentialsBindingName"], shoot["metadata"]["namespace"]
    )
    named = part(binding, "credentialsRef")
    if named.get("kind") == IDENTITY[1]:
        who = garden.get(IDENTITY, named.get("name", ""), named.get("namespace", ""))
        token = identities.issue(gardenlet.world, garden, who) if who is not None else ""
        return {"namespace": named.get("namespace", ""), "token": token}
    secret = garden.get(("", "Secret"), named.get("name", ""), named.get("namespace", ""))
    data: dict[str, str] = part(secret, "data")
    try:
        return {key: base64.b64decode(value).decode() for key, value in data.items()}
    except (binascii.Error, UnicodeDecodeError):
        return {}


def refused(gardenlet: "Gardenlet", shoot: Obj) -> str:
    """Why the metal API does not let Gardener in; empty if it does."""
    metal = gardenlet.world.clusters.get(f"metal-{gardenlet.region}")
    token = _secret(gardenlet, shoot).get("token", "")
    if metal is None:
        return "the metal API does not answer"
    try:
        metal.tokens.user(token)
    except BadToken:
        return "error getting serverclaims: Unauthorized"
    return ""


def ensure(gardenlet: "Gardenlet", key: Key, shoot: Obj) -> None:
    """The MachineDeployments as the spec asks for them."""
    seed, where = gardenlet.seed, space(shoot)
    if seed.get(("", "Namespace"), where) is None:
        seed.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": where}},
            manager=gardenlet.name,
        )
    wanted = {body["metadata"]["name"]: body for body in _deployments(gardenlet, key, shoot)}
    for name, body in wanted.items():
        live = seed.get(DEPLOYMENT, name, where)
        if live is None:
            seed.create(body, manager=gardenlet.name)
        elif live["spec"] != body["spec"]:

            def change(old: Mutable, body: Obj = body) -> None:
                old["spec"] = body["spec"]

            seed.edit(DEPLOYMENT, name, where, change, manager=gardenlet.name)
    for live in seed.list(DEPLOYMENT, where):
        if live["metadata"]["name"] not in wanted:
            seed.delete(DEPLOYMENT, live["metadata"]["name"], where)


def remove(gardenlet: "Gardenlet", shoot: Obj) -> None:
    """Without a drain: the machines of a Shoot that goes are marked for it."""

    def force(machine: Mutable) -> None:
        machine["metadata"]["labels"] = {**machine["metadata"]["labels"], FORCED: "True"}

    for machine in gardenlet.seed.list(MACHINE, space(shoot)):
        name = machine["metadata"]["name"]
        gardenlet.seed.edit(MACHINE, name, space(shoot), force, manager=gardenlet.name)
    for live in gardenlet.seed.list(DEPLOYMENT, space(shoot)):
        gardenlet.seed.delete(DEPLOYMENT, live["metadata"]["name"], space(shoot))


def _deployments(gardenlet: "Gardenlet", key: Key, shoot: Obj) -> list[Mutable]:
    named = shoot["spec"]["cloudProfile"]
    profile = gardenlet.cluster.get(PROFILE, named["name"])
    if named.get("kind") == OWN_PROFILE[1]:
        own = gardenlet.cluster.get(OWN_PROFILE, named["name"], key.namespace)
        profile = {"spec": part(own, "status.cloudProfileSpec")}
    marks = rollouts(shoot)
    asleep = bool(at(shoot, "spec.hibernation.enabled"))
    made: list[Mutable] = []
    for worker in items_of(shoot, "spec.provider.workers"):
        zones = worker.get("zones") or ["a"]
        template = _template(gardenlet, key, shoot, worker, profile or {"spec": {}})
        template["hash"] = _hash(template, marks.get(worker["name"], ""))
        for number, zone in enumerate(zones):
            count = 0 if asleep else _share(worker["minimum"], number, len(zones))
            labels = {**template["serverLabels"], "topology.kubernetes.io/zone": zone}
            name = f"{space(shoot)}-{worker['name']}-z{number + 1}"
            made.append(
                {
                    "apiVersion": f"{GROUP}/v1alpha1",
                    "kind": "MachineDeployment",
                    "metadata": {
                        "name": name,
                        "namespace": space(shoot),
                        "finalizers": [FINALIZER],
                    },
                    "spec": {
                        "replicas": count,
                        "strategy": _strategy(worker, number, len(zones)),
                        "template": {**template, "zone": zone, "serverLabels": labels},
                    },
                }
            )
    return made


def _share(total: int, number: int, zones: int) -> int:
    """Spread over the zones, the first ones getting the rest."""
    return total // zones + (1 if number < total % zones else 0)


def _strategy(worker: Obj, number: int, zones: int) -> dict[str, Any]:
    kind = worker["updateStrategy"]
    if kind != ROLLING:
        how = "Manual" if kind == MANUAL else "Auto"
        return {"type": "InPlaceUpdate", "orchestration": how}
    made: dict[str, Any] = {"type": "RollingUpdate"}
    for name in ("maxSurge", "maxUnavailable"):
        made[name] = _share(_count(worker.get(name, 0), worker["maximum"]), number, zones)
    if not made["maxSurge"] and not made["maxUnavailable"]:
        made["maxUnavailable"] = 1
    return made


def _count(given: int | str, total: int) -> int:
    if isinstance(given, str) and given.endswith("%"):
        return max(total * int(given[:-1]) // 100, 1)
    return int(given)


def _template(
    gardenlet: "Gardenlet", key: Key, shoot: Obj, worker: Obj, profile: Obj
) -> dict[str, Any]:
    config: Obj = part(profile, "spec.providerConfig")
    types: list[Obj] = items_of(config, "machineTypes")
    kind, image = worker["machine"]["type"], worker["machine"]["image"]
    labels = [part(one, "serverLabels") for one in types if one["name"] == kind]
    settings: Obj = part(worker, "machineControllerManager")
    policy = at(shoot, "spec.provider.controlPlaneConfig.nodeNamePolicy")
    return {
        "shoot": key.name,
        "pool": worker["name"],
        "region": shoot["spec"]["region"],
        "type": kind,
        "image": f"{image['name']}:{image['version']}",
        "kubernetes": version_of(dict(worker), dict(shoot)),
        "claims": _secret(gardenlet, shoot).get("namespace", "default"),
        "serverLabels": dict(labels[0]) if labels else {},
        "labels": dict(part(worker, "labels")),
        "taints": list(items_of(worker, "taints")),
        "nodeNamePolicy": policy or "ServerClaimName",
        "drainTimeout": seconds(settings.get("machineDrainTimeout", ""), 7200.0),
        "creationTimeout": seconds(settings.get("machineCreationTimeout", ""), 1200.0),
        "healthTimeout": seconds(settings.get("machineHealthTimeout", ""), 600.0),
        "disableHealthTimeout": bool(settings.get("disableHealthTimeout")),
    }


def _hash(template: Obj, mark: str) -> str:
    minor = ".".join(str(part) for part in numbers(template["kubernetes"])[:2])
    text = f"{template['type']} {template['image']} {minor} {mark}"
    return hashlib.blake2b(text.encode(), digest_size=5).hexdigest()


def rollouts(shoot: Obj) -> dict[str, str]:
    """`pool=mark,pool=mark`."""
    text = notes_of(shoot).get(ROLLOUT, "")
    return dict(part.split("=", 1) for part in text.split(",") if part)


def roll(gardenlet: "Gardenlet", key: Key, pools: list[str], mark: str) -> None:
    """Has these pools replaced with the next reconcile."""

    def change(live: Mutable) -> None:
        marks = {**rollouts(live), **dict.fromkeys(pools, mark)}
        notes = live["metadata"].setdefault("annotations", {})
        notes[ROLLOUT] = ",".join(f"{pool}={marks[pool]}" for pool in sorted(marks))

    gardenlet.cluster.edit(SHOOT, key.name, key.namespace, change, manager=gardenlet.name)


def ready(gardenlet: "Gardenlet", shoot: Obj) -> bool:
    """All machines run, and, except in pools updated by hand, all are new."""
    for live in gardenlet.seed.list(DEPLOYMENT, space(shoot)):
        spec, status = live["spec"], part(live, "status")
        if "deletionTimestamp" in live["metadata"]:
            return False
        if status.get("observedGeneration") != live["metadata"]["generation"]:
            return False
        by_hand = spec["strategy"].get("orchestration") == "Manual"
        updated = status.get("readyReplicas" if by_hand else "updatedReplicas", 0)
        if updated < spec["replicas"] or status.get("replicas", 0) != spec["replicas"]:
            return False
    return True


def unbound(gardenlet: "Gardenlet", shoot: Obj) -> float:
    """For how many seconds the machine that waits longest for a server has waited."""
    metal = gardenlet.world.clusters.get(f"metal-{gardenlet.region}")
    longest = 0.0
    for machine in gardenlet.seed.list(MACHINE, space(shoot)):
        if phase(machine) != "Pending" or metal is None:
            continue
        claim = metal.get(CLAIM, machine["metadata"]["name"], machine["spec"]["claims"])
        if claim is not None and part(claim, "status").get("phase") == "Unbound":
            waited = age(gardenlet.world, claim["metadata"]["creationTimestamp"])
            longest = max(longest, waited)
    return longest


def not_ready(there: Cluster, shoot: Obj) -> tuple[str, str]:
    """What EveryNodeReady has against the nodes, as reason and words; empty if all are well. A
    pool must have its minimum of nodes, and each of them must be Ready."""
    nodes = there.list(NODE)
    asleep = bool(at(shoot, "spec.hibernation.enabled"))
    for pool in () if asleep else items_of(shoot, "spec.provider.workers"):
        name, minimum = pool["name"], int(pool["minimum"])
        have = sum(1 for node in nodes if labels_of(node).get(POOL) == name)
        if have < minimum:
            said = f'Not enough worker nodes registered in worker pool "{name}" to meet minimum '
            return "MissingNodes", f"{said}desired machine count. ({have}/{minimum})."
    bad = [node["metadata"]["name"] for node in nodes if ready_of(node).get("status") != "True"]
    if bad:
        return "NodesNotReady", f'Node "{bad[0]}" in worker pool is unhealthy: KubeletNotReady'
    return "", ""


def pending(gardenlet: "Gardenlet", key: Key, shoot: Obj) -> None:
    """Which pools have an update in place under way."""
    found: dict[str, set[str]] = {"Manual": set(), "Auto": set()}
    for live in gardenlet.seed.list(DEPLOYMENT, space(shoot)):
        how = live["spec"]["strategy"].get("orchestration")
        template = live["spec"]["template"]
        machines = gardenlet.seed.list(MACHINE, space(shoot))
        behind = [
            one
            for one in machines
            if one["metadata"]["name"].startswith(f"{live['metadata']['name']}-")
            and one["spec"]["hash"] != template["hash"]
        ]
        if how and behind:
            found[how].add(template["pool"])
    updates: dict[str, list[str]] = {}
    if found["Manual"]:
        updates["manualInPlaceUpdate"] = sorted(found["Manual"])
    if found["Auto"]:
        updates["autoInPlaceUpdate"] = sorted(found["Auto"])
    wanted = {"pendingWorkerUpdates": updates} if updates else {}
    if part(shoot, "status.inPlaceUpdates") != wanted:
        gardenlet.status(key, {"inPlaceUpdates": wanted})
