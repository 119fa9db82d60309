"""
Placement: traits and resource providers, as far as hypervisors are onboarded with them.

Imitates microversions from 1.6 on: a custom trait must be made (`PUT /traits/CUSTOM_X`) before a
provider can have it; `No such trait` is the 400 that sends the hypervisor operator into its loop.
Candidates for an allocation know what fits and whether a host is disabled, but not whether it is
up: that only Nova knows.
"""

from typing import Any

from fleetd.sim.services.openstack_compute import VM_MEMORY, VM_VCPUS
from fleetd.sim.services.openstack_http import Api, Call, Refused, route
from fleetd.sim.world import HttpResponse


class Placement(Api):
    service = "placement"
    microversion = "placement"

    def versions(self, call: Call) -> dict[str, Any]:
        del call
        return {
            "versions": [
                {
                    "id": "v1.0",
                    "min_version": "1.0",
                    "max_version": "1.39",
                    "status": "CURRENT",
                    "links": [{"rel": "self", "href": ""}],
                }
            ]
        }

    def traits(self, call: Call) -> dict[str, Any]:
        asked = call.query.get("name", "")
        names = list(self.cloud.traits)
        if asked.startswith("startswith:"):
            names = [name for name in names if name.startswith(asked.removeprefix("startswith:"))]
        elif asked.startswith("in:"):
            wanted = asked.removeprefix("in:").split(",")
            names = [name for name in names if name in wanted]
        return {"traits": names}

    def trait(self, call: Call) -> HttpResponse:
        if call.parts["name"] not in self.cloud.traits:
            raise Refused(404, f"No such trait: {call.parts['name']}")
        return HttpResponse(status=204)

    def make_trait(self, call: Call) -> HttpResponse:
        name = call.parts["name"]
        if not name.startswith("CUSTOM_"):
            raise Refused(400, "The trait is invalid. A valid trait must start with CUSTOM_")
        known = name in self.cloud.traits
        self.cloud.traits[name] = None
        return HttpResponse(status=204 if known else 201)

    def drop_trait(self, call: Call) -> HttpResponse:
        name = call.parts["name"]
        if any(name in host.traits for host in self.cloud.nova.hosts.values()):
            raise Refused(409, f"The trait {name} is in use by a resource provider.")
        if self.cloud.traits.pop(name, 0) == 0:
            raise Refused(404, f"No such trait: {name}")
        return HttpResponse(status=204)

    def providers(self, call: Call) -> dict[str, Any]:
        name = call.query.get("name")
        return {
            "resource_providers": [
                {"uuid": host.hypervisor, "name": host.host, "generation": 1, "links": []}
                for host in self.cloud.nova.hosts.values()
                if name in (None, host.host)
            ]
        }

    def candidates(self, call: Call) -> dict[str, Any]:
        asked = dict(one.split(":") for one in call.query.get("resources", "").split(",") if one)
        if set(asked) != {"VCPU", "MEMORY_MB"}:
            raise Refused(400, "Invalid query string parameters: resources")
        enabled = call.query.get("required", "") == "!COMPUTE_STATUS_DISABLED"
        found: dict[str, Any] = {}
        for host in self.cloud.nova.hosts.values():
            used = self.cloud.nova.load(host.host)
            has = {
                "VCPU": {"capacity": host.room * VM_VCPUS, "used": used * VM_VCPUS},
                "MEMORY_MB": {"capacity": host.room * VM_MEMORY, "used": used * VM_MEMORY},
            }
            fits = all(
                one["used"] + int(asked[kind]) <= one["capacity"] for kind, one in has.items()
            )
            if fits and not (enabled and host.disabled):
                found[host.hypervisor] = {"resources": has, "traits": list(host.traits)}
        requests = [{"allocations": {uuid: {"resources": asked}}} for uuid in found]
        return {"allocation_requests": requests, "provider_summaries": found}

    def provider_traits(self, call: Call) -> dict[str, Any]:
        hosts = self.cloud.nova.hosts.values()
        found = next((one for one in hosts if one.hypervisor == call.parts["id"]), None)
        if found is None:
            raise Refused(404, f"No resource provider with uuid {call.parts['id']} found")
        return {"traits": list(found.traits), "resource_provider_generation": 1}


Placement.routes = (
    route("GET", "/", Placement.versions, free=True),
    route("GET", "/traits", Placement.traits),
    route("GET", "/traits/{name}", Placement.trait),
    route("PUT", "/traits/{name}", Placement.make_trait),
    route("DELETE", "/traits/{name}", Placement.drop_trait),
    route("GET", "/allocation_candidates", Placement.candidates),
    route("GET", "/resource_providers", Placement.providers),
    route("GET", "/resource_providers/{id}/traits", Placement.provider_traits),
)
