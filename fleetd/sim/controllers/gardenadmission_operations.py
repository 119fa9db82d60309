"""
What a gardener-apiserver does with the annotation `gardener.cloud/operation` of a Shoot.

Part of it is consumed in the same write; what is not possible now is refused with the words of the
real server.
"""

from fleetd.sim.controllers.gardenadmission_shoot import OPERATION, ROLLING, workers
from fleetd.sim.controllers.metal_parts import notes_of, part
from fleetd.sim.kube import refusal
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.values import Obj, at, clone, name_of

OPERATIONS = (
    "force-in-place-update",
    "maintain",
    "reconcile",
    "retry",
    "rotate-ca-complete",
    "rotate-ca-start",
    "rotate-ca-start-without-workers-rollout",
    "rotate-credentials-complete",
    "rotate-credentials-start",
    "rotate-credentials-start-without-workers-rollout",
    "rotate-etcd-encryption-key",
    "rotate-observability-credentials",
    "rotate-serviceaccount-key-complete",
    "rotate-serviceaccount-key-start",
    "rotate-serviceaccount-key-start-without-workers-rollout",
    "rotate-ssh-keypair",
)
_PARTS = {
    "ca": ("CA", "certificateAuthorities"),
    "serviceaccount-key": ("service account key", "serviceAccountKey"),
}


def operated(definition: Definition, new: Obj, old: Obj) -> Obj | None:
    """The annotation `gardener.cloud/operation`: part of it is consumed in the same write."""
    notes = notes_of(new)
    asked = notes.get(OPERATION, "")
    before = notes_of(old).get(OPERATION, "")
    if not asked or asked == before:
        return new
    state = at(old, "status.lastOperation.state")
    left: list[str] = []
    bump = False
    for one in asked.split(";"):
        _operation(definition, new, old, one)
        if (one == "reconcile" and state not in (None, "Failed")) or (
            one == "retry" and state == "Failed"
        ):
            bump = True
            continue
        left.append(one)
        if one.startswith(("rotate-", "rollout-workers=")) and state != "Failed":
            bump = True
    if "rotate-credentials-start" in left:
        left = ["rotate-credentials-start"]
    made = clone(new)
    if left:
        made["metadata"]["annotations"][OPERATION] = ";".join(left)
    else:
        del made["metadata"]["annotations"][OPERATION]
    if bump:
        made["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    return made


def _operation(definition: Definition, new: Obj, old: Obj, one: str) -> None:
    path = f"metadata.annotations[{OPERATION}]"
    name = name_of(new)
    head, _, pools = one.partition("=")
    if head in ("rollout-workers", "rotate-rollout-workers"):
        _rollout(definition, new, path, pools)
        return
    if one not in OPERATIONS:
        listed = ", ".join(f'"{known}"' for known in OPERATIONS)
        text = f'Unsupported value: "{one}": supported values: {listed}'
        raise refusal.invalid(definition, name, ("FieldValueNotSupported", path, text))
    last = part(old, "status.lastOperation")
    created = last and not (last["type"] == "Create" and last["state"] != "Succeeded")
    for key, (words, field) in _PARTS.items():
        both = one.startswith("rotate-credentials")
        if not both and not one.startswith(f"rotate-{key}"):
            continue
        phase = at(old, f"status.credentials.rotation.{field}.phase")
        what = "rotation of all credentials" if both else f"{words} rotation"
        text = ""
        if "start" in one and not created:
            text = (
                f"cannot start {what} if shoot was not yet created successfully or is "
                "not ready for reconciliation"
            )
        elif "start" in one and phase not in (None, "Completed"):
            text = (
                f"cannot start {what} if .status.credentials.rotation.{field}.phase is "
                "not 'Completed'"
            )
        elif one.endswith("complete") and phase != "Prepared":
            text = (
                f"cannot complete {what} if .status.credentials.rotation.{field}.phase "
                "is not 'Prepared'"
            )
        if text:
            raise refusal.invalid(
                definition, name, ("FieldValueForbidden", path, f"Forbidden: {text}")
            )


def _rollout(definition: Definition, new: Obj, path: str, pools: str) -> None:
    named = {one["name"]: one for one in workers(new)}
    for pool in named if pools == "*" else pools.split(","):
        text = ""
        if pool not in named:
            text = f"worker pool name {pool} does not exist in .spec.provider.workers[]"
        elif named[pool]["updateStrategy"] != ROLLING:
            text = (
                f"worker pool {pool} is using in-place update strategy; manual worker pool rollout "
                "is not supported for such pools"
            )
        if text:
            raise refusal.invalid(
                definition, name_of(new), ("FieldValueInvalid", path, f"Invalid value: {text}")
            )
