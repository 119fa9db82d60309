"""Reading seen objects whose parts may be missing; pure."""

from collections.abc import Sequence
from typing import Any

from topology.resource import Facts


def inside(seen: Facts | None, *path: str) -> Facts:
    """A mapping inside of another; empty where there is none."""
    found: Any = seen or {}
    for name in path:
        found = found.get(name) or {}
    return found


def members(seen: Facts | None, *path: str) -> Sequence[Facts]:
    """A list of mappings inside of another; empty where there is none."""
    *way, last = path
    return inside(seen, *way).get(last) or ()


def ready(node: Facts) -> bool:
    held = members(node, "status", "conditions")
    return any(one["type"] == "Ready" and one["status"] == "True" for one in held)


def silent(ceph: Facts) -> bool:
    """Whether Rook asked Ceph how it is and got no answer."""
    return "error" in inside(ceph, "details")


def last_change(status: Facts) -> str:
    """When a condition changed last; empty if there is none."""
    held = members(status, "conditions")
    return max((str(one["lastTransitionTime"]) for one in held), default="")


def binds(binding: Facts, account: str) -> bool:
    """Whether the account is among its subjects, for the role of its own name."""
    names = [(one.get("kind"), one.get("name")) for one in members(binding, "subjects")]
    return ("ServiceAccount", account) in names and inside(binding, "roleRef").get(
        "name"
    ) == account


def granted(role: Facts, group: str, resource: str, verb: str) -> bool:
    return any(
        group in one.get("apiGroups", ())
        and resource in one.get("resources", ())
        and verb in one.get("verbs", ())
        for one in members(role, "rules")
    )


def generations(clients: Sequence[Facts]) -> dict[str, Facts]:
    """For the ledger: which key each Ceph user has; it counts up when Rook makes a new one."""
    found: dict[str, Facts] = {}
    for client in clients:
        user = str(client["metadata"]["name"]).rpartition("-")[2]
        have = inside(client, "status", "cephx").get("keyGeneration")
        if have:
            found[f"ceph-key-{user}"] = {"version": int(have)}
    return found
