"""
What an instance's driver is told: the facts of the documents, the options of the role, and the
catalogue's parameters with their placeholders filled in. Also when a component is placed at all.

Nothing secret is in a spec: an access names its file, variable or path and is read at the moment
of use. A relative file stays as it was written, so that a digest does not depend on the folder
in which the documents lie.
"""

import re
from collections.abc import Mapping
from typing import Any

from topology import fleet, places
from topology.catalogue import Component, ComponentSpec, Scope, Told, When
from topology.documents.cluster import Role
from topology.documents.pool import Server, ServerPool

_PLACEHOLDER = re.compile(r"\{([a-z]+(?:\.[a-zA-Z]+)*)\}")
_BACKEND_FACTS = {"garden": "garden", "metal": "metal", "openbao": "secrets"}
"""Which part of the Region says how a far side is reached."""
_C5C3_CHARTS = "oci://ghcr.io/c5c3/charts"
"""Where the charts of C5C3 are published; others name their repository in the catalogue."""
_ABSENT: Any = object()


class Specs:
    """Specs for one fleet. Parts that many instances share are one object."""

    def __init__(self, where: places.Places) -> None:
        self.places = where
        self.fleet = where.fleet
        self._pool_facts: dict[str, dict[str, Any]] = {}
        self._installs: dict[str, dict[str, Any]] = {}
        self._watched: dict[str, dict[str, Any]] = {}

    def placed(self, component: Component, place: places.Place) -> bool:
        """Whether the component stands here, by its roles and its `when`."""
        spec = component.spec
        there = spec.scope is Scope.CLUSTER and spec.roles
        if there and self.fleet.role(place.cluster) not in spec.roles:
            return False
        return all(self._holds(rule, place) for rule in spec.when)

    def of(self, component: Component, place: places.Place) -> dict[str, Any]:
        """The spec of one instance; not for servers, see `server`."""
        spec = component.spec
        facts = self._facts(spec, place)
        return facts | self.added(component, place)

    def added(self, component: Component, place: places.Place) -> dict[str, Any]:
        """What the catalogue adds: parameters, how the thing is installed, and the object that
        tells how it is."""
        spec = component.spec
        found: dict[str, Any] = {}
        if spec.parameters:
            found["parameters"] = self._fill(spec.parameters, component, place)
        if spec.outlives:
            found["outlives"] = list(spec.outlives)
        if spec.install.by != "none":
            install = self._installs.get(component.metadata.name)
            if install is None:
                install = self._installs[component.metadata.name] = fleet.dump(spec.install)
            found["install"] = self._fill(install, component, place)
            if spec.install.by == "flux-helm":
                found["install"]["repository"] = self._repository(spec, place)
        if spec.health.object is not None:
            watched = self._watched.get(component.metadata.name)
            if watched is None:
                watched = fleet.dump(spec.health.object)
                self._watched[component.metadata.name] = watched
            found["object"] = self._fill(watched, component, place)
        return found

    def _repository(self, spec: ComponentSpec, place: places.Place) -> str:
        """The region's own mirror comes before where a chart is published."""
        mirror = self.fleet.region_facts[place.region].get("charts") if place.region else None
        return mirror or spec.install.repository or _C5C3_CHARTS

    def text(self, text: str, component: Component, place: places.Place) -> str:
        """A text of the catalogue with its placeholders filled in."""
        return str(self._fill(text, component, place))

    def _fill(self, value: Any, component: Component, place: places.Place) -> Any:  # noqa: ANN401
        views = self._views(component, place)
        name = places.name_of(component.spec.scope, place)
        return _filled(value, self._words(place, views, name), views)

    def server(self, server: Server, pool: ServerPool) -> dict[str, Any]:
        """A server's spec. Written out by hand, because a fleet has a hundred thousand."""
        shared = self.serverpool(pool)
        labels = shared["labels"]
        facts = {
            "name": server.name,
            "region": pool.spec.region,
            "pool": pool.metadata.name,
            "class": pool.spec.class_,
            "zone": server.zone,
            "bmc": server.bmc,
            "redfish": shared["redfish"],
            "access": shared["access"],
            "labels": labels | server.labels if server.labels else labels,
        }
        if server.rack:
            facts["rack"] = server.rack
        if server.uuid:
            facts["uuid"] = server.uuid
        return facts

    def serverpool(self, pool: ServerPool) -> dict[str, Any]:
        name = pool.metadata.name
        if name not in self._pool_facts:
            spec = pool.spec
            self._pool_facts[name] = {
                "name": name,
                "region": spec.region,
                "class": spec.class_,
                "servers": len(self.places.servers[name]),
                "wanted": self.fleet.wanted_of(name),
                "access": fleet.dump(spec.access),
                "redfish": fleet.dump(spec.redfish),
                "labels": {**pool.metadata.labels, **spec.labels},
            }
        return self._pool_facts[name]

    def _facts(self, spec: ComponentSpec, place: places.Place) -> dict[str, Any]:
        known = self.fleet
        match spec.scope:
            case Scope.REGION_DOCUMENT:
                return dict(known.region_facts[place.region])
            case Scope.CLUSTER_DOCUMENT:
                return dict(known.cluster_facts[place.cluster])
            case Scope.CLOUD_DOCUMENT:
                return dict(known.cloud_facts[place.cloud])
            case Scope.SERVERPOOL | Scope.SERVER:
                return self.serverpool(known.pools[place.serverpool])
            case Scope.FLOW:
                return {"name": place.flow, **fleet.dump(known.flows[place.flow].spec)}
            case _:
                return self._component(spec, place)

    def _component(self, spec: ComponentSpec, place: places.Place) -> dict[str, Any]:
        """A component's own facts: where it stands, and of the documents only what concerns it, so
        that a new Ceph pool does not look like a change of cert-manager."""
        known = self.fleet
        facts: dict[str, Any] = {"region": place.region}
        if place.cluster:
            facts["cluster"] = place.cluster
            facts["role"] = str(known.role(place.cluster))
        if place.cloud:
            facts["cloud"] = place.cloud
        part = _BACKEND_FACTS.get(spec.backend)
        if part:
            there = known.region_facts[place.region][part]
            # How many members OpenBao has concerns only what installs it.
            asks = spec.install.by == "none"
            facts[part] = {k: there[k] for k in there if not (asks and k == "replicas")}
        if place.pool:
            facts["pool"] = self._ceph_pool(place)
        return facts | {word.value: self._told(word, spec.scope, place) for word in spec.told}

    def _told(self, word: Told, scope: Scope, place: places.Place) -> Any:  # noqa: ANN401
        known = self.fleet
        match word:
            case Told.CEPH:
                ceph = known.cluster_facts[place.cluster]["ceph"]
                # Pools are things of their own.
                return {key: ceph[key] for key in ceph if key != "pools"}
            case Told.GIT:
                return known.region_facts[place.region]["git"]
            case Told.HOSTS:
                return sum(one.minimum for one in known.clusters[place.cluster].spec.workers)
            case Told.HYPERVISOR:
                return known.cluster_facts[place.cluster].get("hypervisor", {})
            case Told.TRUST:
                return known.cluster_facts[place.cluster].get("trust", {})
            case Told.RELEASE if scope is Scope.CLOUD_HYPERVISOR:
                return known.cloud_views[place.cloud]["hypervisorRelease"]
            case Told.SIZE if not place.cloud:
                return self._size(place.cluster)
            case Told.RELEASE | Told.SERVICES | Told.SIZE | Told.STORAGE:
                return known.cloud_facts[place.cloud][word.value]

    def _size(self, cluster: str) -> str:
        """The size of the cloud that a control plane carries, which is that of its databases and
        queues; one that carries no cloud yet is made as most are."""
        clouds = self.fleet.clouds_of.get(cluster, ())
        return next((self.fleet.clouds[cloud].spec.size for cloud in clouds), "medium")

    def _ceph_pool(self, place: places.Place) -> Mapping[str, Any]:
        pools = self.fleet.cluster_facts[place.cluster]["ceph"]["pools"]
        return next(pool for pool in pools if pool["name"] == place.pool)

    def _holds(self, rule: When, place: places.Place) -> bool:
        head, _, path = rule.field.partition(".")
        values = [_walk(view, path) for view in self._seen(head, place)]
        given = [value for value in values if value is not _ABSENT]
        if rule.present is not None and bool(given) is not rule.present:
            return False
        if not rule.any_of:
            return True
        return any(_matches(value, rule.any_of) for value in given)

    def _seen(self, head: str, place: places.Place) -> list[Mapping[str, Any]]:
        """What a word of a `when` stands for, seen from here; several where several are meant."""
        known = self.fleet
        match head:
            case "region":
                return [known.region_facts[place.region]] if place.region else []
            case "cloud":
                return [known.cloud_views[name] for name in self.places.clouds(place)]
            case "cluster" if place.cluster:
                return [known.cluster_facts[place.cluster]]
            case "cluster":
                mine = known.users_of if place.serverpool else known.clusters_in
                names = mine.get(place.serverpool or place.region, ())
                return [known.cluster_facts[name] for name in names]
            case "storage":
                names = [place.cluster]
                if known.role(place.cluster) is not Role.STORAGE:
                    clouds = self.places.clouds(place)
                    names = sorted({s for c in clouds for s in known.clouds[c].spec.storage})
                return [known.cluster_facts[name] for name in names]
            case _ if place.pool:
                return [self._ceph_pool(place)]
            case _ if place.serverpool:
                return [self.serverpool(known.pools[place.serverpool])]
            case _:
                return []

    def _views(self, component: Component, place: places.Place) -> Mapping[str, Mapping[str, Any]]:
        """What `{region.git}` and the like in a parameter may reach: one thing per word."""
        views: dict[str, Mapping[str, Any]] = {}
        if place.region:
            views["region"] = self.fleet.region_facts[place.region]
        cluster = self.cluster_of(component, place)
        if cluster:
            views["cluster"] = self.fleet.cluster_facts[cluster]
        if place.cloud:
            views["cloud"] = self.fleet.cloud_views[place.cloud]
        if place.pool:
            views["pool"] = self._ceph_pool(place)
        elif place.serverpool:
            views["pool"] = self.serverpool(self.fleet.pools[place.serverpool])
        return views

    def cluster_of(self, component: Component, place: places.Place) -> str:
        """The cluster an instance stands on: its own, the control plane of its cloud, or the
        management cluster for what a region keeps there; empty for none."""
        if place.cluster:
            return place.cluster
        if place.cloud:
            return self.fleet.clouds[place.cloud].spec.control_plane
        return self.asked(component, place) if component.spec.backend == "management" else ""

    def asked(self, component: Component, place: places.Place) -> str:
        """The cluster that is asked about an instance. A HelmRelease for another cluster lies on
        the management cluster; empty where no cluster is asked."""
        if component.spec.backend == "management":
            return next(iter(self.fleet.management_of.get(place.region, ())), "")
        return self.cluster_of(component, place) if component.spec.backend == "cluster" else ""

    def _words(
        self, place: places.Place, views: Mapping[str, Mapping[str, Any]], name: str
    ) -> dict[str, str]:
        words = {head: str(view["name"]) for head, view in views.items()}
        words["name"] = name
        if place.server:
            words["server"] = place.server
        if "region" in views:
            words["project"] = str(views["region"]["garden"]["project"])
        return words


