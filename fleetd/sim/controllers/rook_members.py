"""
Rook's CephBlockPools and CephClients: made in seconds once Ceph is up, and only while it has a
quorum; part of `rook`.

A CephClient becomes a Secret `rook-ceph-client-<name>` with its key (cobaltcore 9.4). Raising the
key generation, with the policy KeyGeneration, makes a new key, and the old one is worthless at
once. Taking the key of Nova away, or a pool, while virtual machines run hurts them.
"""

from collections.abc import Iterable
from typing import Any

from fleetd.sim.controllers import rook_ceph
from fleetd.sim.controllers.base import Controller, Key, Obj, age, key_of
from fleetd.sim.controllers.rook_ceph import Ceph
from fleetd.sim.controllers.rook_daemons import SECRET, secret
from fleetd.sim.controllers.rook_kinds import CLIENT, CLUSTER, POOL
from fleetd.sim.controllers.workloads_look import meant, part
from fleetd.sim.kube.cluster import GK, Change
from fleetd.sim.kube.values import Obj as Mutable
from fleetd.sim.kube.values import at

RETRY = 15.0


class _Member(Controller):
    kind: GK = ("", "")
    finalizer = ""
    seconds = (4.0, 15.0)

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk == self.kind and meant(change):
            yield key_of(change.gk, change.object)
        if change.gk == CLUSTER and _ready(change.old) != _ready(change.object):
            yield from (key_of(self.kind, one) for one in self.cluster.list(self.kind))

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None:
            return None
        if "deletionTimestamp" in obj["metadata"]:
            return self._delete(key, obj)
        self._finalizer(key, obj)
        ceph = self._ceph(key)
        if ceph is None:
            if not part(obj, "status").get("phase"):
                self.status(key, {"phase": "Progressing"})
            return None  # woken when the cluster is Ready
        if not ceph.quorum:
            return RETRY  # its commands hang; the status stays as it is
        generation = obj["metadata"]["generation"]
        status = part(obj, "status")
        if status.get("observedGeneration") == generation and status.get("phase") == "Ready":
            return None
        wrong = self.wrong(obj)
        if wrong:
            self.status(key, {"phase": "Failure", "observedGeneration": generation})
            self.event(obj, "ReconcileFailed", wrong, warning=True)
            return None
        if status.get("phase") != "Progressing" and status.get("phase") != "Ready":
            self.status(key, {"phase": "Progressing"})
        waited = age(self.world, obj["metadata"]["creationTimestamp"])
        lasts = self.span(*self.seconds, key, "make")
        if status.get("phase") in (None, "Progressing") and waited < lasts:
            return lasts - waited + 0.1
        done = self.make(key, obj, ceph)
        self.status(key, {"phase": "Ready", "observedGeneration": generation, **done})
        return None

    def wrong(self, obj: Obj) -> str:
        del obj
        return ""

    def make(self, key: Key, obj: Obj, ceph: Ceph) -> dict[str, Any]:
        raise NotImplementedError

    def unmake(self, key: Key, obj: Obj, ceph: Ceph) -> str:
        """Undo it; why not, if it must stay."""
        raise NotImplementedError

    def _ceph(self, key: Key) -> Ceph | None:
        """While a Ready CephCluster is in the namespace."""
        if not any(_ready(one) for one in self.cluster.list(CLUSTER, key.namespace)):
            return None
        return rook_ceph.find(self.world, self.cluster.name)

    def _delete(self, key: Key, obj: Obj) -> float | None:
        ceph = rook_ceph.find(self.world, self.cluster.name)
        if ceph is not None and ceph.mons and not ceph.quorum:
            return RETRY
        why = self.unmake(key, obj, ceph) if ceph is not None else ""
        if why:
            blocked = self.condition("DeletionIsBlocked", "True", "PoolNotEmpty", why)
            self.status(key, {"phase": "Deleting", "conditions": [blocked]})
            return RETRY * 4
        self.cluster.remove_finalizer(self.kind, key.name, key.namespace, self.finalizer)
        return None

    def _finalizer(self, key: Key, obj: Obj) -> None:
        if self.finalizer in (obj["metadata"].get("finalizers") or ()):
            return

        def add(live: Mutable) -> None:
            live["metadata"].setdefault("finalizers", []).append(self.finalizer)

        self.cluster.edit(self.kind, key.name, key.namespace, add, manager=self.name)

    def _vms(self) -> int:
        """Virtual machines in the region, which have their disks here."""
        truth = self.world.truth
        regions = {one.region for one in truth.on_cluster(self.cluster.name)}
        return sum(len(one.vms) for one in truth.machines.values() if one.region in regions)


