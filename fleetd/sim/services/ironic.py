"""
Ironic as HTTP, as python-ironicclient speaks it: nodes, their states and history, ports,
conductors, microversions.

Logs in with user name and password (`auth_strategy = http_basic`). Without a version header the
API is 1.1 and hides what came later; a version that is too high is 406. Passwords in `driver_info`
are shown as stars. What happens to a node is `ironic_nodes`.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from fleetd.sim.services.ironic_nodes import HOST, Node, Nodes, Refusal
from fleetd.sim.world import HttpRequest, HttpResponse, World

LOWEST, HIGHEST = 1, 115
USER = "fleetd"
HIDDEN = "******"
_VERSION = "X-OpenStack-Ironic-API-Version"
_PUBLIC = (
    *("uuid", "name", "driver", "created_at", "driver_info", "properties", "extra"),
    *("instance_info", "resource_class", "automated_clean", "provision_state"),
    *("target_provision_state", "power_state", "maintenance", "maintenance_reason", "fault"),
    *("last_error", "reservation", "inspection_finished_at", "provision_updated_at"),
    "instance_uuid",
)
_SINCE = {"resource_class": 21, "fault": 42, "automated_clean": 47}
_BRIEF = ("uuid", "name", "power_state", "provision_state", "maintenance")
_GIVEN = (
    *("name", "driver", "driver_info", "properties", "extra", "instance_info"),
    *("resource_class", "automated_clean", "uuid"),
)
_FIXED = ("uuid", "provision_state", "power_state", "reservation", "last_error", "fault")
_LOCKING = ("driver_info", "properties", "name", "resource_class", "driver", "automated_clean")

Answer = Callable[["Ironic", "re.Match[str]", HttpRequest, int], HttpResponse]


class Ironic:
    """One Ironic; `world.services["ironic-<region>"]`."""

    def __init__(self, world: World, region: str) -> None:
        self.world = world
        self.region = region
        self.nodes = Nodes(world, region)
        self.ports: dict[str, dict[str, Any]] = {}

    def handle(self, request: HttpRequest) -> HttpResponse:
        path = "/" + request.path.strip("/")
        if path in ("/", "/v1"):
            return _answer(200, self._versions(path), HIGHEST)
        try:
            minor = _minor(request)
            self._log_in(request.headers)
            return self._route(path, request, minor)
        except Refusal as no:
            return _error(no.status, no.message)

    def _versions(self, path: str) -> dict[str, Any]:
        link = [{"href": f"{self.world.address(f'ironic-{self.region}')}/v1/", "rel": "self"}]
        version = {
            "id": "v1",
            "links": link,
            "status": "CURRENT",
            "min_version": f"1.{LOWEST}",
            "version": f"1.{HIGHEST}",
        }
        if path == "/v1":
            return {"id": "v1", "links": link, "version": version}
        about = {"name": "OpenStack Ironic API", "description": "Ironic is bare metal."}
        return {**about, "versions": [version], "default_version": version}

    def _log_in(self, headers: Mapping[str, str]) -> None:
        kind, _, rest = headers.get("authorization", "").partition(" ")
        try:
            given = base64.b64decode(rest, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            given = ""
        if kind != "Basic" or given != f"{USER}:{self.world.token('ironic', self.region)}":
            raise Refusal(401, "Incorrect username or password")

    def _route(self, path: str, request: HttpRequest, minor: int) -> HttpResponse:
        known = False
        for method, pattern, answer in _ROUTES:
            found = pattern.fullmatch(path)
            if found is None:
                continue
            known = True
            if method == request.method:
                return answer(self, found, request, minor)
        raise Refusal(405 if known else 404, "The resource could not be found.")

    # Nodes.

    def list_nodes(self, _: "re.Match[str]", request: HttpRequest, minor: int) -> HttpResponse:
        """All, in pages of a thousand as the default is; `detail` shows everything."""
        query = request.query
        detail = request.path.rstrip("/").endswith("detail") or query.get("detail") == "True"
        fields = _fields(query) or (() if detail else _BRIEF)
        everything = sorted(self.nodes.by_uuid.values(), key=lambda one: one.uuid)
        marker = query.get("marker", "")
        after = [one for one in everything if one.uuid > marker]
        limit = int(query.get("limit") or 1000)
        body: dict[str, Any] = {"nodes": [_shown(one, fields, minor) for one in after[:limit]]}
        if len(after) > limit:
            base = self.world.address(f"ironic-{self.region}")
            chosen = f"&fields={','.join(fields)}" if fields else ""
            last = after[limit - 1].uuid
            body["next"] = f"{base}/v1/nodes?limit={limit}&marker={last}{chosen}"
        return _answer(200, body, minor)

    def get_node(self, at: "re.Match[str]", request: HttpRequest, minor: int) -> HttpResponse:
        node = self.nodes.find(at["id"])
        return _answer(200, _shown(node, _fields(request.query), minor), minor)

    def create_node(self, _: "re.Match[str]", request: HttpRequest, minor: int) -> HttpResponse:
        given = _body(request)
        unknown = [name for name in given if name not in _GIVEN]
        if unknown:
            raise Refusal(400, f"Unknown/invalid attributes: {', '.join(sorted(unknown))}")
        if given.get("driver") not in ("redfish", "fake-hardware"):
            raise Refusal(400, f"No valid host was found. Reason: no driver {given.get('driver')}")
        self.nodes.need_conductor()
        name = str(given.get("name") or "")
        if any(name and one.name == name for one in self.nodes.by_uuid.values()):
            raise Refusal(409, f"A node with name {name} already exists.")
        number = len(self.nodes.by_uuid) + 1
        uuid = str(given.get("uuid") or self.world.uid(f"ironic/{self.region}/{name or number}"))
        fields = {key: value for key, value in given.items() if key != "uuid"}
        state = "enroll" if minor >= 11 else "available"
        node = Node(uuid=uuid, created_at=self.nodes.stamp(), provision_state=state, **fields)
        self.nodes.by_uuid[uuid] = node
        self.world.tell("node", node.name, "created")
        return _answer(201, _shown(node, (), minor), minor)

    def patch_node(self, at: "re.Match[str]", request: HttpRequest, minor: int) -> HttpResponse:
        node = self.nodes.find(at["id"])
        changes: list[dict[str, Any]] = msgspec.json.decode(request.body)
        for change in changes:
            head, *rest = str(change["path"]).strip("/").split("/")
            if head in _FIXED or head not in _GIVEN:
                raise Refusal(400, f"'/{head}' is an internal attribute and can not be updated")
            if head in _LOCKING:
                self.nodes.free(node)
            _patch(node, head, rest, change)
        return _answer(200, _shown(node, (), minor), minor)

    def delete_node(self, at: "re.Match[str]", _: HttpRequest, minor: int) -> HttpResponse:
        del minor
        node = self.nodes.find(at["id"])
        self.nodes.free(node)
        free = ("enroll", "manageable", "available", "inspect failed", "clean failed")
        if node.provision_state not in free:
            raise Refusal(
                409,
                f'Can not delete node "{node.uuid}" while it is in provision state '
                f'"{node.provision_state}".',
            )
        del self.nodes.by_uuid[node.uuid]
        self.ports = {
            key: port for key, port in self.ports.items() if port["node_uuid"] != node.uuid
        }
        self.world.tell("node", node.name, "deleted")
        return HttpResponse(status=204)

    # States.

    def set_provision(self, at: "re.Match[str]", request: HttpRequest, _: int) -> HttpResponse:
        node = self.nodes.find(at["id"])
        self.nodes.provision(node, str(_body(request).get("target")))
        return HttpResponse(status=202)

    def set_power(self, at: "re.Match[str]", request: HttpRequest, _: int) -> HttpResponse:
        node = self.nodes.find(at["id"])
        self.nodes.power(node, str(_body(request).get("target")))
        return HttpResponse(status=202)

    def set_maintenance(self, at: "re.Match[str]", request: HttpRequest, _: int) -> HttpResponse:
        node = self.nodes.find(at["id"])
        node.maintenance = request.method == "PUT"
        given = _body(request) if node.maintenance and request.body else {}
        node.maintenance_reason, node.fault = given.get("reason"), None
        return HttpResponse(status=202)

    def history(self, at: "re.Match[str]", _: HttpRequest, minor: int) -> HttpResponse:
        if minor < 78:
            raise Refusal(404, "The resource could not be found.")
        return _answer(200, {"history": self.nodes.find(at["id"]).history}, minor)

    # Ports and conductors.

    def list_ports(self, _: "re.Match[str]", request: HttpRequest, minor: int) -> HttpResponse:
        wanted = request.query.get("node") or request.query.get("node_uuid")
        uuid = self.nodes.find(wanted).uuid if wanted else ""
        ports = [one for one in self.ports.values() if not uuid or one["node_uuid"] == uuid]
        return _answer(200, {"ports": ports}, minor)

    def create_port(self, _: "re.Match[str]", request: HttpRequest, minor: int) -> HttpResponse:
        given = _body(request)
        address = str(given.get("address") or "").lower()
        self.nodes.find(str(given.get("node_uuid")))
        if any(one["address"] == address for one in self.ports.values()):
            raise Refusal(409, f"A port with MAC address {address} already exists.")
        uuid = self.world.uid(f"port/{self.region}/{address}")
        self.ports[uuid] = {**given, "uuid": uuid, "address": address}
        return _answer(201, self.ports[uuid], minor)

    def conductors(self, _: "re.Match[str]", request: HttpRequest, minor: int) -> HttpResponse:
        del request
        if minor < 49:
            raise Refusal(404, "The resource could not be found.")
        one = {"hostname": HOST, "conductor_group": "", "alive": self.nodes.alive}
        return _answer(200, {"conductors": [one]}, minor)


_ID = r"(?P<id>[^/]+)"
_ROUTES: tuple[tuple[str, "re.Pattern[str]", Answer], ...] = (
    ("GET", re.compile("/v1/nodes(/detail)?"), Ironic.list_nodes),
    ("POST", re.compile("/v1/nodes"), Ironic.create_node),
    ("GET", re.compile(f"/v1/nodes/{_ID}"), Ironic.get_node),
    ("PATCH", re.compile(f"/v1/nodes/{_ID}"), Ironic.patch_node),
    ("DELETE", re.compile(f"/v1/nodes/{_ID}"), Ironic.delete_node),
    ("PUT", re.compile(f"/v1/nodes/{_ID}/states/provision"), Ironic.set_provision),
    ("PUT", re.compile(f"/v1/nodes/{_ID}/states/power"), Ironic.set_power),
    ("PUT", re.compile(f"/v1/nodes/{_ID}/maintenance"), Ironic.set_maintenance),
    ("DELETE", re.compile(f"/v1/nodes/{_ID}/maintenance"), Ironic.set_maintenance),
    ("GET", re.compile(f"/v1/nodes/{_ID}/history"), Ironic.history),
    ("GET", re.compile("/v1/ports(/detail)?"), Ironic.list_ports),
    ("POST", re.compile("/v1/ports"), Ironic.create_port),
    ("GET", re.compile("/v1/conductors"), Ironic.conductors),
)


def _patch(node: Node, head: str, rest: list[str], change: Mapping[str, Any]) -> None:
    """JSON patch, at most one step below a field."""
    value = change.get("value")
    if not rest:
        empty: Any = {} if isinstance(getattr(node, head), dict) else None
        setattr(node, head, empty if change["op"] == "remove" else value)
        return
    holder: dict[str, Any] = dict(getattr(node, head))
    key = rest[0].replace("~1", "/").replace("~0", "~")
    if change["op"] == "remove":
        if key not in holder:
            raise Refusal(400, f"Couldn't apply patch: can't remove non-existent object '{key}'")
        del holder[key]
    else:
        holder[key] = value
    setattr(node, head, holder)


def _shown(node: Node, fields: tuple[str, ...], minor: int) -> dict[str, Any]:
    unknown = [name for name in fields if name not in _PUBLIC or name == "created_at"]
    if unknown:
        raise Refusal(400, f"Field(s) {', '.join(unknown)} are not valid.")
    found = {
        name: getattr(node, name) for name in fields or _PUBLIC if _SINCE.get(name, 0) <= minor
    }
    if "driver_info" in found:
        found["driver_info"] = {
            key: HIDDEN if "password" in key else value for key, value in node.driver_info.items()
        }
    return found


def _fields(query: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in query.get("fields", "").split(",") if name)


def _minor(request: HttpRequest) -> int:
    text = request.headers.get(_VERSION.lower(), "1.1")
    if text == "latest":
        return HIGHEST
    minor = int(text.partition(".")[2] or 1)
    if not LOWEST <= minor <= HIGHEST:
        raise Refusal(406, f"Version {text} was requested but the highest is 1.{HIGHEST}.")
    return minor


def _body(request: HttpRequest) -> dict[str, Any]:
    try:
        return msgspec.json.decode(request.body, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise Refusal(400, "The body is not a JSON object") from None


def _headers(minor: int) -> dict[str, str]:
    return {
        "content-type": "application/json",
        _VERSION.lower(): f"1.{minor}",
        "x-openstack-ironic-api-minimum-version": f"1.{LOWEST}",
        "x-openstack-ironic-api-maximum-version": f"1.{HIGHEST}",
    }


def _answer(status: int, body: Mapping[str, Any], minor: int) -> HttpResponse:
    return HttpResponse(status=status, body=msgspec.json.encode(body), headers=_headers(minor))


def _error(status: int, message: str) -> HttpResponse:
    """As Pecan and WSME have it: an error in JSON, in a text, in JSON."""
    inner = {"faultcode": "Client", "faultstring": message, "debuginfo": None}
    body = {"error_message": msgspec.json.encode(inner).decode()}
    headers = _headers(LOWEST)
    if status == 401:
        headers["www-authenticate"] = 'Basic realm="Baremetal API"'
    return HttpResponse(status=status, body=msgspec.json.encode(body), headers=headers)
