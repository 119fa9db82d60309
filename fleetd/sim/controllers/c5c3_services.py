"""
The parts of the c5c3-operator beside ControlPlane: the look of its children, and KeystoneService.

A KeystoneService is how a Nova, Neutron or Cinder without an operator gets its catalogue entry and
its account (cobaltcore.md 10.3). Without endpoints in it, nothing is in the catalogue. One rule:
it waits for the ControlPlane's admin credential.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fleetd.sim.controllers.base import Controller, Key, Obj, age, key_of
from fleetd.sim.kube.cluster import Change
from fleetd.sim.kube.definitions import Column, Definition
from fleetd.sim.services import openstack
from fleetd.sim.services import openstack_shape as shape
from fleetd.sim.services.openstack import OPERATED

Said = tuple[str, str, str, str]
"""Type, status, reason and message of a condition."""
SECRET = ("", "Secret")
SERVICE = ("c5c3.io", "KeystoneService")
CONTROL_PLANE = ("c5c3.io", "ControlPlane")

KEYSTONE_SERVICES = Definition(
    group="c5c3.io",
    kind="KeystoneService",
    plural="keystoneservices",
    versions=("v1alpha1",),
    columns=(Column("Ready", "status.conditions[Ready]"),),
    lists={"status.conditions": ("type",), "spec.catalog.endpoints": ("interface",)},
)


def child(plane: Obj, service: str) -> dict[str, Any]:
    """The object of one service, as the operator makes it from the ControlPlane."""
    metadata, spec = plane["metadata"], plane["spec"]
    group, kind = OPERATED[service]
    given: Mapping[str, Any] = spec["services"].get(service) or {}
    image = given.get("image") or {
        "repository": f"c5c3/{service}",
        "tag": spec["openStackRelease"],
    }
    database: Mapping[str, Any] = spec["infrastructure"]["database"]
    body: dict[str, Any] = {
        "image": image,
        "cache": spec["infrastructure"]["cache"],
        "deployment": {"replicas": given.get("replicas", 3)},
    }
    if service != "horizon":
        body["database"] = {**database, "database": service}
    return {
        "apiVersion": f"{group}/v1alpha1",
        "kind": kind,
        "metadata": {
            "name": f"{metadata['name']}-{service}",
            "namespace": metadata["namespace"],
            "ownerReferences": [owner(plane)],
        },
        "spec": body,
    }


def owner(obj: Obj) -> dict[str, Any]:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def write_secret(
    by: Controller, holder: Obj, name: str, namespace: str, data: Mapping[str, str]
) -> None:
    by.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "ownerReferences": [owner(holder)],
            },
            "type": "Opaque",
            "stringData": dict(data),
        },
        manager=by.name,
    )


class KeystoneServices(Controller):
    name = "c5c3-keystoneservice"
    watches = (SERVICE,)

    def keys(self, change: Change) -> Iterable[Key]:
        yield from super().keys(change)
        if change.gk == CONTROL_PLANE:
            for obj in self.cluster.list(SERVICE):
                yield key_of(SERVICE, obj)

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return None
        spec: Mapping[str, Any] = obj["spec"]
        ref: Mapping[str, Any] = spec["controlPlaneRef"]
        plane = self.cluster.get(CONTROL_PLANE, ref["name"], ref.get("namespace", key.namespace))
        cloud = openstack.of_name(self.world, ref["name"])
        if plane is None or cloud is None:
            self._say(key, obj, "False", "WaitingForControlPlane")
            return None
        if shape.condition(plane, "CatalogReady") != "True" or not cloud.up("keystone"):
            self._say(key, obj, "False", "WaitingForControlPlane")
            return 10.0
        left = self.span(5.0, 20.0, key, "register") - age(
            self.world, obj["metadata"]["creationTimestamp"]
        )
        if left > 0.01:
            self._say(key, obj, "False", "WaitingForKORC")
            return left
        self._register(key, obj, cloud)
        self._say(key, obj, "True", "Registered")
        return None

    def _register(self, key: Key, obj: Obj, cloud: openstack.Cloud) -> None:
        spec: Mapping[str, Any] = obj["spec"]
        status: dict[str, Any] = {}
        catalog: Mapping[str, Any] = spec.get("catalog") or {}
        for endpoint in catalog.get("endpoints") or ():
            if endpoint["interface"] == "public":
                cloud.endpoints[catalog["serviceType"]] = endpoint["url"]
        if catalog:
            kind = catalog["serviceType"]
            status["catalog"] = {"serviceID": cloud.uid("service", kind)}
        account: Mapping[str, Any] = spec.get("account") or {}
        if account:
            name = account.get("userName", key.name)
            user = cloud.find("User", name) or cloud.make("User", name, domain_id="default")
            secret = f"{key.name}-account"
            if self.cluster.get(SECRET, secret, key.namespace) is None:
                password = self.world.token("service-account", cloud.name, name)
                cloud.secrets[user.id] = password
                write_secret(
                    self, obj, secret, key.namespace, {"username": name, "password": password}
                )
            status["account"] = {"secretName": secret, "userID": user.id, "passwordGeneration": 1}
        self.status(key, status)

    def _say(self, key: Key, obj: Obj, status: str, reason: str) -> None:
        generation = int(obj["metadata"].get("generation", 1))
        ready = self.condition("Ready", status, reason, generation=generation)
        self.status(key, {"conditions": [ready], "observedGeneration": generation})
