"""
gardenlet: brings Shoots up, keeps them, rolls their workers, rotates their credentials, ends them.

An operation is a list of steps with the descriptions and the progress that the real one shows;
the one that waits for machines takes as long as the metal does, which makes a cluster on bare
metal a matter of 15 to 40 minutes. Conditions have a fourth status, Progressing, before they turn
False. Without a free server the operation is in Error with ERR_INFRA_RESOURCES_DEPLETED, and
Failed after twelve hours; only `retry` or another spec helps then. `shoot.gardener.cloud/ignore`
stops it. Workers are `gardener_workers`, kubeconfigs `gardener_access`, whom a server believes
`gardener_trust`, the rotation of credentials `gardener_rotation`.

Left out: a hibernated cluster's API server still answers; no periodic reconcile; no maintenance
by itself, not even where automatic updates are on (fleetd always turns them off).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from fleetd.sim.controllers import gardener_roles as roles
from fleetd.sim.controllers import gardener_rotation as rotation
from fleetd.sim.controllers import gardener_trust as trust
from fleetd.sim.controllers import gardener_workers as workers
from fleetd.sim.controllers import workloads
from fleetd.sim.controllers.base import Controller, Key, Obj, age, key_of, merge_conditions, stamp
from fleetd.sim.controllers.gardenadmission import CORE, PROJECT, SEED, SHOOT
from fleetd.sim.controllers.gardenadmission_shoot import OPERATION
from fleetd.sim.controllers.machines import DEPLOYMENT, MachineControllerManager
from fleetd.sim.controllers.machines_nodes import NODE
from fleetd.sim.controllers.metal_parts import items_of, labels_of, notes_of, part
from fleetd.sim.kube.cluster import Change, Cluster
from fleetd.sim.kube.store import DELETED
from fleetd.sim.kube.values import Obj as Mutable
from fleetd.sim.kube.values import at
from fleetd.sim.world import World

FINALIZER = "gardener"
GIVE_UP = 12 * 3600.0
DEPLETED = 900.0
"""Seconds a machine waits for a server until the Shoot says so."""
DAMPING = 300.0
"""Seconds of Progressing before a condition turns False."""
CARE = 60.0
STATUS_LABEL = "shoot.gardener.cloud/status"


class Step(NamedTuple):
    progress: int
    description: str
    low: float
    high: float
    """Seconds it takes, between these."""


INFRASTRUCTURE = "Waiting until shoot infrastructure has been reconciled"
ADDRESS = "Deploying external domain DNS record"
SERVER_UP = "Waiting until Kubernetes API server rolled out"
MACHINES = "Waiting until shoot worker nodes have been created"
CREATE = (
    Step(3, "Initializing", 2, 8),
    Step(9, INFRASTRUCTURE, 20, 60),
    Step(17, "Waiting until main and event etcd report readiness", 40, 100),
    Step(26, ADDRESS, 10, 30),
    Step(34, "Deploying Kubernetes API server", 10, 30),
    Step(42, SERVER_UP, 40, 120),
    Step(51, "Deploying gardener-resource-manager", 15, 45),
    Step(63, "Reconciling worker configuration", 10, 30),
    Step(72, MACHINES, 0, 0),
    Step(91, "Waiting until system components are ready", 30, 90),
)
RECONCILE = (
    Step(10, INFRASTRUCTURE, 5, 15),
    Step(34, "Deploying Kubernetes API server", 10, 30),
    Step(42, SERVER_UP, 20, 60),
    Step(72, MACHINES, 0, 0),
    Step(91, "Waiting until system components are ready", 10, 30),
)
DELETE = (
    Step(12, "Cleaning shoot namespaces", 20, 60),
    Step(40, "Destroying shoot workers", 0, 0),
    Step(71, "Destroying shoot infrastructure", 20, 60),
    Step(88, "Destroying internal domain DNS record", 10, 30),
)
CONDITIONS = (
    "APIServerAvailable",
    "ControlPlaneHealthy",
    "ObservabilityComponentsHealthy",
    "EveryNodeReady",
    "SystemComponentsHealthy",
)
_FLOWS = {"Create": CREATE, "Reconcile": RECONCILE, "Delete": DELETE}


class Gardenlet(Controller):
    name = "gardenlet"
    watches = (SHOOT,)

    def __init__(self, world: World, cluster: Cluster) -> None:
        super().__init__(world, cluster)
        self.region = cluster.name.removeprefix("garden-")

    @property
    def seed(self) -> Cluster:
        return self.world.clusters[f"seed-{self.region}"]

    def start(self) -> None:
        super().start()
        self.seed.subscribe(self._seed_changed)
        self.world.listeners.append(self._mishap)

    def _mishap(self, mishap: tuple[str, str, str]) -> None:
        if mishap[0] == "shoot" and not self._stopped:
            for shoot in self.cluster.list(SHOOT):
                if shoot["metadata"]["name"] == mishap[1]:
                    self.wake(key_of(SHOOT, shoot))

    def _seed_changed(self, change: Change) -> None:
        if change.gk == DEPLOYMENT and not self._stopped:
            for shoot in self.cluster.list(SHOOT):
                if workers.space(shoot) == change.object["metadata"]["namespace"]:
                    self.wake(key_of(SHOOT, shoot))

    def _node_changed(self, key: Key, change: Change) -> None:
        if change.gk == NODE and not self._stopped:
            self.wake(key, 10.0)

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk == SHOOT and change.type != DELETED:
            old, new = change.old, change.object
            told = old is not None and old.get("status") != new.get("status")
            asked = old is None or old["metadata"].get("generation") != new["metadata"].get(
                "generation"
            )
            noted = old is not None and old["metadata"].get("annotations") != new["metadata"].get(
                "annotations"
            )
            if asked or noted or not told:
                yield key_of(SHOOT, new)

    def reconcile(self, key: Key) -> float | None:
        shoot = self.get(key)
        if shoot is None:
            return None
        if notes_of(shoot).get("shoot.gardener.cloud/ignore") == "true":
            return None
        if ("shoot", key.name, "stuck") in self.world.mishaps or self._asleep(key, shoot):
            return CARE
        if not shoot["spec"].get("seedName"):
            return self._schedule(key, shoot)
        if FINALIZER not in (items_of(shoot, "metadata.finalizers")):
            if "deletionTimestamp" in shoot["metadata"]:
                return None
            self._hold(key)
            return 1.0
        status = part(shoot, "status")
        last = part(status, "lastOperation")
        leaving = "deletionTimestamp" in shoot["metadata"]
        new = status.get("observedGeneration") != shoot["metadata"]["generation"]
        if new or (leaving and last.get("type") != "Delete"):
            self._begin(key, shoot, leaving=leaving)
            return 1.0
        if last.get("state") in ("Processing", "Error", "Pending"):
            return self._advance(key, shoot, status, last)
        if leaving and last.get("state") == "Succeeded":
            return None
        return CARE if self._care(key, shoot) else None

    # The beginning

    def _schedule(self, key: Key, shoot: Obj) -> float | None:
        if age(self.world, shoot["metadata"]["creationTimestamp"]) < 2.0:
            return self.span(2.0, 8.0, key, "schedule")
        for seed in self.cluster.list(SEED):
            ready = [
                one
                for one in items_of(seed, "status.conditions")
                if one["type"] == "GardenletReady" and one["status"] == "True"
            ]
            if ready:
                name = seed["metadata"]["name"]

                def bind(live: Mutable, name: str = name) -> None:
                    live["spec"]["seedName"] = name

                self.cluster.edit(
                    SHOOT, key.name, key.namespace, bind, manager="gardener-scheduler"
                )
                return 1.0
        self.event(shoot, "SchedulingFailed", "no matching seed candidate found", warning=True)
        return CARE

    def _hold(self, key: Key) -> None:
        def add(live: Mutable) -> None:
            live["metadata"].setdefault("finalizers", []).append(FINALIZER)

        self.cluster.edit(SHOOT, key.name, key.namespace, add, manager=self.name)

    def _begin(self, key: Key, shoot: Obj, *, leaving: bool) -> None:
        status = part(shoot, "status")
        last = part(status, "lastOperation")
        created = last and not (last.get("type") == "Create" and last.get("state") != "Succeeded")
        kind = "Delete" if leaving else "Reconcile" if created else "Create"
        project = self._project(key.namespace)
        now = stamp(self.world)
        made: dict[str, Any] = {
            "gardener": {"id": "gardenlet", "name": "gardenlet-0", "version": "v1.138.0"},
            "hibernated": bool(status.get("hibernated", False)),
            "technicalID": status.get("technicalID") or f"shoot--{project}--{key.name}",
            "uid": status.get("uid") or self.world.uid(f"shoot/{key.name}"),
            "seedName": shoot["spec"]["seedName"],
            "observedGeneration": shoot["metadata"]["generation"],
            "retryCycleStartTime": now,
            "lastErrors": [],
            "lastOperation": _operation(kind, "Processing", 0, "Initializing", now),
        }
        if not status.get("conditions"):
            made["conditions"] = [
                self.condition(one, "Unknown", "ConditionInitialized", "not checked yet")
                for one in CONDITIONS
            ]
        self.status(key, made)
        asked = notes_of(shoot).get(OPERATION, "")
        rotation.begin(self, key, asked)
        self._label(key, "progressing")

    def _project(self, namespace: str) -> str:
        for project in self.cluster.list(PROJECT):
            if at(project, "spec.namespace") == namespace:
                return str(project["metadata"]["name"])
        return namespace.removeprefix("garden-")

    # Steps

    def _advance(self, key: Key, shoot: Obj, status: Obj, last: Obj) -> float | None:
        flow = _FLOWS[last["type"]]
        at_step = next((n for n, one in enumerate(flow) if one.progress == last["progress"]), None)
        if at_step is None:
            self._show(key, last["type"], flow[0])
            return self._took(key, last["type"], flow[0])
        step = flow[at_step]
        waiting = step.low == 0 and step.high == 0
        if waiting:
            wait = self._machines(key, shoot, status, last)
            if wait is not None:
                return wait
        else:
            left = self._took(key, last["type"], step) - age(self.world, last["lastUpdateTime"])
            if left > 0:
                return left
        self._effect(key, shoot, step)
        if at_step + 1 < len(flow):
            self._show(key, last["type"], flow[at_step + 1])
            return self._took(key, last["type"], flow[at_step + 1])
        return self._finish(key, last["type"])

    def _took(self, key: Key, kind: str, step: Step) -> float:
        shoot = self.get(key) or {"metadata": {}}
        number = str(shoot["metadata"].get("generation", 0))
        return max(self.span(step.low, step.high, key, kind, step.description, number), 1.0)

    def _show(self, key: Key, kind: str, step: Step) -> None:
        now = stamp(self.world)
        operation = _operation(kind, "Processing", step.progress, step.description, now)
        self.status(key, {"lastOperation": operation, "lastErrors": []})

    def _effect(self, key: Key, shoot: Obj, step: Step) -> None:
        """What a finished step leaves behind."""
        match step.description:
            case _ if step.description == ADDRESS:
                url = self.world.address(key.name)
                addresses = [{"name": "external", "url": url}, {"name": "internal", "url": url}]
                self.status(key, {"advertisedAddresses": addresses})
            case _ if step.description == SERVER_UP:
                self._server(key, shoot)
            case "Cleaning shoot namespaces":
                workers.remove(self, shoot)
            case _:
                pass

    def _server(self, key: Key, shoot: Obj) -> None:
        version = f"v{shoot['spec']['kubernetes']['version']}"
        there = self.world.clusters.get(key.name)
        if there is None:
            there = self.world.add_cluster(key.name)
            roles.install(there)
            workloads.run(self.world, there)
            mcm = self.world.controllers.get((self.seed.name, MachineControllerManager.name))
            if isinstance(mcm, MachineControllerManager):
                mcm.adopt(there)
            there.subscribe(lambda change: self._node_changed(key, change))
            self.world.tell("API server up", key.name)
        there.version = version
        trust.set_up(self.world, self.cluster, shoot, there)
        for body in (
            {"kind": "ConfigMap", "apiVersion": "v1", "data": {"ca.crt": "simulated"}},
            {"kind": "InternalSecret", "apiVersion": f"{CORE}/v1beta1", "type": "Opaque"},
        ):
            suffix = "ca-cluster" if body["kind"] == "ConfigMap" else "ca-client"
            metadata = {"name": f"{key.name}.{suffix}", "namespace": key.namespace}
            self.cluster.apply({**body, "metadata": metadata}, manager=self.name)
        self.status(
            key,
            {
                "conditions": [
                    self._condition("APIServerAvailable", "True", "HealthzRequestSucceeded")
                ]
            },
        )

    def _condition(self, kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
        made = self.condition(kind, status, reason, message or "All checks passed.")
        return {**made, "lastUpdateTime": made["lastTransitionTime"], "codes": []}

    def _machines(self, key: Key, shoot: Obj, status: Obj, last: Obj) -> float | None:
        """None: all machines are there, or gone. They are made at this step."""
        if last["type"] == "Delete":
            left = self.seed.list(DEPLOYMENT, workers.space(shoot))
            return CARE if left else None
        refused = workers.refused(self, shoot)
        if refused:
            return self._error(key, status, last, "ERR_INFRA_UNAUTHENTICATED", refused)
        workers.ensure(self, key, shoot)
        if workers.ready(self, shoot):
            return None
        waiting = workers.unbound(self, shoot)
        if waiting > DEPLETED or (waiting and last["state"] == "Error"):
            said = (
                'task "Waiting until shoot worker nodes have been created" failed: no server '
                "matches what a ServerClaim asks for"
            )
            return self._error(key, status, last, "ERR_INFRA_RESOURCES_DEPLETED", said)
        if last["state"] == "Error":
            self._show(key, last["type"], next(s for s in _FLOWS[last["type"]] if not s.high))
        return CARE

    def _error(self, key: Key, status: Obj, last: Obj, code: str, said: str) -> float:
        started = status.get("retryCycleStartTime") or last["lastUpdateTime"]
        state = "Failed" if age(self.world, started) > GIVE_UP else "Error"
        if last["state"] != state:
            now = stamp(self.world)
            operation = _operation(last["type"], state, last["progress"], said, now)
            fault = {"description": said, "codes": [code], "lastUpdateTime": now}
            self.status(key, {"lastOperation": operation, "lastErrors": [fault]})
            self._label(key, "unhealthy")
        return CARE

    def _finish(self, key: Key, kind: str) -> float | None:
        now = stamp(self.world)
        if kind == "Delete":
            said = "Shoot cluster has been successfully deleted."
            self.status(key, {"lastOperation": _operation(kind, "Succeeded", 100, said, now)})
            self._gone(key)
            return None
        shoot = self.get(key)
        said = "Shoot cluster has been successfully reconciled."
        asleep = bool(shoot and at(shoot, "spec.hibernation.enabled"))
        done: dict[str, Any] = {
            "lastOperation": _operation(kind, "Succeeded", 100, said, now),
            "lastErrors": [],
            "hibernated": asleep,
            "constraints": [
                self._condition("HibernationPossible", "True", "NoProblematicWebhooks"),
                self._condition(
                    "MaintenancePreconditionsSatisfied", "True", "NoProblematicWebhooks"
                ),
            ],
        }
        self.status(key, done)
        rotation.finish(self, key)
        if shoot is not None:
            self._care(key, shoot)
        self._label(key, "healthy")
        self.world.tell("created" if kind == "Create" else "reconciled", f"shoot {key.name}")
        return CARE

    def _gone(self, key: Key) -> None:
        self.world.remove_cluster(key.name)
        self.cluster.delete(("", "ConfigMap"), f"{key.name}.ca-cluster", key.namespace)
        self.cluster.delete((CORE, "InternalSecret"), f"{key.name}.ca-client", key.namespace)
        self.cluster.remove_finalizer(SHOOT, key.name, key.namespace, FINALIZER)
        self.world.tell("deleted", f"shoot {key.name}")

    # Care

    def _asleep(self, key: Key, shoot: Obj) -> bool:
        """Hibernated by somebody, for as long as the mishap lasts. Its nodes are let be."""
        asleep = ("shoot", key.name, "hibernated") in self.world.mishaps
        wanted = asleep or bool(at(shoot, "spec.hibernation.enabled"))
        if bool(at(shoot, "status.hibernated")) != wanted and key.name in self.world.clusters:
            self.status(key, {"hibernated": wanted})
        return asleep

    def _care(self, key: Key, shoot: Obj) -> bool:
        """The conditions, as they are now. True: something is amiss, look again soon."""
        workers.pending(self, key, shoot)
        there = self.world.clusters.get(key.name)
        found: dict[str, tuple[str, str]] = dict.fromkeys(CONDITIONS, ("", ""))
        if there is None:
            said = "API server /healthz endpoint check failed."
            found["APIServerAvailable"] = ("HealthzRequestFailed", said)
        else:
            found["EveryNodeReady"] = workers.not_ready(there, shoot)
        flapping = ("shoot", key.name, "flapping") in self.world.mishaps
        if flapping and int(self.world.elapsed() / CARE) % 2:
            said = "Node is not healthy: kubelet stopped posting node status."
            found["EveryNodeReady"] = ("NodeUnhealthy", said)
        old = {one["type"]: one for one in items_of(shoot, "status.conditions")}
        made = [self._judged(kind, fault, old.get(kind)) for kind, fault in found.items()]
        merged = merge_conditions(old.values(), made)
        if [_gist(one) for one in merged] != [_gist(one) for one in old.values()]:
            self.status(key, {"conditions": made})
            self._label(key, "unhealthy" if any(map(any, found.values())) else "healthy")
        return flapping or any(map(any, found.values()))

    def _judged(self, kind: str, fault: tuple[str, str], old: Obj | None) -> dict[str, Any]:
        if not any(fault):
            return self._condition(kind, "True", f"{kind}Succeeded")
        before = str((old or {}).get("status", ""))
        if before == "False" or (
            before == "Progressing"
            and age(self.world, str((old or {})["lastTransitionTime"])) >= DAMPING
        ):
            return self._condition(kind, "False", *fault)
        return self._condition(kind, "Progressing", *fault)

    def _label(self, key: Key, state: str) -> None:
        shoot = self.get(key)
        if shoot is None or labels_of(shoot).get(STATUS_LABEL) == state:
            return

        def mark(live: Mutable) -> None:
            live["metadata"].setdefault("labels", {})[STATUS_LABEL] = state

        self.cluster.edit(SHOOT, key.name, key.namespace, mark, manager=self.name)


def _operation(kind: str, state: str, progress: int, said: str, now: str) -> dict[str, Any]:
    return {
        "type": kind,
        "state": state,
        "progress": progress,
        "description": said,
        "lastUpdateTime": now,
    }


def _gist(condition: Obj) -> tuple[str, str, str]:
    return condition["type"], condition["status"], str(condition.get("message"))


class ProjectController(Controller):
    """gardener-controller-manager, as far as Projects go: Pending, a few seconds later Ready."""

    name = "gardener-controller-manager"
    watches = (PROJECT,)

    def reconcile(self, key: Key) -> float | None:
        project = self.get(key)
        if project is None or "deletionTimestamp" in project["metadata"]:
            return None
        phase = at(project, "status.phase")
        generation = project["metadata"]["generation"]
        if phase is None:
            self.status(key, {"phase": "Pending", "observedGeneration": generation})
            return self.span(1.0, 6.0, key, "ready")
        space = at(project, "spec.namespace") or ""
        there = self.cluster.get(("", "Namespace"), space)
        phase = "Ready" if there is not None else "Failed"
        self.status(key, {"phase": phase, "observedGeneration": generation})
        return None
