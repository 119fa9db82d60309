"""
The pods of the region's OpenBao, as its chart makes them on the management cluster.

A StatefulSet `openbao`, a pod and a volume claim for each member, and the Service `openbao`; every
Service of type LoadBalancer that selects these pods, or one of them, gets its address. A pod
starts sealed and is ready only while its member is open, so a release that waits for it waits for
ever. A pod that is deleted comes back, sealed; with all claims deleted it comes back empty.
Sources: sections 7.2 and 12 of the CobaltCore facts and `real-secrets` 2. What the members answer
is `fleetd.sim.services.openbao`.
"""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Controller, Key, Obj, age, key_of
from fleetd.sim.kube.cluster import GK, Change
from fleetd.sim.services.openbao.members import Member
from fleetd.sim.services.openbao.service import PORT, OpenBao

NAMESPACE = "shared-services"
NAME = "openbao"
STATEFULSET: GK = ("apps", "StatefulSet")
POD: GK = ("", "Pod")
CLAIM: GK = ("", "PersistentVolumeClaim")
SERVICE: GK = ("", "Service")
NODE: GK = ("", "Node")
RELEASE: GK = ("helm.toolkit.fluxcd.io", "HelmRelease")
POD_NAME = "statefulset.kubernetes.io/pod-name"
LABELS = {"app.kubernetes.io/instance": NAME, "component": "server"}


