"""memcached-operator of C5C3: a Deployment of caches; conditions as in cobaltcore 12."""

from collections.abc import Mapping
from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.workloads_settle import Settling
from fleetd.sim.kube.definitions import Definition

GROUP = "memcached.c5c3.io"
MEMCACHED = (GROUP, "Memcached")
DEFINITIONS = (
    Definition(
        group=GROUP, kind="Memcached", plural="memcacheds", versions=("v1beta1", "v1alpha1")
    ),
)


class Memcacheds(Settling):
    name = "memcached-operator"
    watches = (MEMCACHED,)
    kind = MEMCACHED
    seconds = (15.0, 45.0)

    def starting(self, obj: Obj) -> dict[str, Any]:
        generation = obj["metadata"]["generation"]
        said = (("Available", "False"), ("Progressing", "True"), ("Degraded", "False"))
        return {
            "conditions": [
                *(self.condition(one, is_, "Progressing", "Rolling out") for one, is_ in said),
                self.condition("Ready", "False", "NotReady", "Rolling out"),
            ],
            "observedGeneration": generation,
            "readyReplicas": 0,
        }

    def ready(self, obj: Obj) -> dict[str, Any]:
        name, space = obj["metadata"]["name"], obj["metadata"]["namespace"]
        count = int(obj["spec"].get("replicas", 1))
        said = (("Available", "True"), ("Progressing", "False"), ("Degraded", "False"))
        return {
            "conditions": [
                *(self.condition(one, is_, "AsExpected", "All pods ready") for one, is_ in said),
                self.condition("Ready", "True", "AsExpected", "All pods ready"),
            ],
            "observedGeneration": obj["metadata"]["generation"],
            "readyReplicas": count,
            "serverList": [f"{name}-{n}.{name}.{space}.svc:11211" for n in range(count)],
        }

    def lost(self, obj: Obj) -> dict[str, Any]:
        del obj
        said = (("Available", "False"), ("Degraded", "True"), ("Ready", "False"))
        made = [self.condition(one, is_, "Unavailable", "No pod is ready") for one, is_ in said]
        return {"conditions": made, "readyReplicas": 0}


CHARTS: Mapping[str, Chart] = {
    "memcached-operator": Chart(
        definitions=DEFINITIONS, controllers=(Memcacheds,), deployments=("memcached-operator",)
    )
}
