"""
Greenhouse: a Secret with a kubeconfig becomes a Cluster that it can use.

Imitates cobaltcore 15: the Secret has the type `greenhouse.sap/kubeconfig` and the key
`kubeconfig`; Greenhouse tries it on the cluster itself, writes a kubeconfig of its own beside it
(`greenhousekubeconfig`), and renews its token long before it ends. If it cannot, the token ends
within 72 hours and `bearerTokenExpirationTimestamp` tells.
"""

import base64
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Controller, Key, Obj, key_of, merge_conditions
from fleetd.sim.controllers.fluxparts import Unusable, read_kubeconfig
from fleetd.sim.controllers.workloads import NODE
from fleetd.sim.controllers.workloads_look import meant, members, part
from fleetd.sim.kube.access import BadToken
from fleetd.sim.kube.cluster import GK, Change, Cluster
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.values import moment
from fleetd.sim.kube.values import stamp as written

GROUP = "greenhouse.sap"
CLUSTER: GK = (GROUP, "Cluster")
SECRET: GK = ("", "Secret")
TYPE = f"{GROUP}/kubeconfig"
OWN = "greenhousekubeconfig"
DEFINITIONS = (
    Definition(group=GROUP, kind="Cluster", plural="clusters", versions=("v1alpha1",)),
    Definition(
        group=GROUP,
        kind="Organization",
        plural="organizations",
        versions=("v1alpha1",),
        namespaced=False,
    ),
    Definition(group=GROUP, kind="Plugin", plural="plugins", versions=("v1alpha1",)),
)
LIFE = timedelta(hours=72)
RENEW = timedelta(hours=36)
"""What is left of a token when it is renewed."""
EVERY = 3600.0
ACCOUNT = "system:serviceaccount:greenhouse:greenhouse"


class Greenhouse(Controller):
    name = "greenhouse"
    watches = (CLUSTER,)

    def start(self) -> None:
        super().start()
        for secret in self.cluster.list(SECRET):
            if secret.get("type") == TYPE:
                self._register(secret)

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk == CLUSTER and meant(change):
            yield key_of(CLUSTER, change.object)
        if change.gk == SECRET and change.object.get("type") == TYPE:
            metadata = change.object["metadata"]
            if change.type != "DELETED" and "deletionTimestamp" not in metadata:
                self._register(change.object)
            yield Key(CLUSTER, metadata["namespace"], metadata["name"])

    def _register(self, secret: Obj) -> None:
        metadata = secret["metadata"]
        if self.cluster.get(CLUSTER, metadata["name"], metadata["namespace"]) is None:
            self.cluster.create(
                {
                    "apiVersion": f"{GROUP}/v1alpha1",
                    "kind": "Cluster",
                    "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
                    "spec": {"accessMode": "direct", "kubeConfig": {"maxTokenValidity": 72}},
                },
                manager=self.name,
            )
            self.wake(
                Key(CLUSTER, metadata["namespace"], metadata["name"]),
                self.world.span(5.0, 20.0, self.cluster.name, "register", metadata["name"]),
            )

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return None
        secret = self.cluster.get(SECRET, key.name, key.namespace)
        try:
            target = self._reach(secret)
        except Unusable as cause:
            self._say(key, "False", cause.detail or cause.why, nodes=None)
            return 300.0
        expires = self._renew(key, obj, secret, target)
        nodes = target.list(NODE)
        self._say(key, "True", "", nodes=len(nodes), expires=expires, version=target.version)
        return EVERY

    def _reach(self, secret: Obj | None) -> Cluster:
        """With its own token if that is good, else with the one it was given."""
        data = part(secret, "data")
        said = "no kubeconfig was found in the secret"
        for name in (OWN, "kubeconfig"):
            if name not in data:
                continue
            server, token = read_kubeconfig(base64.b64decode(data[name]))
            there = [one for one in self.world.clusters if self.world.address(one) == server]
            if not there:
                said = "connection refused"
                continue
            cluster = self.world.clusters[there[0]]
            try:
                cluster.tokens.user(token)
            except BadToken:
                said = "the server has asked for the client to provide credentials"
                continue
            return cluster
        raise Unusable("unauthorized", said)

    def _renew(self, key: Key, obj: Obj, secret: Obj | None, target: Cluster) -> str:
        old = str(part(obj, "status").get("bearerTokenExpirationTimestamp") or "")
        now = self.world.now()
        if old and moment(old) - now > RENEW and OWN in part(secret, "data"):
            return old
        ends = now + LIFE
        token = target.token(ACCOUNT, ("system:masters",), expires=ends)
        made = target.kubeconfig(self.world.address(target.name), token)
        text = base64.b64encode(msgspec.json.encode(made)).decode()

        def put(new: dict[str, Any]) -> None:
            new.setdefault("data", {})[OWN] = text

        self.cluster.edit(SECRET, key.name, key.namespace, put, manager=self.name)
        return written(ends)

    def _say(
        self,
        key: Key,
        status: str,
        message: str,
        *,
        nodes: int | None,
        expires: str = "",
        version: str = "",
    ) -> None:
        """Its conditions lie one level deeper than those of everybody else."""
        old: dict[str, Any] = dict(part(self.get(key), "status"))
        good = status == "True"
        kinds = ("KubeConfigValid", "Ready", *(("AllNodesReady", "PermissionsVerified") * good))
        made = [self.condition(kind, status, "" if good else "Failed", message) for kind in kinds]
        before = members(part(old, "statusConditions"), "conditions")
        new = {**old, "statusConditions": {"conditions": merge_conditions(before, made)}}
        if good:
            new["bearerTokenExpirationTimestamp"] = expires
            new["kubernetesVersion"] = version
            new["nodes"] = {"total": nodes or 0, "ready": nodes or 0}
        self.cluster.set_status(CLUSTER, key.name, key.namespace, new, manager=self.name)


CHARTS: Mapping[str, Chart] = {
    "greenhouse": Chart(
        definitions=DEFINITIONS,
        controllers=(Greenhouse,),
        deployments=("greenhouse-controller-manager",),
        seconds=(30.0, 90.0),
    )
}
