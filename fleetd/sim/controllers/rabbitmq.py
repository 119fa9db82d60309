"""
RabbitMQ cluster operator: three members in one to three minutes, then the Secret of its user.

Imitates cobaltcore 12: the four conditions, `status.defaultUser` and the Secret
`<name>-default-user` that others read.
"""

from collections.abc import Mapping
from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.workloads_settle import Settling
from fleetd.sim.kube.definitions import Definition

GROUP = "rabbitmq.com"
CLUSTER = (GROUP, "RabbitmqCluster")
DEFINITIONS = (
    Definition(
        group=GROUP,
        kind="RabbitmqCluster",
        plural="rabbitmqclusters",
        versions=("v1beta1",),
        short_names=("rmq",),
    ),
)
_KINDS = ("AllReplicasReady", "ClusterAvailable", "ReconcileSuccess", "NoWarnings")


class RabbitmqClusters(Settling):
    name = "rabbitmq-cluster-operator"
    watches = (CLUSTER,)
    kind = CLUSTER
    seconds = (60.0, 180.0)

    def starting(self, obj: Obj) -> dict[str, Any]:
        return {
            "conditions": [
                self.condition("AllReplicasReady", "False", "NotAllPodsReady", "0/3 Pods ready"),
                self.condition("ClusterAvailable", "False", "NoEndpointsAvailable", ""),
                self.condition("ReconcileSuccess", "Unknown", "Initialising", ""),
                self.condition("NoWarnings", "True", "NoWarnings", ""),
            ],
            "observedGeneration": obj["metadata"]["generation"],
        }

    def ready(self, obj: Obj) -> dict[str, Any]:
        name, space = obj["metadata"]["name"], obj["metadata"]["namespace"]
        reasons = ("AllPodsAreReady", "AtLeastOneEndpointAvailable", "Success", "NoWarnings")
        keys = {"username": "username", "password": "password"}
        return {
            "conditions": [
                self.condition(kind, "True", reason)
                for kind, reason in zip(_KINDS, reasons, strict=True)
            ],
            "observedGeneration": obj["metadata"]["generation"],
            "binding": {"name": f"{name}-default-user"},
            "defaultUser": {
                "secretReference": {
                    "name": f"{name}-default-user",
                    "namespace": space,
                    "keys": keys,
                },
                "serviceReference": {"name": name, "namespace": space},
            },
        }

    def finished(self, obj: Obj) -> None:
        name, space = f"{obj['metadata']['name']}-default-user", obj["metadata"]["namespace"]
        if self.secret(name, space) is None:
            self.cluster.create(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": name, "namespace": space},
                    "stringData": {
                        "username": "default_user",
                        "password": self.world.token("rabbitmq", self.cluster.name, name),
                        "host": f"{obj['metadata']['name']}.{space}.svc",
                        "port": "5672",
                    },
                },
                manager=self.name,
            )


CHARTS: Mapping[str, Chart] = {
    "rabbitmq-cluster-operator": Chart(
        definitions=DEFINITIONS,
        controllers=(RabbitmqClusters,),
        deployments=("rabbitmq-cluster-operator",),
    )
}
