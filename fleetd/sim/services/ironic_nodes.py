"""
Ironic's nodes and its conductor: the life of a machine as the provision state shows it.

Imitates real-parts 1.4 to 1.7: verbs are refused in the wrong state, a node is locked while the
conductor works on it, a failed verification falls back to `enroll` with `last_error`, a BMC that
stops answering ends in maintenance with the fault "power failure" and heals by itself, and a
conductor that is lost in the middle leaves `failed` states behind. Cleaning wipes the disks; it
happens on `provide` and `deleted` unless `automated_clean` is off. Who cleans or undeploys a
machine with something on it hurts somebody.

Left out: rescue, adoption, service steps, in-band agents, call-back waits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleetd.sim.services import redfish
from fleetd.sim.truth import Machine
from fleetd.sim.world import World

HOST = "conductor-1"
SYNC = 120.0
MISSES = 3
REFUSED_AFTER = 27.0
"""Seconds that a BMC which refuses connections costs."""


class Refusal(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass
class Node:
    uuid: str
    name: str
    driver: str
    created_at: str
    driver_info: dict[str, Any] = field(default_factory=dict[str, Any])
    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    instance_info: dict[str, Any] = field(default_factory=dict[str, Any])
    instance_uuid: str | None = None
    resource_class: str | None = None
    automated_clean: bool | None = None
    provision_state: str = "enroll"
    target_provision_state: str | None = None
    power_state: str | None = None
    maintenance: bool = False
    maintenance_reason: str | None = None
    fault: str | None = None
    last_error: str | None = None
    reservation: str | None = None
    inspection_finished_at: str | None = None
    provision_updated_at: str | None = None
    misses: int = 0
    history: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@dataclass(frozen=True, slots=True)
class Verb:
    """What a target does: from where, through which state, to where, and back to where."""

    states: tuple[str, ...]
    through: str
    ends: str
    fails: str
    seconds: tuple[float, float]


VERBS: Mapping[str, Verb] = {
    "manage": Verb(
        ("enroll", "available", "clean failed", "inspect failed"),
        "verifying",
        "manageable",
        "enroll",
        (3.0, 20.0),
    ),
    "inspect": Verb(
        ("manageable", "inspect failed"), "inspecting", "manageable", "inspect failed", (30.0, 90.0)
    ),
    "provide": Verb(("manageable",), "cleaning", "available", "clean failed", (1.0, 3.0)),
    "active": Verb(
        ("available", "deploy failed"), "deploying", "active", "deploy failed", (180.0, 420.0)
    ),
    "deleted": Verb(
        ("active", "deploy failed", "error"), "deleting", "available", "error", (5, 30)
    ),
}
_CLEANING = (300.0, 900.0)


class Nodes:
    """All nodes of one Ironic."""

    def __init__(self, world: World, region: str) -> None:
        self.world = world
        self.region = region
        self.by_uuid: dict[str, Node] = {}
        self._syncing = False
        self._lost = 0
        """How often a conductor was lost: what was begun before is never finished."""
        world.listeners.append(self._heard)

    def find(self, ident: str) -> Node:
        for node in self.by_uuid.values():
            if ident in (node.uuid, node.name):
                return node
        raise Refusal(404, f"Node {ident} could not be found.")

    @property
    def alive(self) -> bool:
        return ("ironic", self.region, "conductor-lost") not in self.world.mishaps

    def need_conductor(self) -> None:
        if not self.alive:
            said = "No valid host was found. Reason: No conductor service registered which "
            raise Refusal(400, f'{said}supports driver "redfish" for conductor group "".')

    def free(self, node: Node) -> None:
        """Raises unless nobody works on it."""
        if node.reservation:
            raise Refusal(
                409,
                f"Node {node.uuid} is locked by host {node.reservation}, please retry after the "
                "current operation is completed.",
            )

    def machine(self, node: Node) -> Machine | None:
        address = str(node.driver_info.get("redfish_address") or "")
        host = address.partition("://")[2].partition("/")[0]
        host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        return self.world.truth.at_address(host)

    # Provisioning.

    def provision(self, node: Node, target: str) -> None:
        self.need_conductor()
        self.free(node)
        verb = VERBS.get(target)
        if verb is None or node.provision_state not in verb.states:
            raise Refusal(
                400,
                f'The requested action "{target}" can not be performed on node "{node.uuid}" '
                f'while it is in state "{node.provision_state}".',
            )
        if target == "active":
            if node.maintenance:
                raise Refusal(
                    400,
                    f"The deploy operation can't be performed on node {node.uuid} "
                    "because it's in maintenance mode.",
                )
            if not node.instance_info:
                raise Refusal(400, "Failed to validate deploy or power info: no image_source")
        if target == "manage" and node.provision_state != "enroll":
            self._state(node, "manageable")
            return
        seconds = verb.seconds
        if target in ("provide", "deleted") and node.automated_clean is not False:
            seconds = _CLEANING
        self._begin(node, target, verb, seconds)

    def _begin(self, node: Node, target: str, verb: Verb, seconds: tuple[float, float]) -> None:
        node.target_provision_state = verb.ends
        node.reservation, node.last_error = HOST, None
        self._state(node, verb.through, keep=True)
        wrong = self.trouble(node)
        lasts = self.world.span(*seconds, "ironic", node.name, target, str(len(node.history)))
        if wrong and "refused" in wrong:
            lasts = REFUSED_AFTER
        elif wrong:
            lasts = 0.6
        self._later(lasts, lambda: self._end(node, target, verb))

    def _end(self, node: Node, target: str, verb: Verb) -> None:
        wrong = self.trouble(node)
        node.reservation = None
        if wrong:
            node.last_error = wrong
            self._note(node, wrong)
            self._state(node, verb.fails)
            return
        machine = self.machine(node)
        match target:
            case "manage":
                self._sync_soon()
                self._power(node)
            case "inspect":
                node.inspection_finished_at = self.stamp()
                node.properties.update({"cpu_arch": "x86_64", "cpus": "64", "memory_mb": "524288"})
            case "active" if machine is not None:
                machine.owner, machine.image = f"{node.name}@ironic-{self.region}", "deployed"
                machine.claimed += 1
                machine.deployed += 1
                redfish.switch(self.world, machine, on=True, who="ironic")
            case "provide" | "deleted" if machine is not None:
                self._emptied(node, machine, target)
            case _:
                pass
        self._power(node)
        self._state(node, verb.ends)

    def _emptied(self, node: Node, machine: Machine, target: str) -> None:
        """Cleaning wipes the disks; undeploying stops whatever ran."""
        wiped = node.automated_clean is not False
        if machine.vms or machine.osds:
            self.world.truth.hurt(f"ironic {target} {node.name} with something running on it")
        if wiped and machine.image and target == "provide":
            self.world.truth.hurt(f"ironic cleaned {node.name}, which had an image on its disks")
        if target == "deleted":
            redfish.switch(self.world, machine, on=False, who="ironic")
            machine.owner, node.instance_info = "", {}
        if wiped:
            machine.image = ""

    def trouble(self, node: Node) -> str:
        """Why the conductor gets nowhere with this node's BMC; empty if it does."""
        machine = self.machine(node)
        where = str(node.driver_info.get("redfish_address") or "")
        if machine is not None and machine.bmc != "answers":
            machine.met += 1
        if machine is None or machine.bmc == "unreachable":
            said = f"Redfish connection failed for node {node.uuid}: Unable to connect to {where}. "
            return said + "Error: connection refused"
        if machine.bmc == "hangs":
            return f"Redfish connection failed for node {node.uuid}: {where} timed out"
        info = node.driver_info
        known = (info.get("redfish_username"), info.get("redfish_password"))
        if machine.bmc == "refuses" or known != (machine.user, machine.password):
            said = "Failed to get power state for node"
            return f"{said} {node.uuid}. Error: HTTP GET {where}/redfish/v1/Systems returned code 401. Incorrect username or password"  # noqa: E501 - as it is said
        return ""

    # Power.

    def power(self, node: Node, target: str) -> None:
        self.need_conductor()
        self.free(node)
        machine = self.machine(node)
        if target not in ("power on", "power off", "rebooting") or machine is None:
            raise Refusal(400, f"Invalid power state {target}")
        node.reservation = HOST

        def done() -> None:
            node.reservation = None
            if self.trouble(node):
                node.last_error = self.trouble(node)
                return
            if target != "power on":
                redfish.switch(self.world, machine, on=False, who="ironic")
            if target != "power off":
                redfish.switch(self.world, machine, on=True, who="ironic")
            self._power(node)

        self._later(self.world.span(2.0, 8.0, "ironic", node.name, "power"), done)

    def _power(self, node: Node) -> None:
        machine = self.machine(node)
        shown = redfish.shown_power(machine) if machine is not None else "Off"
        node.power_state = f"power {shown.lower()}"

    def _sync_soon(self) -> None:
        if not self._syncing:
            self._syncing = True
            self.world.after(SYNC, self._sync)

    def _sync(self) -> None:
        """Look at the power of all managed nodes; the only thing that happens unasked."""
        self._syncing = False
        managed = [one for one in self.by_uuid.values() if one.power_state or one.fault]
        if managed:
            self._sync_soon()
        if not self.alive:
            return
        for node in managed:
            if node.reservation:
                continue
            wrong = self.trouble(node)
            node.misses = node.misses + 1 if wrong else 0
            if wrong and node.misses >= MISSES and not node.fault:
                node.power_state, node.fault, node.maintenance = None, "power failure", True
                node.maintenance_reason = node.last_error = wrong
                self._note(node, wrong)
            elif not wrong:
                self._power(node)
                if node.fault == "power failure":
                    node.fault, node.maintenance, node.maintenance_reason = None, False, None

    # The conductor.

    def _heard(self, mishap: tuple[str, str, str]) -> None:
        """It died, or another one took over: what was under way has failed."""
        if mishap != ("ironic", self.region, "conductor-lost"):
            return
        self._lost += 1
        if not self.alive:
            return
        for node in self.by_uuid.values():
            verb = next((v for v in VERBS.values() if v.through == node.provision_state), None)
            node.reservation = None
            if verb is not None:
                node.last_error = (
                    f"The {node.provision_state} state can't be resumed by conductor {HOST}. "
                    "Moving to fail state."
                )
                self._note(node, node.last_error)
                self._state(node, verb.fails)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        began = self._lost

        def due() -> None:
            if self._lost == began:
                call()

        self.world.after(seconds, due)

    def _state(self, node: Node, state: str, *, keep: bool = False) -> None:
        node.provision_state = state
        node.provision_updated_at = self.stamp()
        if not keep:
            node.target_provision_state = None
        self.world.tell("node", node.name, state)

    def _note(self, node: Node, event: str) -> None:
        uuid = self.world.uid(f"history/{node.uuid}/{len(node.history)}")
        node.history.append({"uuid": uuid, "event": event, "created_at": self.stamp()})

    def stamp(self) -> str:
        return self.world.now().strftime("%Y-%m-%dT%H:%M:%S+00:00")
