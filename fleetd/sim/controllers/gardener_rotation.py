"""
The rotation of a Shoot's credentials, in the phases of the real one; part of `gardener`.

Certificate authorities and the service account key go in two phases: start replaces the nodes
(or leaves that to `rotate-rollout-workers`), complete ends the old ones. From then on a kubeconfig
that was minted before the start is refused, or a token that was signed before it. The key of etcd,
whose phases nobody has to wait for, is renewed at once, like the SSH keys.
"""

from typing import TYPE_CHECKING, Any

from fleetd.sim.controllers import gardener_access as access
from fleetd.sim.controllers import gardener_workers as workers
from fleetd.sim.controllers.base import Key, Obj, stamp
from fleetd.sim.controllers.gardenadmission import SHOOT
from fleetd.sim.controllers.gardenadmission_shoot import OPERATION
from fleetd.sim.controllers.metal_parts import items_of, part
from fleetd.sim.kube.values import Obj as Mutable
from fleetd.sim.kube.values import at

if TYPE_CHECKING:
    from fleetd.sim.controllers.gardener import Gardenlet

PARTS = {"ca": "certificateAuthorities", "serviceaccount-key": "serviceAccountKey"}
AT_ONCE = {
    "ssh-keypair": "sshKeypair",
    "observability": "observability",
    "etcd-encryption-key": "etcdEncryptionKey",
}


def begin(gardenlet: "Gardenlet", key: Key, asked: str) -> None:
    """At the start of an operation: the annotation is taken off and becomes a phase."""
    if not asked:
        return
    for one in asked.split(";"):
        head, _, pools = one.partition("=")
        if head in ("rollout-workers", "rotate-rollout-workers"):
            _roll(gardenlet, key, head, pools)
        elif head.startswith("rotate-"):
            _rotate(gardenlet, key, head.removeprefix("rotate-"))

    def consume(live: Mutable) -> None:
        live["metadata"]["annotations"].pop(OPERATION, None)

    gardenlet.cluster.edit(SHOOT, key.name, key.namespace, consume, manager=gardenlet.name)


def _pools(shoot: Obj) -> list[str]:
    return [str(one["name"]) for one in items_of(shoot, "spec.provider.workers")]


def _roll(gardenlet: "Gardenlet", key: Key, head: str, pools: str) -> None:
    shoot = gardenlet.get(key)
    if shoot is None:
        return
    names = _pools(shoot) if pools == "*" else pools.split(",")
    workers.roll(gardenlet, key, names, stamp(gardenlet.world))
    if head != "rotate-rollout-workers":
        return
    for field in PARTS.values():
        state = dict(at(shoot, f"status.credentials.rotation.{field}") or {})
        left = [
            one for one in items_of(state, "pendingWorkersRollouts") if one["name"] not in names
        ]
        if state.get("phase") == "WaitingForWorkersRollout":
            _set(gardenlet, key, field, {**state, "pendingWorkersRollouts": left})


def _rotate(gardenlet: "Gardenlet", key: Key, what: str) -> None:
    shoot, now = gardenlet.get(key), stamp(gardenlet.world)
    if shoot is None:
        return
    for name, field in PARTS.items():
        if not what.startswith(("credentials-", f"{name}-")):
            continue
        state = dict(at(shoot, f"status.credentials.rotation.{field}") or {})
        if what.endswith("-complete"):
            _set(gardenlet, key, field, {**state, "phase": "Completing"})
        elif what.endswith("-without-workers-rollout"):
            left = [{"name": pool, "lastInitiationTime": now} for pool in _pools(shoot)]
            phase = {"phase": "PreparingWithoutWorkersRollout", "lastInitiationTime": now}
            _set(gardenlet, key, field, {**state, **phase, "pendingWorkersRollouts": left})
        else:
            _set(gardenlet, key, field, {**state, "phase": "Preparing", "lastInitiationTime": now})
            workers.roll(gardenlet, key, _pools(shoot), now)
    for name, field in AT_ONCE.items():
        if what.startswith((name, "credentials-start")):
            _set(gardenlet, key, field, {"lastInitiationTime": now, "lastCompletionTime": now})


def finish(gardenlet: "Gardenlet", key: Key) -> None:
    """At the end of an operation: the phase that follows."""
    shoot, now = gardenlet.get(key), stamp(gardenlet.world)
    if shoot is None:
        return
    for field in PARTS.values():
        state = dict(at(shoot, f"status.credentials.rotation.{field}") or {})
        match state.get("phase"):
            case "Preparing":
                following = {"phase": "Prepared"}
            case "PreparingWithoutWorkersRollout":
                following = {"phase": "WaitingForWorkersRollout"}
            case "WaitingForWorkersRollout" if not state.get("pendingWorkersRollouts"):
                following = {"phase": "Prepared"}
            case "Completing":
                following = {"phase": "Completed", "lastCompletionTime": now}
                begun = str(state.get("lastInitiationTime"))
                if field == "certificateAuthorities":
                    access.revoke(gardenlet.world, key.name, begun)
                else:
                    access.revoke_signed(gardenlet.world, key.name, begun)
            case _:
                continue
        _set(gardenlet, key, field, {**state, **following})


def _set(gardenlet: "Gardenlet", key: Key, name: str, state: dict[str, Any]) -> None:
    shoot = gardenlet.get(key)
    if shoot is None:
        return
    rotation = {**part(shoot, "status.credentials.rotation"), name: state}
    gardenlet.status(key, {"credentials": {"rotation": rotation}})
