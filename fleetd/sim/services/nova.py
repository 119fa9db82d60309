"""
Nova's API: services, hypervisors, aggregates, servers, migrations, flavors.

Imitates 2.1 to 2.96, as far as a client of a recent version looks: uuids for services (2.53) and
hypervisors (2.53), servers without host fields for others than admins. What it shows is
`openstack_compute.Nova`. A service is `up` while its process lives, which is not what Kubernetes
says of its pod.
"""

from datetime import timedelta
from typing import Any

from fleetd.sim.services import openstack_http as http
from fleetd.sim.services import openstack_shape as shape
from fleetd.sim.services.openstack import DEPLOYED
from fleetd.sim.services.openstack_compute import (
    VM_MEMORY,
    VM_VCPUS,
    Aggregate,
    Host,
    Migration,
    Vm,
    show,
)
from fleetd.sim.services.openstack_http import Api, Call, Refused, route
from fleetd.sim.world import HttpResponse

MIN, MAX = "2.1", "2.96"


class NovaApi(Api):
    service = "nova"
    microversion = "compute"

    def versions(self, call: Call) -> dict[str, Any]:
        del call
        return {"versions": [self._version()]}

    def version(self, call: Call) -> dict[str, Any]:
        del call
        return {"version": self._version()}

    def _version(self) -> dict[str, Any]:
        return {
            "id": "v2.1",
            "status": "CURRENT",
            "version": MAX,
            "min_version": MIN,
            "links": [{"rel": "self", "href": f"{self.address}/v2.1/"}],
        }

    # Services.

    def services(self, call: Call) -> dict[str, Any]:
        shown = [
            {
                "id": self.cloud.uid("nova", name),
                "binary": name,
                "host": f"{name}-0",
                "zone": "internal",
                "status": "enabled",
                "disabled_reason": None,
                "state": "up" if self.cloud.heard(name) else "down",
                "forced_down": False,
            }
            for name in DEPLOYED["nova"][1:]
        ]
        shown += [
            dict(show(host, up=self.cloud.computing(host.host)))
            for host in self.cloud.nova.hosts.values()
        ]
        for key in ("binary", "host"):
            if key in call.query:
                shown = [one for one in shown if one[key] == call.query[key]]
        return {"services": shown}

    def set_service(self, call: Call) -> dict[str, Any]:
        host = self._service(call)
        body = call.body()
        if "status" in body:
            host.disabled = body["status"] == "disabled"
            host.reason = str(body.get("disabled_reason") or "") if host.disabled else ""
        if "forced_down" in body:
            host.forced_down = bool(body["forced_down"])
        return {"service": dict(show(host, up=self.cloud.computing(host.host)))}

    def drop_service(self, call: Call) -> HttpResponse:
        host = self._service(call)
        if any(True for _ in self.cloud.nova.on(host.host)):
            raise Refused(409, "Unable to delete compute service that is hosting instances.")
        self.cloud.nova.unregister(host.host)
        return HttpResponse(status=204)

    def _service(self, call: Call) -> Host:
        hosts = self.cloud.nova.hosts.values()
        found = next((one for one in hosts if one.id == call.parts["id"]), None)
        if found is None:
            raise Refused(404, f"Compute service {call.parts['id']} could not be found.")
        return found

    # Hypervisors.

    def hypervisors(self, call: Call) -> dict[str, Any]:
        pattern = call.query.get("hypervisor_hostname_pattern", "")
        found = self.cloud.nova.like(pattern)
        if pattern and not found:
            raise Refused(404, f"No hypervisor matching '{pattern}' could be found.")
        return {"hypervisors": [self._hypervisor(host) for host in found]}

    def _hypervisor(self, host: Host) -> dict[str, Any]:
        return {
            "id": host.hypervisor,
            "hypervisor_hostname": host.host,
            "hypervisor_type": "QEMU",
            "state": "up" if self.cloud.computing(host.host) else "down",
            "status": "disabled" if host.disabled else "enabled",
            "service": {"id": host.id, "host": host.host, "disabled_reason": host.reason or None},
            "servers": [{"uuid": vm.id, "name": vm.name} for vm in self.cloud.nova.on(host.host)],
        }

    # Aggregates.

    def aggregates(self, call: Call) -> dict[str, Any]:
        del call
        return {"aggregates": [_aggregate(one) for one in self.cloud.nova.aggregates.values()]}

    def make_aggregate(self, call: Call) -> dict[str, Any]:
        given = shape.part(call.body(), "aggregate")
        name = http.text(given.get("name"))
        if self.cloud.nova.aggregate(name) is not None:
            raise Refused(409, f"Aggregate {name} already exists.")
        made = self.cloud.nova.make_aggregate(name, str(given.get("availability_zone") or ""))
        return {"aggregate": _aggregate(made)}

    def drop_aggregate(self, call: Call) -> HttpResponse:
        found = self._aggregate(call)
        if found.hosts:
            raise Refused(409, f"Cannot remove host aggregate {found.name}: it is not empty.")
        del self.cloud.nova.aggregates[found.id]
        return HttpResponse(status=200)

    def change_aggregate(self, call: Call) -> dict[str, Any]:
        found, body = self._aggregate(call), call.body()
        if "set_metadata" in body:
            for key, value in shape.part(body, "set_metadata.metadata").items():
                if value is None:
                    found.metadata.pop(key, None)
                else:
                    found.metadata[str(key)] = str(value)
        elif "add_host" in body:
            self._add_host(found, http.text(body["add_host"].get("host")))
        elif "remove_host" in body:
            host = http.text(body["remove_host"].get("host"))
            if host not in found.hosts:
                raise Refused(404, f"Host {host} could not be found in aggregate {found.name}.")
            found.hosts.remove(host)
        else:
            raise Refused(400, "There is no such action.")
        return {"aggregate": _aggregate(found)}

    def _add_host(self, found: Aggregate, host: str) -> None:
        if host not in self.cloud.nova.hosts:
            raise Refused(404, f"Compute host {host} could not be found.")
        if host in found.hosts:
            raise Refused(409, f"Aggregate {found.id} already has host {host}.")
        zones = {one.zone for one in self.cloud.nova.of_host(host) if one.zone}
        if found.zone and zones - {found.zone}:
            raise Refused(409, f"Host {host} is already in another availability zone.")
        found.hosts.append(host)

    def _aggregate(self, call: Call) -> Aggregate:
        key = call.parts["id"]
        found = self.cloud.nova.aggregates.get(int(key)) if key.isdigit() else None
        if found is None:
            raise Refused(404, f"Aggregate {key} could not be found.")
        return found

    # Servers, migrations, flavors.

    def servers(self, call: Call) -> dict[str, Any]:
        query = call.query
        shown = list(self.cloud.nova.vms.values())
        if "host" in query:
            shown = [vm for vm in shown if vm.host == query["host"]]
        if "status" in query:
            shown = [vm for vm in shown if vm.status == query["status"].upper()]
        return {"servers": [_server(vm) for vm in shown]}

    def migrations(self, call: Call) -> dict[str, Any]:
        query = call.query
        shown = [
            self._migration(one)
            for one in self.cloud.nova.migrations
            if query.get("host", one.source) in (one.source, one.target)
            and query.get("status", one.status) == one.status
        ]
        return {"migrations": shown}

    def _migration(self, one: Migration) -> dict[str, Any]:
        return {
            "id": one.id,
            "instance_uuid": one.vm,
            "source_compute": one.source,
            "dest_compute": one.target or None,
            "status": one.status,
            "migration_type": "live-migration",
            "updated_at": (self.cloud.world.start + timedelta(seconds=one.at)).strftime(
                "%Y-%m-%dT%H:%M:%S.000000"
            ),
        }

    def flavors(self, call: Call) -> dict[str, Any]:
        del call
        rows = self.cloud.tables.get("Flavor", {}).values()
        return {"flavors": [{"id": row.id, "name": row.name, **row.more} for row in rows]}


