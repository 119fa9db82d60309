"""
What metal-operator 0.3 does with claims and maintenances: who gets a server, and its power.

Part of `metal`; it says there what is imitated. A claim takes any server that fits, is Available,
off, and in no maintenance; `Bound` says nothing of booting and is never taken back.
"""

import base64
import binascii
from typing import TYPE_CHECKING, Any

from fleetd.sim.controllers.base import Key, Obj
from fleetd.sim.controllers.metal_kinds import BOOT, CLAIM, MAINTENANCE, MANAGER_NAMESPACE, SERVER
from fleetd.sim.controllers.metal_parts import items_of, notes_of, part
from fleetd.sim.kube.values import Obj as Mutable
from fleetd.sim.services import redfish
from fleetd.sim.truth import Machine

if TYPE_CHECKING:
    from fleetd.sim.controllers.metal import MetalOperator

RESYNC = 120.0
NEEDED = "metal.ironcore.dev/maintenance-needed"
APPROVAL = "metal.ironcore.dev/maintenance-approval"
PARKED = "metal.ironcore.dev/parked"
API = "metal.ironcore.dev/v1alpha1"
CLAIM_FINALIZER = "metal.ironcore.dev/serverclaim"


class Claims:
    def __init__(self, operator: "MetalOperator") -> None:
        self.op = operator
        self.cluster = operator.cluster
        self.world = operator.world

    # ServerClaims

    def claim(self, key: Key, claim: Obj) -> float | None:
        if "deletionTimestamp" in claim["metadata"]:
            return self._release(key, claim)
        self._finalizer(key, claim)
        ref = part(claim, "spec.serverRef").get("name", "")
        server = self.cluster.get(SERVER, ref) if ref else None
        mine = server is not None and self._holds(server, claim)
        if mine and server is not None:
            if self.cluster.get(BOOT, key.name, key.namespace) is None:
                named = claim["spec"].get("ignitionSecretRef")
                self.boot(key.name, key.namespace, ref, claim["spec"]["image"], ignition=named)
            if part(claim, "status").get("phase") != "Bound":
                self.op.status(key, {"phase": "Bound"})
            self.op.wake(Key(SERVER, "", ref))
            return None
        found = self._free(claim, ref)
        if found is None:
            if not part(claim, "status").get("phase"):
                self.op.status(key, {"phase": "Unbound"})
            return None
        self._reserve(key, claim, found)
        return self.op.span(0.2, 0.6, key, "bind")

    def _finalizer(self, key: Key, claim: Obj) -> None:
        if CLAIM_FINALIZER in (items_of(claim, "metadata.finalizers")):
            return

        def add(live: Mutable) -> None:
            live["metadata"].setdefault("finalizers", []).append(CLAIM_FINALIZER)

        self.cluster.edit(CLAIM, key.name, key.namespace, add, manager=self.op.name)

    def has_server(self, claim: Obj) -> bool:
        server = self.cluster.get(SERVER, part(claim, "spec.serverRef").get("name", ""))
        return server is not None and self._holds(server, claim)

    def _holds(self, server: Obj, claim: Obj) -> bool:
        holder = part(server, "spec.serverClaimRef")
        return holder.get("uid") == claim["metadata"]["uid"]

    def _free(self, claim: Obj, ref: str) -> Obj | None:
        """Any that fits: the operator reads an unordered cache."""
        wanted = part(claim, "spec.serverSelector.matchLabels")
        fit: list[Obj] = []
        for server in self.cluster.list(SERVER, labels=wanted):
            if ref and server["metadata"]["name"] != ref:
                continue
            status = part(server, "status")
            free = status.get("state") == "Available" and status.get("powerState") == "Off"
            held = server["spec"].get("serverClaimRef") or "deletionTimestamp" in server["metadata"]
            if free and not held and not self._maintenances(server["metadata"]["name"]):
                fit.append(server)
        if not fit:
            return None
        stream = self.world.stream(self.cluster.name, "claim", claim["metadata"]["uid"])
        return fit[stream.randrange(len(fit))]

    def _reserve(self, key: Key, claim: Obj, server: Obj) -> None:
        holder = {
            "apiVersion": API,
            "kind": "ServerClaim",
            "namespace": key.namespace,
            "name": key.name,
            "uid": claim["metadata"]["uid"],
        }
        name = server["metadata"]["name"]
        machine = self.op.machine(server)
        if machine is not None:
            self._own(machine, f"{key.name}@{self.cluster.name}")

        def take(live: Mutable) -> None:
            live["spec"]["serverClaimRef"] = holder

        def point(live: Mutable) -> None:
            live["spec"]["serverRef"] = {"name": name}

        self.cluster.edit(SERVER, name, "", take, manager=self.op.name)
        self.op.status(Key(SERVER, "", name), {"state": "Reserved"})
        self.cluster.edit(CLAIM, key.name, key.namespace, point, manager=self.op.name)

    def _own(self, machine: Machine, who: str) -> None:
        """A machine has one owner; a second one is the harm that two BMC objects do."""
        if machine.owner and machine.owner != who:
            self.world.truth.hurt(f"{machine.name} is held by {machine.owner} and given to {who}")
        machine.owner = who
        machine.claimed += 1

    def _release(self, key: Key, claim: Obj) -> float | None:
        """Nothing is cleaned: the next claim gets the old disks."""
        ref = part(claim, "spec.serverRef").get("name", "")
        server = self.cluster.get(SERVER, ref) if ref else None
        if server is not None and self._holds(server, claim):
            machine = self.op.machine(server)
            if machine is not None:
                redfish.switch(self.world, machine, on=False, who=self.op.name)
                if machine.owner == f"{key.name}@{self.cluster.name}":
                    machine.owner = ""

            def free(live: Mutable) -> None:
                live["spec"].pop("serverClaimRef", None)
                live["spec"]["power"] = "Off"

            self.cluster.edit(SERVER, ref, "", free, manager=self.op.name)
            if part(server, "status").get("state") == "Reserved":
                self.op.status(
                    Key(SERVER, "", ref), {"state": "Available", "powerState": self._power(machine)}
                )
        self.cluster.delete(BOOT, key.name, key.namespace)
        self.cluster.remove_finalizer(CLAIM, key.name, key.namespace, CLAIM_FINALIZER)
        return None

    def _power(self, machine: Machine | None) -> str:
        return self.op.power_of(machine) if machine is not None else "Off"

    def boot(
        self,
        name: str,
        namespace: str,
        server: str,
        image: str,
        *,
        ignition: Obj | None = None,
        internal: bool = False,
    ) -> None:
        spec: dict[str, Any] = {"serverRef": {"name": server}, "image": image}
        if ignition:
            spec["ignitionSecretRef"] = dict(ignition)
        notes = {"metal.ironcore.dev/type": "Internal"} if internal else {}
        body = {
            "apiVersion": API,
            "kind": "ServerBootConfiguration",
            "metadata": {"name": name, "namespace": namespace, "annotations": notes},
            "spec": spec,
        }
        self.cluster.create(body, manager=self.op.name)

        def point(live: Mutable) -> None:
            live["spec"]["bootConfigurationRef"] = {"namespace": namespace, "name": name}

        self.cluster.edit(SERVER, server, "", point, manager=self.op.name)

    def credentials(self, secret: Obj) -> tuple[str, str]:
        data = part(secret, "data")
        try:
            user, password = (
                base64.b64decode(str(data.get(key, "")), validate=True).decode()
                for key in ("username", "password")
            )
        except (binascii.Error, UnicodeDecodeError):
            return "", ""
        return user, password

    # Servers, by state

    def discovered(self, key: Key, machine: Machine) -> None:
        """The probe has reported; the server is switched off and free."""
        self.op.status(
            key,
            {
                "state": "Available",
                "powerState": "On",
                "networkInterfaces": [
                    {
                        "name": "eth0",
                        "ips": [machine.address],
                        "macAddress": "52:54:00:"
                        + ":".join(machine.uuid[n : n + 2] for n in (0, 2, 4)),
                        "carrierStatus": "up",
                    }
                ],
            },
        )

    def available(self, key: Key, server: Obj, machine: Machine) -> float | None:
        """Off, or made so: by hand or by the claim of its twin, the operator does not know who
        switched it on."""
        if self._begin_maintenance(key, server):
            return None
        boot = self.cluster.get(BOOT, key.name, MANAGER_NAMESPACE)
        if boot is not None:
            self.cluster.delete(BOOT, key.name, MANAGER_NAMESPACE)
        if server["spec"].get("power") != "Off" or "bootConfigurationRef" in server["spec"]:

            def idle(live: Mutable) -> None:
                live["spec"]["power"] = "Off"
                live["spec"].pop("bootConfigurationRef", None)

            self.cluster.edit(SERVER, key.name, "", idle, manager=self.op.name)
        if machine.on:
            if machine.owner:
                who = f"{self.op.name} switched off {machine.name}"
                self.world.truth.hurt(f"{who}, which {machine.owner} holds")
            redfish.switch(self.world, machine, on=False, who=self.op.name)
        shown = self.op.power_of(machine)
        if part(server, "status").get("powerState") != shown:
            self.op.status(key, {"powerState": shown})
        return RESYNC if machine.on else None

    def reserved(self, key: Key, server: Obj, machine: Machine) -> float | None:
        if self._begin_maintenance(key, server):
            return None
        holder = server["spec"].get("serverClaimRef")
        claim = self.cluster.get(CLAIM, holder["name"], holder["namespace"]) if holder else None
        if claim is None or holder is None:
            self.op.status(key, {"state": "Available", "powerState": self.op.power_of(machine)})
            return None
        boot = self.cluster.get(BOOT, holder["name"], holder["namespace"])
        if boot is None or part(boot, "status").get("state") != "Ready":
            return RESYNC
        wanted = claim["spec"].get("power", "Off")
        if server["spec"].get("power") != wanted:
            self.op.set_power(key, wanted)
        if wanted == "On" and not machine.on:
            # Every power-on of a Reserved server boots from the network first.
            redfish.switch(self.world, machine, on=True, who=self.op.name)
            self._deploy(machine, str(claim["spec"]["image"]))
            conditions = [
                self.op.condition("PoweringOn", "True", "ServerPowerOn", "Server is powering on")
            ]
            self.op.status(key, {"conditions": conditions})
        elif wanted == "Off" and machine.on:
            redfish.switch(self.world, machine, on=False, who=self.op.name)
        shown = self.op.power_of(machine)
        if part(server, "status").get("powerState") != shown:
            self.op.status(key, {"powerState": shown})
        # What is shown may be wrong for a while: a BMC that lies, or one that has lied.
        return None if shown == wanted else RESYNC

    def _deploy(self, machine: Machine, image: str) -> None:
        """The first boot of a claim writes the image; a later one finds it."""
        if machine.deployed < machine.claimed:
            machine.deployed += 1
            machine.image = image
        else:
            self.world.tell("booted from the network again", f"machine {machine.name}")

    # Maintenance

    def _maintenances(self, server: str) -> list[Obj]:
        return [
            one
            for one in self.cluster.list(MAINTENANCE)
            if one["spec"]["serverRef"]["name"] == server
        ]

    def maintenance(self, key: Key, kept: Obj) -> float | None:
        status = part(kept, "status")
        if not status.get("state"):
            self.op.status(key, {"state": "Pending"})
        if status.get("state") != "InMaintenance":
            self.op.wake(Key(SERVER, "", kept["spec"]["serverRef"]["name"]))
        return None

    def _begin_maintenance(self, key: Key, server: Obj) -> bool:
        """The first that may begin does; a claimed server waits for approval, unless enforced."""
        holder = server["spec"].get("serverClaimRef")
        claim = self.cluster.get(CLAIM, holder["name"], holder["namespace"]) if holder else None
        for kept in self._maintenances(key.name):
            if claim is not None:
                self._ask(claim, kept)
                policy = kept["spec"].get("policy", "")
                if policy != "Enforced" and not (policy == "OwnerApproval" and _approved(claim)):
                    continue
            self._enter(key, kept)
            return True
        return False

    def _ask(self, claim: Obj, kept: Obj) -> None:
        reason = notes_of(kept).get("metal.ironcore.dev/maintenance-reason")

        def mark(live: Mutable) -> None:
            metadata = live["metadata"]
            metadata["labels"] = {**part(metadata, "labels"), NEEDED: "true"}
            notes = {**part(metadata, "annotations"), NEEDED: "true"}
            if reason:
                notes["metal.ironcore.dev/maintenance-reason"] = reason
            metadata["annotations"] = notes

        name, space = claim["metadata"]["name"], claim["metadata"]["namespace"]
        self.cluster.edit(CLAIM, name, space, mark, manager=self.op.name)

    def _enter(self, key: Key, kept: Obj) -> None:
        metadata = kept["metadata"]
        power = kept["spec"].get("serverPower")

        def point(live: Mutable) -> None:
            live["spec"]["serverMaintenanceRef"] = {
                "apiVersion": API,
                "kind": "ServerMaintenance",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
            if power:
                live["spec"]["power"] = power
            else:
                live["spec"].pop("power", None)

        self.cluster.edit(SERVER, key.name, "", point, manager=self.op.name)
        self.op.status(key, {"state": "Maintenance"})
        where = Key(MAINTENANCE, metadata["namespace"], metadata["name"])
        self.op.status(where, {"state": "InMaintenance"})

    def maintained(self, key: Key, server: Obj, machine: Machine) -> float | None:
        if not server["spec"].get("serverMaintenanceRef"):
            self._leave(key, server)
            return None
        power = server["spec"].get("power")
        if power in ("On", "Off") and machine.on != (power == "On"):
            redfish.switch(self.world, machine, on=power == "On", who=self.op.name)
        shown = self.op.power_of(machine)
        if part(server, "status").get("powerState") != shown:
            self.op.status(key, {"powerState": shown})
        return None

    def _leave(self, key: Key, server: Obj) -> None:
        """A claimed server goes back to its owner; another is discovered anew."""
        holder = server["spec"].get("serverClaimRef")
        self.op.status(key, {"state": "Reserved" if holder else "Initial"})
        if not holder:
            return

        def unmark(live: Mutable) -> None:
            for marks in ("labels", "annotations"):
                for name in (NEEDED, APPROVAL):
                    if marks in live["metadata"]:
                        live["metadata"][marks].pop(name, None)

        self.cluster.edit(CLAIM, holder["name"], holder["namespace"], unmark, manager=self.op.name)

    def maintenance_deleted(self, kept: Obj) -> None:
        """The fault of this generation: whichever was deleted, the server leaves maintenance."""

        def leave(live: Mutable) -> None:
            live["spec"].pop("serverMaintenanceRef", None)

        name = kept["spec"]["serverRef"]["name"]
        self.cluster.edit(SERVER, name, "", leave, manager=self.op.name)

    def park(self, key: Key, server: Obj, machine: Machine, *, parked: bool) -> None:
        """Of the newer generation: only from Available or Reserved, and off."""
        state = part(server, "status").get("state")
        if parked and state in ("Available", "Reserved"):
            redfish.switch(self.world, machine, on=False, who=self.op.name)
            self.op.status(key, {"state": "Parked", "powerState": self.op.power_of(machine)})
        elif not parked and state == "Parked":
            back = "Reserved" if server["spec"].get("serverClaimRef") else "Available"
            self.op.status(key, {"state": back})

        def mark(live: Mutable) -> None:
            notes = live["metadata"].setdefault("annotations", {})
            if parked:
                notes[PARKED] = "true"
            else:
                notes.pop(PARKED, None)

        self.cluster.edit(SERVER, key.name, "", mark, manager=self.op.name)


def _approved(claim: Obj) -> bool:
    """By presence: the value is not looked at, so "false" approves."""
    metadata = claim["metadata"]
    return any(APPROVAL in (metadata.get(part) or {}) for part in ("labels", "annotations"))