def _filled(value: Any, words: Mapping[str, str], views: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Parameters with placeholders filled in. A text that is nothing but `{cluster.ceph}` becomes
    that value, whatever its type; braces that name nothing we know stay as they are."""
    if isinstance(value, Mapping):
        return {key: _filled(inner, words, views) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_filled(inner, words, views) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, str) or "{" not in value:
        return value
    whole = _PLACEHOLDER.fullmatch(value)
    if whole:
        found = _named(whole.group(1), words, views)
        return value if found is _ABSENT else found

    def put(match: re.Match[str]) -> str:
        found = _named(match.group(1), words, views)
        return match.group(0) if found is _ABSENT else str(found)

    return _PLACEHOLDER.sub(put, value)


def _named(text: str, words: Mapping[str, str], views: Mapping[str, Any]) -> Any:  # noqa: ANN401
    head, _, path = text.partition(".")
    if not path:
        return words.get(head, _ABSENT)
    return _walk(views.get(head, {}), path)


def _walk(value: Any, path: str) -> Any:  # noqa: ANN401
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return _ABSENT
        value = value[part]  # pyright: ignore[reportUnknownVariableType]
    return value  # pyright: ignore[reportUnknownVariableType]


def _matches(value: Any, wanted: list[str | int | bool]) -> bool:  # noqa: ANN401
    members = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
    return any(member in wanted for member in members)  # pyright: ignore[reportUnknownVariableType]
