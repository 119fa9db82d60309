"""
Networks of a cluster: they parse, do not overlap, and have room for the nodes.

A gardener-apiserver accepts overlapping networks; the cluster then loses traffic at random.
"""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_interface, ip_network

from topology import complaints
from topology.checks import index as indexes
from topology.checks.index import Finding, Index, Path
from topology.documents.cluster import Cluster

Network = IPv4Network | IPv6Network

DEFAULTS = {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"}
"""What Gardener takes for a cluster that does not say."""
NODE_PREFIX = {4: 24, 6: 64}
"""Length of the part of the pod network that each node gets."""


def fit(fleet: Index) -> Iterator[Finding]:
    for cluster in fleet.every(Cluster):
        if cluster.spec.adopted is not None:
            continue
        found: dict[str, Network] = {}
        given = {
            "pods": cluster.spec.networking.pods,
            "services": cluster.spec.networking.services,
            "nodes": cluster.spec.networking.nodes,
        }
        for name, text in given.items():
            if text is None:
                continue
            network = parse(text)
            if network is None:
                yield _not_a_network(fleet, cluster, ("spec", "networking", name), text)
            else:
                found[name] = network
        yield from _families(fleet, cluster, found)
        yield from _overlaps(fleet, cluster, found)
        if "pods" in found:
            yield from _room(fleet, cluster, found["pods"])


def parse(text: str) -> Network | None:
    try:
        return ip_network(text) if "/" in text else None
    except ValueError:
        return None


def _not_a_network(fleet: Index, cluster: Cluster, path: Path, text: str) -> Finding:
    hint = "write address and length, e.g. 10.96.0.0/11"
    try:
        if "/" in text:
            hint = f"its first address is meant: write {ip_interface(text).network}"
    except ValueError:
        pass
    return fleet.complain(
        cluster,
        path,
        code="network-invalid",
        message=f"{complaints.show(text)} is not a network",
        hint=hint,
    )


def _families(fleet: Index, cluster: Cluster, given: dict[str, Network]) -> Iterator[Finding]:
    """All networks of a cluster are of one family; those that are left out are IPv4."""
    others = [name for name in ("pods", "services") if name not in given]
    for name, network in given.items():
        first = next(iter(given))
        if name != first and network.version != given[first].version:
            wrong = f"{first} {given[first]} is IPv{given[first].version}"
        elif name == first and network.version == 6 and others:
            wrong = f"{' and '.join(others)} of Gardener's defaults are IPv4"
        else:
            continue
        yield fleet.complain(
            cluster,
            ("spec", "networking", name),
            code="networks-mixed",
            message=f"{network} is IPv{network.version}, but {wrong}",
            hint="give pods, services and nodes of one family",
        )


def _overlaps(fleet: Index, cluster: Cluster, given: dict[str, Network]) -> Iterator[Finding]:
    shown = {name: f"{name} {network}" for name, network in given.items()}
    found = dict(given)
    for name, text in DEFAULTS.items():
        if name not in found and getattr(cluster.spec.networking, name) is None:
            found[name] = ip_network(text)
            shown[name] = f"{name} {text}, Gardener's default"
    for name, network in given.items():
        for other, there in found.items():
            later = list(found).index(name) > list(found).index(other) or other not in given
            if later and other != name and _meet(network, there):
                yield fleet.complain(
                    cluster,
                    ("spec", "networking", name),
                    code="networks-overlap",
                    message=f"{network} overlaps with {shown[other]}",
                    hint="choose networks that have no address in common; pods and services cannot "
                    "be changed later",
                )


def _meet(one: Network, other: Network) -> bool:
    return one.version == other.version and one.overlaps(other)  # pyright: ignore[reportArgumentType]


def _room(fleet: Index, cluster: Cluster, pods: Network) -> Iterator[Finding]:
    spare = NODE_PREFIX[pods.version] - pods.prefixlen
    room = 2**spare if spare >= 0 else 0
    most = sum(worker.maximum for worker in cluster.spec.workers)
    if most > room:
        yield fleet.complain(
            cluster,
            ("spec", "networking", "pods"),
            code="network-too-small",
            message=f"{pods} has room for {indexes.count(room, 'node')}, and the workers may "
            f"become {most}",
            hint=f"each node gets a /{NODE_PREFIX[pods.version]} of it: take a larger one now, "
            "it cannot be changed later",
        )
