"""
Nova, Neutron and Cinder have no operator: the Services that their APIs are reached by.

Their Deployments come from the cluster's folder in Git. Each API has a Service of type
LoadBalancer, which has an address a while after it was made; until then nobody knows where the API
is. One rule: the address comes from the world, never from a manifest.
"""

from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import urlsplit

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Controller, Key, age, key_of
from fleetd.sim.services import openstack

SERVICE = ("", "Service")
DEPLOYMENT = ("apps", "Deployment")


class Exposed(Controller):
    """Makes the Service of one API, and gives it an address as a load balancer would."""

    service: ClassVar[str] = ""
    watches = (SERVICE,)

    @property
    def api(self) -> str:
        return openstack.DEPLOYED[self.service][0]

    def start(self) -> None:
        super().start()
        for obj in self.cluster.list(DEPLOYMENT):
            metadata = obj["metadata"]
            if metadata["name"] == self.api:
                self._expose(metadata["namespace"])
                for one in self.cluster.list(SERVICE, metadata["namespace"]):
                    self.wake(key_of(SERVICE, one))

    def _expose(self, namespace: str) -> None:
        cloud = openstack.of_control_plane(self.world, self.cluster.name)
        if cloud is None or self.cluster.get(SERVICE, self.api, namespace) is not None:
            return
        url = urlsplit(cloud.address(self.service))
        port = url.port or (443 if url.scheme == "https" else 80)
        self.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": self.api, "namespace": namespace},
                "spec": {
                    "type": "LoadBalancer",
                    "selector": {"app": self.api},
                    "ports": [{"name": url.scheme, "port": port}],
                },
            },
            manager=self.name,
        )

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        cloud = openstack.of_control_plane(self.world, self.cluster.name)
        if (
            obj is None
            or cloud is None
            or key.name != self.api
            or obj.get("status", {}).get("loadBalancer", {}).get("ingress")
        ):
            return None
        left = self.span(5.0, 20.0, key, "address") - age(
            self.world, obj["metadata"]["creationTimestamp"]
        )
        if left > 0.01:
            return left
        host = urlsplit(cloud.address(self.service)).hostname or ""
        where = "ip" if host.replace(".", "").isdigit() else "hostname"
        self.status(key, {"loadBalancer": {"ingress": [{where: host}]}})
        return None


def _exposed(service: str) -> type[Exposed]:
    made: type[Exposed] = type(
        f"{service.capitalize()}Exposed",
        (Exposed,),
        {"name": f"{service}-service", "service": service},
    )
    return made


CHARTS: Mapping[str, Chart] = {
    service: Chart(deployments=names, controllers=(_exposed(service),), seconds=(30.0, 90.0))
    for service, names in openstack.DEPLOYED.items()
}
"""There is no chart; but what runs in a Deployment is found by its label, as that of a chart is."""
