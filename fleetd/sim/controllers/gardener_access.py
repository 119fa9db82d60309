"""
`adminkubeconfig` and `viewerkubeconfig`: how a garden lets people into a Shoot, and when not yet.

What it needs is an advertised address, the client CA and the cluster CA, in this order, each with
its own answer while it is missing. A kubeconfig is good for ten minutes to a day. In place of
client certificates there are tokens.
"""

import base64
import json
from datetime import datetime, timedelta
from typing import Any

from fleetd.sim.controllers.gardenadmission import CORE, SHOOT
from fleetd.sim.controllers.metal_parts import part
from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import User
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.refusal import Refused
from fleetd.sim.kube.values import Obj, at, name_of, namespace_of, stamp
from fleetd.sim.truth import digest
from fleetd.sim.world import World

API = "authentication.gardener.cloud/v1alpha1"
SHORTEST = 600
LONGEST = 86400
USUAL = 3600
GROUP = "gardener.cloud:system:"
KINDS = {"adminkubeconfig": "AdminKubeconfigRequest", "viewerkubeconfig": "ViewerKubeconfigRequest"}


def install(world: World, garden: Cluster) -> None:
    for name in KINDS:
        garden.subresource(SHOOT, name, _handler(world, garden, name))


def revoke_all(cluster: Cluster) -> int:
    """What the kubeconfigs that were given out of this Shoot hold; how many there were."""
    passes = cluster.tokens.passes
    given = [
        token
        for token, one in passes.items()
        if any(group.startswith(GROUP) for group in one.user.groups)
    ]
    for token in given:
        cluster.tokens.revoke(token)
    return len(given)


def _handler(world: World, garden: Cluster, name: str) -> Any:  # noqa: ANN401 - as Cluster wants it
    def handle(shoot: Obj, call: Any, user: User) -> tuple[int, Obj]:  # noqa: ANN401
        del user
        return 201, _mint(world, garden, shoot, call, name)

    return handle


def _mint(world: World, garden: Cluster, shoot: Obj, call: Any, name: str) -> Obj:  # noqa: ANN401
    kind, body, user = KINDS[name], call.body(), call.user
    if body.get("kind") not in (None, kind):
        raise refusal.bad_request(f"{body.get('kind')} cannot be handled as a {kind}")
    seconds = _seconds(shoot, kind, body)
    _check(garden, shoot, kind)
    there = world.clusters.get(name_of(shoot))
    if there is None:
        raise _missing(f'could not get cluster CA secret: secret "{name_of(shoot)}.ca-cluster"')
    role = "admins" if name == "adminkubeconfig" else "viewers"
    group = f"{GROUP}{role}"
    expires = world.now() + timedelta(seconds=seconds)
    groups = (group, "system:masters") if role == "admins" else (group,)
    token = there.token(f"{world.token(name_of(shoot))[:10]}:{user.name}", groups, expires=expires)
    address = at(shoot, "status.advertisedAddresses")[0]["url"]
    config = json.dumps(there.kubeconfig(address, token)).encode()
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name_of(shoot), "namespace": namespace_of(shoot)},
        "spec": {"expirationSeconds": seconds},
        "status": {
            "kubeconfig": base64.b64encode(config).decode(),
            "expirationTimestamp": stamp(expires),
        },
    }


def _seconds(shoot: Obj, kind: str, body: Obj) -> int:
    given = part(body, "spec").get("expirationSeconds")
    if given is None:
        return USUAL
    if given < SHORTEST:
        raise Refused(
            422,
            "Invalid",
            f'{kind}.authentication.gardener.cloud "{name_of(shoot)}" is invalid: '
            f"spec.expirationSeconds: Invalid value: {given}: may not specify a duration less than "
            "10 minutes",
        )
    return min(int(given), LONGEST)


def _check(garden: Cluster, shoot: Obj, kind: str) -> None:
    name, space = name_of(shoot), namespace_of(shoot)
    if not at(shoot, "status.advertisedAddresses"):
        raise Refused(
            422,
            "Invalid",
            f'{kind}.authentication.gardener.cloud "{name}" is invalid: status.status: Invalid '
            "value: null: no suitable advertised address for kube-apiserver found in "
            ".status.advertisedAddresses",
        )
    if garden.get((CORE, "InternalSecret"), f"{name}.ca-client", space) is None:
        raise _missing(
            f'could not get client CA secret: internalsecret.core.gardener.cloud "{name}.ca-client"'
        )
    if garden.get(("", "ConfigMap"), f"{name}.ca-cluster", space) is None:
        raise _missing(f'could not get cluster CA secret: secret "{name}.ca-cluster"')


def _missing(said: str) -> Refused:
    return Refused(500, "InternalError", f"Internal error occurred: {said} not found")


def revoke(world: World, cluster: str, before: str) -> None:
    """What was minted before this moment is refused from now on: its CA is gone."""
    there = world.clusters.get(cluster)
    if there is None:
        return
    limit = datetime.fromisoformat(before)
    for token, given in list(there.tokens.passes.items()):
        minted = any(group.startswith("gardener.cloud:") for group in given.user.groups)
        if minted and given.expires is not None and _minted_at(token) < limit.timestamp():
            there.tokens.revoke(token)
            world.truth.revoked(f"kubeconfig/{cluster}", digest(token), "gardener")


def revoke_signed(world: World, cluster: str, before: str) -> None:
    """Tokens of service accounts that were signed before this moment: their key is gone."""
    there = world.clusters.get(cluster)
    limit = datetime.fromisoformat(before).timestamp()
    for token, given in list(there.tokens.passes.items()) if there is not None else ():
        if there is not None and given.account is not None and _minted_at(token) < limit:
            there.tokens.revoke(token)


def _minted_at(token: str) -> float:
    text = token.split(".")[1]
    claims: Obj = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return float(claims["iat"])
