"""CredentialFlows: sources and targets that exist, one writer per place, and no circle."""

from collections.abc import Iterator

from topology.checks import accesses, references
from topology.checks.index import Finding, Index, Path
from topology.documents.cluster import Role
from topology.documents.flow import CredentialFlow

SHOWN_MAX = 8
Place = tuple[str, ...]
"""A path in a region's OpenBao, or a key of a Secret in a cluster."""


def names(fleet: Index) -> Iterator[Finding]:
    """Regions and clusters that flows name, with the roles they must have."""
    for flow in fleet.every(CredentialFlow):
        if flow.spec.region not in fleet.regions:
            at: Path = ("spec", "region")
            yield from fleet.unknown(flow, at, "Region", flow.spec.region, fleet.regions)
        for path, name, role in _clusters(flow):
            yield from references.cluster(fleet, flow, path, name, role)
        yield from _sources(fleet, flow)


def _clusters(flow: CredentialFlow) -> Iterator[tuple[Path, str, Role | None]]:
    source = flow.spec.source
    at: Path = ("spec", "source")
    if source.kubeconfig is not None:
        yield (*at, "kubeconfig", "cluster"), source.kubeconfig.cluster, None
    if source.ceph_client is not None:
        yield (*at, "cephClient", "cluster"), source.ceph_client.cluster, Role.STORAGE
    if source.secret is not None:
        yield (*at, "secret", "cluster"), source.secret.cluster, None
    for number, target in enumerate(flow.spec.targets):
        yield ("spec", "targets", number, "cluster"), target.cluster, None


def _sources(fleet: Index, flow: CredentialFlow) -> Iterator[Finding]:
    source = flow.spec.source
    minted = fleet.clusters.get(source.kubeconfig.cluster) if source.kubeconfig else None
    if minted is not None and minted.spec.adopted is not None:
        yield fleet.complain(
            flow,
            ("spec", "source", "kubeconfig", "cluster"),
            code="flow-cluster-adopted",
            message=f"Cluster {minted.metadata.name!r} is adopted "
            f"({fleet.place(minted, ('spec', 'adopted'))}), so Gardener cannot mint a kubeconfig "
            "for it",
            hint="take the kubeconfig from where it is kept: source: {secret: ...} or {openbao: "
            "...}",
        )


def paths(fleet: Index) -> Iterator[Finding]:
    """Paths in OpenBao as they can be read."""
    for flow in fleet.every(CredentialFlow):
        region = fleet.regions.get(flow.spec.region)
        mount = region.spec.secrets.mount if region is not None else ""
        yield from accesses.openbao(fleet, flow, ("spec", "path"), flow.spec.path, mount)
        if flow.spec.source.openbao is not None:
            at: Path = ("spec", "source", "openbao", "path")
            path = flow.spec.source.openbao.path
            yield from accesses.openbao(fleet, flow, at, path, mount)


def writers(fleet: Index) -> Iterator[Finding]:
    """Two flows that write to one place would undo each other for ever."""
    taken: dict[Place, tuple[CredentialFlow, Path]] = {}
    for flow in fleet.every(CredentialFlow):
        for place, path in _writes(flow):
            first, there = taken.setdefault(place, (flow, path))
            same_name = first.metadata.name == flow.metadata.name and first is not flow
            if (first, there) == (flow, path) or same_name:
                continue
            yield fleet.complain(
                flow,
                path,
                code="flow-place-taken",
                message=f"{spoken(place)} is written by CredentialFlow {first.metadata.name!r} "
                f"already, at {fleet.place(first, there)}",
                hint="remove one of the two"
                if first is flow
                else "give each flow a place of its own, or the value would change for ever",
            )


def _writes(flow: CredentialFlow) -> Iterator[tuple[Place, Path]]:
    yield ("openbao", flow.spec.region, flow.spec.path), ("spec", "path")
    for number, target in enumerate(flow.spec.targets):
        place = ("secret", target.cluster, target.namespace, target.secret, target.key)
        yield place, ("spec", "targets", number, "secret")


def _reads(flow: CredentialFlow) -> Place | None:
    source = flow.spec.source
    if source.secret is not None:
        found = source.secret
        return ("secret", found.cluster, found.namespace, found.name, found.key)
    if source.openbao is not None and source.openbao.path != flow.spec.path:
        return ("openbao", flow.spec.region, source.openbao.path)
    return None


def circles(fleet: Index) -> Iterator[Finding]:
    """A flow that takes its value from its own result, perhaps through others, has no source."""
    flows = list(fleet.every(CredentialFlow))
    writer: dict[Place, int] = {}
    for number, flow in enumerate(flows):
        for place, _ in _writes(flow):
            writer.setdefault(place, number)
    feeder = [None if (place := _reads(flow)) is None else writer.get(place) for flow in flows]
    done: set[int] = set()
    for start in range(len(flows)):
        way: dict[int, None] = {}
        at: int | None = start
        while at is not None and at not in way and at not in done:
            way[at] = None
            at = feeder[at]
        if at is not None and at in way:
            members = list(way)
            members = members[members.index(at) :]
            first = min(members)
            turn = members.index(first)
            yield _circle(fleet, [flows[n] for n in members[turn:] + members[:turn]])
        done.update(way)


def _circle(fleet: Index, members: list[CredentialFlow]) -> Finding:
    flow = members[0]
    writers = [f"CredentialFlow {one.metadata.name!r} writes" for one in [*members[1:], flow]]
    if len(writers) > SHOWN_MAX:
        writers[2:-2] = [f"{len(writers) - 4} more flows write"]
    chain = ", which reads what ".join(writers)
    place = _reads(flow)
    return fleet.complain(
        flow,
        ("spec", "source", "secret" if flow.spec.source.secret is not None else "openbao"),
        code="flow-cycle",
        message=f"{spoken(place) if place else 'it'} is what {chain}: the value comes from nowhere",
        hint="let one of them make the value: source: {generate: {}}",
    )


def spoken(place: Place) -> str:
    if place[0] == "openbao":
        return f"path {place[2]!r} in the OpenBao of Region {place[1]!r}"
    _, cluster, namespace, name, key = place
    return f"key {key!r} of Secret {namespace}/{name} in Cluster {cluster!r}"
