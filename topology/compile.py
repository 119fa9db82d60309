"""
Documents and catalogue become a Topology: what should exist, and what depends on what.

Pure: equal documents give an equal digest and the same order, whatever the order of files, the
folder or the hash seed. The documents passed the checks, so references lead somewhere; a link
whose component is not placed gives no edge.

Beside the catalogue's links there are edges that hold for any catalogue:

    a cluster      needs its server pools and what the region keeps in the garden
    a component    needs the access to its cluster (or the cluster itself, without such a component)
    a flow         needs the access to the clusters it names
    whoever logs in needs what holds the secret: the region's OpenBao, or a Secret's cluster
    a region       needs everything of its own that nobody else needs, except bare metal
    a server       feeds its pool;  a pool hosts its clusters;  a cluster hosts its components
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from topology import collector, fleet, graph, places, specs
from topology.catalogue import Component, Link, Scope
from topology.documents.base import Access
from topology.documents.pool import Server
from topology.resource import Edge, EdgeKind, Limit, Ref, Resource, Topology

ACCESS = "access"
"""The component that stands for "fleetd and Flux can reach this cluster"."""
KEEPER = "openbao-engines"
"""The component that stands for "OpenBao can be asked for a secret"."""
ADOPTED = "adopted"
"""Driver of a cluster that others made: it is looked at and never changed."""

_METAL = (Scope.SERVER, Scope.SERVERPOOL)
_NOTHING: frozenset[Ref] = frozenset()
_KINDS = tuple(EdgeKind)


def compile(items: Iterable[fleet.HasDocument], catalogue: Mapping[str, Component]) -> Topology:  # noqa: A001
    """What the documents ask for. Raises `graph.Cycle` where things wait for each other; the
    checks refuse such documents before."""
    with collector.at_rest():
        work = _Work(fleet.gather(items), catalogue)
        work.place()
        work.link()
        work.end_regions()
        return work.topology()


def unresolved(
    items: Iterable[fleet.HasDocument], catalogue: Mapping[str, Component]
) -> list[tuple[Ref, Link]]:
    """Links that lead nowhere although they are not optional: the other component is not placed
    where the link looks for it. `compile` leaves them out; here they can be complained about."""
    work = _Work(fleet.gather(items), catalogue)
    work.place()
    found: list[tuple[Ref, Link]] = []
    for kind, component in work.catalogue.items():
        # A component that links to its own kind has a first one, which has nobody before it.
        given = (*component.spec.needs, *component.spec.feeds)
        links = [link for link in given if not link.optional and link.component != kind]
        for name, place in work.at[kind].items():
            lost = (link for link in links if not work.targets(place, link))
            found.extend((Ref(kind, name), link) for link in lost)
    return found


def fingerprint(driver: str, spec: Mapping[str, Any]) -> int:
    """The generation: 52 bits, so that every JSON reader keeps it exact."""
    text = msgspec.json.encode((driver, spec), order="deterministic")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 12


class _Work:
    """One compilation. Three passes: place instances, link them, put them in order."""

    def __init__(self, known: fleet.Fleet, catalogue: Mapping[str, Component]) -> None:
        self.fleet = known
        self.places = places.Places(known)
        self.specs = specs.Specs(self.places)
        self.catalogue = {name: catalogue[name] for name in sorted(catalogue)}
        self.limits = {name: _limits(c) for name, c in self.catalogue.items()}
        self.at: dict[str, dict[str, places.Place]] = {}
        self.needs: dict[Ref, frozenset[Ref]] = {}
        self.feeds: dict[Ref, set[Ref]] = {}
        self.hosts: dict[Ref, set[Ref]] = {}
        self.servers: dict[Ref, Server] = {}
        self.refs: dict[tuple[str, str], Ref] = {}
        self.of_scope: dict[Scope, list[str]] = {}
        for name, component in self.catalogue.items():
            self.of_scope.setdefault(component.spec.scope, []).append(name)

    def place(self) -> None:
        """Which instances there are, by component and name."""
        for kind, component in self.catalogue.items():
            scope = component.spec.scope
            where = [p for p in self.places.of(scope) if self.specs.placed(component, p)]
            if scope is Scope.SERVER:
                # Servers of a pool stand in one place; which of them is told where it matters.
                self.at[kind] = {
                    server.name: place
                    for place in where
                    for server in self._servers(kind, place.serverpool)
                }
            else:
                self.at[kind] = {places.name_of(scope, place): place for place in where}
            for name in self.at[kind]:
                ref = Ref(kind, name)
                self.refs[ref] = ref

    def _servers(self, kind: str, pool: str) -> list[Server]:
        found = fleet.servers(self.fleet.pools[pool])
        self.servers.update({Ref(kind, server.name): server for server in found})
        return found

    def link(self) -> None:
        for kind, component in self.catalogue.items():
            if component.spec.scope is Scope.SERVER:
                self._link_servers(kind, component)
                continue
            for name, place in self.at[kind].items():
                ref = self.refs[kind, name]
                self.needs[ref] = frozenset(self._needs(ref, component, place))
                self._feed(ref, component, place)
                self._host(ref, component, place)

    def _link_servers(self, kind: str, component: Component) -> None:
        """Servers of one pool need and feed the same things, so these are found once a pool."""
        own = any(
            self.catalogue[link.component].spec.scope is Scope.SERVER
            for link in (*component.spec.needs, *component.spec.feeds)
            if link.component in self.catalogue
        )
        shared: dict[str, tuple[frozenset[Ref], set[Ref]]] = {}
        for name, place in self.at[kind].items():
            ref = self.refs[kind, name]
            if own or place.serverpool not in shared:
                place = place._replace(server=name)  # noqa: PLW2901
                fed = {t for link in component.spec.feeds for t in self.targets(place, link)}
                fed.update(self._documents(Scope.SERVERPOOL, place.serverpool))
                needed = frozenset(self._needs(ref, component, place))
                shared[place.serverpool] = (needed, fed)
            self.needs[ref], self.feeds[ref] = shared[place.serverpool]

    def _needs(self, ref: Ref, component: Component, place: places.Place) -> set[Ref]:
        spec = component.spec
        adopted = spec.scope is Scope.CLUSTER_DOCUMENT and self._adopted(place.cluster)
        found: set[Ref] = set()
        for link in spec.needs:
            if adopted and self._of_the_garden(link):
                continue
            found.update(self.targets(place, link))
        if spec.scope is Scope.CLUSTER_DOCUMENT and not adopted:
            for pool in self.fleet.pools_of[place.cluster]:
                found.update(self._documents(Scope.SERVERPOOL, pool))
            found.update(self._in_the_garden(place.region))
        elif spec.scope is Scope.FLOW:
            for cluster in fleet.clusters_of_flow(self.fleet.flows[place.flow]):
                found.update(self._access(ref, cluster))
        elif spec.backend in ("cluster", "management"):
            found.update(self._access(ref, self.specs.asked(component, place)))
            found.update(self._access(ref, self.specs.cluster_of(component, place)))
        for access in self._logins(component, place):
            found.update(self._holder(ref, access, place.region))
        found.discard(ref)
        return found

    def _logins(self, component: Component, place: places.Place) -> Iterable[Access]:
        """The accesses without which it cannot be worked on. Git is none of them: it is read
        when everything stands."""
        region = self.fleet.regions.get(place.region)
        if place.serverpool:
            yield self.fleet.pools[place.serverpool].spec.access
        if component.spec.scope is Scope.CLUSTER_DOCUMENT:
            adopted = self.fleet.clusters[place.cluster].spec.adopted
            if adopted is not None:
                yield adopted.access
                return
        if region is None:
            return
        match component.spec.backend:
            case "garden":
                yield region.spec.garden.access
            case "metal":
                yield region.spec.metal.access
            case "openbao" if region.spec.secrets.access is not None:
                yield region.spec.secrets.access
            case _:
                pass

    def _holder(self, ref: Ref, access: Access, region: str) -> Iterable[Ref]:
        """What must be there before the secret can be read."""
        if access.secret is not None:
            return self._access(ref, access.secret.cluster)
        if access.openbao is None:
            return ()
        keepers = self.fleet.management_of.get(region, ())
        return [self.refs[KEEPER, name] for name in keepers if (KEEPER, name) in self.refs]

    def _access(self, ref: Ref, cluster: str) -> Iterable[Ref]:
        access = self.refs.get((ACCESS, cluster))
        if access is not None and ref.kind != ACCESS:
            return (access,)
        return self._documents(Scope.CLUSTER_DOCUMENT, cluster)

    def _feed(self, ref: Ref, component: Component, place: places.Place) -> None:
        fed = {target for link in component.spec.feeds for target in self.targets(place, link)}
        fed.discard(ref)
        if fed:
            self.feeds.setdefault(ref, set()).update(fed)

    def _host(self, ref: Ref, component: Component, place: places.Place) -> None:
        scope = component.spec.scope
        if scope is Scope.CLUSTER_DOCUMENT:
            for pool in self.fleet.pools_of[place.cluster]:
                for host in self._documents(Scope.SERVERPOOL, pool):
                    self.hosts.setdefault(host, set()).add(ref)
        elif scope is not Scope.CLOUD_DOCUMENT:
            cluster = self.specs.cluster_of(component, place)
            for host in self._documents(Scope.CLUSTER_DOCUMENT, cluster):
                self.hosts.setdefault(host, set()).add(ref)

    def targets(self, place: places.Place, link: Link) -> list[Ref]:
        other = self.catalogue.get(link.component)
        if other is None:
            return []
        names = self.places.meant(place, link.on, other.spec.scope)
        found = (self.refs.get((link.component, name)) for name in names)
        return [ref for ref in found if ref is not None]

    def _documents(self, scope: Scope, name: str) -> list[Ref]:
        """What stands for a document: cluster/hv, serverpool/compute."""
        found = (self.refs.get((kind, name)) for kind in self.of_scope.get(scope, ()))
        return [ref for ref in found if ref is not None]

    def _in_the_garden(self, region: str) -> list[Ref]:
        kinds = self.of_scope.get(Scope.REGION, ())
        return [
            self.refs[kind, region]
            for kind in kinds
            if self.catalogue[kind].spec.backend == "garden" and (kind, region) in self.refs
        ]

    def _of_the_garden(self, link: Link) -> bool:
        other = self.catalogue.get(link.component)
        return other is not None and other.spec.backend in ("garden", "metal")

    def _adopted(self, cluster: str) -> bool:
        return self.fleet.clusters[cluster].spec.adopted is not None

    def end_regions(self) -> None:
        """A region is ready when all of it is. It needs only those that nobody else needs; the
        rest follows from them. Servers count for nobody: a region lives with a broken one, but
        not without what only servers need."""
        needed = {
            need for ref, needs in self.needs.items() if ref not in self.servers for need in needs
        }
        ends: dict[str, set[Ref]] = {}
        for kind, component in self.catalogue.items():
            if component.spec.scope in (*_METAL, Scope.REGION_DOCUMENT):
                continue
            for name, place in self.at[kind].items():
                if self.refs[kind, name] not in needed:
                    ends.setdefault(place.region, set()).add(self.refs[kind, name])
        for kind in self.of_scope.get(Scope.REGION_DOCUMENT, ()):
            for name in self.at[kind]:
                ref = self.refs[kind, name]
                self.needs[ref] = self.needs[ref] | ends.get(name, _NOTHING)

    def topology(self) -> Topology:
        """In order, with edges and digest. The digest is over all a plan could depend on."""
        rank = graph.ranks(self.needs)
        keep: dict[Any, Any] = {}
        resources: dict[Ref, Resource] = {}
        edges: list[Edge] = []
        total = hashlib.blake2b(digest_size=20)
        encode = msgspec.json.Encoder(order="deterministic").encode
        for kind, limits in self.limits.items():
            total.update(f"{kind} {sorted(limits.items())}".encode())
        for ref in sorted(rank, key=lambda ref: (rank[ref], ref)):
            found = resources[ref] = self._resource(ref, rank[ref], keep)
            lines = [
                _in_order(refs.get(ref), keep) for refs in (self.needs, self.feeds, self.hosts)
            ]
            for kind, targets in zip(_KINDS, lines, strict=True):
                if targets:
                    edges.extend([Edge(ref, kind, target) for target in targets])
            total.update(encode((ref, found.generation, found.backend, found.domains, lines)))
        return Topology(digest=total.hexdigest(), resources=resources, edges=tuple(edges))

    def _resource(self, ref: Ref, rank: int, keep: dict[Any, Any]) -> Resource:
        """`keep` holds one copy of each text and set that many resources share."""
        if ref in self.servers:
            return self._server(ref, rank, keep)
        component = self.catalogue[ref.kind]
        place = self.at[ref.kind][ref.name]
        spec = self.specs.of(component, place)
        driver, backend = self._driver(component, place), self._backend(component, place)
        if component.spec.scope is Scope.CLUSTER_DOCUMENT and self._adopted(place.cluster):
            driver, backend = ADOPTED, f"cluster:{place.cluster}"
        owner = _owner(component.spec.scope, place)
        return Resource(
            ref=ref,
            driver=driver,
            region=place.region,
            spec=spec,
            generation=fingerprint(driver, spec),
            needs=keep.setdefault(self.needs[ref], self.needs[ref]),
            backend=keep.setdefault(backend, backend),
            domains=self._domains(component, place),
            limits=self.limits[ref.kind],
            rank=rank,
            owner=keep.setdefault(owner, owner),
        )

    def _server(self, ref: Ref, rank: int, keep: dict[Any, Any]) -> Resource:
        """As `_resource`, but what servers of a pool have in common is worked out once."""
        component = self.catalogue[ref.kind]
        server, place = self.servers[ref], self.at[ref.kind][ref.name]
        pool = place.serverpool
        shared = keep.get((ref.kind, pool))
        if shared is None:
            driver, backend = self._driver(component, place), self._backend(component, place)
            shared = (driver, backend, _owner(component.spec.scope, place), place.region)
            keep[ref.kind, pool] = shared
        driver, backend, owner, region = shared
        spec = self.specs.server(server, self.fleet.pools[pool])
        if component.spec.parameters or component.spec.install.by != "none":
            spec |= self.specs.added(component, place._replace(server=ref.name))
        domain = (pool, server.zone, server.rack or f"server.{server.name}")
        domains = keep.get(domain)
        if domains is None:
            domains = keep[domain] = _server_domains(region, *domain)
        return Resource(
            ref=ref,
            driver=driver,
            region=region,
            spec=spec,
            generation=fingerprint(driver, spec),
            needs=self.needs[ref],
            backend=backend,
            domains=domains,
            limits=self.limits[ref.kind],
            rank=rank,
            owner=owner,
        )

    def _driver(self, component: Component, place: places.Place) -> str:
        """A component on bare metal leaves it to the region's document who drives it."""
        if "{" not in component.spec.driver:
            return component.spec.driver
        return str(self.fleet.regions[place.region].spec.metal.provider)

    def _backend(self, component: Component, place: places.Place) -> str:
        match component.spec.backend:
            case "none":
                return ""
            case "cluster" | "management":
                return f"cluster:{self.specs.asked(component, place)}"
            case "openstack":
                return f"openstack:{place.cloud}"
            case far:
                return f"{far}:{place.region}"

    def _domains(self, component: Component, place: places.Place) -> tuple[str, ...]:
        if component.spec.scope is Scope.CLUSTER_DOCUMENT:
            return (f"role:{place.region}/{self.fleet.role(place.cluster)}",)
        if component.spec.scope is Scope.SERVERPOOL:
            return ()
        cluster = self.specs.cluster_of(component, place)
        return (f"cluster:{cluster}",) if cluster else ()


