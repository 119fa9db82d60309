"""
Cinder's API: its services and volume types.

A service is up while its Deployment has a pod that works. Reads only; types are made through
K-ORC.
"""

from typing import Any

from fleetd.sim.services.openstack import DEPLOYED
from fleetd.sim.services.openstack_http import Api, Call, route


class CinderApi(Api):
    service = "cinder"
    microversion = "volume"

    def version(self, call: Call) -> dict[str, Any]:
        del call
        return {
            "versions": [
                {
                    "id": "v3.0",
                    "status": "CURRENT",
                    "version": "3.71",
                    "min_version": "3.0",
                    "links": [{"rel": "self", "href": f"{self.address}/v3/"}],
                }
            ]
        }

    def services(self, call: Call) -> dict[str, Any]:
        del call
        shown: list[dict[str, Any]] = []
        for name in DEPLOYED["cinder"][1:]:
            host = "cinder@rbd" if name == "cinder-volume" else "cinder"
            state = "up" if self.cloud.heard(name) else "down"
            shown.append(
                {"binary": name, "host": host, "zone": "nova", "status": "enabled", "state": state}
            )
        return {"services": shown}

    def types(self, call: Call) -> dict[str, Any]:
        del call
        rows = self.cloud.tables.get("VolumeType", {}).values()
        return {"volume_types": [{"id": row.id, "name": row.name} for row in rows]}


CinderApi.routes = (
    route("GET", "/", CinderApi.version, free=True),
    route("GET", "/v3", CinderApi.version, free=True),
    route("GET", "/v3/os-services", CinderApi.services),
    route("GET", "/v3/types", CinderApi.types),
)
