"""
Neutron's API, by OVN: networks, and the agents it lists.

There are no agents of its own but the chassis: one on each hypervisor that runs ovn-controller,
and a gateway beside the server. Reads only; networks are made through K-ORC.
"""

from typing import Any

from fleetd.sim.services.openstack_http import Api, Call, route


class NeutronApi(Api):
    service = "neutron"

    def versions(self, call: Call) -> dict[str, Any]:
        del call
        links = [{"rel": "self", "href": f"{self.address}/v2.0/"}]
        return {"versions": [{"id": "v2.0", "status": "CURRENT", "links": links}]}

    def version(self, call: Call) -> dict[str, Any]:
        del call
        return {"resources": []}

    def agents(self, call: Call) -> dict[str, Any]:
        del call
        cloud = self.cloud
        shown = [self._agent("OVN Controller Gateway agent", "gateway-0", alive=True)]
        for host in cloud.nova.hosts.values():
            alive = (host.cluster, "ovn-controller") in cloud.world.controllers
            shown.append(self._agent("OVN Controller agent", host.host, alive=alive))
        return {"agents": shown}

    def _agent(self, kind: str, host: str, *, alive: bool) -> dict[str, Any]:
        return {
            "id": self.cloud.uid("agent", kind, host),
            "agent_type": kind,
            "binary": "ovn-controller",
            "host": host,
            "alive": alive,
            "admin_state_up": True,
        }

    def networks(self, call: Call) -> dict[str, Any]:
        rows = self.cloud.tables.get("Network", {}).values()
        name = call.query.get("name")
        return {
            "networks": [
                {"id": row.id, "name": row.name, "shared": bool(row.more.get("shared"))}
                for row in rows
                if name in (None, row.name)
            ]
        }


NeutronApi.routes = (
    route("GET", "/", NeutronApi.versions, free=True),
    route("GET", "/v2.0", NeutronApi.version, free=True),
    route("GET", "/v2.0/agents", NeutronApi.agents),
    route("GET", "/v2.0/networks", NeutronApi.networks),
)
