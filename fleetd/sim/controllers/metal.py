"""
metal-operator 0.3 as it was seen with real BMCs: BMC, Server, ServerClaim, ServerMaintenance.

The states, texts and dangers are those that were seen. A BMC whose address does not parse stops
the processing of all BMCs. A BMC that never answers holds the only worker. The connection test
asks for no password, so a wrong one still shows Ready; BMCs are not polled. Two BMC objects for
one machine give two Servers, and both can be claimed. Several systems behind one BMC swap their
Servers at every look. Servers whose BMC refuses the password hold the few workers, and the others
wait. A Reserved server found off is booted from the network again. Deleting any ServerMaintenance
ends the active one. Approval counts by presence. Releasing a server cleans nothing.

What follows from a claim or a maintenance is `metal_claims`. Left out: BIOS and firmware kinds,
BMCUser, Endpoints with MAC prefixes, and of the newer generation everything but the operations
`park` and `unpark` (`parks`, chosen by the site).
"""

import ipaddress
from collections.abc import Iterable
from typing import Any

from fleetd.sim.controllers.base import Controller, Key, Obj, age, key_of
from fleetd.sim.controllers.metal_claims import Claims
from fleetd.sim.controllers.metal_kinds import (
    BMC,
    BMC_SECRET,
    BOOT,
    CLAIM,
    FINALIZER,
    MAINTENANCE,
    MANAGER_NAMESPACE,
    OPERATION,
    SERVER,
)
from fleetd.sim.controllers.metal_parts import items_of, labels_of, notes_of, part
from fleetd.sim.kube.cluster import Change, Cluster
from fleetd.sim.kube.store import DELETED
from fleetd.sim.kube.values import Obj as Mutable
from fleetd.sim.services import redfish
from fleetd.sim.truth import Machine, digest
from fleetd.sim.world import World

RESYNC = 120.0
"""Seconds between looks at a Server that nobody changed: `--server-resync-interval`."""
RETRY = (5.0, 1000.0)
"""Back-off of a failing BMC, first and longest."""
PROBE = (180.0, 420.0)
"""Seconds from power-on until the probe has booted from the network and reported."""
DISCOVERY = 1800.0
"""`--discovery-timeout`."""
WORKERS = 5
"""`--server-max-concurrent-reconciles`."""
POLLING = 120.0
"""`--resource-polling-timeout`: how long a refused password holds a worker."""
IGNORED = ("ignore-reconciliation", "ignore")
HANGS = ("", "")
"""No answer: nothing is written, by nobody."""


