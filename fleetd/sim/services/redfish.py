"""
The BMCs of all machines, as HTTP: a Redfish service per address, told apart by the Host header.

The service root is open to everybody, as the standard has it, so a wrong password shows only
where something is asked for by name. A BMC answers, refuses every password, is unreachable, hangs
or lies about its machine (`truth.Machine.bmc`). `switch` is the one way in which the power of a
machine changes, here and from the metal controllers: it keeps the truth, and writes down whom it
hurt. Left out: BIOS and firmware, sessions, accounts, virtual media.
"""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

import requests

from fleetd.sim.truth import Machine, digest
from fleetd.sim.world import HttpRequest, HttpResponse, World

ON = ("On", "ForceOn")
OFF = ("ForceOff", "GracefulShutdown")
RESTART = ("ForceRestart", "GracefulRestart", "PowerCycle")
_ROOT = "/redfish/v1"
_TYPE = {"content-type": "application/json", "odata-version": "4.0"}


def switch(world: World, machine: Machine, *, on: bool, who: str) -> None:
    """The machine's power, from now on. Off is off, whoever runs on it."""
    if machine.on == on:
        return
    world.truth.power(machine, on=on)
    world.tell("on" if on else "off", f"machine {machine.name}", f"by {who}")
    if on:
        return
    if machine.vms:
        world.truth.hurt(
            f"{who} switched off {machine.name} with {len(machine.vms)} virtual machines on it"
        )
    if machine.osds or machine.mons:
        _storage(world, machine, who)
    if world.truth.took is not None:
        world.truth.took(machine, who)


def _storage(world: World, machine: Machine, who: str) -> None:
    """One host of a cluster may go; a second one while the first is away takes data with it, and
    so does the one that leaves a minority of monitors."""
    cluster = machine.node.partition("/")[0]
    mates = [one for one in world.truth.on_cluster(cluster) if one.osds or one.mons]
    away = [one for one in mates if not one.on]
    mons = [one for one in mates if one.mons]
    if machine.osds and sum(1 for one in away if one.osds) > 1:
        names = ", ".join(sorted(one.name for one in away))
        world.truth.hurt(f"{who} switched off {machine.name}: OSDs of {names} are away at once")
    alive = sum(1 for one in mons if one.on)
    if machine.mons and alive * 2 <= len(mons):
        world.truth.hurt(
            f"{who} switched off {machine.name}: {alive} of {len(mons)} monitors of {cluster} left"
        )


class Refused(requests.ConnectionError, ConnectionRefusedError):
    """Nobody listens there: what a client sees, and what a face makes of it."""


class Silent(requests.ReadTimeout, TimeoutError):
    """Somebody listens and says nothing."""


