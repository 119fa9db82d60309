"""
Tokens of a garden's WorkloadIdentities, which the metal API of the region believes as if the garden
were one of its issuers.

Tokens are good for one hour at least and two days at most, whatever is asked for.
"""

from datetime import timedelta
from typing import Any

from fleetd.sim.controllers.gardenadmission import IDENTITY
from fleetd.sim.controllers.metal_parts import items_of, part
from fleetd.sim.kube.access import User
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.refusal import Refused
from fleetd.sim.kube.values import Obj, name_of, namespace_of, stamp
from fleetd.sim.world import World

SHORTEST, LONGEST, LEAST = 3600, 48 * 3600, 600


def install(world: World, garden: Cluster) -> None:
    def token(identity: Obj, call: Any, user: User) -> tuple[int, Obj]:  # noqa: ANN401
        del user
        return 201, _minted(world, garden, identity, part(call.body(), "spec"))

    garden.subresource(IDENTITY, "token", token)


def issue(world: World, garden: Cluster, identity: Obj, seconds: int = SHORTEST) -> str:
    """A token of the identity, as the metal API of the region takes it."""
    metal = world.clusters[garden.name.replace("garden-", "metal-")]
    audiences = tuple(items_of(identity, "spec.audiences"))
    ends = world.now() + timedelta(seconds=seconds)
    who = part(identity, "status")["sub"]
    return metal.tokens.issue(who, (), expires=ends, audiences=audiences)


def _minted(world: World, garden: Cluster, identity: Obj, asked: Obj) -> Obj:
    given = int(asked.get("expirationSeconds", SHORTEST))
    if given < LEAST:
        raise Refused(422, "Invalid", "may not specify a duration less than 10 minutes")
    seconds = min(max(given, SHORTEST), LONGEST)
    return {
        "apiVersion": "security.gardener.cloud/v1alpha1",
        "kind": "TokenRequest",
        "metadata": {"name": name_of(identity), "namespace": namespace_of(identity)},
        "spec": {"expirationSeconds": given},
        "status": {
            "token": issue(world, garden, identity, seconds),
            "expirationTimestamp": stamp(world.now() + timedelta(seconds=seconds)),
        },
    }
