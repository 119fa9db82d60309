"""Glance's API: the images. Reads only; images are made through K-ORC, which lets Glance load
them."""

from typing import Any

from fleetd.sim.services import openstack_http as http
from fleetd.sim.services.openstack_http import Api, Call, route
from fleetd.sim.world import HttpResponse


class GlanceApi(Api):
    service = "glance"

    def versions(self, call: Call) -> HttpResponse:
        del call
        links = [{"rel": "self", "href": f"{self.address}/v2/"}]
        return http.reply(
            {"versions": [{"id": "v2.17", "status": "CURRENT", "links": links}]}, status=300
        )

    def images(self, call: Call) -> dict[str, Any]:
        rows = self.cloud.tables.get("Image", {}).values()
        name = call.query.get("name")
        shown = [
            {"id": row.id, "name": row.name, "status": row.more.get("status", "active")}
            for row in rows
            if name in (None, row.name)
        ]
        return {"images": shown, "first": "/v2/images", "schema": "/v2/schemas/images"}


GlanceApi.routes = (
    route("GET", "/", GlanceApi.versions, free=True),
    route("GET", "/v2/images", GlanceApi.images),
)
