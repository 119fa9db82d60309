"""Small fleets for the toy world: 24 things with needs, failure domains and limits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from fleetd.engine import fingerprint
from topology.resource import Edge, EdgeKind, Limit, Ref, Resource, Topology

LIMITS = {"*": Limit(within=timedelta(hours=1), action="look at it")}


def bring_up(*, servers: int = 8, version: int = 1) -> Topology:
    """Servers make a pool, the pool carries clusters, clusters carry a vault, keys and agents, and
    a cloud stands on top: 24 things with eight servers."""
    racks = [f"rack:toy/r{number // 4}" for number in range(servers)]
    things: list[Resource] = [
        _thing("server", f"s{number:02}", (), version=version, domains=(rack,))
        for number, rack in enumerate(racks)
    ]
    hosts = [thing.ref for thing in things]
    things.append(_thing("serverpool", "pool", hosts))
    clusters = ["mgmt", "cp", "hv", "st"]
    things += [
        _thing("cluster", "mgmt", [Ref("serverpool", "pool")]),
        *(
            _thing("cluster", name, [Ref("serverpool", "pool"), Ref("cluster", "mgmt")])
            for name in clusters[1:]
        ),
        _thing("vault", "mgmt", [Ref("cluster", "mgmt")]),
        *(
            _thing("key", name, [Ref("vault", "mgmt"), Ref("cluster", name)])
            for name in clusters[1:]
        ),
        *(
            _thing("agent", f"{name}.{kind}", [Ref("key", name)])
            for name in clusters[1:]
            for kind in ("net", "store")
        ),
    ]
    agents = [thing.ref for thing in things if thing.ref.kind == "agent"]
    things.append(_thing("cloud", "prod", agents))
    return topology(things)


def topology(things: Sequence[Resource]) -> Topology:
    edges = tuple(
        sorted(Edge(thing.ref, EdgeKind.NEEDS, need) for thing in things for need in thing.needs)
    )
    ranked = _rank({thing.ref: thing for thing in things})
    content = [(str(ref), thing.generation, sorted(thing.needs)) for ref, thing in ranked.items()]
    return Topology(digest=f"{fingerprint.of(content):013x}", resources=ranked, edges=edges)


def _thing(
    kind: str,
    name: str,
    needs: Sequence[Ref],
    *,
    version: int = 1,
    domains: tuple[str, ...] = (),
) -> Resource:
    spec = {"version": version}
    return Resource(
        ref=Ref(kind, name),
        driver="toy",
        region="toy",
        spec=spec,
        generation=fingerprint.of(spec),
        needs=frozenset(needs),
        backend=f"{kind}:toy",
        domains=domains,
        limits=LIMITS,
    )


def _rank(things: Mapping[Ref, Resource]) -> dict[Ref, Resource]:
    ranks: dict[Ref, int] = {}

    def rank(ref: Ref) -> int:
        if ref not in ranks:
            ranks[ref] = 1 + max((rank(need) for need in things[ref].needs), default=-1)
        return ranks[ref]

    ordered = sorted(things, key=lambda ref: (rank(ref), ref))
    return {ref: replace(things[ref], rank=ranks[ref]) for ref in ordered}
