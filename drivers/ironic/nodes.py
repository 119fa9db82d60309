"""
A server as an Ironic node: what fleetd writes, how a live one differs, and what follows.

Pure. The marks are in `extra`, under one key. `automated_clean` is off: cleaning wipes disks, and
that is nothing to happen because a server was enrolled. The one rule: a password is in nothing
here; Ironic shows it as stars, and it is written by a verb of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from fleetd import objects, redfish
from fleetd.kube import facts
from topology.resource import Facts, Resource

MARK = "fleet_c5c3_io"
"""Key in `extra`. Without dots and slashes, which a patch would have to escape."""
DRIVER = "redfish"
MOVING = (
    *("verifying", "inspecting", "inspect wait", "cleaning", "clean wait", "deploying"),
    *("wait call-back", "deploy hold", "deleting", "adopting", "rescuing", "unrescuing"),
)
"""The conductor is at work, or waits for somebody."""
_ADDRESSES = ("redfish_address", "ipmi_address", "ilo_address", "drac_address", "irmc_address")
REMOVABLE = ("enroll", "manageable", "available", "inspect failed", "clean failed")
KEPT = (
    *("uuid", "name", "provision_state", "power_state", "maintenance", "fault"),
    *("last_error", "maintenance_reason"),
)


def body(want: Resource) -> dict[str, Any]:
    """As it is created; without what is secret."""
    made: dict[str, Any] = {
        "name": want.ref.name,
        "driver": DRIVER,
        "driver_info": {"redfish_address": redfish.address(want.spec)},
        "resource_class": str(want.spec["class"]),
        "automated_clean": False,
    }
    mark: dict[str, Any] = {
        "owner": objects.owner(want),
        "region": want.region,
        "zone": str(want.spec["zone"]),
        "labels": dict(want.spec["labels"]),
    }
    if want.spec.get("rack"):
        mark["rack"] = str(want.spec["rack"])
    mark["generation"] = facts.digest({**made, "mark": mark})
    return {**made, "extra": {MARK: mark}}


def mark_of(node: Facts) -> Facts:
    extra: Facts = node.get("extra") or {}
    found = extra.get(MARK)
    return cast("Facts", found) if isinstance(found, Mapping) else {}


def differences(wanted: Facts, node: Facts) -> list[str]:
    """Fields that are not as they were asked to be; what others put there is theirs."""
    found = [
        name
        for name in ("driver", "resource_class", "automated_clean")
        if node.get(name) != wanted[name]
    ]
    mine: Facts = wanted["extra"][MARK]
    live = mark_of(node)
    if any(live.get(name) != value for name, value in mine.items()):
        found.append(f"extra.{MARK}")
    return found


def patch(wanted: Facts, node: Facts, step: str) -> list[dict[str, Any]]:
    """What brings the node to what is wanted; what the password's step left is kept."""
    found: list[dict[str, Any]] = [
        {"op": "add", "path": f"/{name}", "value": wanted[name]}
        for name in ("driver", "resource_class", "automated_clean")
        if node.get(name) != wanted[name]
    ]
    mark = {**mark_of(node), **wanted["extra"][MARK], "step": step}
    found.append({"op": "add", "path": f"/extra/{MARK}", "value": mark})
    return found


class Index:
    """All nodes of a region, by what a look asks for: made once for a list, not once for a look."""

    def __init__(self, everything: Sequence[Facts]) -> None:
        self.named = {str(node["name"]): node for node in everything if node.get("name")}
        self._at: dict[str, list[str]] = {}
        """Names of nodes by the host of their BMC."""
        for node in everything:
            name = str(node.get("name") or node.get("uuid"))
            self._at.setdefault(redfish.host(address_of(node)), []).append(name)

    def same_machine(self, want: Resource) -> str:
        """Another node that leads to the BMC of this server; empty if there is none."""
        there = self._at.get(redfish.host(redfish.address(want.spec)), ())
        return next((name for name in there if name != want.ref.name), "")


def address_of(node: Facts) -> str:
    """Of its BMC, as it is written there; also of a node with another driver."""
    info: Facts = node.get("driver_info") or {}
    return next((str(info[key]) for key in _ADDRESSES if info.get(key)), "")


def leads_to(node: Facts, address: str) -> bool:
    """Whether its BMC is the one at this address."""
    return redfish.endpoint(address_of(node)) == redfish.endpoint(address)


def is_ours(node: Facts, owner: str) -> bool:
    return mark_of(node).get("owner") == owner


def is_idle(node: Facts) -> bool:
    """Whether nobody works on it now: no conductor, and no lock."""
    moving = node.get("target_provision_state") or node.get("provision_state") in MOVING
    return not moving and not node.get("reservation")


def seen(want: Resource, node: Facts) -> dict[str, Any]:
    """Of a node what is judged or decided on; no driver_info, where secrets live."""
    found = {name: node[name] for name in KEPT if node.get(name) is not None}
    info: Facts = node.get("driver_info") or {}
    mark = mark_of(node)
    found["node"] = {
        "differs": differences(body(want), node),
        "ours": is_ours(node, objects.owner(want)),
        "foreign": bool(mark.get("owner")) and not is_ours(node, objects.owner(want)),
        "address": address_of(node),
        "here": leads_to(node, redfish.address(want.spec)),
        "instance": str(node.get("instance_uuid") or ""),
        "password": bool(info.get("redfish_password")),
        "moving": bool(node.get("target_provision_state")) or node.get("provision_state") in MOVING,
        "locked": bool(node.get("reservation")),
        "inspected": bool(node.get("inspection_finished_at")),
        "updated": str(node.get("provision_updated_at") or ""),
        "set": str(mark.get("password") or ""),
        "written": str(mark.get("written") or ""),
    }
    return found
