"""
garage-operator: a GarageCluster with its buckets and keys; needs the admin token that it names.

Imitates the kinds that C5C3 uses for the images of Glance (garage.rajsingh.info).
"""

from collections.abc import Mapping
from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.workloads_look import part
from fleetd.sim.controllers.workloads_settle import Settling
from fleetd.sim.kube.cluster import GK
from fleetd.sim.kube.definitions import Definition

GROUP = "garage.rajsingh.info"
GARAGE: GK = (GROUP, "GarageCluster")
BUCKET: GK = (GROUP, "GarageBucket")
KEY: GK = (GROUP, "GarageKey")
SECRET: GK = ("", "Secret")
DEFINITIONS = (
    Definition(
        group=GROUP, kind="GarageCluster", plural="garageclusters", versions=("v1beta2", "v1beta1")
    ),
    Definition(group=GROUP, kind="GarageBucket", plural="garagebuckets", versions=("v1beta1",)),
    Definition(group=GROUP, kind="GarageKey", plural="garagekeys", versions=("v1beta1",)),
)


class GarageClusters(Settling):
    name = "garage-operator"
    watches = (GARAGE,)
    kind = GARAGE
    awaits = (SECRET,)
    seconds = (60.0, 150.0)

    def lacks(self, obj: Obj) -> dict[str, Any] | None:
        ref = part(part(obj["spec"], "admin"), "adminTokenSecretRef")
        if not ref or self.secret(ref["name"], obj["metadata"]["namespace"]) is not None:
            return None
        return {"phase": "Pending", "replicas": self._count(obj), "readyReplicas": 0}

    def starting(self, obj: Obj) -> dict[str, Any]:
        return {
            "phase": "Creating" if not part(obj, "status").get("phase") else "Updating",
            "replicas": self._count(obj),
            "readyReplicas": 0,
            "observedGeneration": obj["metadata"]["generation"],
        }

    def ready(self, obj: Obj) -> dict[str, Any]:
        return {
            "phase": "Running",
            "replicas": self._count(obj),
            "readyReplicas": self._count(obj),
            "observedGeneration": obj["metadata"]["generation"],
        }

    def lost(self, obj: Obj) -> dict[str, Any]:
        return {"phase": "Degraded", "replicas": self._count(obj), "readyReplicas": 0}

    def _count(self, obj: Obj) -> int:
        return int(part(obj["spec"], "storage").get("replicas", 1))


class _Member(Settling):
    awaits = (GARAGE,)
    seconds = (2.0, 6.0)

    def lacks(self, obj: Obj) -> dict[str, Any] | None:
        name = str(part(obj["spec"], "clusterRef").get("name", ""))
        live = self.cluster.get(GARAGE, name, obj["metadata"]["namespace"])
        if live is not None and part(live, "status").get("phase") == "Running":
            return None
        return {"phase": "Pending"}

    def starting(self, obj: Obj) -> dict[str, Any]:
        del obj
        return {"phase": "Creating"}

    def ready(self, obj: Obj) -> dict[str, Any]:
        return {"phase": "Ready", "observedGeneration": obj["metadata"]["generation"]}


class GarageBuckets(_Member):
    name = "garage-buckets"
    watches = (BUCKET,)
    kind = BUCKET


class GarageKeys(_Member):
    name = "garage-keys"
    watches = (KEY,)
    kind = KEY


CHARTS: Mapping[str, Chart] = {
    "garage-operator": Chart(
        definitions=DEFINITIONS,
        controllers=(GarageClusters, GarageBuckets, GarageKeys),
        deployments=("garage-operator",),
    )
}
