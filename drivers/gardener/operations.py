"""
What a Shoot is asked to do beside being as its document says: try again, be gone over once more,
and renew its authority.

Pure, in two halves. `due` is asked when fleetd looks, for it needs the time; `steps` turns what it
found into steps. An operation is an annotation that the garden takes off, so nothing of it is left
to be compared: a step carries the moment that it answers, and the Shoot's status says whether it
was done. The renewal goes in phases: first both authorities are good, then the nodes are replaced
pool by pool, then the old one ends. That last step waits for a day, when every kubeconfig of
before has ended by itself, and for a person. Nodes are never replaced by the garden on its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from drivers.gardener import offers
from fleetd.kube import facts
from fleetd.vocabulary import Step, make_step
from topology.resource import Facts, Ref, Resource

OPERATE = "operate"
DEADLINE = timedelta(seconds=30)
RETRY, RECONCILE = "retry", "reconcile"
START = "rotate-ca-start-without-workers-rollout"
COMPLETE = "rotate-ca-complete"
ROLL = "rotate-rollout-workers"
KEYS = "rotate-ssh-keypair"
RIPE = timedelta(hours=25)
"""A kubeconfig is good for a day."""
USER = frozenset(
    {
        "ERR_INFRA_UNAUTHENTICATED",
        "ERR_INFRA_UNAUTHORIZED",
        "ERR_INFRA_QUOTA_EXCEEDED",
        "ERR_INFRA_DEPENDENCIES",
        "ERR_CLEANUP_CLUSTER_RESOURCES",
        "ERR_CONFIGURATION_PROBLEM",
        "ERR_PROBLEMATIC_WEBHOOK",
    }
)
"""Errors that no retry mends: a person must."""


def due(want: Resource, shoot: Facts, now: datetime) -> dict[str, Any]:
    """`operation` and what it answers (`of`), as facts; empty if nothing is to be asked."""
    last = facts.part(shoot, "status", "lastOperation")
    state, at = last.get("state"), str(last.get("lastUpdateTime") or "")
    if state not in ("Succeeded", "Failed", "Error") or not at:
        return {}
    asked = _asked(want, "reconcile", now)
    if state == "Failed":
        if _since(at, asked) or not codes(shoot) & USER:
            return {"operation": RETRY, "of": at}
        return {}
    if asked is not None and _since(at, asked):
        return {"operation": RECONCILE, "of": at}
    if state == "Error":
        return {}
    return _rotation(want, shoot, now)


def _rotation(want: Resource, shoot: Facts, now: datetime) -> dict[str, Any]:
    """The next step of a renewal. One that somebody else began is carried on only if the document
    asks for one."""
    asked = _asked(want, "rotation", now)
    if asked is None:
        return {}
    rotation = facts.part(shoot, "status", "credentials", "rotation")
    mine = facts.part(rotation, "certificateAuthorities")
    begun = str(mine.get("lastInitiationTime") or "")
    match mine.get("phase"):
        case "WaitingForWorkersRollout":
            left = {str(one["name"]) for one in facts.members(mine, "pendingWorkersRollouts")}
            pools = [
                str(worker["name"])
                for worker in offers.workers(shoot.get("spec") or {})
                if worker["name"] in left
                and (worker.get("updateStrategy") or offers.ROLLING) == offers.ROLLING
            ]
            return {"operation": ROLL, "of": begun, "pool": pools[0]} if pools else {}
        case "Prepared":
            ripe = _moment(begun)
            return (
                {"operation": COMPLETE, "of": begun}
                if ripe is not None and now - ripe >= RIPE
                else {}
            )
        case None | "" | "Completed" if not begun or _since(begun, asked):
            return {"operation": START, "of": begun}
        case "Completed":
            keys = facts.part(rotation, "sshKeypair")
            done = str(keys.get("lastInitiationTime") or "")
            return {"operation": KEYS, "of": done} if not done or _since(done, asked) else {}
        case _:
            return {}


def codes(shoot: Facts) -> set[str]:
    """Of all errors that the Shoot has now."""
    errors = facts.members(shoot, "status", "lastErrors")
    return {str(code) for one in errors for code in one.get("codes") or ()}


def _asked(want: Resource, field: str, now: datetime) -> datetime | None:
    """The moment since which a document asks for something; None before it has come."""
    given: Facts = want.spec.get(field) or {}
    since = _moment(str(given.get("since") or ""))
    return since if since is not None and since <= now else None


def _since(at: str, asked: datetime | None) -> bool:
    """Whether what was done at one moment is too old for who asks."""
    done = _moment(at)
    return asked is not None and (done is None or done < asked)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


_WHY = {
    RETRY: "ask Gardener to try again what it gave up",
    RECONCILE: "have Gardener go over the cluster once more",
    START: "renew the cluster's authority: from now on the old and the new one are good",
    KEYS: "renew the SSH keys of the nodes; the ones before are good until the next time",
    COMPLETE: "end the cluster's old authority: whoever still uses it is locked out",
}


def steps(want: Resource, seen: Facts) -> Iterator[Step]:
    """What was found due, as a step."""
    observed: Facts = seen.get("observed") or {}
    asked: Mapping[str, Any] = observed.get("asked") or {}
    operation = str(asked.get("operation") or "")
    if not operation:
        return
    target: Facts = want.spec["object"]
    named = f"{operation}={asked['pool']}" if operation == ROLL else operation
    args = {
        "backend": want.backend,
        "namespace": str(target["namespace"]),
        "name": str(target["name"]),
        "operation": named,
        "of": str(asked["of"]),
    }
    why, disrupts, destroys = _WHY.get(operation, ""), set[Ref](), set[Ref]()
    if operation == ROLL:
        if "servers" not in observed:
            return  # without them no budget would see what goes down
        servers: Sequence[str] = observed["servers"].get(asked["pool"], ())
        disrupts = {want.ref, *(Ref("server", name) for name in servers[:1])}
        why = (
            f"replace the nodes of {asked['pool']} one after the other: they hold the old authority"
        )
    if operation == COMPLETE:
        destroys = {Ref("access", want.ref.name)}
    yield make_step(
        want, OPERATE, args, why=why, deadline=DEADLINE, disrupts=disrupts, destroys=destroys
    )
