"""
K-ORC: OpenStack resources from Kubernetes objects.

Imitates cobaltcore.md 11 and real-hypervisor.md 9 for the kinds that fleetd and the c5c3-operator
use: Available and Progressing with their reasons, waiting for the Secret and for what is referred
to, import by name, TransientError while the service's API is away, finalizers. References are
names of objects in the same namespace. One rule: an unmanaged object only finds, it never makes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers.base import Controller, Key, Obj, key_of
from fleetd.sim.kube.cluster import GK, Change
from fleetd.sim.kube.definitions import Column, Definition
from fleetd.sim.services import openstack
from fleetd.sim.services import openstack_shape as shape
from fleetd.sim.services.openstack import Cloud

GROUP = "openstack.k-orc.cloud"
SECRET = ("", "Secret")
RETRY = 15.0


@dataclass(frozen=True, slots=True)
class Table:
    """One kind: whose API, how long it takes, and what of the spec is kept."""

    plural: str
    service: str
    seconds: tuple[float, float] = (0.1, 0.4)
    refs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Field of the spec to the kind it names."""


TABLES: Mapping[str, Table] = {
    "Domain": Table("domains", "keystone"),
    "Project": Table("projects", "keystone", refs={"domainRef": "Domain"}),
    "Role": Table("roles", "keystone", refs={"domainRef": "Domain"}),
    "User": Table("users", "keystone", refs={"domainRef": "Domain"}),
    "RoleAssignment": Table(
        "roleassignments",
        "keystone",
        refs={"userRef": "User", "projectRef": "Project", "roleRef": "Role"},
    ),
    "Service": Table("services", "keystone"),
    "Endpoint": Table("endpoints", "keystone", refs={"serviceRef": "Service"}),
    "ApplicationCredential": Table("applicationcredentials", "keystone", refs={"userRef": "User"}),
    "Image": Table("images", "glance", (8.0, 40.0)),
    "Network": Table("networks", "neutron", refs={"projectRef": "Project"}),
    "Subnet": Table("subnets", "neutron", refs={"networkRef": "Network"}),
    "Flavor": Table("flavors", "nova"),
    "VolumeType": Table("volumetypes", "cinder"),
}