def _in_order(refs: frozenset[Ref] | set[Ref] | None, keep: dict[Any, Any]) -> tuple[Ref, ...]:
    """Sorted, and once for a set that many things share. Found by identity: the sets live as long
    as the work, and hashing one costs more than sorting it."""
    if not refs:
        return ()
    found = keep.get(id(refs))
    if found is None:
        found = keep[id(refs)] = tuple(sorted(refs))
    return found


def _limits(component: Component) -> dict[str, Limit]:
    """By state, one mapping for all instances; of two for one state the first counts, as a
    component's own come first."""
    found: dict[str, Limit] = {}
    for limit in component.spec.limits:
        found.setdefault(limit.state, Limit(within=limit.within, action=limit.action))
    return found


def _server_domains(region: str, pool: str, zone: str, rack: str) -> tuple[str, ...]:
    return (f"rack:{region}/{rack}", f"zone:{region}/{zone}", f"pool:{pool}")


def _owner(scope: Scope, place: places.Place) -> Ref:
    """The document without which the instance would not be there."""
    match scope:
        case Scope.REGION | Scope.REGION_DOCUMENT:
            return Ref("region", place.region)
        case Scope.CLUSTER | Scope.CLUSTER_DOCUMENT | Scope.CEPH_POOL:
            return Ref("cluster", place.cluster)
        case Scope.SERVER | Scope.SERVERPOOL:
            return Ref("serverpool", place.serverpool)
        case Scope.FLOW:
            return Ref("credentialflow", place.flow)
        case _:
            return Ref("cloud", place.cloud)
