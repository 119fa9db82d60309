"""
How hosts are emptied and leave, as steps; pure.

`termination` and the Node's condition Terminating are both needed. The condition alone evicts
nothing but switches HA off while machines run, so termination comes first, and the condition only
when Nova says that nothing is left on the host. Where somebody else set the condition (Gardener
replaces a machine), termination follows at once. The one rule: no host is emptied without a place
for its machines; the operator would try for ever and show nothing.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from drivers.hypervisor import look
from fleetd.kube import facts
from fleetd.vocabulary import Step, make_step
from topology.resource import Facts, Resource

DEADLINE = timedelta(seconds=30)
REFUSE = "refuse"


def set_spec(want: Resource, host: Facts, spec: Facts, why: str, *, destroys: bool = False) -> Step:
    args = {
        "backend": want.backend,
        "host": host["metadata"]["name"],
        "uid": host["metadata"]["uid"],
        "spec": spec,
    }
    return make_step(
        want,
        "set-hypervisor",
        args,
        why=why,
        deadline=DEADLINE,
        disrupts=[want.ref] if "maintenance" in spec else (),
        destroys=[want.ref] if destroys else (),
    )


def follow(want: Resource, seen: Facts) -> list[Step]:
    """What a Node that is to go needs, and what the operator does not try again by itself."""
    steps: list[Step] = []
    for host in seen["objects"]:
        name = str(host["metadata"]["name"])
        node = facts.part(seen, "nodes", name)
        if node.get("terminating") and not _terminates(host) and has_room(seen, name):
            why = f"empty {name} and take it out of Nova: its Node is being removed"
            steps.append(set_spec(want, host, {"maintenance": "termination"}, why))
        steps += _mend(want, seen, host)
    return steps


def removal(want: Resource, seen: Facts) -> list[Step]:
    """All hosts of a retired cluster, each when it can; none while machines run that only hosts
    of the same cluster could take: they would be moved from one that goes to another."""
    steps: list[Step] = []
    stranded = _stranded(seen)
    if stranded:
        why = (
            f"machines run on {', '.join(stranded)}, and no host of another cluster can take "
            "them; move or delete them first"
        )
        return [make_step(want, REFUSE, {"why": why}, why=why, deadline=DEADLINE)]
    for host in seen["objects"]:
        name = str(host["metadata"]["name"])
        node = facts.part(seen, "nodes", name)
        if not _terminates(host):
            if has_room(seen, name):
                spec = {"maintenance": "termination"}
                why = f"take hypervisor {name} out of the cloud: its cluster was retired"
                steps.append(set_spec(want, host, spec, why, destroys=True))
        elif node and not node["terminating"] and is_empty(host):
            steps.append(_node_terminating(want, name, node))
        steps += _mend(want, seen, host)
    return steps


def evict(want: Resource, seen: Facts, name: str, reason: str) -> Step | str:
    """Empties one host for maintenance; or why not, in words."""
    host = next((one for one in seen["objects"] if one["metadata"]["name"] == name), None)
    if host is None:
        return f"there is no hypervisor {name}"
    if not has_room(seen, name):
        return f"no other host is in service that could take the machines of {name}"
    spec = {"maintenance": "manual", "maintenanceReason": reason}
    return set_spec(want, host, spec, f"empty {name}: {reason}")


def uncordon(want: Resource, seen: Facts, name: str) -> Step | str:
    """Back into service; also ends an eviction that is under way."""
    host = next((one for one in seen["objects"] if one["metadata"]["name"] == name), None)
    if host is None:
        return f"there is no hypervisor {name}"
    return set_spec(want, host, {"maintenance": ""}, f"put {name} back into service")


def is_empty(host: Facts) -> bool:
    """By Nova, and by an eviction that ended well; what is not known counts as full."""
    observed: Facts = host["observed"]
    return observed["nova"].get("servers") == 0 and bool(
        facts.part(observed, "eviction").get("done")
    )


def has_room(seen: Facts, name: str) -> bool:
    """Whether its machines have somewhere to go, as far as can be known: none are on it, or they
    fit on the hosts that stay. Of a host that nobody asked about yet: another one is in service."""
    if not seen["nova"]["asked"]:
        return False
    host = next((one for one in seen["objects"] if one["metadata"]["name"] == name), None)
    nova: Facts = host["observed"]["nova"] if host is not None else {}
    if nova.get("servers") == 0:
        return True
    if "room" in nova:
        return bool(nova["room"])
    leaving = {one["metadata"]["name"] for one in seen["objects"] if one["spec"].get("maintenance")}
    return any(other not in leaving and other != name for other in seen["nova"]["working"])


def _stranded(seen: Facts) -> list[str]:
    """Hosts with machines, if there are hosts of this cluster only."""
    known = {str(one["metadata"]["name"]): one["observed"]["nova"] for one in seen["objects"]}
    if any(other not in known for other in seen["nova"]["hosts"]):
        return []
    return [name for name, nova in sorted(known.items()) if nova.get("servers")]


def all_gone(want: Resource, hosts: Sequence[Facts]) -> bool:
    """Out of Nova, and nothing keeps their Nodes from being drained."""
    return all(
        _status(host, "Offboarded") == "True" and not _holds_drain(want, host) for host in hosts
    )


def _holds_drain(want: Resource, host: Facts) -> bool:
    """The operator lets a Node go only when HA is known to be off; without an HA service nobody
    ever says so."""
    alone = not want.spec["hypervisor"].get("highAvailability")
    return alone and _status(host, "HaEnabled") != "False"


def _terminates(host: Facts) -> bool:
    return host["spec"].get("maintenance") == "termination"


def _condition(host: Facts, kind: str) -> Facts:
    return facts.condition(host, kind)


def _status(host: Facts, kind: str) -> str:
    return str(_condition(host, kind).get("status", ""))


def _node_terminating(want: Resource, name: str, node: Facts) -> Step:
    args = {
        "backend": want.backend,
        "host": name,
        "uid": node["uid"],
        "condition": _said("Terminating", "True", "Retired", "fleetd retired the cluster"),
    }
    why = f"say that Node {name} is to go: it is empty"
    return make_step(want, "node-terminating", args, why=why, deadline=DEADLINE)


def _said(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    # The time is fixed, so that the deed is the same whenever it is done; nothing reads it.
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def _mend(want: Resource, seen: Facts, host: Facts) -> list[Step]:
    """A nudge for an offboarding that gave up, once per cause; and HA off where there is none."""
    name = str(host["metadata"]["name"])
    ready = _condition(host, "Ready")
    if ready.get("reason") == "Decommissioning":
        like = [one for one in seen["nova"]["hosts"] if name in one]
        cause = ",".join(like) or "none"
        if len(like) == 1 and host["metadata"].get("nudged") != cause:
            args = {
                "backend": want.backend,
                "host": name,
                "uid": host["metadata"]["uid"],
                "annotations": {look.NUDGE: cause},
            }
            why = f"have the operator look at {name} again: {ready.get('message', '')}"
            return [make_step(want, "set-hypervisor", args, why=why, deadline=DEADLINE)]
    if _status(host, "Offboarded") == "True" and _holds_drain(want, host):
        args = {
            "backend": want.backend,
            "host": name,
            "uid": host["metadata"]["uid"],
            "condition": _said("HaEnabled", "False", "NotInstalled", "there is no HA service"),
        }
        why = f"say that HA is off on {name}, so that its Node may be drained"
        return [make_step(want, "ha-off", args, why=why, deadline=DEADLINE)]
    return []
