"""
Things that wait for each other: a secret that lies in something that cannot be made without it.

Each `access` is an edge from what needs it to what holds it; the rest of the graph is what must
stand first: a managed OpenBao runs on the management cluster, a cluster needs its garden, its
metal API and its servers. An access inside a circle can never be read for the first time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from topology.checks import accesses
from topology.checks.index import Finding, Index
from topology.documents import base
from topology.documents.cluster import Cluster, Role
from topology.documents.pool import ServerPool
from topology.documents.region import Region


class Node(NamedTuple):
    kind: str
    name: str

    def __str__(self) -> str:
        return _SPOKEN[self.kind].format(self.name)


_SPOKEN = {
    "openbao": "the OpenBao of Region {!r}",
    "garden": "the garden of Region {!r}",
    "metal": "the metal API of Region {!r}",
    "pool": "ServerPool {!r}",
    "cluster": "Cluster {!r}",
}

Graph = dict[Node, dict[Node, None]]

TOLD_MAX = 50
"""Circles have many edges; each of the first ones shows how to break it."""
SHOWN_MAX = 8


def bootstrap(fleet: Index) -> Iterator[Finding]:
    graph = _standing(fleet)
    edges: list[tuple[accesses.Found, Node, Node]] = []
    for found in accesses.of(fleet):
        user, holder = _user(found), _holder(fleet, found)
        if user is not None and holder is not None:
            graph.setdefault(user, {})[holder] = None
            edges.append((found, user, holder))
    round_about = _core(graph)
    told = 0
    for (document, path, access), user, holder in edges:
        if told == TOLD_MAX or user not in round_about or holder not in round_about:
            continue
        way = _way(round_about, holder, user)
        if way is None:
            continue
        told += 1
        yield fleet.complain(
            document,
            (*path, "openbao" if access.openbao is not None else "secret"),
            code="access-cycle",
            message=f"it lies in {_chain(way)}, which needs this: none of them can ever be first",
            hint="give it as a file or env of the daemon, or keep it in an OpenBao or a cluster "
            "that stands without it",
        )


def _chain(way: Sequence[Node]) -> str:
    shown = [str(node) for node in way]
    if len(shown) > SHOWN_MAX:
        shown[2:-2] = [f"{len(shown) - 4} more things"]
    return ", which needs ".join(shown)


def _core(graph: Graph) -> Graph:
    """The graph without what cannot be in a circle: what needs nothing that is left."""
    needed_by: dict[Node, list[Node]] = {}
    left: dict[Node, int] = {}
    for node, needs in graph.items():
        left[node] = len(needs)
        for need in needs:
            left.setdefault(need, 0)
            needed_by.setdefault(need, []).append(node)
    free = [node for node, count in left.items() if count == 0]
    for node in free:
        for user in needed_by.get(node, ()):
            left[user] -= 1
            if left[user] == 0:
                free.append(user)
    gone = set(free)
    return {
        node: {need: None for need in needs if need not in gone}
        for node, needs in graph.items()
        if node not in gone
    }


def _standing(fleet: Index) -> Graph:
    """What must stand first, without the accesses. Clusters come up in the order of their jobs:
    the management cluster, then the control plane of a cloud, then its hypervisors and storage."""
    graph: Graph = {}
    before = _earlier(fleet)
    for cluster in fleet.clusters.values():
        node, region = Node("cluster", cluster.metadata.name), cluster.spec.region
        needs = graph.setdefault(node, {})
        if cluster.spec.role is Role.MANAGEMENT and _managed(fleet, region):
            graph.setdefault(Node("openbao", region), {})[node] = None
        if cluster.spec.adopted is None:
            needs[Node("garden", region)] = None
            for other in before.get(cluster.metadata.name, ()):
                needs[Node("cluster", other)] = None
            for worker in cluster.spec.workers:
                if worker.pool is not None:
                    needs[Node("pool", worker.pool)] = None
    for pool in fleet.pools.values():
        node = Node("pool", pool.metadata.name)
        graph.setdefault(node, {})[Node("metal", pool.spec.region)] = None
    return graph


def _earlier(fleet: Index) -> dict[str, list[str]]:
    """The clusters that come before each cluster."""
    first: dict[str, list[str]] = {}
    for cluster in fleet.clusters.values():
        if cluster.spec.role is Role.MANAGEMENT:
            first.setdefault(cluster.spec.region, []).append(cluster.metadata.name)
    found = {name: list(first.get(c.spec.region, ())) for name, c in fleet.clusters.items()}
    for cloud in fleet.clouds.values():
        arbiters = [
            cluster.spec.ceph.stretch.arbiter
            for name in cloud.spec.storage
            if (cluster := fleet.clusters.get(name)) is not None
            and cluster.spec.ceph is not None
            and cluster.spec.ceph.stretch is not None
        ]
        for name in (*cloud.spec.hypervisors, *cloud.spec.storage, *arbiters):
            found.setdefault(name, []).append(cloud.spec.control_plane)
    return {name: [one for one in others if one != name] for name, others in found.items()}


def _managed(fleet: Index, region: str) -> bool:
    found = fleet.regions.get(region)
    return found is not None and found.spec.secrets.address == "managed"


def _user(found: accesses.Found) -> Node | None:
    """What cannot stand without this access. Git is read when everything stands."""
    document, path, _ = found
    match document:
        case Region():
            kind = {"garden": "garden", "metal": "metal", "secrets": "openbao"}.get(str(path[1]))
            return Node(kind, document.metadata.name) if kind is not None else None
        case ServerPool():
            return Node("pool", document.metadata.name)
        case Cluster():
            return Node("cluster", document.metadata.name)
        case _:
            return None


def _holder(fleet: Index, found: accesses.Found) -> Node | None:
    """What must stand before this access can be read."""
    document, _, access = found
    if access.secret is not None:
        return Node("cluster", access.secret.cluster)
    if access.openbao is not None:
        return Node("openbao", _region(document)) if _region(document) in fleet.regions else None
    return None


def _region(document: base.Document) -> str:
    if isinstance(document, Region):
        return document.metadata.name
    return document.spec.region if isinstance(document, ServerPool | Cluster) else ""


def _way(graph: Mapping[Node, Mapping[Node, None]], start: Node, end: Node) -> list[Node] | None:
    """The shortest way from start to end; None if there is none."""
    came: dict[Node, Node | None] = {start: None}
    line = [start]
    for node in line:
        if node == end:
            way: list[Node] = []
            step: Node | None = node
            while step is not None:
                way.append(step)
                step = came[step]
            return way[::-1]
        for other in graph.get(node, ()):
            if other not in came:
                came[other] = node
                line.append(other)
    return None