class BlockPools(_Member):
    name = "rook-ceph-block-pool"
    watches = (POOL,)
    kind = POOL
    finalizer = "cephblockpool.ceph.rook.io"
    seconds = (5.0, 20.0)

    def wrong(self, obj: Obj) -> str:
        replicated = part(obj["spec"], "replicated")
        size = int(replicated.get("size") or 0)
        if size == 1 and replicated.get("requireSafeReplicaSize", True):
            return "error pool size is 1 and requireSafeReplicaSize is true"
        per = int(replicated.get("replicasPerFailureDomain") or 1)
        if size % per:
            return "size must be a multiple of replicasPerFailureDomain"
        return ""

    def make(self, key: Key, obj: Obj, ceph: Ceph) -> dict[str, Any]:
        del ceph
        domain = str(obj["spec"].get("failureDomain") or "host")
        names = [one["metadata"]["name"] for one in self.cluster.list(POOL, key.namespace)]
        return {
            "poolID": names.index(key.name) + 1,
            "info": {"failureDomain": domain, "type": "Replicated"},
        }

    def unmake(self, key: Key, obj: Obj, ceph: Ceph) -> str:
        del obj, ceph
        if self._vms():
            return f"pool {key.name} contains images"
        return ""


class Clients(_Member):
    name = "rook-ceph-client"
    watches = (CLIENT,)
    kind = CLIENT
    finalizer = "cephclient.ceph.rook.io"
    seconds = (3.0, 10.0)

    def make(self, key: Key, obj: Obj, ceph: Ceph) -> dict[str, Any]:
        spec = obj["spec"]
        user = str(spec.get("name") or key.name)
        policy = at(obj, "spec.security.cephx.keyRotationPolicy")
        wanted = int(at(obj, "spec.security.cephx.keyGeneration") or 1)
        have = ceph.keys.get(user)
        if have is None or (policy == "KeyGeneration" and wanted > have):
            have = wanted if policy == "KeyGeneration" else 1
            ceph.keys[user] = have
        value = self.world.token("ceph", self.cluster.name, user, str(have))
        name = str(spec.get("secretName") or f"rook-ceph-client-{key.name}")
        data = {user: value, "userID": user, "userKey": value}
        secret(self.cluster, key.namespace, name, data)
        credential = f"ceph/{self.cluster.name}/{user}"
        self.world.truth.makes(credential, str(have), value)
        self.world.truth.uses(credential, "ceph", str(have))
        return {"info": {"secretName": name}, "cephx": {"keyGeneration": have}}

    def unmake(self, key: Key, obj: Obj, ceph: Ceph) -> str:
        user = str(obj["spec"].get("name") or key.name)
        gone = ceph.keys.pop(user, None)
        credential = f"ceph/{self.cluster.name}/{user}"
        self.world.truth.credentials.get(credential, {}).pop("ceph", None)
        self.world.truth.revoked(credential, str(gone), "rook")
        if user.endswith("-nova") and self._vms():
            self.world.truth.hurt(f"the key of {user} was taken away while virtual machines run")
        name = str(obj["spec"].get("secretName") or f"rook-ceph-client-{key.name}")
        self.cluster.delete(SECRET, name, key.namespace)
        return ""


def _ready(cluster: Obj | None) -> bool:
    return cluster is not None and part(cluster, "status").get("phase") == "Ready"