class Redfish:
    """All BMCs of a world; `world.services["bmc"]`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._by_address: dict[str, Machine] = {}

    def machine(self, address: str) -> Machine | None:
        found = self._by_address.get(address)
        if found is None or found.address != address:
            found = self.world.truth.at_address(address)
            if found is not None:
                self._by_address[address] = found
        return found

    def handle(self, request: HttpRequest) -> HttpResponse:
        address = _host(request.headers.get("host", ""))
        machine = self.machine(address)
        if machine is not None and machine.bmc != "answers":
            machine.met += 1
        if machine is None or machine.bmc == "unreachable":
            raise Refused(f"{address}: connection refused")
        if machine.bmc == "hangs":
            raise Silent(f"{address}: timed out")
        path = request.path.rstrip("/") or "/"
        if path in (_ROOT, "/redfish"):
            return _answer(200, _root(machine))
        if machine.bmc == "refuses" or not _knows(machine, request.headers):
            return _error(401, "Base.1.0.InsufficientPrivilege", "invalid user name or password")
        self.world.truth.uses(f"bmc/{machine.name}", "redfish", digest(machine.password))
        return self._inside(machine, request, path)

    def _inside(self, machine: Machine, request: HttpRequest, path: str) -> HttpResponse:
        systems = {f"{_ROOT}/Systems/{one.uuid}": one for one in (machine, *machine.beside)}
        pages: dict[str, Callable[[], dict[str, Any]]] = {
            f"{_ROOT}/Systems": lambda: _members(f"{_ROOT}/Systems", *systems),
            f"{_ROOT}/Managers": lambda: _members(f"{_ROOT}/Managers", f"{_ROOT}/Managers/BMC"),
            f"{_ROOT}/Managers/BMC": _manager,
        }
        reset = systems.get(path.removesuffix("/Actions/ComputerSystem.Reset"))
        if reset is not None and path not in systems and request.method == "POST":
            return self._reset(reset, request.body)
        if path not in pages and path not in systems:
            return _error(404, "Base.1.0.ResourceMissingAtURI", f"{path} was not found")
        if request.method not in ("GET", "HEAD", "PATCH"):
            return _error(405, "Base.1.0.OperationNotAllowed", f"{request.method} is not allowed")
        shown = _system(systems[path], path) if path in systems else pages[path]()
        return _answer(200, shown)

    def _reset(self, machine: Machine, body: bytes) -> HttpResponse:
        try:
            kind = str(json.loads(body or b"{}").get("ResetType", ""))
        except (ValueError, AttributeError):
            kind = ""
        who = "a Redfish client"
        if kind in RESTART:
            switch(self.world, machine, on=False, who=who)
            switch(self.world, machine, on=True, who=who)
        elif kind in (*ON, *OFF):
            switch(self.world, machine, on=kind in ON, who=who)
        else:
            return _error(400, "Base.1.0.ActionParameterNotSupported", f"ResetType {kind!r}")
        return HttpResponse(status=204, headers=_TYPE)


def _host(text: str) -> str:
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.rpartition(":")[0] if text.count(":") == 1 else text


def _knows(machine: Machine, headers: Any) -> bool:  # noqa: ANN401
    kind, _, rest = str(headers.get("authorization", "")).partition(" ")
    if kind.lower() != "basic":
        return False
    try:
        user, _, password = base64.b64decode(rest, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return user == machine.user and password == machine.password


def shown_power(machine: Machine) -> str:
    """What the BMC says; it may not be so."""
    return "On" if machine.on != (machine.bmc == "lies") else "Off"


def _root(machine: Machine) -> dict[str, Any]:
    return {
        "@odata.id": f"{_ROOT}/",
        "@odata.type": "#ServiceRoot.v1_9_0.ServiceRoot",
        "Id": "RootService",
        "Name": "Root Service",
        "RedfishVersion": "1.11.0",
        "UUID": machine.uuid,
        "Systems": {"@odata.id": f"{_ROOT}/Systems"},
        "Managers": {"@odata.id": f"{_ROOT}/Managers"},
    }


def _members(path: str, *members: str) -> dict[str, Any]:
    return {
        "@odata.id": path,
        "Members@odata.count": len(members),
        "Members": [{"@odata.id": member} for member in members],
    }


def _system(machine: Machine, path: str) -> dict[str, Any]:
    return {
        "@odata.id": path,
        "@odata.type": "#ComputerSystem.v1_13_0.ComputerSystem",
        "Id": machine.uuid,
        "UUID": machine.uuid,
        "PowerState": shown_power(machine),
        "Status": {"State": "Enabled", "Health": "OK"},
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": f"{path}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": [*ON, *OFF, *RESTART],
            }
        },
    }


def _manager() -> dict[str, Any]:
    return {
        "@odata.id": f"{_ROOT}/Managers/BMC",
        "Id": "BMC",
        "ManagerType": "BMC",
        "FirmwareVersion": "2.10.2",
        "Status": {"State": "Enabled", "Health": "OK"},
    }


def _answer(status: int, body: dict[str, Any]) -> HttpResponse:
    return HttpResponse(status=status, body=json.dumps(body).encode(), headers=_TYPE)


def _error(status: int, code: str, message: str) -> HttpResponse:
    headers = {**_TYPE, "www-authenticate": 'Basic realm="Redfish"'} if status == 401 else _TYPE
    body = {"error": {"code": code, "message": message}}
    return HttpResponse(status=status, body=json.dumps(body).encode(), headers=headers)
