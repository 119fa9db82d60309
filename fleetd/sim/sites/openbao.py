"""
The OpenBao of each region, before anything of it runs: no pods, no keys, no data.

A managed one comes to life with its pods (`fleetd.sim.controllers.openbaopods`). One of the
customer's own runs already, is open, and knows the token that `own_token` gives.
"""

from fleetd.sim.services.openbao import policy
from fleetd.sim.services.openbao.service import OpenBao
from fleetd.sim.services.openbao.tokens import Grant
from fleetd.sim.world import World
from topology.resource import Topology

MANAGED = "managed"
MEMBERS_MAX = 7


def furnish(world: World, topology: Topology) -> None:
    for ref, resource in topology.resources.items():
        if ref.kind != "region":
            continue
        secrets = resource.spec["secrets"]
        if secrets["address"] == MANAGED:
            add(world, ref.name, _management(topology, ref.name))
        else:
            add_own(world, ref.name)


def add(world: World, region: str, cluster: str) -> OpenBao:
    bao = OpenBao(world, region, cluster=cluster, members=MEMBERS_MAX)
    world.services[bao.name] = bao
    for number in range(MEMBERS_MAX):
        world.services[f"{bao.name}-{number}"] = bao.member(number)
    return bao


def add_own(world: World, region: str) -> OpenBao:
    bao = OpenBao(world, region, members=1)
    world.services[bao.name] = bao
    member = bao.members.all[0]
    bao.members.start(0)
    bao.members.initialise(member, {"secret_shares": 1, "secret_threshold": 1})
    bao.system.furnish()
    bao.members.unseal(member, {"key": bao.data.shares[0]})
    bao.members.leader = 0
    token = bao.tokens.make(
        Grant(policies=(policy.ROOT,), display_name="root", path="auth/token/root", endless=True)
    )
    del bao.data.tokens[token.id]
    token.id = own_token(world, region)
    bao.data.tokens[token.id] = token
    return bao


def own_token(world: World, region: str) -> str:
    """What the documents' access must hold for an OpenBao of the customer's own."""
    return f"s.{world.token('openbao', region, 'own')[:24]}"


def _management(topology: Topology, region: str) -> str:
    for ref, resource in topology.resources.items():
        if ref.kind == "openbao" and resource.region == region:
            return ref.name
    return ""
