"""
What one simulated OpenStack cloud holds: accounts, catalogue, hosts, virtual machines.

The APIs (`keystone`, `nova`, `placement`, `neutron`, `cinder`, `glance`) are views of this, and the
controllers that live in clusters (K-ORC, the hypervisor operator, nova-compute) change it as if
they had called those APIs: they ask `up` first. One rule: an API answers only while what serves it
runs on the control plane and its database does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fleetd.sim.services import openstack_compute as compute
from fleetd.sim.services import openstack_shape as shape
from fleetd.sim.services.tenants import Tenants
from fleetd.sim.world import World

DEPLOYMENT = ("apps", "Deployment")
DATABASE = ("k8s.mariadb.com", "MariaDB")
QUEUE = ("rabbitmq.com", "RabbitmqCluster")
OPERATED: Mapping[str, tuple[str, str]] = {
    "keystone": ("keystone.openstack.c5c3.io", "Keystone"),
    "glance": ("glance.openstack.c5c3.io", "Glance"),
    "placement": ("placement.openstack.c5c3.io", "Placement"),
    "horizon": ("horizon.openstack.c5c3.io", "Horizon"),
    "barbican": ("barbican.openstack.c5c3.io", "Barbican"),
}
"""Services with an operator, and the object that tells how they are."""
DEPLOYED: Mapping[str, tuple[str, ...]] = {
    "nova": ("nova-api", "nova-scheduler", "nova-conductor"),
    "neutron": ("neutron-server",),
    "cinder": ("cinder-api", "cinder-scheduler", "cinder-volume"),
}
"""Services that are plain Deployments; the first is the API."""
TYPES: Mapping[str, str] = {
    "keystone": "identity",
    "glance": "image",
    "placement": "placement",
    "barbican": "key-manager",
    "nova": "compute",
    "neutron": "network",
    "cinder": "block-storage",
}
TOKEN_LIFE = 4 * 3600.0
"""Seconds."""


@dataclass(slots=True, kw_only=True)
class Thing:
    """A row of some table: a project, an image, a network."""

    id: str
    name: str
    more: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(slots=True, kw_only=True)
class Token:
    user: str
    project: str
    expires: float
    by: str
    """Whose secret it was given for: without that it is worth nothing any more."""


class Cloud:
    def __init__(
        self, world: World, name: str, control_plane: str, hypervisors: tuple[str, ...]
    ) -> None:
        self.world = world
        self.name = name
        self.control_plane = control_plane
        self.hypervisors = hypervisors
        self.region = "RegionOne"
        self.tables: dict[str, dict[str, Thing]] = {}
        """Rows by kind (Project, Image ...) and id."""
        self.roles: dict[tuple[str, str, str], None] = {}
        """User, project and role, by id."""
        self.secrets: dict[str, str] = {}
        """What an application credential's secret or a user's password is, by its id."""
        self.tokens: dict[str, Token] = {}
        self.endpoints: dict[str, str] = {}
        """Public URL by type of service; what the catalogue shows."""
        self.traits: dict[str, None] = dict.fromkeys(compute.STANDARD_TRAITS)
        self.nova = compute.Nova(world, self.name)
        self.tenants: Tenants | None = None
        """Those who use it, if anybody does."""
        self._made = 0
        self._bootstrap()

    @property
    def namespace(self) -> str:
        return f"openstack-{self.control_plane}"

    def address(self, service: str) -> str:
        return self.world.address(f"{service}-{self.name}")

    # Rows.

    def make(self, kind: str, name: str, *, key: str = "", **more: Any) -> Thing:  # noqa: ANN401
        self._made += 1
        made = Thing(id=key or self.uid(kind, name, str(self._made)), name=name, more=more)
        self.tables.setdefault(kind, {})[made.id] = made
        return made

    def uid(self, *words: str) -> str:
        return self.world.uid("/".join(("openstack", self.name, *words))).replace("-", "")

    def find(self, kind: str, name: str, **more: Any) -> Thing | None:  # noqa: ANN401
        rows = self.tables.get(kind, {}).values()
        fits = (row for row in rows if row.name == name)
        return next(
            (row for row in fits if all(row.more.get(k) == v for k, v in more.items())), None
        )

    def drop(self, kind: str, key: str) -> None:
        self.tables.get(kind, {}).pop(key, None)

    def _bootstrap(self) -> None:
        """What `keystone-manage bootstrap` makes."""
        default = self.make("Domain", "Default", key="default")
        admin = self.make("Project", "admin", domain_id=default.id)
        user = self.make("User", "admin", domain_id=default.id)
        self.secrets[user.id] = self.world.token("keystone", self.name, "admin")
        for name in ("admin", "member", "reader", "service"):
            role = self.make("Role", name)
            if name == "admin":
                self.roles[user.id, admin.id, role.id] = None
        self.make("Project", "service", domain_id=default.id)

    def mint(self, generation: int) -> Thing:
        """An application credential of the admin; its secret is in `secrets`."""
        admin, project = self.find("User", "admin"), self.find("Project", "admin")
        if admin is None or project is None:
            raise LookupError(f"cloud {self.name} has lost its admin")
        made = self.make(
            "ApplicationCredential",
            f"admin-{generation}",
            user_id=admin.id,
            project_id=project.id,
        )
        self.secrets[made.id] = self.world.token("app-credential", self.name, made.id)
        return made

    def allowed(self, user: str, project: str, role: str = "admin") -> bool:
        found = self.find("Role", role)
        return found is not None and (user, project, found.id) in self.roles

    # Whether it is there at all.

    def up(self, service: str) -> bool:
        """Whether its API answers now."""
        cluster = self.world.clusters.get(self.control_plane)
        if cluster is None or not self._database():
            return False
        if service in OPERATED:
            live = cluster.get(OPERATED[service], f"{self.name}-{service}", self.namespace)
            kind = OPERATED[service][1]
            return live is not None and shape.condition(live, f"{kind}APIReady") == "True"
        return self.running(DEPLOYED[service][0])

    def running(self, deployment: str) -> bool:
        """Whether a Deployment of the control plane has a pod that works."""
        cluster = self.world.clusters.get(self.control_plane)
        live = cluster.get(DEPLOYMENT, deployment, self.namespace) if cluster else None
        return live is not None and bool(shape.part(live, "status").get("readyReplicas"))

    def heard(self, deployment: str) -> bool:
        """Whether a part that talks over the queue is up in the eyes of its API."""
        cluster = self.world.clusters.get(self.control_plane)
        queue = cluster.get(QUEUE, "rabbitmq", self.namespace) if cluster else None
        quiet = queue is not None and shape.condition(queue, "ClusterAvailable") == "False"
        return self.running(deployment) and not quiet

    def _database(self) -> bool:
        cluster = self.world.clusters[self.control_plane]
        live = cluster.get(DATABASE, "openstack-db", self.namespace)
        return live is not None and shape.condition(live, "Ready") == "True"

    def computing(self, host: str) -> bool:
        """Whether nova-compute of this host is alive: its DaemonSet runs, its server is on."""
        known = self.nova.hosts.get(host)
        if known is None or known.stopped:
            return False
        machine = self.world.truth.of_node(known.cluster, host)
        running = (known.cluster, "nova-compute") in self.world.controllers
        return running and (machine is None or machine.on)


def of_name(world: World, name: str) -> Cloud | None:
    return getattr(world.services.get(f"keystone-{name}"), "cloud", None)


def of_hypervisors(world: World, cluster: str) -> Cloud | None:
    """The cloud that the hosts of this cluster belong to."""
    return next((cloud for cloud in _clouds(world) if cluster in cloud.hypervisors), None)


def of_control_plane(world: World, cluster: str) -> Cloud | None:
    return next((cloud for cloud in _clouds(world) if cloud.control_plane == cluster), None)


def _clouds(world: World) -> list[Cloud]:
    names = [name for name in world.services if name.startswith("keystone-")]
    found = [of_name(world, name.removeprefix("keystone-")) for name in names]
    return [cloud for cloud in found if cloud is not None]
