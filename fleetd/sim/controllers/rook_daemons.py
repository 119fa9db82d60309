"""
What Rook leaves in its namespace for Ceph's daemons: pods, disruption budgets, Deployments of
monitors, the Secrets and ConfigMaps that others read; part of `rook`.

A pod stands for a daemon: whoever drains a node evicts it, and the daemon stops. While data is
not redundant, the budgets let nothing go from a host that still works; once one host's pods are
being evicted, those of the others stay. Simplified: there is one budget for each host at all
times, and OSDs have pods but no Deployments.
"""

import base64
from typing import Any

from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.rook_ceph import Ceph
from fleetd.sim.controllers.workloads_look import part, usable
from fleetd.sim.kube.cluster import GK, Cluster

POD: GK = ("", "Pod")
SECRET: GK = ("", "Secret")
CONFIGMAP: GK = ("", "ConfigMap")
DEPLOYMENT: GK = ("apps", "Deployment")
BUDGET: GK = ("policy", "PodDisruptionBudget")
NODE: GK = ("", "Node")
MANAGER = "rook-ceph-operator"
HOST = "topology-location-host"
ENDPOINTS = "rook-ceph-mon-endpoints"
OSD, MON = "rook-ceph-osd", "rook-ceph-mon"
MON_BUDGET = "rook-ceph-mon-pdb"


def schedulable(node: Obj | None) -> bool:
    return usable(node) and not part(node, "spec").get("unschedulable")


