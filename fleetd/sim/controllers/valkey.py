"""valkey-operator of SAP: `status.state` and the Secret `valkey-<name>-binding` (cobaltcore 12)."""

from collections.abc import Mapping
from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.workloads_settle import Settling
from fleetd.sim.kube.definitions import Definition

GROUP = "cache.cs.sap.com"
VALKEY = (GROUP, "Valkey")
DEFINITIONS = (Definition(group=GROUP, kind="Valkey", plural="valkeys", versions=("v1alpha1",)),)


class Valkeys(Settling):
    name = "valkey-operator"
    watches = (VALKEY,)
    kind = VALKEY
    seconds = (30.0, 90.0)

    def starting(self, obj: Obj) -> dict[str, Any]:
        said = "Dependent resources are being applied"
        return {
            "state": "Processing",
            "conditions": [self.condition("Ready", "Unknown", "Processing", said)],
            "observedGeneration": obj["metadata"]["generation"],
        }

    def ready(self, obj: Obj) -> dict[str, Any]:
        said = "Component has been successfully reconciled"
        return {
            "state": "Ready",
            "conditions": [self.condition("Ready", "True", "Ready", said)],
            "observedGeneration": obj["metadata"]["generation"],
            "appliedGeneration": obj["metadata"]["generation"],
        }

    def lost(self, obj: Obj) -> dict[str, Any]:
        del obj
        said = self.condition("Ready", "False", "Error", "no pod could be scheduled")
        return {"state": "Error", "conditions": [said]}

    def finished(self, obj: Obj) -> None:
        name, space = f"valkey-{obj['metadata']['name']}-binding", obj["metadata"]["namespace"]
        if self.secret(name, space) is None:
            self.cluster.create(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": name, "namespace": space},
                    "stringData": {
                        "host": f"{obj['metadata']['name']}.{space}.svc",
                        "port": "6379",
                        "password": self.world.token("valkey", self.cluster.name, name),
                    },
                },
                manager=self.name,
            )


CHARTS: Mapping[str, Chart] = {
    "valkey-operator": Chart(
        definitions=DEFINITIONS, controllers=(Valkeys,), deployments=("valkey-operator",)
    )
}
