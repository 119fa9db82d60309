"""
The external arbiter operator: a RemoteCluster is checked with the kubeconfig that its Secret holds,
a RemoteArbiter puts a monitor there.

Imitates cobaltcore 14.2 and the operator's code. The kubeconfig is really used: a token that ended
or a right that is missing shows. A monitor id is reserved in `CephCluster.spec.mon.externalMonIDs`,
which is a change of the CephCluster and costs it a moment of Progressing. Ready means that a
Deployment runs; the monitor joins the quorum later, and with `stretchCluster` never. One trap is
kept as it is in the code: a status is written only when a condition changes, so after an early
condition failed and healed the state stays Progressing for ever, with every condition True; only
a status without conditions begins anew.

Simplified: a remote Deployment is looked at through the world, not through a client of its own.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from fleetd.kube.transport import Request, Response
from fleetd.sim.chart import Chart
from fleetd.sim.controllers import rook_ceph, rook_kinds
from fleetd.sim.controllers.arbiter_kinds import ARBITER, DEFINITIONS, REMOTE, admit
from fleetd.sim.controllers.base import Controller, Key, Obj, age, key_of
from fleetd.sim.controllers.workloads import DEPLOYMENT
from fleetd.sim.controllers.workloads_look import condition, conditions, meant, part
from fleetd.sim.kube.access import User
from fleetd.sim.kube.cluster import Change, Cluster
from fleetd.sim.kube.rbac import Ask
from fleetd.sim.kube.values import Obj as Mutable
from fleetd.sim.kube.values import at
from fleetd.sim.world import World

SECRET = ("", "Secret")
RETRY = 15.0
CHECK = 60.0
JOIN = (30.0, 120.0)
"""Seconds from a running Deployment to a monitor that takes part."""
REMOTE_CHECKS = ("SecretAvailable", "ConfigValid", "ClusterReachable", "HasEnoughPermissions")
ARBITER_CHECKS = (
    *("RemoteClusterExists", "RemoteClusterReady", "CephClusterExists", "CephClusterReady"),
    *("CephClusterConfigured", "MonitorDeploymentExists", "MonitorDeploymentReady"),
    *("ArbiterDeploymentExists", "ArbiterDeploymentReady"),
)
_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
_RESOURCES = (("apps", "deployments"), ("", "secrets"), ("", "configmaps"), ("", "services"))
REMOTE_FINALIZER = "remotecluster.ceph.cobaltcore.sap.com/finalizer"
ARBITER_FINALIZER = "remotearbiter.ceph.cobaltcore.sap.com/finalizer"


class Unready(Exception):
    """A check failed; its words go into the status."""


class _Checked(Controller):
    """What both kinds share: checks in order, and a status written as the operator writes it."""

    checks: tuple[str, ...] = ()

    def __init__(self, world: World, cluster: Cluster) -> None:
        super().__init__(world, cluster)
        for definition in DEFINITIONS:
            cluster.admit(definition.gk, admit)

    def begin(self, key: Key, obj: Obj) -> None:
        """All conditions must be there; if one was added, the state is Init."""
        has = [one["type"] for one in conditions(obj)]
        fresh = [name for name in self.checks if name not in has]
        if fresh:
            said = [self.condition(name, "Unknown", "Init", "init") for name in fresh]
            self.status(key, {"state": "Init", "message": "initialized", "conditions": said})

    def good(self, key: Key, name: str, message: str, state: str = "Progressing") -> None:
        """Written only if the condition was not True: the trap of this operator."""
        if condition(self.get(key), name) != "True":
            said = self.condition(name, "True", "OK", message)
            self.status(key, {"state": state, "message": message, "conditions": [said]})

    def bad(self, key: Key, name: str, message: str) -> float:
        live = part(self.get(key), "status")
        if condition(self.get(key), name) != "False" or live.get("message") != message:
            said = self.condition(name, "False", "Error", message)
            self.status(key, {"state": "Error", "message": message, "conditions": [said]})
        return RETRY

    def hold(self, key: Key, finalizer: str, *, on: bool = True) -> None:
        def change(live: Mutable) -> None:
            held: list[str] = live["metadata"].setdefault("finalizers", [])
            if on and finalizer not in held:
                held.append(finalizer)

        if on:
            self.cluster.edit(key.gk, key.name, key.namespace, change, manager=self.name)
        else:
            self.cluster.remove_finalizer(key.gk, key.name, key.namespace, finalizer)


class RemoteClusters(_Checked):
    name = "external-arbiter-remote-clusters"
    watches = (REMOTE,)
    checks = REMOTE_CHECKS

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk == REMOTE and (meant(change) or not conditions(change.object)):
            yield key_of(REMOTE, change.object)
        if change.gk == SECRET and meant(change):
            for one in self.cluster.list(REMOTE, change.object["metadata"]["namespace"]):
                if at(one, "spec.accesskeyRef.name") == change.object["metadata"]["name"]:
                    yield key_of(REMOTE, one)

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None:
            return None
        secret = str(at(obj, "spec.accesskeyRef.name") or "")
        if "deletionTimestamp" in obj["metadata"]:
            return self._delete(key, obj, secret)
        self.hold(key, REMOTE_FINALIZER)
        self.begin(key, obj)
        live = self.cluster.get(SECRET, secret, key.namespace)
        if live is None:
            said = f'unable to get secret: unable to get resource: Secret "{secret}" not found'
            return self.bad(key, "SecretAvailable", said)
        self.hold(Key(SECRET, key.namespace, secret), REMOTE_FINALIZER)
        self.good(key, "SecretAvailable", "secret is present")
        try:
            there, token = remote(self.world, live, str(at(obj, "spec.accesskeyRef.key")))
        except Unready as cause:
            return self.bad(key, "ConfigValid", str(cause))
        self.good(key, "ConfigValid", "client initialized, config is valid")
        if there is None or not _answers(there, token):
            said = "unable to check cluster readiness: "
            said += "Unauthorized" if there is not None else "connection refused"
            return self.bad(key, "ClusterReachable", said)
        self.good(key, "ClusterReachable", "cluster is ready")
        lacking = _lacking(there, token, str(at(obj, "spec.namespace") or "default"))
        if lacking:
            said = "unable to validate permissions: " + "; ".join(lacking[:3])
            return self.bad(key, "HasEnoughPermissions", said)
        self.good(key, "HasEnoughPermissions", "cluster is ready and configured", "Ready")
        return CHECK

    def _delete(self, key: Key, obj: Obj, secret: str) -> float | None:
        self.status(key, {"state": "Deleting", "message": "deleting"})
        if ARBITER_FINALIZER in (obj["metadata"].get("finalizers") or ()):
            return 5.0
        if self.cluster.get(SECRET, secret, key.namespace) is not None:
            self.hold(Key(SECRET, key.namespace, secret), REMOTE_FINALIZER, on=False)
        self.hold(key, REMOTE_FINALIZER, on=False)
        return None


class RemoteArbiters(_Checked):
    name = "external-arbiter-remote-arbiters"
    watches = (ARBITER,)
    checks = ARBITER_CHECKS

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk == ARBITER and (meant(change) or not conditions(change.object)):
            yield key_of(ARBITER, change.object)
        old = part(change.old, "status")
        new = part(change.object, "status")
        moved = any(old.get(name) != new.get(name) for name in ("state", "phase"))
        if change.gk in (REMOTE, rook_kinds.CLUSTER) and moved:
            yield from (key_of(ARBITER, one) for one in self.cluster.list(ARBITER))

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None:
            return None
        if "deletionTimestamp" in obj["metadata"]:
            return self._delete(key, obj)
        self.hold(key, ARBITER_FINALIZER)
        self.begin(key, obj)
        name = str(at(obj, "spec.remoteCluster.name") or "")
        target = self.cluster.get(REMOTE, name, key.namespace)
        if target is None:
            return self.bad(key, "RemoteClusterExists", "unable to get remote cluster: not found")
        self.hold(Key(REMOTE, key.namespace, name), ARBITER_FINALIZER)
        self.good(key, "RemoteClusterExists", "remote cluster fetched")
        if part(target, "status").get("state") != "Ready":
            return self.bad(key, "RemoteClusterReady", "remote cluster not ready")
        there = self._there(target)
        if there is None:
            return self.bad(key, "RemoteClusterReady", "unable to make remote client")
        self.good(key, "RemoteClusterReady", "remote client usable")
        return self._ceph(key, obj, there, str(at(target, "spec.namespace") or "default"))

    def _there(self, target: Obj) -> Cluster | None:
        name = str(at(target, "spec.accesskeyRef.name") or "")
        live = self.cluster.get(SECRET, name, target["metadata"]["namespace"])
        if live is None:
            return None
        try:
            there, token = remote(self.world, live, str(at(target, "spec.accesskeyRef.key")))
        except Unready:
            return None
        return there if there is not None and _answers(there, token) else None

    def _ceph(self, key: Key, obj: Obj, there: Cluster, space: str) -> float | None:
        ref = part(obj["spec"], "cephCluster")
        namespace = str(ref.get("namespace") or key.namespace)
        ceph = self.cluster.get(rook_kinds.CLUSTER, str(ref.get("name")), namespace)
        if ceph is None:
            return self.bad(key, "CephClusterExists", "unable to get ceph cluster: not found")
        self.good(key, "CephClusterExists", "ceph cluster fetched")
        if part(ceph, "status").get("phase") != "Ready":
            return self.bad(key, "CephClusterReady", "ceph cluster not ready")
        self.good(key, "CephClusterReady", "ceph cluster ready")
        mon = self._reserve(key, obj, ceph)
        self.good(key, "CephClusterConfigured", "ceph cluster configured")
        labels = {"ceph_daemon_type": "mon", "app.kubernetes.io/part-of": str(ref.get("name"))}
        mons = self.cluster.list(DEPLOYMENT, namespace, labels=labels)
        if not mons:
            return self.bad(key, "MonitorDeploymentExists", "monitor deployments not found")
        self.good(key, "MonitorDeploymentExists", "monitor deployment fetched")
        if not _up(mons[0]):
            return self.bad(key, "MonitorDeploymentReady", "monitor deployment is not ready")
        self.good(key, "MonitorDeploymentReady", "monitor deployment is ready")
        return self._deploy(key, there, space, mon, mons[0])

    def _reserve(self, key: Key, obj: Obj, ceph: Obj) -> str:
        """An id of its own; Rook would take an unknown monitor out of the quorum."""
        known: list[str] = at(ceph, "spec.mon.externalMonIDs") or []
        prefix = str(at(obj, "spec.monIdPrefix") or "ext-")
        free = (f"{prefix}{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
        mon = str(part(obj, "status").get("monId") or "")
        mon = mon or next(one for one in free if one not in known)
        if mon not in known:
            self.status(key, {"monId": mon})
            metadata = ceph["metadata"]

            def add(live: Mutable) -> None:
                live["spec"]["mon"].setdefault("externalMonIDs", []).append(mon)

            self.cluster.edit(
                rook_kinds.CLUSTER,
                metadata["name"],
                metadata["namespace"],
                add,
                manager=self.name,
            )
        return mon

    def _deploy(self, key: Key, there: Cluster, space: str, mon: str, like: Obj) -> float | None:
        name = f"{key.name}-{mon}"
        live = there.get(DEPLOYMENT, name, space)
        if live is None:
            for body in parts(self.world, name, space, mon, like):
                there.apply(body, manager=self.name)
            self.good(key, "ArbiterDeploymentExists", "arbiter deployment fetched")
            return RETRY
        self.good(key, "ArbiterDeploymentExists", "arbiter deployment fetched")
        if not _up(live):
            self._leave(mon)
            return self.bad(key, "ArbiterDeploymentReady", "arbiter deployment is not ready")
        self.good(key, "ArbiterDeploymentReady", "arbiter deployment ready", "Ready")
        return self._join(key, mon, live)

    def _join(self, key: Key, mon: str, live: Obj) -> float:
        ceph = rook_ceph.find(self.world, self.cluster.name)
        if ceph is None or ceph.external.get(mon):
            return CHECK
        waited = age(self.world, _since(live))
        lasts = self.span(*JOIN, key, "join", mon)
        if waited < lasts:
            return lasts - waited + 0.1
        if ceph.quorum:
            ceph.external[mon] = True
            self.world.tell("joined", self.cluster.name, f"monitor {mon}")
        return CHECK

    def _leave(self, mon: str) -> None:
        ceph = rook_ceph.find(self.world, self.cluster.name)
        if ceph is not None and mon in ceph.external:
            ceph.external[mon] = False

    def _delete(self, key: Key, obj: Obj) -> float | None:
        self.status(key, {"state": "Deleting", "message": "deleting"})
        mon = str(part(obj, "status").get("monId") or "")
        ref = part(obj["spec"], "cephCluster")
        name = str(at(obj, "spec.remoteCluster.name") or "")
        target = self.cluster.get(REMOTE, name, key.namespace)
        there = self._there(target) if target is not None else None
        if there is not None and target is not None and mon:
            space = str(at(target, "spec.namespace") or "default")
            there.delete(DEPLOYMENT, f"{key.name}-{mon}", space)
            for gk in (SECRET, ("", "ConfigMap"), ("", "Service")):
                there.delete(gk, f"{key.name}-{mon}", space)

        def drop(live: Mutable) -> None:
            known: list[str] = live["spec"]["mon"].get("externalMonIDs") or []
            live["spec"]["mon"]["externalMonIDs"] = [one for one in known if one != mon]

        space = str(ref.get("namespace") or key.namespace)
        self.cluster.edit(rook_kinds.CLUSTER, str(ref.get("name")), space, drop, manager=self.name)
        ceph = rook_ceph.find(self.world, self.cluster.name)
        if ceph is not None:
            ceph.external.pop(mon, None)
        if target is not None:
            self.hold(Key(REMOTE, key.namespace, name), ARBITER_FINALIZER, on=False)
        self.hold(key, ARBITER_FINALIZER, on=False)
        return None


def remote(world: World, secret: Obj, field: str) -> tuple[Cluster | None, str]:
    """Where the kubeconfig in a Secret leads, and with which token; nowhere is None."""
    try:
        text = base64.b64decode(str(part(secret, "data")[field]))
        config: Any = msgspec.yaml.decode(text)
        server = str(config["clusters"][0]["cluster"]["server"])
        token = str(config["users"][0]["user"].get("token") or "")
    except KeyError:
        raise Unready(f"secret key {field} not found") from None
    except (ValueError, TypeError, IndexError, AttributeError, msgspec.DecodeError):
        raise Unready("unable to create rest config from secret") from None
    found = (one for name, one in sorted(world.clusters.items()) if world.address(name) == server)
    return next(found, None), token


def _answers(there: Cluster, token: str) -> bool:
    headers = {"authorization": f"Bearer {token}"}
    answer = there.handle(Request(method="GET", path="/readyz"), headers)
    return isinstance(answer, Response) and answer.status == 200


def _lacking(there: Cluster, token: str, namespace: str) -> Sequence[str]:
    """Rights that the account lacks, by the roles and bindings as they stand."""
    user: User = there.tokens.user(token, ())
    found: list[str] = []
    for group, resource in _RESOURCES:
        asked = [(verb, resource) for verb in _VERBS]
        asked += [(verb, f"{resource}/status") for verb in _VERBS]
        asked.append(("update", f"{resource}/finalizers"))
        for verb, name in asked:
            ask = Ask(verb=verb, group=group, resource=name, namespace=namespace)
            if not there.rbac.allows(user, ask):
                found.append(f"not enough rights for {verb} {name} in {namespace}")
    return found


def _up(deployment: Obj) -> bool:
    status = part(deployment, "status")
    wanted = int(status.get("replicas") or 0)
    away = int(status.get("unavailableReplicas") or 0)
    return wanted > 0 and away == 0 and status.get("updatedReplicas") == wanted


def _since(deployment: Obj) -> str:
    said = next((one for one in conditions(deployment) if one["type"] == "Available"), None)
    return str((said or deployment["metadata"]).get("lastTransitionTime") or "") or str(
        deployment["metadata"]["creationTimestamp"]
    )


def parts(world: World, name: str, space: str, mon: str, like: Obj) -> list[dict[str, Any]]:
    """The objects on the other side: keyring, configuration, address, and the monitor."""
    labels = {"app": "rook-ceph-mon", "mon": mon}
    key = base64.b64encode(world.token("ceph", "arbiter", name).encode()).decode()
    template = part(part(like["spec"], "template"), "spec")
    metadata = {"name": name, "namespace": space, "labels": labels}
    return [
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"keyring": key}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config": ""}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"type": "LoadBalancer", "ports": [{"name": "msgr2", "port": 3300}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": template.get("containers") or []},
                },
            },
        },
    ]


CHARTS: Mapping[str, Chart] = {
    "external-arbiter-operator": Chart(
        definitions=DEFINITIONS,
        controllers=(RemoteClusters, RemoteArbiters),
        deployments=("external-arbiter-operator",),
    )
}