class Korc(Controller):
    name = "k-orc"
    watches: tuple[GK, ...] = tuple((GROUP, kind) for kind in TABLES)  # pyright: ignore[reportIncompatibleVariableOverride]

    def keys(self, change: Change) -> Iterable[Key]:
        yield from super().keys(change)
        if change.gk == SECRET or (
            change.gk in self.watches and shape.condition(change.object, "Available") == "True"
        ):
            namespace = change.object["metadata"].get("namespace", "")
            for gk in self.watches:
                for obj in self.cluster.list(gk, namespace):
                    if shape.condition(obj, "Available") != "True":
                        yield key_of(gk, obj)

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None:
            return None
        table = TABLES[key.gk[1]]
        cloud = openstack.of_control_plane(self.world, self.cluster.name)
        if obj["metadata"].get("deletionTimestamp"):
            return self._delete(key, obj, cloud)
        if shape.condition(obj, "Available") == "True":
            return None
        finalizer = f"{GROUP}/{key.gk[1].lower()}"
        if finalizer not in obj["metadata"].get("finalizers", ()):
            self.cluster.edit(*_place(key), _finalizer(finalizer), manager=self.name)
            return self.span(*table.seconds, key, "make")
        waits = self._waits(key, obj)
        if waits:
            self._say(key, obj, ("False", "Progressing", waits), ("True", "Progressing", waits))
            return None
        if cloud is None or not cloud.up(table.service) or not cloud.up("keystone"):
            why = f"{table.service} does not answer: 503"
            said = ("TransientError", why)
            self._say(key, obj, ("False", *said), ("True", *said))
            return RETRY
        return self._found(key, obj, self._make(key, obj, cloud))

    def _found(self, key: Key, obj: Obj, made: str) -> float | None:
        if not made:
            waits = "Waiting for OpenStack resource to be created externally"
            self._say(key, obj, ("False", "Progressing", waits), ("True", "Progressing", waits))
            return RETRY
        self.status(key, {"id": made})
        done = ("Success", "OpenStack resource is available")
        self._say(key, obj, ("True", *done), ("False", *done))
        return None

    def _waits(self, key: Key, obj: Obj) -> str:
        secret = obj["spec"]["cloudCredentialsRef"]["secretName"]
        if self.cluster.get(SECRET, secret, key.namespace) is None:
            return f"Waiting for Secret/{secret} to be created"
        for part, kind in TABLES[key.gk[1]].refs.items():
            name = _fields(obj).get(part)
            if name is None:
                continue
            live = self.cluster.get((GROUP, kind), name, key.namespace)
            if live is None:
                return f"Waiting for {kind}/{name} to be created"
            if shape.condition(live, "Available") != "True":
                return f"Waiting for {kind}/{name} to be ready"
        return ""

    def _make(self, key: Key, obj: Obj, cloud: Cloud) -> str:
        """The id of what it stands for; empty: there is none to import."""
        kind, fields = key.gk[1], _fields(obj)
        ids = {
            part: self._id(key, other, str(fields[part]))
            for part, other in TABLES[kind].refs.items()
            if fields.get(part)
        }
        if kind == "RoleAssignment":
            held = (ids["userRef"], ids["projectRef"], ids["roleRef"])
            cloud.roles[held] = None
            return "/".join(held)
        name = str(fields.get("name") or key.name)
        belongs: dict[str, Any] = {}
        if "domainRef" in ids:
            belongs["domain_id"] = ids["domainRef"]
        known = cloud.find(kind, name, **belongs)
        if known is not None or obj["spec"].get("managementPolicy") == "unmanaged":
            return known.id if known else ""
        if kind in ("Project", "User"):
            belongs.setdefault("domain_id", "default")
        if kind == "Flavor":
            belongs |= {"ram": fields["ram"], "vcpus": fields["vcpus"], "disk": fields["disk"]}
        if kind == "Network":
            belongs["shared"] = bool(fields.get("shared"))
        return cloud.make(kind, name, key=str(fields.get("id") or ""), **belongs).id

    def _id(self, key: Key, kind: str, name: str) -> str:
        live = self.cluster.get((GROUP, kind), name, key.namespace) or {}
        return str(shape.part(live, "status").get("id", ""))

    def _delete(self, key: Key, obj: Obj, cloud: Cloud | None) -> float | None:
        kind = key.gk[1]
        managed = obj["spec"].get("managementPolicy", "managed") == "managed"
        made = str(shape.part(obj, "status").get("id", ""))
        if cloud is not None and managed and made:
            if not cloud.up(TABLES[kind].service):
                return RETRY
            if kind == "RoleAssignment":
                user, project, role = made.split("/")
                cloud.roles.pop((user, project, role), None)
            else:
                cloud.drop(kind, made)
        self.cluster.remove_finalizer(*_place(key), f"{GROUP}/{kind.lower()}")
        return None

    def _say(
        self, key: Key, obj: Obj, available: tuple[str, str, str], progressing: tuple[str, str, str]
    ) -> None:
        generation = int(obj["metadata"].get("generation", 1))
        said = [
            self.condition("Available", *available, generation=generation),
            self.condition("Progressing", *progressing, generation=generation),
        ]
        self.status(key, {"conditions": said})


def _fields(obj: Obj) -> Mapping[str, Any]:
    return shape.part(obj, "spec.resource") or shape.part(obj, "spec.import.filter")


def _place(key: Key) -> tuple[GK, str, str]:
    return key.gk, key.name, key.namespace


def _finalizer(name: str) -> Any:  # noqa: ANN401 - a change of an object
    def change(obj: dict[str, Any]) -> None:
        obj["metadata"].setdefault("finalizers", []).append(name)

    return change


DEFINITIONS = tuple(
    Definition(
        group=GROUP,
        kind=kind,
        plural=table.plural,
        versions=("v1alpha1",),
        categories=("openstack",),
        columns=(
            Column("ID", "status.id"),
            Column("Available", "status.conditions[Available]"),
        ),
        lists={"status.conditions": ("type",)},
    )
    for kind, table in TABLES.items()
)
CHARTS: Mapping[str, Chart] = {
    "k-orc": Chart(
        definitions=DEFINITIONS, controllers=(Korc,), deployments=("orc-controller-manager",)
    )
}
