"""
What is seen of hypervisors: Kubernetes' word and Nova's, side by side.

The operator's conditions alone are not enough: it does not notice a service that was disabled by
hand, shows nothing of a machine that finds no host, and never counts machines. So Nova is asked,
and where it cannot be asked that is a fact as well. Messages of conditions are left out, except
those that are read: some carry another request id at every write.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from drivers.hypervisor import marks
from fleetd.clouds import client
from fleetd.kube import facts
from topology.resource import Facts

NUDGE = "fleet.c5c3.io/nudged"
"""Annotation by which the operator is made to look again."""
READ = ("Ready", "Offboarded", "Evicting")
"""Conditions whose message is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nova:
    """What Nova said, or why it could not be asked."""

    asked: bool
    said: str = ""
    services: Mapping[str, Facts] = field(default_factory=dict[str, Facts])
    """nova-compute by host."""
    servers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Virtual machines, of the hosts that were asked about."""
    moved: Mapping[str, str] = field(default_factory=dict[str, str])
    """When a machine last left a host."""
    stuck: Mapping[str, int] = field(default_factory=dict[str, int])
    """Migrations that ended in error since then, by host."""
    room: frozenset[str] = frozenset()
    """Hosts that were asked about whose machines fit on those that stay."""

    def working(self, host: str) -> bool:
        found = self.services.get(host) or {}
        return found.get("status") == "enabled" and found.get("state") == "up"


def ask(cloud: client.Cloud, leaving: Sequence[str]) -> Nova:
    """`leaving`: hosts that are emptied or about to go; only those are counted, for the others
    have thousands of machines and nothing hangs on the number."""
    services = {
        one["host"]: {"status": one["status"], "state": one["state"], "why": _why(one)}
        for one in cloud.nova_services()
        if one["binary"] == "nova-compute"
    }
    servers: dict[str, int] = {}
    moved: dict[str, str] = {}
    stuck: dict[str, int] = {}
    on = {host: cloud.servers_on(host) for host in leaving}
    for host in leaving:
        servers[host] = len(on[host])
        tries = [one for one in cloud.migrations(host) if one["source_compute"] == host]
        done = [str(one["updated_at"]) for one in tries if one["status"] == "completed"]
        moved[host] = max(done, default="")
        stuck[host] = sum(
            1 for one in tries if one["status"] == "error" and str(one["updated_at"]) > moved[host]
        )
    made = Nova(asked=True, services=services, servers=servers, moved=moved, stuck=stuck)
    return replace(made, room=frozenset(_fitting(cloud, made, on)))


def _fitting(cloud: client.Cloud, nova: Nova, on: Mapping[str, Sequence[Facts]]) -> Iterator[str]:
    """One after the other, by name: what a host takes with it, the next does not find. The
    largest machine must fit on one host, and all of them on all that stay."""
    sizes = {host: [_size(one) for one in machines] for host, machines in on.items() if machines}
    every = [size for machines in sizes.values() for size in machines]
    if not every or None in every:
        return  # what is not known counts as full
    known = [size for size in every if size is not None]
    largest = max(size[0] for size in known), max(size[1] for size in known)
    names = cloud.providers()
    free = [0, 0]
    for uuid, has in cloud.candidates(*largest).items():
        host = names.get(uuid, "")
        if nova.working(host) and host not in on:
            for number, kind in enumerate(("VCPU", "MEMORY_MB")):
                free[number] += int(has[kind]["capacity"]) - int(has[kind]["used"])
    for host in sorted(sizes):
        for size in sizes[host]:
            for number in (0, 1):
                free[number] -= size[number] if size is not None else 0
        if min(free) < 0:
            return
        yield host


def _size(server: Facts) -> tuple[int, int] | None:
    flavor = facts.part(server, "flavor")
    if "vcpus" not in flavor or "ram" not in flavor:
        return None
    return int(flavor["vcpus"]), int(flavor["ram"])


def _why(service: Facts) -> str:
    return str(service.get("disabled_reason") or "")


def hypervisor(obj: Facts, eviction: Facts | None, nova: Nova) -> dict[str, Any]:
    """One host, as the rules of the catalogue read it."""
    metadata: Facts = obj["metadata"]
    status = facts.part(obj, "status")
    name = str(metadata["name"])
    kept = {
        key: metadata[key]
        for key in ("name", "uid", "generation", "deletionTimestamp")
        if metadata.get(key)
    }
    nudged = facts.part(metadata, "annotations").get(NUDGE)
    observed: dict[str, Any] = {"nova": _of_nova(nova, name)}
    if eviction is not None:
        observed["eviction"] = _eviction(eviction, nova.moved.get(name, "") if nova.asked else "")
    return {
        "metadata": kept | ({"nudged": nudged} if nudged else {}),
        "spec": {
            key: facts.part(obj, "spec").get(key)
            for key in ("maintenance", "highAvailability", "lifecycleEnabled", "skipTests")
        },
        "status": {
            "hypervisorId": status.get("hypervisorId"),
            "evicted": bool(status.get("evicted")),
            "conditions": [_condition(one) for one in facts.members(obj, "status", "conditions")],
        },
        "observed": observed,
    }


def _of_nova(nova: Nova, name: str) -> dict[str, Any]:
    if not nova.asked:
        return {}
    found = dict(nova.services.get(name) or {"status": "missing"})
    if name in nova.servers:
        found |= {"servers": nova.servers[name], "failedMoves": nova.stuck[name]}
        found["room"] = name in nova.room
    return found


def _condition(one: Facts) -> dict[str, Any]:
    kept = ("type", "status", "reason", "lastTransitionTime")
    made = {key: one[key] for key in kept if key in one}
    if one["type"] in READ:
        made["message"] = one.get("message", "")
    return made


def _eviction(obj: Facts, moved: str) -> dict[str, Any]:
    one, move = facts.condition(obj, "Evicting"), facts.condition(obj, "MigratingInstance")
    since = str(one.get("lastTransitionTime") or obj["metadata"].get("creationTimestamp") or "")
    stamp = moved.partition(".")[0] + "Z" if moved else ""
    return {
        "failed": one.get("status") == "False" and one.get("reason") != "Succeeded",
        "done": one.get("status") == "False" and one.get("reason") == "Succeeded",
        "moveFailed": move.get("status") == "False" and move.get("reason") == "Failed",
        "changedAt": max(since, stamp),
        "outstanding": len(facts.part(obj, "status").get("outstandingInstances") or ()),
    }


def node(obj: Facts) -> dict[str, Any]:
    labels, annotations = marks.carried(obj)
    held = facts.members(obj, "status", "conditions")
    leaving = any(one["type"] == "Terminating" and one["status"] == "True" for one in held)
    return {
        "uid": obj["metadata"]["uid"],
        "labels": labels,
        "annotations": annotations,
        "terminating": leaving or bool(obj["metadata"].get("deletionTimestamp")),
    }
