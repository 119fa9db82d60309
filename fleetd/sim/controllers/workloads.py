"""
Deployments, StatefulSets and DaemonSets: what the controller-manager, the scheduler and the
kubelets of a cluster make of them together.

Pods come up a while after they are wanted, if the cluster has a Ready node and the image can be
pulled. The registry of this world has every tag but `missing`: such pods stay in ImagePullBackOff,
and after ten minutes the Deployment says ProgressDeadlineExceeded. Pods are not objects here,
except those that fail, because their number is what people look for. What runs inside: a
Deployment labelled with the name of a chart runs that chart's controllers while it is available.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fleetd.sim import charts
from fleetd.sim.controllers.base import Controller, Key, Obj, age, key_of, stamp
from fleetd.sim.controllers.workloads_look import conditions, meant, part, usable
from fleetd.sim.kube.cluster import GK, Change, Cluster
from fleetd.sim.kube.store import DELETED
from fleetd.sim.world import World

DEPLOYMENT: GK = ("apps", "Deployment")
STATEFULSET: GK = ("apps", "StatefulSet")
DAEMONSET: GK = ("apps", "DaemonSet")
NODE: GK = ("", "Node")
POD: GK = ("", "Pod")

PROGRAM = "app.kubernetes.io/name"
"""Label of a workload that says what runs in it: the name of a chart."""
MISSING = "missing"
DEADLINE = 600.0
"""Seconds; `progressDeadlineSeconds` of a Deployment that does not say."""
ORDINARY = (4.0, 15.0)
"""Seconds until the pods of something that is no chart are ready."""


class Workloads(Controller):
    name = "kube-controller-manager"
    watches = (DEPLOYMENT, STATEFULSET, DAEMONSET)

    def start(self) -> None:
        super().start()
        self.world.listeners.append(self._heard)

    def _heard(self, mishap: tuple[str, str, str]) -> None:
        """An image went bad, or good again: its pods are started anew."""
        what, whom, _ = mishap
        if what != "image" or self._stopped:
            return
        for gk in (DEPLOYMENT, DAEMONSET):
            for obj in self.cluster.list(gk):
                names = (obj["metadata"]["name"], _label(obj))
                if whom in [f"{self.cluster.name}/{name}" for name in names]:
                    self.status(key_of(gk, obj), {"observedGeneration": 0})
                    self.wake(key_of(gk, obj))

    def keys(self, change: Change) -> Iterable[Key]:
        if meant(change):
            yield from super().keys(change)
        if change.type == DELETED and change.gk in (DEPLOYMENT, DAEMONSET):
            self._stop_program(change.object)
        if change.gk == NODE and usable(change.old) != usable(_present(change)):
            for gk in self.watches:
                for obj in self.cluster.list(gk):
                    yield key_of(gk, obj)

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return None
        match key.gk:
            case ("apps", "Deployment"):
                return self._deployment(key, obj)
            case ("apps", "StatefulSet"):
                return self._statefulset(key, obj)
            case _:
                return self._daemonset(key, obj)

    # Deployments.

    def _deployment(self, key: Key, obj: Obj) -> float | None:
        wanted = int(obj["spec"].get("replicas", 1))
        status = part(obj, "status")
        generation = obj["metadata"].get("generation", 1)
        current = status.get("observedGeneration") == generation
        counts = (status.get("readyReplicas"), status.get("updatedReplicas"))
        # Old pods that serve beside a new one that does not start are as many as wanted, too.
        whole = counts == (wanted, wanted) and not status.get("unavailableReplicas")
        if current and whole and self._nodes():
            self._start_program(key, obj)
            return None
        if not current:
            self.status(key, self._rolling(obj, wanted, status))
            return self._seconds(key, obj)
        if not self._nodes():
            self.status(key, self._nowhere(obj, wanted))
            self._stop_program(obj)
            return None
        if not self._pullable(obj):
            return self._stuck(key, obj, wanted)
        self.status(key, self._complete(obj, wanted))
        self._start_program(key, obj)
        return None

    def _rolling(self, obj: Obj, wanted: int, old: Obj) -> dict[str, Any]:
        """As a rollout starts: the old pods serve until the new ones do."""
        ready = min(int(old.get("readyReplicas", 0)), wanted)
        serves = ready > 0 or wanted == 0
        return {
            "observedGeneration": obj["metadata"].get("generation", 1),
            "replicas": wanted,
            "updatedReplicas": 0 if wanted else wanted,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": wanted - ready,
            "conditions": [
                self._available(serves=serves),
                self._progressing(obj, "True", "ReplicaSetUpdated", "is progressing."),
            ],
        }

    def _complete(self, obj: Obj, wanted: int) -> dict[str, Any]:
        return {
            "observedGeneration": obj["metadata"].get("generation", 1),
            "replicas": wanted,
            "updatedReplicas": wanted,
            "readyReplicas": wanted,
            "availableReplicas": wanted,
            "unavailableReplicas": 0,
            "conditions": [
                self._available(serves=True),
                self._progressing(
                    obj, "True", "NewReplicaSetAvailable", "has successfully progressed."
                ),
            ],
        }

    def _nowhere(self, obj: Obj, wanted: int) -> dict[str, Any]:
        """No node: what ran is gone with it, and nothing can start."""
        return {
            "observedGeneration": obj["metadata"].get("generation", 1),
            "replicas": wanted,
            "readyReplicas": 0,
            "availableReplicas": 0,
            "unavailableReplicas": wanted,
            "conditions": [self._available(serves=wanted == 0)],
        }

    def _stuck(self, key: Key, obj: Obj, wanted: int) -> float | None:
        """The image cannot be pulled: one new pod fails, the old ones serve on."""
        limit = float(obj["spec"].get("progressDeadlineSeconds", DEADLINE))
        waited = age(self.world, _updated(obj) or stamp(self.world))
        over = waited >= limit
        self._fail_pod(obj)
        update: dict[str, Any] = {"updatedReplicas": min(wanted, 1), "unavailableReplicas": 1}
        if over:
            said = self._progressing(obj, "False", "ProgressDeadlineExceeded", "has timed out.")
            update["conditions"] = [said]
        self.status(key, update)
        return None if over else limit - waited + 1

    def _available(self, *, serves: bool) -> dict[str, Any]:
        if serves:
            return self.condition(
                "Available",
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.",
            )
        return self.condition(
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        )

    def _progressing(self, obj: Obj, status: str, reason: str, said: str) -> dict[str, Any]:
        name = obj["metadata"]["name"]
        made = self.condition("Progressing", status, reason, f'ReplicaSet "{name}-1" {said}')
        return {**made, "lastUpdateTime": stamp(self.world)}

    # The others.

    def _statefulset(self, key: Key, obj: Obj) -> float | None:
        wanted = int(obj["spec"].get("replicas", 1))
        status = part(obj, "status")
        generation = obj["metadata"].get("generation", 1)
        ready = int(status.get("readyReplicas", 0))
        if status.get("observedGeneration") != generation:
            self.status(
                key,
                {
                    "observedGeneration": generation,
                    "replicas": wanted,
                    "readyReplicas": min(ready, wanted),
                    "updatedReplicas": 0,
                    "updateRevision": f"{key.name}-{generation}",
                },
            )
            return self._seconds(key, obj)
        can = self._nodes() > 0 and self._pullable(obj)
        reached = min(ready + 1, wanted) if can else ready  # one after the other
        self.status(
            key,
            {
                "replicas": wanted,
                "readyReplicas": reached,
                "availableReplicas": reached,
                "updatedReplicas": reached,
                "currentReplicas": reached,
            },
        )
        return self._seconds(key, obj) if can and reached < wanted else None

    def _daemonset(self, key: Key, obj: Obj) -> float | None:
        wanted = self._nodes(obj["spec"].get("template", {}).get("spec", {}).get("nodeSelector"))
        status = part(obj, "status")
        generation = obj["metadata"].get("generation", 1)
        planned = status.get("desiredNumberScheduled")
        fresh = status.get("observedGeneration") != generation
        if fresh or planned != wanted:
            ready = min(int(status.get("numberReady", 0)), wanted)
            self.status(
                key,
                {
                    "observedGeneration": generation,
                    "desiredNumberScheduled": wanted,
                    "currentNumberScheduled": wanted,
                    "updatedNumberScheduled": 0 if fresh else min(ready, wanted),
                    "numberReady": ready,
                    "numberAvailable": ready,
                    "numberMisscheduled": 0,
                },
            )
            return self._seconds(key, obj)
        if not self._pullable(obj):
            self._fail_pod(obj)
            self.status(key, {"updatedNumberScheduled": min(1, wanted)})
            return None
        self._clear_pods(obj)
        done = {"updatedNumberScheduled": wanted, "numberReady": wanted, "numberAvailable": wanted}
        self.status(key, done)
        self._start_program(key, obj)
        return None

    # Pods that fail.

    def _fail_pod(self, obj: Obj) -> None:
        metadata = obj["metadata"]
        name = self._failing(obj)
        if self.cluster.get(POD, name, metadata["namespace"]) is not None:
            return
        image = _images(obj)[0]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": dict(part(metadata, "labels")),
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": obj["kind"],
                        "name": metadata["name"],
                        "uid": metadata["uid"],
                        "controller": True,
                    }
                ],
            },
            "spec": {"containers": [{"name": "main", "image": image}]},
        }
        self.cluster.create(pod, manager=self.name)
        waiting = {
            "reason": "ImagePullBackOff",
            "message": f'Back-off pulling image "{image}"',
        }
        self.cluster.set_status(
            POD,
            name,
            metadata["namespace"],
            {
                "phase": "Pending",
                "containerStatuses": [
                    {"name": "main", "image": image, "ready": False, "state": {"waiting": waiting}}
                ],
            },
            manager="kubelet",
        )

    def _clear_pods(self, obj: Obj) -> None:
        """The one that failed; others may belong to whoever made the workload."""
        name, namespace = self._failing(obj), obj["metadata"]["namespace"]
        if self.cluster.get(POD, name, namespace) is not None:
            self.cluster.delete(POD, name, namespace)

    def _failing(self, obj: Obj) -> str:
        metadata = obj["metadata"]
        return f"{metadata['name']}-{self.world.token(self.cluster.name, metadata['uid'])[:5]}"

    # What runs inside.

    def _start_program(self, key: Key, obj: Obj) -> None:
        if key.gk == DEPLOYMENT:
            self._clear_pods(obj)
        for make in _program(obj):
            if (self.cluster.name, make.name) not in self.world.controllers:
                self.world.tell("starts", self.cluster.name, make.name)
                make(self.world, self.cluster).start()

    def _stop_program(self, obj: Obj) -> None:
        for make in _program(obj):
            running = self.world.controllers.get((self.cluster.name, make.name))
            if running is not None:
                self.world.tell("stops", self.cluster.name, make.name)
                running.stop()

    # Small things.

    def _pullable(self, obj: Obj) -> bool:
        if any(image.rpartition(":")[2] == MISSING for image in _images(obj)):
            return False
        names = (obj["metadata"]["name"], _label(obj))
        bad = (("image", f"{self.cluster.name}/{name}", "bad") for name in names)
        return not any(one in self.world.mishaps for one in bad)

    def _nodes(self, selector: Mapping[str, str] | None = None) -> int:
        return sum(1 for node in self.cluster.list(NODE, labels=selector) if usable(node))

    def _seconds(self, key: Key, obj: Obj) -> float:
        chart = charts.find(_label(obj))
        low, high = chart.seconds if chart is not None else ORDINARY
        return self.span(low, high, key, "pods", str(obj["metadata"].get("generation", 1)))


def _label(obj: Obj) -> str:
    return str(part(obj["metadata"], "labels").get(PROGRAM, ""))


def _program(obj: Obj) -> tuple[type[Controller], ...]:
    chart = charts.find(_label(obj))
    if chart is None:
        return ()
    leads = (*chart.deployments, *chart.daemonsets)[:1]
    return chart.controllers if not leads or obj["metadata"]["name"] in leads else ()


def _images(obj: Obj) -> list[str]:
    containers: list[Obj] = obj["spec"].get("template", {}).get("spec", {}).get("containers", [])
    return [str(one.get("image", "")) for one in containers] or [""]


def _present(change: Change) -> Obj | None:
    return None if change.type == DELETED else change.object


def _updated(obj: Obj) -> str:
    """When the rollout last moved."""
    found = (one for one in conditions(obj) if one["type"] == "Progressing")
    return next((str(one.get("lastUpdateTime", "")) for one in found), "")


def run(world: World, cluster: Cluster) -> None:
    """Has the workloads of a cluster looked after, from now on; twice does no harm."""
    Workloads(world, cluster).start()
