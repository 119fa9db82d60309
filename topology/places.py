"""
Where components stand, and which other places a link means from there.

A `Place` says which region, cluster, cloud, pool and server an instance belongs to; its name
follows from its scope. `Places.meant` answers what `on: same`, `on: control-plane` and so on
mean from one place. The rules are written in `topology.catalogue`; this is their only code.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

from topology import fleet
from topology.catalogue import On, Scope
from topology.documents.cluster import Role


class Place(NamedTuple):
    """Empty text: it belongs to none. `serverpool` is a ServerPool, `pool` an RBD pool."""

    region: str
    cluster: str = ""
    cloud: str = ""
    serverpool: str = ""
    pool: str = ""
    server: str = ""
    flow: str = ""


def name_of(scope: Scope, place: Place) -> str:
    """An instance's name."""
    match scope:
        case Scope.REGION | Scope.REGION_DOCUMENT:
            return place.region
        case Scope.CLUSTER | Scope.CLUSTER_DOCUMENT | Scope.CLOUD_HYPERVISOR:
            return place.cluster
        case Scope.CLOUD | Scope.CLOUD_DOCUMENT:
            return place.cloud
        case Scope.CLOUD_STORAGE:
            return f"{place.cluster}.{place.cloud}"
        case Scope.CEPH_POOL:
            return f"{place.cluster}.{place.pool}"
        case Scope.SERVERPOOL:
            return place.serverpool
        case Scope.SERVER:
            return place.server
        case Scope.FLOW:
            return place.flow