def _aggregate(one: Aggregate) -> dict[str, Any]:
    return {
        "id": one.id,
        "uuid": one.uuid,
        "name": one.name,
        "availability_zone": one.zone or None,
        "hosts": list(one.hosts),
        "metadata": dict(one.metadata),
    }


def _server(vm: Vm) -> dict[str, Any]:
    return {
        "id": vm.id,
        "name": vm.name,
        "status": vm.status,
        "tenant_id": vm.project,
        "flavor": {"original_name": "small", "vcpus": VM_VCPUS, "ram": VM_MEMORY, "disk": 0},
        "OS-EXT-SRV-ATTR:host": vm.host,
        "OS-EXT-SRV-ATTR:hypervisor_hostname": vm.host,
        **({"fault": {"message": vm.fault, "code": 500}} if vm.fault else {}),
    }


NovaApi.routes = (
    route("GET", "/", NovaApi.versions, free=True),
    route("GET", "/v2.1", NovaApi.version, free=True),
    route("GET", "/v2.1/os-services", NovaApi.services),
    route("PUT", "/v2.1/os-services/{id}", NovaApi.set_service),
    route("DELETE", "/v2.1/os-services/{id}", NovaApi.drop_service),
    route("GET", "/v2.1/os-hypervisors", NovaApi.hypervisors),
    route("GET", "/v2.1/os-hypervisors/detail", NovaApi.hypervisors),
    route("GET", "/v2.1/os-aggregates", NovaApi.aggregates),
    route("POST", "/v2.1/os-aggregates", NovaApi.make_aggregate),
    route("DELETE", "/v2.1/os-aggregates/{id}", NovaApi.drop_aggregate),
    route("POST", "/v2.1/os-aggregates/{id}/action", NovaApi.change_aggregate),
    route("GET", "/v2.1/servers", NovaApi.servers),
    route("GET", "/v2.1/servers/detail", NovaApi.servers),
    route("GET", "/v2.1/os-migrations", NovaApi.migrations),
    route("GET", "/v2.1/flavors", NovaApi.flavors),
    route("GET", "/v2.1/flavors/detail", NovaApi.flavors),
)