class OpenBaoPods(Controller):
    name = "openbao-chart"
    watches = (STATEFULSET, POD, CLAIM, SERVICE)

    def start(self) -> None:
        super().start()
        bao = self._bao()
        if bao is not None:
            bao.members.changed = self._opened
            self._ensure(_namespace())
            self._ensure(_statefulset(self._replicas()))
            self._ensure(_service(self._address(bao.name)))

    def stop(self) -> None:
        super().stop()
        bao = self._bao()
        for member in bao.members.all if bao is not None else ():
            bao.members.stop(member.number) if bao is not None else None

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk == NODE and change.type != "MODIFIED":
            yield Key(STATEFULSET, NAMESPACE, NAME)
        if change.object["metadata"].get("namespace") != NAMESPACE:
            return
        if change.gk in (POD, CLAIM):
            if change.type == "DELETED" and change.gk == POD:
                self._ended(change.object)
            yield Key(STATEFULSET, NAMESPACE, NAME)
        elif change.gk == SERVICE or change.object["metadata"]["name"] == NAME:
            yield from super().keys(change)

    def reconcile(self, key: Key) -> float | None:
        bao = self._bao()
        if bao is None or key.namespace != NAMESPACE or key.gk in (POD, CLAIM):
            return None
        if key.gk == SERVICE:
            self._serve(key, bao)
            return None
        found = self.get(key)
        if found is None or not self._nodes():
            return None
        waits: list[float] = []
        for number in range(int(found["spec"]["replicas"])):
            wait = self._pod(bao, bao.members.all[number], found)
            if wait is not None:
                waits.append(wait)
        return min(waits, default=None)

    def _pod(self, bao: OpenBao, member: Member, owner: Obj) -> float | None:
        """One pod, a step further; seconds until the next."""
        key = Key(POD, NAMESPACE, member.node)
        pod = self.get(key)
        if pod is None:
            if not self._claims() and bao.data.initialised and not self._running(bao):
                bao.members.wipe()
            self._ensure(_claim(member.node))
            self._ensure(_pod(member.node, owner))
            return 0.1
        status: Obj = pod.get("status") or {}
        phase = status.get("phase")
        if phase is None:
            self.cluster.set_status(
                POD, key.name, NAMESPACE, {"phase": "Pending"}, manager="kubelet"
            )
        if phase in (None, "Pending"):
            needed = self.span(5, 20, key, pod["metadata"]["uid"])
            waited = age(self.world, pod["metadata"]["creationTimestamp"])
            if waited < needed:
                return needed - waited
            bao.members.start(member.number)
            self._show(member)
        return None

    def _ended(self, pod: Obj) -> None:
        bao = self._bao()
        for member in bao.members.all if bao is not None else ():
            if bao is not None and member.node == pod["metadata"]["name"]:
                bao.members.stop(member.number)

    def _opened(self) -> None:
        """A member was sealed or unsealed; the kubelet notices with its next probe."""
        bao = self._bao()
        for member in bao.members.all if bao is not None else ():
            if member.running and not self._stopped:
                self._show(member)

    def _show(self, member: Member) -> None:
        ready = "True" if member.serves else "False"
        started = {"name": NAME, "ready": member.serves, "restartCount": 0}
        self.status(
            Key(POD, NAMESPACE, member.node),
            {
                "phase": "Running",
                "conditions": [
                    self.condition("PodScheduled", "True", "Scheduled"),
                    self.condition("Ready", ready, "" if member.serves else "ContainersNotReady"),
                ],
                "containerStatuses": [started],
            },
        )

    def _serve(self, key: Key, bao: OpenBao) -> None:
        found = self.get(key)
        if found is None or found["spec"].get("type") != "LoadBalancer":
            return
        selector: Mapping[str, str] = found["spec"].get("selector") or {}
        one = selector.get(POD_NAME, "")
        if not one and selector.get("app.kubernetes.io/instance") != NAME:
            return
        number = one.rpartition("-")[2]
        address = self._address(f"{bao.name}-{number}" if one else bao.name)
        ingress: dict[str, Any] = {"hostname": address.hostname or ""}
        if address.port:
            ingress["ports"] = [{"port": address.port, "protocol": "TCP"}]
        status: Obj = found.get("status") or {}
        if status.get("loadBalancer") != {"ingress": [ingress]}:
            self.status(key, {"loadBalancer": {"ingress": [ingress]}})

    # Small things.

    def _address(self, name: str) -> Any:  # noqa: ANN401 - urlsplit's result has no short name
        return urlsplit(self.world.address(name))

    def _bao(self) -> OpenBao | None:
        """The one that stands on this cluster, if there is one."""
        for service in self.world.services.values():
            if isinstance(service, OpenBao) and service.cluster == self.cluster.name:
                return service
        return None

    def _replicas(self) -> int:
        """As the release says."""
        for release in self.cluster.list(RELEASE):
            spec: Obj = release["spec"]
            if spec.get("releaseName") == NAME:
                values: Obj = spec.get("values") or {}
                return int(values.get("server", {}).get("ha", {}).get("replicas", 3))
        return 3

    def _nodes(self) -> bool:
        return bool(self.cluster.list(NODE))

    def _claims(self) -> list[Obj]:
        return [
            one
            for one in self.cluster.list(CLAIM, NAMESPACE)
            if one["metadata"]["name"].startswith("data-openbao-")
        ]

    def _running(self, bao: OpenBao) -> bool:
        return any(member.running for member in bao.members.all)

    def _ensure(self, obj: dict[str, Any]) -> None:
        gk: GK = (obj["apiVersion"].rpartition("/")[0], obj["kind"])
        key = key_of(gk, obj)
        if self.cluster.get(gk, key.name, key.namespace) is None:
            self.cluster.create(obj, manager=self.name)


def _namespace() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def _statefulset(replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": LABELS},
        "spec": {
            "replicas": replicas,
            "serviceName": "openbao-internal",
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": {"containers": []}},
        },
    }


def _service(address: Any) -> dict[str, Any]:  # noqa: ANN401
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": LABELS},
        "spec": {
            "type": "LoadBalancer",
            "publishNotReadyAddresses": True,
            "selector": LABELS,
            "ports": [{"name": address.scheme or "https", "port": PORT, "protocol": "TCP"}],
        },
    }


def _claim(node: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"data-{node}", "namespace": NAMESPACE, "labels": LABELS},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
        },
    }


def _pod(node: str, owner: Obj) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": node,
            "namespace": NAMESPACE,
            "labels": {**LABELS, POD_NAME: node},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "StatefulSet",
                    "name": NAME,
                    "uid": owner["metadata"]["uid"],
                    "controller": True,
                }
            ],
        },
        "spec": {"containers": [{"name": NAME, "image": "openbao"}]},
    }


CHARTS: Mapping[str, Chart] = {
    "openbao": Chart(controllers=(OpenBaoPods,), seconds=(20.0, 60.0)),
}