class Places:
    """All places of a fleet, by scope, and the way between them."""

    def __init__(self, known: fleet.Fleet) -> None:
        self.fleet = known
        self._meant: dict[tuple[Place, On, Scope], tuple[str, ...]] = {}
        self._regions: dict[Scope, Mapping[str, list[Place]]] = {}

    @cached_property
    def servers(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the servers of each pool, in the pool's order."""
        return {
            name: tuple(server.name for server in fleet.servers(pool))
            for name, pool in self.fleet.pools.items()
        }

    def of(self, scope: Scope) -> list[Place]:
        """All places of a scope except servers, of which there may be very many."""
        known = self.fleet
        match scope:
            case Scope.REGION | Scope.REGION_DOCUMENT:
                return [Place(name) for name in known.regions]
            case Scope.CLUSTER | Scope.CLUSTER_DOCUMENT:
                return [Place(c.spec.region, name) for name, c in known.clusters.items()]
            case Scope.CLOUD:
                return [
                    Place(c.spec.region, c.spec.control_plane, name)
                    for name, c in known.clouds.items()
                ]
            case Scope.CLOUD_DOCUMENT:
                return [Place(c.spec.region, cloud=name) for name, c in known.clouds.items()]
            case Scope.CLOUD_HYPERVISOR:
                return self._of_clouds(Role.HYPERVISOR)
            case Scope.CLOUD_STORAGE:
                return self._of_clouds(Role.STORAGE)
            case Scope.CEPH_POOL:
                return [
                    Place(c.spec.region, name, pool=pool.name)
                    for name, c in known.clusters.items()
                    if c.spec.role is Role.STORAGE
                    for pool in sorted(known.ceph(name).pools, key=lambda p: p.name)
                ]
            case Scope.SERVERPOOL | Scope.SERVER:
                return [Place(p.spec.region, serverpool=name) for name, p in known.pools.items()]
            case Scope.FLOW:
                return [Place(flow.spec.region, flow=name) for name, flow in known.flows.items()]

    def meant(self, place: Place, on: On, scope: Scope) -> tuple[str, ...]:
        """Names of the instances of a component of `scope` that `on` means, seen from `place`.
        Some may not be placed, because of the component's roles or its `when`."""
        if place.server and scope is not Scope.SERVER:
            place = place._replace(server="")
        key = (place, on, scope)
        if key not in self._meant:
            self._meant[key] = tuple(self._find(place, on, scope))
        return self._meant[key]

    def clouds(self, place: Place) -> tuple[str, ...]:
        """The clouds a place serves: its own, or those that use its cluster or its servers, or all
        of the region for what belongs to the region. The management cluster serves none: what
        stands there comes before every cloud."""
        known = self.fleet
        if place.cloud:
            return (place.cloud,)
        if place.cluster:
            return known.clouds_of.get(place.cluster, ())
        if place.serverpool:
            users = known.users_of.get(place.serverpool, ())
            return _merged(known.clouds_of.get(user, ()) for user in users)
        return known.clouds_in.get(place.region, ())

    def _of_clouds(self, role: Role) -> list[Place]:
        return [
            Place(cloud.spec.region, cluster, name)
            for name, cloud in self.fleet.clouds.items()
            for cluster in sorted(
                set(cloud.spec.hypervisors if role is Role.HYPERVISOR else cloud.spec.storage)
            )
            if self.fleet.role(cluster) is role
        ]

    def _find(self, place: Place, on: On, scope: Scope) -> Iterable[str]:
        if scope in (Scope.REGION, Scope.REGION_DOCUMENT):
            return (place.region,)
        if on is On.REGION:
            return self._in_region(place.region, scope)
        if on is On.SAME:
            return self._same(place, scope)
        return self._on(self._clusters(place, on), place, scope)

    def _in_region(self, region: str, scope: Scope) -> tuple[str, ...]:
        if scope is Scope.SERVER:
            pools = self.fleet.pools_in.get(region, ())
            return tuple(server for pool in pools for server in self.servers[pool])
        return tuple(name_of(scope, place) for place in self._by_region(scope).get(region, ()))

    def _by_region(self, scope: Scope) -> Mapping[str, list[Place]]:
        if scope not in self._regions:
            found: dict[str, list[Place]] = {}
            for place in self.of(scope):
                found.setdefault(place.region, []).append(place)
            self._regions[scope] = found
        return self._regions[scope]

    def _same(self, place: Place, scope: Scope) -> tuple[str, ...]:
        known = self.fleet
        if scope is Scope.SERVER and place.server:
            return (place.server,)
        if scope in (Scope.SERVER, Scope.SERVERPOOL) and place.serverpool:
            return self._pools(scope, (place.serverpool,))
        if scope is Scope.FLOW:
            return known.flows_in.get(place.region, ()) if not place.flow else (place.flow,)
        if scope is Scope.CEPH_POOL and place.pool:
            return (name_of(scope, place),)
        if scope in (Scope.CLOUD, Scope.CLOUD_DOCUMENT):
            return self.clouds(place)
        if not (place.cluster or place.cloud or place.serverpool):
            return self._in_region(place.region, scope)
        return self._on(self._own_clusters(place, scope), place, scope)

    def _own_clusters(self, place: Place, scope: Scope) -> tuple[str, ...]:
        """The clusters that a place shares with instances of a scope. Something on a hypervisor
        cluster and something on a storage cluster have their cloud in common."""
        known = self.fleet
        wanted = {
            Scope.CLOUD_HYPERVISOR: Role.HYPERVISOR,
            Scope.CLOUD_STORAGE: Role.STORAGE,
            Scope.CEPH_POOL: Role.STORAGE,
        }.get(scope)
        if place.cluster and wanted in (None, known.role(place.cluster)):
            return (place.cluster,)
        if place.serverpool and not place.cluster:
            return known.users_of.get(place.serverpool, ())
        return _merged(known.clusters_of_cloud[cloud] for cloud in self.clouds(place))

    def _clusters(self, place: Place, on: On) -> tuple[str, ...]:
        known = self.fleet
        if on is On.MANAGEMENT:
            return known.management_of.get(place.region, ())
        role = known.role(place.cluster)
        if on is On.ARBITER:
            return self._arbiters(place, role)
        if on is On.STORAGE and role is Role.ARBITER:
            return known.stretched_by.get(place.cluster, ())
        clouds = [known.clouds[cloud].spec for cloud in self.clouds(place)]
        if on is On.CONTROL_PLANE:
            return _merged((cloud.control_plane,) for cloud in clouds)
        if on is On.HYPERVISOR:
            return _merged(cloud.hypervisors for cloud in clouds)
        return _merged(cloud.storage for cloud in clouds)

    def _arbiters(self, place: Place, role: Role | None) -> tuple[str, ...]:
        known = self.fleet
        if role is Role.ARBITER:
            return (place.cluster,)
        storages = (place.cluster,) if role is Role.STORAGE else self._clusters(place, On.STORAGE)
        found = (known.arbiter(name) for name in storages if known.role(name) is Role.STORAGE)
        return tuple(sorted({arbiter for arbiter in found if arbiter}))

    def _on(self, clusters: tuple[str, ...], place: Place, scope: Scope) -> tuple[str, ...]:
        """Instances of a scope that stand on these clusters."""
        known = self.fleet
        match scope:
            case Scope.CLUSTER | Scope.CLUSTER_DOCUMENT | Scope.CLOUD_HYPERVISOR:
                return clusters
            case Scope.CLOUD | Scope.CLOUD_DOCUMENT:
                mine = self.clouds(place)
                return _merged(
                    [cloud for cloud in known.clouds_of.get(name, ()) if cloud in mine or not mine]
                    for name in clusters
                )
            case Scope.CLOUD_STORAGE:
                mine = self.clouds(place)
                return tuple(
                    f"{name}.{cloud}"
                    for name in clusters
                    if known.role(name) is Role.STORAGE
                    for cloud in known.clouds_of.get(name, ())
                    if cloud in mine or not mine
                )
            case Scope.CEPH_POOL:
                return tuple(
                    f"{name}.{pool.name}"
                    for name in clusters
                    if known.role(name) is Role.STORAGE
                    for pool in known.ceph(name).pools
                )
            case Scope.SERVER | Scope.SERVERPOOL:
                return self._pools(
                    scope, _merged(known.pools_of.get(name, ()) for name in clusters)
                )
            case _:
                return ()

    def _pools(self, scope: Scope, pools: tuple[str, ...]) -> tuple[str, ...]:
        if scope is Scope.SERVERPOOL:
            return pools
        return tuple(server for pool in pools for server in self.servers.get(pool, ()))


def _merged(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted({member for group in groups for member in group}))