class Daemons:
    """Of one CephCluster."""

    def __init__(self, cluster: Cluster, ceph: Ceph, namespace: str, name: str) -> None:
        self.cluster = cluster
        self.ceph = ceph
        self.namespace = namespace
        self.name = name

    def sync(self) -> None:
        """Pods where daemons should be and can be. Pods of a node that is merely silent are not
        gone; those that are missing on one that takes none were evicted, and their daemons rest."""
        for host in list(self.ceph.hosts.values()):
            node = host.node.partition("/")[2]
            missing = [one for one in self._pods(host.name) if not self._has(one[0])]
            if missing and schedulable(self.cluster.get(NODE, node)):
                for pod, labels in missing:
                    self._pod(pod, labels, node)
                missing = []
            host.drained = any(labels["app"] == OSD for _, labels in missing)
            self.ceph.rest(
                host.name, {labels["mon"] for _, labels in missing if labels["app"] == MON}
            )
        self._clear()
        self.budgets()

    def evicted(self, labels: dict[str, str]) -> None:
        """At once, as the eviction API counts: while one host is emptied, no other may be."""
        if labels.get("app") == OSD:
            self._allow(labels.get(HOST, ""))
        elif self.ceph.mons:
            self._budget(MON_BUDGET, {"app": MON}, allowed=False)

    def budgets(self) -> None:
        clean, all_mons = self.ceph.clean, self.ceph.in_quorum() == self.ceph.all_mons()
        for host in list(self.ceph.hosts.values()):
            selector = {"app": OSD, HOST: host.name}
            self._budget(f"{OSD}-host-{host.name}", selector, allowed=clean or not host.up)
        if self.ceph.mons:
            self._budget(MON_BUDGET, {"app": MON}, allowed=all_mons)

    def _allow(self, only: str) -> None:
        for host in list(self.ceph.hosts.values()):
            selector = {"app": OSD, HOST: host.name}
            self._budget(f"{OSD}-host-{host.name}", selector, allowed=host.name == only)

    def _pods(self, machine: str) -> list[tuple[str, dict[str, str]]]:
        found = [
            (f"{OSD}-{osd}", {"app": OSD, "ceph-osd-id": str(osd), HOST: machine})
            for osd, where in self.ceph.osds.items()
            if where == machine
        ]
        found += [
            (f"{MON}-{mon}", {"app": MON, "mon": mon, HOST: machine})
            for mon, where in self.ceph.mons.items()
            if where == machine and not self.ceph.lost(mon)
        ]
        return found

    def _has(self, pod: str) -> bool:
        return self.cluster.get(POD, pod, self.namespace) is not None

    def _pod(self, name: str, labels: dict[str, str], node: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
            "spec": {
                "nodeName": node,
                "containers": [{"name": labels["app"].rpartition("-")[2], "image": "ceph"}],
            },
        }
        self.cluster.create(body, manager=MANAGER)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        self.cluster.set_status(POD, name, self.namespace, status, manager="kubelet")

    def _budget(self, name: str, selector: dict[str, str], *, allowed: bool) -> None:
        live = self.cluster.get(BUDGET, name, self.namespace)
        if live is None:
            body = {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector}},
            }
            live = self.cluster.create(body, manager=MANAGER)
        status: Any = live.get("status") or {}
        if status.get("disruptionsAllowed") != int(allowed):
            made = {"disruptionsAllowed": int(allowed)}
            self.cluster.set_status(BUDGET, name, self.namespace, made, manager=MANAGER)

    def _clear(self) -> None:
        """Pods and budgets of hosts and daemons that are no more."""
        wanted = {pod for host in self.ceph.hosts for pod, _ in self._pods(host)}
        for pod in self.cluster.list(POD, self.namespace):
            labels = part(pod["metadata"], "labels")
            if labels.get("app") in (OSD, MON) and pod["metadata"]["name"] not in wanted:
                self.cluster.delete(POD, pod["metadata"]["name"], self.namespace)
        for budget in self.cluster.list(BUDGET, self.namespace):
            name = budget["metadata"]["name"]
            of = name.removeprefix(f"{OSD}-host-")
            if (of != name and of not in self.ceph.hosts) or (
                name == MON_BUDGET and not self.ceph.mons
            ):
                self.cluster.delete(BUDGET, name, self.namespace)
        for live in self.cluster.list(DEPLOYMENT, self.namespace, labels={"app": MON}):
            if live["metadata"]["labels"]["mon"] not in self.ceph.mons:
                self.cluster.delete(DEPLOYMENT, live["metadata"]["name"], self.namespace)

    # What others read.

    def publish(self, image: str) -> None:
        """After the monitors are placed, and again whenever they or their quorum change."""
        ceph, world = self.ceph, self.ceph.world
        for mon in ceph.mons:
            if self.cluster.get(DEPLOYMENT, f"{MON}-{mon}", self.namespace) is None:
                self.cluster.create(self._mon(mon, image), manager=MANAGER)
        token = world.token("ceph", ceph.cluster, "admin")
        self._secret(
            MON,
            {
                "ceph-username": "client.admin",
                "ceph-secret": token,
                "fsid": ceph.fsid,
                "mon-secret": world.token("ceph", ceph.cluster, "mon"),
                "cluster-name": self.namespace,
            },
        )
        self._secret(
            "rook-ceph-mons-keyring", {"keyring": world.token("ceph", ceph.cluster, "mon")}
        )
        there = ceph.in_quorum()
        at = {mon: self._address(where) for mon, where in sorted(ceph.mons.items())}
        self._secret(
            "rook-ceph-config",
            {"mon_host": ",".join(at.values()), "mon_initial_members": ",".join(at)},
        )
        self._config("rook-config-override", {"config": ""})
        away = [mon for mon in ceph.mons if mon not in there]
        self._config(
            ENDPOINTS,
            {
                "data": ",".join(f"{mon}={address}:6789" for mon, address in at.items()),
                "maxMonId": str(max(len(ceph.mons) - 1, 0)),
                "mapping": "{}",
                "outOfQuorum": ",".join(sorted(away)) if ceph.quorum else "",
                "externalMons": ",".join(mon for mon in sorted(ceph.external) if mon in there),
            },
        )

    def _mon(self, mon: str, image: str) -> dict[str, Any]:
        labels = {
            "app": MON,
            "mon": mon,
            "ceph_daemon_type": "mon",
            "ceph_daemon_id": mon,
            "app.kubernetes.io/part-of": self.name,
        }
        override = {"sources": [{"configMap": {"name": "rook-config-override"}}]}
        keyring = {"secretName": "rook-ceph-mons-keyring"}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": f"{MON}-{mon}",
                "namespace": self.namespace,
                "labels": labels,
            },
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": MON, "mon": mon}},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "containers": [{"name": "mon", "image": image}],
                        "volumes": [
                            {"name": "rook-ceph-mons-keyring", "secret": keyring},
                            {"name": "rook-config-override", "projected": override},
                        ],
                    },
                },
            },
        }

    def _address(self, machine: str) -> str:
        found = self.ceph.machine(machine)
        node = self.cluster.get(NODE, found.node.partition("/")[2]) if found else None
        for one in (node or {}).get("status", {}).get("addresses") or ():
            if one["type"] == "InternalIP":
                return str(one["address"])
        return found.address if found is not None else ""

    def _secret(self, name: str, data: dict[str, str]) -> None:
        secret(self.cluster, self.namespace, name, data)

    def _config(self, name: str, data: dict[str, str]) -> None:
        live = self.cluster.get(CONFIGMAP, name, self.namespace)
        if live is not None and live.get("data") == data:
            return
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": self.namespace},
            "data": data,
        }
        self.cluster.apply(body, manager=MANAGER)


def secret(cluster: Cluster, namespace: str, name: str, data: dict[str, str]) -> None:
    """A Secret of Rook's type; written only if it says something else."""
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    live = cluster.get(SECRET, name, namespace)
    if live is not None and live.get("data") == encoded:
        return
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/rook",
        "data": encoded,
    }
    cluster.apply(body, manager=MANAGER)
