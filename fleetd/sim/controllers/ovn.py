"""
ovn-operator of openstack-k8s-operators: the northbound and southbound databases, and northd.

Imitates cobaltcore 12: conditions with a severity, `readyCount`, `internalDbAddress`. northd waits
for both databases.
"""

from collections.abc import Mapping
from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.workloads_look import condition
from fleetd.sim.controllers.workloads_settle import Settling
from fleetd.sim.kube.cluster import GK
from fleetd.sim.kube.definitions import Definition

GROUP = "ovn.openstack.org"
DATABASE: GK = (GROUP, "OVNDBCluster")
NORTHD: GK = (GROUP, "OVNNorthd")
DEFINITIONS = (
    Definition(group=GROUP, kind="OVNDBCluster", plural="ovndbclusters", versions=("v1beta1",)),
    Definition(group=GROUP, kind="OVNNorthd", plural="ovnnorthds", versions=("v1beta1",)),
    Definition(group=GROUP, kind="OVNController", plural="ovncontrollers", versions=("v1beta1",)),
)
_PORTS = {"NB": 6641, "SB": 6642}


class _Ovn(Settling):
    def _said(self, status: str, reason: str, message: str) -> list[dict[str, Any]]:
        made = self.condition("Ready", status, reason, message)
        if status == "False":
            made["severity"] = "Info"
        return [made]

    def starting(self, obj: Obj) -> dict[str, Any]:
        return {
            "conditions": self._said("False", "Requested", "Deployment in progress"),
            "observedGeneration": obj["metadata"]["generation"],
            "readyCount": 0,
        }

    def ready(self, obj: Obj) -> dict[str, Any]:
        return {
            "conditions": self._said("True", "Ready", "Setup complete"),
            "observedGeneration": obj["metadata"]["generation"],
            "readyCount": int(obj["spec"].get("replicas", 1)),
        }

    def lost(self, obj: Obj) -> dict[str, Any]:
        del obj
        said = "Deployment in progress"
        return {"conditions": self._said("False", "Requested", said), "readyCount": 0}


class OvnDatabases(_Ovn):
    name = "ovndbcluster-controller"
    watches = (DATABASE,)
    kind = DATABASE
    seconds = (30.0, 90.0)

    def ready(self, obj: Obj) -> dict[str, Any]:
        name, space = obj["metadata"]["name"], obj["metadata"]["namespace"]
        port = _PORTS[str(obj["spec"].get("dbType", "NB"))]
        hosts = [f"{name}-{n}.{space}.svc" for n in range(int(obj["spec"].get("replicas", 1)))]
        address = ",".join(f"ssl:{host}:{port}" for host in hosts)
        return {**super().ready(obj), "internalDbAddress": address, "dbAddress": address}


class OvnNorthds(_Ovn):
    name = "ovnnorthd-controller"
    watches = (NORTHD,)
    kind = NORTHD
    awaits = (DATABASE,)
    seconds = (10.0, 30.0)

    def lacks(self, obj: Obj) -> dict[str, Any] | None:
        found = self.cluster.list(DATABASE, obj["metadata"]["namespace"])
        up = {
            str(one["spec"].get("dbType", "NB"))
            for one in found
            if condition(one, "Ready") == "True"
        }
        if up >= {"NB", "SB"}:
            return None
        return {"conditions": self._said("False", "Requested", "OVN databases are not ready")}


CHARTS: Mapping[str, Chart] = {
    "ovn-operator": Chart(
        definitions=DEFINITIONS,
        controllers=(OvnDatabases, OvnNorthds),
        deployments=("ovn-operator-controller-manager",),
    )
}
