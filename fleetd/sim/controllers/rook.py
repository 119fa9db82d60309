"""
Rook: CephClusters come up in five to ten minutes, are looked at every minute, and are upgraded
daemon by daemon (pools and users are `rook_members`, Ceph itself `rook_ceph`).

Imitates cobaltcore 14.1, 18.6 and 22: phase and state, the conditions with Rook's reasons,
`status.ceph` with a fresh `lastChecked`, versions of the daemons while they differ. Monitors are
placed on hosts of different names, in zones where the spec names some; one whose host is gone is
placed anew, one whose host is silent after ten minutes. An upgrade does not begin in HEALTH_ERR.
Nothing is deleted while pools or users are left, and disks are wiped only if the cleanup policy
says so in words. External monitors count only if the spec names them and the cluster is not
stretched: otherwise Rook removes them.

One rule: where it stands is in the object. How long a stage has lasted is the heartbeat of the
condition Progressing.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fleetd.sim.chart import Chart
from fleetd.sim.controllers import rook_ceph, rook_kinds
from fleetd.sim.controllers.base import Controller, Key, Obj, age, key_of, stamp
from fleetd.sim.controllers.rook_ceph import Ceph
from fleetd.sim.controllers.rook_daemons import MON, NODE, OSD, POD, Daemons
from fleetd.sim.controllers.rook_kinds import CLUSTER
from fleetd.sim.controllers.rook_members import BlockPools, Clients
from fleetd.sim.controllers.workloads_look import conditions, meant, part, usable
from fleetd.sim.kube.cluster import Change, Cluster
from fleetd.sim.kube.store import DELETED
from fleetd.sim.kube.values import Obj as Mutable
from fleetd.sim.kube.values import at
from fleetd.sim.truth import Machine
from fleetd.sim.world import World

FINALIZER = "cephcluster.ceph.rook.io"
CHECK = 60.0
RETRY = 30.0
MON_TIMEOUT = 600.0
"""Seconds after which a silent monitor is replaced, or placing them is given up for now."""


class Stage(NamedTuple):
    message: str
    seconds: tuple[float, float]


MONS, MGRS, OSDS = "Configuring Ceph Mons", "Configuring Ceph Mgr(s)", "Configuring Ceph OSDs"
_CREATE = (
    Stage("Detecting Ceph version", (10.0, 25.0)),
    Stage(MONS, (70.0, 140.0)),
    Stage(MGRS, (20.0, 60.0)),
    Stage(OSDS, (200.0, 375.0)),
)
_UPDATE = (Stage("Detecting Ceph version", (5.0, 10.0)), Stage(MONS, (15.0, 45.0)))
_UPGRADE = (
    Stage("Detecting Ceph version", (10.0, 25.0)),
    Stage(MONS, (90.0, 240.0)),
    Stage(MGRS, (30.0, 90.0)),
    Stage(OSDS, (600.0, 1500.0)),
)


class Rook(Controller):
    name = "rook-ceph-operator"
    watches = (CLUSTER,)

    def __init__(self, world: World, cluster: Cluster) -> None:
        super().__init__(world, cluster)
        for definition in rook_kinds.DEFINITIONS:
            cluster.admit(definition.gk, rook_kinds.admit)

    def start(self) -> None:
        super().start()
        self.world.truth.listeners.append(self._power)
        self.world.listeners.append(self._heard)

    def _power(self, machine: Machine) -> None:
        if not self._stopped and (machine.osds or machine.mons):
            self._wake_all(20.0)  # as long as it takes until the others miss its heartbeats

    def _heard(self, mishap: tuple[str, str, str]) -> None:
        if not self._stopped and mishap[:2] == ("ceph", self.cluster.name):
            self._wake_all(5.0)

    def _wake_all(self, after: float) -> None:
        for obj in self.cluster.list(CLUSTER):
            self.wake(key_of(CLUSTER, obj), after)

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk == CLUSTER and meant(change):
            yield key_of(CLUSTER, change.object)
        if change.gk == POD and change.type == DELETED:
            self._evicted(change.object)
        if change.gk == NODE and _moved(change):
            yield from (key_of(CLUSTER, one) for one in self.cluster.list(CLUSTER))

    def _evicted(self, pod: Obj) -> None:
        labels = part(pod["metadata"], "labels")
        if labels.get("app") not in (OSD, MON):
            return
        for obj in self.cluster.list(CLUSTER, pod["metadata"]["namespace"]):
            ceph = rook_ceph.find(self.world, self.cluster.name)
            if ceph is not None and "deletionTimestamp" not in obj["metadata"]:
                self._daemons(ceph, obj).evicted(labels)
                self.wake(key_of(CLUSTER, obj))

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None:
            return None
        if "deletionTimestamp" in obj["metadata"]:
            return self._delete(key, obj)
        self._finalizer(key, obj)
        ceph = rook_ceph.begin(self.world, self.cluster.name)
        ceph.degraded = ("ceph", self.cluster.name, "degraded") in self.world.mishaps
        self._look(ceph, obj)
        stages = _stages(obj)
        left = self._stage(key, obj, ceph, stages) if stages else None
        self._check(key, ceph)
        due = [CHECK if left is None else min(left, CHECK), ceph.next_change() or CHECK]
        return max(min(due), 1.0)

    # Daemons.

    def _daemons(self, ceph: Ceph, obj: Obj) -> Daemons:
        metadata = obj["metadata"]
        return Daemons(self.cluster, ceph, metadata["namespace"], metadata["name"])

    def _look(self, ceph: Ceph, obj: Obj) -> None:
        """What came and went since the last look."""
        if not ceph.mons:
            return
        daemons = self._daemons(ceph, obj)
        daemons.sync()
        ceph.update()
        known: list[str] = at(obj, "spec.mon.externalMonIDs") or []
        if at(obj, "spec.mon.stretchCluster"):
            known = []
        ceph.external = {mon: up for mon, up in ceph.external.items() if mon in known}
        if ceph.quorum:
            self._failover(ceph, obj)
            if ceph.osds:
                for machine in ceph.usable():
                    ceph.place_osds(machine)
        daemons.sync()
        daemons.publish(str(at(obj, "spec.cephVersion.image")))

    def _failover(self, ceph: Ceph, obj: Obj) -> None:
        """A monitor without a host, or with a silent one, is replaced under a new name."""
        for mon in list(ceph.mons):
            if ceph.silent(mon) < MON_TIMEOUT and not ceph.lost(mon):
                continue
            spare = self._spares(ceph, obj)
            if spare:
                ceph.drop_mon(mon)
                ceph.place_mon(_next_mon(ceph), spare[0])
        for _ in range(int(at(obj, "spec.mon.count") or 3) - len(ceph.mons)):
            spare = self._spares(ceph, obj)
            if spare:
                ceph.place_mon(_next_mon(ceph), spare[0])

    def _spares(self, ceph: Ceph, obj: Obj) -> list[Machine]:
        """Hosts for one more monitor, best first: of the zone that has the fewest."""
        zones = [str(one["name"]) for one in at(obj, "spec.mon.zones") or ()]
        many = bool(at(obj, "spec.mon.allowMultiplePerNode"))
        taken = [ceph.machine(where) for mon, where in ceph.mons.items() if not ceph.lost(mon)]
        free = [one for one in ceph.usable() if many or one not in taken]
        if not zones:
            return free

        def crowd(zone: str) -> int:
            return sum(1 for one in taken if one is not None and one.zone == zone)

        fit = [one for one in free if one.zone in zones]
        return sorted(fit, key=lambda one: (crowd(one.zone), zones.index(one.zone), one.name))

    # Stages.

    def _stage(self, key: Key, obj: Obj, ceph: Ceph, stages: tuple[Stage, ...]) -> float | None:
        """Carry on; the seconds until this stage is over, None once all are."""
        status = part(obj, "status")
        generation = str(obj["metadata"]["generation"])
        messages = [stage.message for stage in stages]
        began = _progressing(obj)
        if status.get("phase") != "Progressing" or status.get("message") not in messages:
            refused = self._refused(obj, ceph, stages)
            if refused:
                self._fail(key, refused)
                return RETRY
            self._begin(key, obj, stages[0])
            return self.span(*stages[0].seconds, key, generation, stages[0].message)
        number = messages.index(str(status["message"]))
        stage = stages[number]
        lasted = age(self.world, str(began.get("lastHeartbeatTime") or stamp(self.world)))
        left = self.span(*stage.seconds, key, generation, stage.message) - lasted
        if left > 0:
            return left
        lacking = self._carry_out(obj, ceph, stage.message)
        if lacking:
            if lasted > MON_TIMEOUT:
                self._fail(key, lacking)
            return RETRY
        if number + 1 < len(stages):
            self._begin(key, obj, stages[number + 1])
            return self.span(*stages[number + 1].seconds, key, generation, messages[number + 1])
        self._finish(key, obj)
        return None

    def _refused(self, obj: Obj, ceph: Ceph, stages: tuple[Stage, ...]) -> str:
        if stages is not _UPGRADE or at(obj, "spec.skipUpgradeChecks"):
            return ""
        health, _ = ceph.health()
        if health != "HEALTH_ERR":
            return ""
        return f"failed to perform upgrade checks: ceph status is {health}, refusing to upgrade"

    def _carry_out(self, obj: Obj, ceph: Ceph, message: str) -> str:
        """What a stage leaves behind; what it lacks, if it cannot be finished."""
        if message == MONS:
            wanted = int(at(obj, "spec.mon.count") or 3)
            while len(ceph.mons) < wanted:
                spare = self._spares(ceph, obj)
                if not spare:
                    return f"failed to start ceph monitors: {len(ceph.mons)} of {wanted} placed"
                ceph.place_mon(_next_mon(ceph), spare[0])
            self._look(ceph, obj)
        if message == OSDS and part(obj["spec"], "storage").get("useAllNodes"):
            for machine in ceph.usable():
                ceph.place_osds(machine)
            self._look(ceph, obj)
        return ""

    def _begin(self, key: Key, obj: Obj, stage: Stage) -> None:
        """Every stage beats the heart of the condition; Ready, once said, stays."""
        first = not part(obj, "status").get("version")
        said = self.condition("Progressing", "True", "ClusterProgressing", stage.message)
        said["lastHeartbeatTime"] = stamp(self.world)
        self.status(
            key,
            {
                "phase": "Progressing",
                "state": "Creating" if first else "Updating",
                "message": stage.message,
                "conditions": [said],
            },
        )
        self.world.tell("ceph", self.cluster.name, stage.message)

    def _fail(self, key: Key, why: str) -> None:
        said = self.condition("Failure", "True", "ReconcileFailed", why)
        self.status(
            key, {"phase": "Failure", "state": "Error", "message": why, "conditions": [said]}
        )

    def _finish(self, key: Key, obj: Obj) -> None:
        image = str(at(obj, "spec.cephVersion.image") or "")
        generation = at(obj, "spec.security.cephx.daemon.keyGeneration") or 1
        daemons = ("admin", "mon", "mgr", "osd")
        made = "Cluster created successfully"
        self.status(
            key,
            {
                "phase": "Ready",
                "state": "Created",
                "message": made,
                "observedGeneration": obj["metadata"]["generation"],
                "version": {"image": image, "version": f"{version_of(image)}-0"},
                "cephx": {name: {"keyGeneration": generation} for name in daemons},
                "conditions": [
                    self.condition("Progressing", "False", "ClusterProgressing", made),
                    self.condition("Failure", "False", "ClusterCreated", ""),
                    self.condition("Ready", "True", "ClusterCreated", made),
                ],
            },
        )
        self.world.tell("ceph", self.cluster.name, made)

    # Health.

    def _check(self, key: Key, ceph: Ceph) -> None:
        obj = self.get(key)
        if obj is None or not ceph.mons:
            return
        old = part(part(obj, "status"), "ceph")
        health, details = ceph.health()
        now = stamp(self.world)
        found: dict[str, Any] = {**old, "health": health, "lastChecked": now, "fsid": ceph.fsid}
        if details:
            found["details"] = details
        else:
            found.pop("details", None)
        if old.get("health") not in (None, health):
            found["previousHealth"] = old["health"]
            found["lastChanged"] = now
            self.world.tell("ceph", self.cluster.name, health)
        if ceph.quorum:
            found["capacity"] = {**ceph.capacity(), "lastUpdated": now}
            found["versions"] = self._versions(obj, ceph)
        self.status(key, {"ceph": found})

    def _versions(self, obj: Obj, ceph: Ceph) -> dict[str, Any]:
        """How many daemons run which version: during an upgrade, of each kind what is reached."""
        status = part(obj, "status")
        new = _words(version_of(str(at(obj, "spec.cephVersion.image") or "")))
        old = _words(version_of(str(part(status, "version").get("image") or ""))) or new
        reached = {MONS: (), MGRS: ("mon",), OSDS: ("mon", "mgr")}
        message = str(status.get("message"))
        upgraded = reached.get(message, ()) if status.get("phase") == "Progressing" else ()
        counts = {"mon": len(ceph.mons), "mgr": 2, "osd": len(ceph.osds)}
        found: dict[str, Any] = {"overall": {}}
        for kind, count in counts.items():
            runs = new if kind in upgraded else old
            if count:
                found[kind] = {runs: count}
                found["overall"][runs] = found["overall"].get(runs, 0) + count
        return found

    # The end.

    def _delete(self, key: Key, obj: Obj) -> float | None:
        held = [
            f"{kind}: {one['metadata']['name']}"
            for kind in rook_kinds.DEPENDENTS
            for one in self.cluster.list((rook_kinds.GROUP, kind), key.namespace)
        ]
        blocked = self.condition(
            "DeletionIsBlocked",
            "True" if held else "False",
            "ObjectHasDependents" if held else "ObjectHasNoDependents",
            f"dependents: {', '.join(held)}" if held else "",
        )
        self.status(key, {"phase": "Deleting", "conditions": [blocked]})
        if held:
            return RETRY
        ceph = rook_ceph.find(self.world, self.cluster.name)
        if ceph is not None:
            self._end(obj, ceph)
        self.cluster.remove_finalizer(CLUSTER, key.name, key.namespace, FINALIZER)
        return None

    def _end(self, obj: Obj, ceph: Ceph) -> None:
        confirmed = at(obj, "spec.cleanupPolicy.confirmation") == "yes-really-destroy-data"
        region = {one.region for one in self.world.truth.on_cluster(self.cluster.name)}
        machines = self.world.truth.machines.values()
        if confirmed and any(one.vms for one in machines if one.region in region):
            self.world.truth.hurt(f"the disks of {self.cluster.name} were wiped under running VMs")
        self.world.tell("ceph", self.cluster.name, "wiped" if confirmed else "stopped")
        ceph.stop()
        self._daemons(ceph, obj).sync()
        self.world.services.pop(rook_ceph.service(self.cluster.name), None)

    def _finalizer(self, key: Key, obj: Obj) -> None:
        if FINALIZER in (obj["metadata"].get("finalizers") or ()):
            return

        def add(live: Mutable) -> None:
            live["metadata"].setdefault("finalizers", []).append(FINALIZER)

        self.cluster.edit(CLUSTER, key.name, key.namespace, add, manager=self.name)


def _stages(obj: Obj) -> tuple[Stage, ...]:
    """What is left to be done; nothing if it is as it should be."""
    status = part(obj, "status")
    image = part(status, "version").get("image")
    if not image:
        return _CREATE
    if status.get("observedGeneration") == obj["metadata"]["generation"]:
        return ()
    return _UPGRADE if image != at(obj, "spec.cephVersion.image") else _UPDATE


def _progressing(obj: Obj) -> Obj:
    none: dict[str, Any] = {}
    return next((one for one in conditions(obj) if one["type"] == "Progressing"), none)


def _moved(change: Change) -> bool:
    """Whether a Node came, went, or may or may not run pods any more."""
    old = change.old
    if old is None or change.type == DELETED or usable(old) != usable(change.object):
        return True
    return at(old, "spec.unschedulable") != at(change.object, "spec.unschedulable")


def _next_mon(ceph: Ceph) -> str:
    names = "abcdefghijklmnopqrstuvwxyz"
    return next(name for name in names if name not in ceph.mons)


def version_of(image: str) -> str:
    """`quay.io/ceph/ceph:v20.2.0` is 20.2.0."""
    tag = image.rpartition(":")[2] if ":" in image else ""
    return tag.removeprefix("v")


def _words(version: str) -> str:
    return f"ceph version {version} (stable)" if version else ""


CHARTS: Mapping[str, Chart] = {
    "rook-ceph": Chart(
        definitions=rook_kinds.DEFINITIONS,
        controllers=(Rook, BlockPools, Clients),
        deployments=("rook-ceph-operator",),
    )
}
