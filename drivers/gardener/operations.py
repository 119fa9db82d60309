"""
What a Shoot is asked to do beside being as its document says: try again, be gone over once more,
and renew its authority.

Pure, in two halves. `due` is asked when fleetd looks, for it needs the time; `steps` turns what it
found into steps. An operation is an annotation that the garden takes off, so nothing of it is left
to be compared: a step carries the moment that it answers, and the Shoot's status says whether it
was done. The renewal goes in phases: first the old and the new are good, authorities and the key
that signs tokens together, then the nodes are replaced pool by pool, then the old ones end. Each of
these last steps waits until whatever was made with the old has been made anew by itself, and for a
person. Nodes are never replaced by the garden on its own. What nobody but the garden uses (the key
of etcd, the SSH keys, what its monitoring logs in with) is renewed in one go.
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
ROLL = "rotate-rollout-workers"
PHASED = {"certificateAuthorities": "ca", "serviceAccountKey": "serviceaccount-key"}
"""What is renewed in phases: its part of the status, and its word in an operation."""
AT_ONCE = {
    "sshKeypair": "rotate-ssh-keypair",
    "etcdEncryptionKey": "rotate-etcd-encryption-key",
    "observability": "rotate-observability-credentials",
}
RIPE = {
    "certificateAuthorities": timedelta(hours=25),
    "serviceAccountKey": timedelta(days=31),
}
"""How long after the start nobody needs the old one: a kubeconfig is good for a day; the tokens
with which OpenBao and the arbiter's operator come are good for 60 days, and renewed after 30."""
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
    phased = {name: facts.part(rotation, name) for name in PHASED}
    left = {
        str(one["name"])
        for state in phased.values()
        if state.get("phase") == "WaitingForWorkersRollout"
        for one in facts.members(state, "pendingWorkersRollouts")
    }
    if left:
        return _roll(shoot, left, max(_begun(state) for state in phased.values()))
    for name, state in phased.items():
        begun = _moment(_begun(state))
        if state.get("phase") == "Prepared" and begun is not None and now - begun >= RIPE[name]:
            return {"operation": complete(name), "of": _begun(state)}
    due_now = [name for name, state in phased.items() if _startable(state, asked)]
    if due_now:
        of = ",".join(_begun(phased[name]) for name in due_now)
        return {"operation": start(due_now), "of": of}
    if any(state.get("phase") not in ("Prepared", "Completed") for state in phased.values()):
        return {}
    for name, operation in AT_ONCE.items():
        done = _begun(facts.part(rotation, name))
        if not done or _since(done, asked):
            return {"operation": operation, "of": done}
    return {}


def start(names: Sequence[str]) -> str:
    """Of all together, so that nodes are replaced once."""
    return ";".join(f"rotate-{PHASED[name]}-start-without-workers-rollout" for name in names)


def complete(name: str) -> str:
    return f"rotate-{PHASED[name]}-complete"


def _begun(state: Facts) -> str:
    return str(state.get("lastInitiationTime") or "")


def _startable(state: Facts, asked: datetime) -> bool:
    ended = state.get("phase") in (None, "", "Completed")
    return ended and (not _begun(state) or _since(_begun(state), asked))


def _roll(shoot: Facts, left: set[str], of: str) -> dict[str, Any]:
    pools = [
        str(worker["name"])
        for worker in offers.workers(shoot.get("spec") or {})
        if worker["name"] in left
        and (worker.get("updateStrategy") or offers.ROLLING) == offers.ROLLING
    ]
    return {"operation": ROLL, "of": of, "pool": pools[0]} if pools else {}


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
    complete("certificateAuthorities"): (
        "end the cluster's old authority: whoever still uses it is locked out"
    ),
    complete("serviceAccountKey"): (
        "end the key that signed the cluster's old tokens: whoever still has one is locked out"
    ),
    AT_ONCE["sshKeypair"]: (
        "renew the SSH keys of the nodes; the ones before are good until the next time"
    ),
    AT_ONCE["etcdEncryptionKey"]: "renew the key with which the cluster's Secrets are kept",
    AT_ONCE["observability"]: "renew what the garden's monitoring logs in with",
}
_START = "renew the cluster's authority and signing key: from now on the old and the new are good"


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
    why, disrupts, destroys = _WHY.get(operation, _START), set[Ref](), set[Ref]()
    if operation == ROLL:
        if "servers" not in observed:
            return  # without them no budget would see what goes down
        servers: Sequence[str] = observed["servers"].get(asked["pool"], ())
        disrupts = {want.ref, *(Ref("server", name) for name in servers[:1])}
        why = f"replace the nodes of {asked['pool']} one after the other: they hold what is renewed"
    if operation.endswith("-complete"):
        destroys = {Ref("access", want.ref.name)}
    yield make_step(
        want, OPERATE, args, why=why, deadline=DEADLINE, disrupts=disrupts, destroys=destroys
    )