class MetalOperator(Controller):
    name = "metal-operator"
    watches = (BMC, SERVER, CLAIM, MAINTENANCE)
    parks = False
    """Whether it knows `park` and `unpark`, as the newer generation does."""

    def __init__(self, world: World, cluster: Cluster) -> None:
        super().__init__(world, cluster)
        self.claims = Claims(self)
        self._unreadable: set[str] = set()
        """BMCs whose address does not parse; while there is one, none is processed."""
        self._probing: set[str] = set()
        """Servers that were booted from the network and are to report."""
        self._reports: dict[str, str] = {}
        """By UUID, which Server was probed; for the operator all Servers of that UUID have been."""
        self._stuck = ""
        """The BMC that was asked and never answered. There is one worker, and it waits."""
        self._busy: dict[str, float] = {}
        """Servers that hold a worker, and until when."""

    def keys(self, change: Change) -> Iterable[Key]:
        if change.gk == BMC_SECRET:
            # A changed secret wakes only the BMC of the same name.
            yield Key(BMC, "", change.object["metadata"]["name"])
        elif change.gk == BOOT:
            yield Key(SERVER, "", change.object["spec"]["serverRef"]["name"])
        elif change.gk == CLAIM and change.type == DELETED:
            yield from self._waiting()
        elif change.gk == MAINTENANCE and change.type == DELETED:
            self.claims.maintenance_deleted(change.object)
            yield Key(SERVER, "", change.object["spec"]["serverRef"]["name"])
        elif change.gk in self.watches:
            yield key_of(change.gk, change.object)
            if change.gk == SERVER:
                yield from self._concerned(change)
            elif change.gk == BMC:
                self._read(change)

    def start(self) -> None:
        super().start()
        bmcs = self.cluster.list(BMC)
        self._unreadable = {one["metadata"]["name"] for one in bmcs if not readable(one)}
        self.world.truth.listeners.append(self._power_changed)

    def _power_changed(self, machine: Machine) -> None:
        """Seen at the next resync, not at once."""
        for server in self.cluster.list(SERVER):
            if server["spec"]["systemUUID"] == machine.uuid:
                key = key_of(SERVER, server)
                self.wake(key, self.span(2.0, RESYNC, key, "resync"))

    def _read(self, change: Change) -> None:
        name = change.object["metadata"]["name"]
        if change.type != DELETED and not readable(change.object):
            self._unreadable.add(name)
        else:
            self._unreadable.discard(name)

    def _concerned(self, change: Change) -> Iterable[Key]:
        spec = change.object["spec"]
        if change.type == DELETED and spec.get("bmcRef"):
            yield Key(BMC, "", spec["bmcRef"]["name"])
        holder = spec.get("serverClaimRef")
        if holder:
            yield Key(CLAIM, holder["namespace"], holder["name"])
        status = part(change.object, "status")
        if status.get("state") == "Available" and status.get("powerState") == "Off":
            yield from self._waiting()
        kept = spec.get("serverMaintenanceRef")
        if kept:
            yield Key(MAINTENANCE, kept["namespace"], kept["name"])

    def _waiting(self) -> Iterable[Key]:
        """Claims without a server: one may have become free. Also of a Bound one whose Server was
        deleted and made again."""
        for claim in self.cluster.list(CLAIM):
            if part(claim, "status").get("phase") != "Bound" or not self.claims.has_server(claim):
                yield key_of(CLAIM, claim)

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None:
            return None
        match key.gk[1]:
            case "BMC":
                return self._bmc(key, obj)
            case "Server":
                return self._server(key, obj)
            case "ServerClaim":
                return self.claims.claim(key, obj)
            case _:
                return self.claims.maintenance(key, obj)

    # BMCs

    def machine(self, obj: Obj) -> Machine | None:
        """Behind a BMC or a Server."""
        if obj["kind"] == "Server":
            bmc = self.cluster.get(BMC, part(obj, "spec.bmcRef").get("name", ""))
            found = None if bmc is None else self.machine(bmc)
            behind = (found, *found.beside) if found is not None else ()
            uuid = obj["spec"]["systemUUID"]
            return next((one for one in behind if one.uuid == uuid), found)
        address = part(obj, "spec.access").get("ip", "")
        bmcs = self.world.services.get("bmc")
        return bmcs.machine(address) if isinstance(bmcs, redfish.Redfish) else None

    def _bmc(self, key: Key, bmc: Obj) -> float | None:
        if notes_of(bmc).get(OPERATION) in IGNORED:
            return None
        if self._unreadable or self._held():
            # Nobody is served until that object is gone, or that BMC has answered.
            return 20.0
        if "deletionTimestamp" in bmc["metadata"]:
            return None
        fault = self._connection(bmc)
        if fault == HANGS:
            self._stuck = key.name
            return 30.0
        if fault is not None:
            reason, message = fault
            ready = self.condition("Ready", "False", reason, message)
            self._put_status(key, bmc, {"conditions": [ready]})
            return self._backoff(bmc)
        ready = self.condition("Ready", "True", "BMCConnected", "BMC is connected")
        machine = self.machine(bmc)
        if machine is None or not self._password(bmc, machine):
            # 401 on everything but the root: only the log of the operator says so.
            self._put_status(key, bmc, {"conditions": [ready]}, state="Pending")
            return self._backoff(bmc)
        self._put_status(
            key,
            bmc,
            {
                "conditions": [ready],
                "state": "Enabled",
                "powerState": "On",
                "ip": bmc["spec"]["access"]["ip"],
                "firmwareVersion": "2.10.2",
                "manufacturer": "Contoso",
                "model": machine.size,
                "serialNumber": machine.uuid[:8].upper(),
            },
        )
        behind = [machine, *machine.beside]
        if machine.beside:
            # In the order in which they answer, which is another one every time.
            version = bmc["metadata"]["resourceVersion"]
            self.world.stream(self.cluster.name, "systems", key.name, version).shuffle(behind)
        for number, one in enumerate(behind):
            self._own_server(bmc, one, number)
        return None

    def _put_status(
        self, key: Key, bmc: Obj, status: dict[str, Any], state: str = "Pending"
    ) -> None:
        old = part(bmc, "status").get("state")
        self.status(key, {"state": old or state, **status})

    def _backoff(self, bmc: Obj) -> float:
        """Longer each time, by how long it has been failing."""
        since = next(
            (
                one["lastTransitionTime"]
                for one in items_of(bmc, "status.conditions")
                if one["type"] == "Ready"
            ),
            None,
        )
        if since is None:
            return RETRY[0]
        return min(max(age(self.world, since), RETRY[0]), RETRY[1])

    def _held(self) -> bool:
        bmc = self.cluster.get(BMC, self._stuck) if self._stuck else None
        machine = self.machine(bmc) if bmc is not None else None
        if machine is not None and machine.bmc == "hangs":
            return True
        self._stuck = ""
        return False

    def _connection(self, bmc: Obj) -> tuple[str, str] | None:
        """What the unauthenticated look at the service root gives."""
        spec = bmc["spec"]
        name = spec["protocol"].get("name", "Redfish")
        ref = spec["bmcSecretRef"]["name"]
        if name != "Redfish":
            return "UnknownError", f"BMC connection error: unsupported BMC protocol {name}"
        if self.cluster.get(BMC_SECRET, ref) is None:
            return (
                "UnknownError",
                f'BMC connection error: failed to get BMC secret: BMCSecret "{ref}" not found',
            )
        machine = self.machine(bmc)
        address = spec["access"]["ip"]
        if machine is None or machine.bmc == "unreachable":
            url = f"{spec['protocol'].get('scheme', 'https')}://{address}/redfish/v1/"
            return (
                "UnknownError",
                f"BMC connection error: Get {url}: dial tcp {address}: connect: connection refused",
            )
        return HANGS if machine.bmc == "hangs" else None

    def _password(self, bmc: Obj, machine: Machine) -> bool:
        secret = self.cluster.get(BMC_SECRET, bmc["spec"]["bmcSecretRef"]["name"]) or {}
        user, password = self.claims.credentials(secret)
        good = user == machine.user and password == machine.password and machine.bmc != "refuses"
        if good:
            self.world.truth.uses(f"bmc/{machine.name}", self.name, digest(password))
        return good

    def _own_server(self, bmc: Obj, machine: Machine, number: int) -> None:
        name = f"{bmc['metadata']['name']}-system-{number}"
        labels = dict(labels_of(bmc))
        server = self.cluster.get(SERVER, name)
        if server is None:
            self.cluster.create(
                {
                    "apiVersion": "metal.ironcore.dev/v1alpha1",
                    "kind": "Server",
                    "metadata": {
                        "name": name,
                        "labels": labels,
                        "finalizers": [FINALIZER],
                        "ownerReferences": [_owner(bmc)],
                    },
                    "spec": {
                        "systemUUID": machine.uuid,
                        "bmcRef": {"name": bmc["metadata"]["name"]},
                        "power": "Off",
                    },
                },
                manager=self.name,
            )
            return

        def merge(live: Mutable) -> None:
            live["metadata"]["labels"] = {**labels_of(live), **labels}
            live["spec"]["systemUUID"] = machine.uuid

        self.cluster.edit(SERVER, name, "", merge, manager=self.name)

    # Servers

    def _server(self, key: Key, server: Obj) -> float | None:
        machine = self.machine(server)
        state = part(server, "status").get("state", "")
        if "deletionTimestamp" in server["metadata"]:
            return self._end(key, state)
        waits = self._worker(key, server, machine)
        if waits:
            return waits
        if machine is None or not self._reachable(server, machine):
            return RESYNC
        if self._operated(key, server, machine):
            return RESYNC
        match state:
            case "" | "Initial":
                return self._initial(key, server, machine)
            case "Discovery":
                return self._discovery(key, server, machine)
            case "Available":
                return self.claims.available(key, server, machine)
            case "Reserved":
                return self.claims.reserved(key, server, machine)
            case "Maintenance":
                return self.claims.maintained(key, server, machine)
            case _:
                return RESYNC

    def _worker(self, key: Key, server: Obj, machine: Machine | None) -> float:
        """Seconds until a worker has time for it; 0: now. Whoever's BMC refuses the password keeps
        its worker until that gives up."""
        if notes_of(server).get(OPERATION) in IGNORED:
            return RESYNC
        now = self.world.elapsed()
        self._busy = {name: until for name, until in self._busy.items() if until > now}
        if key.name in self._busy:
            return self._busy[key.name] - now
        if len(self._busy) >= WORKERS:
            return min(self._busy.values()) - now
        bmc = self.cluster.get(BMC, server["spec"]["bmcRef"]["name"])
        answers = machine is not None and machine.bmc not in ("hangs", "unreachable")
        if bmc is None or machine is None or not answers or self._password(bmc, machine):
            return 0.0
        self._busy[key.name] = now + POLLING
        return POLLING + RESYNC

    def _end(self, key: Key, state: str) -> float | None:
        if state == "Maintenance":
            return RESYNC
        self.cluster.remove_finalizer(SERVER, key.name, "", FINALIZER)
        return None

    def _reachable(self, server: Obj, machine: Machine) -> bool:
        bmc = self.cluster.get(BMC, server["spec"]["bmcRef"]["name"])
        good = machine.bmc in ("answers", "lies")
        return bmc is not None and good and self._password(bmc, machine)

    def power_of(self, machine: Machine) -> str:
        return redfish.shown_power(machine)

    def _initial(self, key: Key, server: Obj, machine: Machine) -> float | None:
        if not part(server, "status").get("state"):
            self.status(key, {"state": "Initial", "powerState": self.power_of(machine)})
            return self.span(0.3, 2.0, key, "inventory")
        if self._reports.get(machine.uuid) == key.name:
            del self._reports[machine.uuid]
        boot = self.cluster.get(BOOT, key.name, MANAGER_NAMESPACE)
        if boot is None:
            self.claims.boot(key.name, MANAGER_NAMESPACE, key.name, "probe-os", internal=True)
        self.status(
            key,
            {
                "state": "Discovery",
                "powerState": self.power_of(machine),
                "manufacturer": "Contoso",
                "model": machine.size,
                "serialNumber": machine.uuid[:8].upper(),
                "biosVersion": "U60",
                "totalSystemMemory": "512Gi",
            },
        )
        return None

    def _discovery(self, key: Key, server: Obj, machine: Machine) -> float | None:
        """Found on, it is left on: nothing boots from the network, and nobody reports."""
        boot = self.cluster.get(BOOT, key.name, MANAGER_NAMESPACE)
        if boot is None or part(boot, "status").get("state") != "Ready":
            return None
        if machine.uuid in self._reports:
            self.claims.discovered(key, machine)
            return None
        since = boot["metadata"]["creationTimestamp"]
        if age(self.world, since) > DISCOVERY:
            self._probing.discard(key.name)
            self.cluster.delete(BOOT, key.name, MANAGER_NAMESPACE)
            self.set_power(key, "Off")
            self.status(key, {"state": "Initial"})
            return None
        if server["spec"].get("power") != "On":
            booted = not machine.on
            self.set_power(key, "On")
            if booted:
                redfish.switch(self.world, machine, on=True, who=self.name)
                self._probing.add(key.name)
            self.status(
                key,
                {
                    "powerState": self.power_of(machine),
                    "conditions": [
                        self.condition(
                            "PoweringOn", "True", "ServerPowerOn", "Server is powering on"
                        )
                    ],
                },
            )
            wait = self.span(*PROBE, key, "probe", boot["metadata"]["uid"])
            return wait if booted else DISCOVERY
        left = DISCOVERY - age(self.world, since) + 1
        if key.name not in self._probing:
            return left
        wait = self.span(*PROBE, key, "probe", boot["metadata"]["uid"]) - age(self.world, since)
        if not machine.on or wait > 0:
            return min(max(wait, 5.0), left) if machine.on else left
        self._probing.discard(key.name)
        self._reports[machine.uuid] = key.name
        self.claims.discovered(key, machine)
        return None

    def set_power(self, key: Key, power: str | None) -> None:
        def change(live: Mutable) -> None:
            if power is None:
                live["spec"].pop("power", None)
            else:
                live["spec"]["power"] = power

        self.cluster.edit(SERVER, key.name, "", change, manager=self.name)

    def _operated(self, key: Key, server: Obj, machine: Machine) -> bool:
        """The annotation that asks for something once. True: nothing else is done now."""
        asked = notes_of(server).get(OPERATION, "")
        match asked:
            case "":
                return False
            case "power-cycle-server":
                # Refused by the BMC; the annotation stays and blocks the Server.
                return True
            case "force-off-server":
                redfish.switch(self.world, machine, on=False, who=self.name)
            case "force-on-server":
                redfish.switch(self.world, machine, on=True, who=self.name)
            case "graceful-restart-server" | "hard-restart-server":
                redfish.switch(self.world, machine, on=False, who=self.name)
                redfish.switch(self.world, machine, on=True, who=self.name)
            case "park" | "unpark" if self.parks:
                self.claims.park(key, server, machine, parked=asked == "park")
            case _:
                return False

        def done(live: Mutable) -> None:
            live["metadata"]["annotations"].pop(OPERATION, None)

        self.cluster.edit(SERVER, key.name, "", done, manager=self.name)
        return False


def readable(bmc: Obj) -> bool:
    """Whether its address is one."""
    given = part(bmc, "spec.access").get("ip")
    if given is None:
        return True
    try:
        ipaddress.ip_address(given)
    except ValueError:
        return False
    return True


def _owner(obj: Obj) -> dict[str, Any]:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
