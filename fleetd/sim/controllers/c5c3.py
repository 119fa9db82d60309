"""
The c5c3-operator: one ControlPlane becomes services, an admin credential and a catalogue.

Imitates cobaltcore.md 10.1, 10.3 and 18.2: a blocking row of conditions up to KeystoneReady, an
independent tail, children that are projected (what is set on them by hand is set back), the Secret
k-orc-clouds-yaml, KeystoneServices that register others. Two traps are kept: it reads only Ready of
a child, not its generation, so right after an edit it is AllReady of before; and release of a
service is copied from the spec. One rule: a service whose block was removed stays until the
annotation allows its deletion.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers import c5c3_services as services
from fleetd.sim.controllers.base import Controller, Key, Obj, age, key_of, stamp
from fleetd.sim.controllers.osservices import CACHE
from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import User
from fleetd.sim.kube.cluster import Change, Cluster
from fleetd.sim.kube.definitions import Column, Definition
from fleetd.sim.services import openstack
from fleetd.sim.services import openstack_shape as shape
from fleetd.sim.services.openstack import DATABASE, OPERATED, TYPES
from fleetd.sim.world import World

CONTROL_PLANE = ("c5c3.io", "ControlPlane")
SECRET = ("", "Secret")
STORES = ("external-secrets.io", "ClusterSecretStore")
FINALIZER = "c5c3.io/orc-teardown"
TAIL = ("horizon", "glance", "placement", "barbican")
REVIEW = 30.0
_PATHS = {"keystone": "/v3", "placement": "", "glance": "", "barbican": ""}

_CONTROL_PLANES = Definition(
    group="c5c3.io",
    kind="ControlPlane",
    plural="controlplanes",
    versions=("v1alpha1",),
    columns=(
        Column("Ready", "status.conditions[Ready]"),
        Column("Release", "spec.openStackRelease"),
    ),
    lists={"status.conditions": ("type",), "spec.services.glance.backends": ("name",)},
)


class C5c3Operator(Controller):
    name = "c5c3-operator"
    watches = (CONTROL_PLANE,)

    def __init__(self, world: World, cluster: Cluster) -> None:
        super().__init__(world, cluster)
        cluster.admit(CONTROL_PLANE, self._admit)

    def _admit(self, operation: str, new: Obj | None, old: Obj | None, user: User) -> None:
        """The webhook answers only while the operator runs; it then fails closed, too."""
        del user
        if operation != "UPDATE" or new is None or old is None or self._stopped:
            return
        before, after = old["spec"]["openStackRelease"], new["spec"]["openStackRelease"]
        name = new["metadata"]["name"]
        if after < before:
            problem = ("FieldValueForbidden", "spec.openStackRelease", "Forbidden: no downgrade")
            raise refusal.invalid(_CONTROL_PLANES, name, problem)
        if new["spec"].get("region") != old["spec"].get("region"):
            problem = ("FieldValueInvalid", "spec.region", "Invalid value: field is immutable")
            raise refusal.invalid(_CONTROL_PLANES, name, problem)

    def keys(self, change: Change) -> Iterable[Key]:
        yield from super().keys(change)
        if change.gk in (DATABASE, CACHE, STORES, *OPERATED.values()):
            for obj in self.cluster.list(CONTROL_PLANE):
                yield key_of(CONTROL_PLANE, obj)

    def reconcile(self, key: Key) -> float | None:
        obj = self.get(key)
        if obj is None:
            return None
        if obj["metadata"].get("deletionTimestamp"):
            return self._teardown(key, obj)
        first = self.cluster.list(CONTROL_PLANE, key.namespace)
        oldest = min(first, key=lambda one: (one["metadata"]["creationTimestamp"], _number(one)))
        if oldest["metadata"]["name"] != key.name:
            self._say(key, obj, [("Ready", "False", "DuplicateControlPlane", "there is another")])
            return None
        if FINALIZER not in obj["metadata"].get("finalizers", ()):
            self.cluster.edit(*_place(key), _add_finalizer, manager=self.name)
            obj = self.get(key) or obj
        said = self._prefix(key, obj)
        if all(status == "True" for _, status, _, _ in said):
            said += self._tail(key, obj)
        done = len(said) == 14 and all(status == "True" for _, status, _, _ in said)
        said.append(
            ("Ready", "True", "AllReady", "")
            if done
            else ("Ready", "False", "NotAllReady", _first(said))
        )
        self._say(key, obj, said)
        return None if done else self._soon(key, obj)

    def _soon(self, key: Key, obj: Obj) -> float:
        """Most waits end with a change that wakes it; some only with time."""
        del key, obj
        return REVIEW / 6

    # The blocking row.

    def _prefix(self, key: Key, obj: Obj) -> list[services.Said]:
        spec: Mapping[str, Any] = obj["spec"]
        said: list[services.Said] = [("NamespacesReady", "True", "NamespacesReady", "")]
        for kind, waits in (
            ("InfrastructureReady", self._infrastructure(key, spec)),
            ("ESOTenantStoreReady", self._store(spec)),
            ("DBCredentialsReady", self._after(key, obj, "ESOTenantStoreReady", 5.0, 15.0)),
            ("AdminPasswordReady", self._after(key, obj, "DBCredentialsReady", 5.0, 15.0)),
        ):
            if waits:
                return [*said, (kind, "False", *waits)]
            said.append((kind, "True", kind, ""))
        self._project(key, obj, "keystone")
        return [*said, self._child(key, "keystone")]

    def _infrastructure(self, key: Key, spec: Mapping[str, Any]) -> tuple[str, str] | None:
        parts = shape.part(spec, "infrastructure")
        for gk, field, flag in ((DATABASE, "database", "Ready"), (CACHE, "cache", "Available")):
            name = str(shape.part(parts, f"{field}.clusterRef").get("name", ""))
            live = self.cluster.get(gk, name, key.namespace)
            if live is None or shape.condition(live, flag) != "True":
                return f"WaitingFor{gk[1]}", f"{gk[1]} {name} is not ready"
        return None

    def _store(self, spec: Mapping[str, Any]) -> tuple[str, str] | None:
        """A store of its own is provisioned over the one of the cluster."""
        name = shape.part(spec, "secretStoreRef").get("name", "openbao-cluster-store")
        live = self.cluster.get(STORES, name)
        if live is None or shape.condition(live, "Ready") != "True":
            return "SecretStoreNotReady", f"store {name} is not ready"
        return None

    def _after(
        self, key: Key, obj: Obj, kind: str, low: float, high: float
    ) -> tuple[str, str] | None:
        """True some seconds after the condition before it, as External Secrets needs them."""
        held = shape.conditions(obj)
        since = next((c["lastTransitionTime"] for c in held if c["type"] == kind), None)
        if since is None or shape.condition(obj, kind) != "True":
            return "WaitingForSecret", f"waits for {kind}"
        if age(self.world, since) < self.span(low, high, key, kind):
            return "WaitingForSecret", "the ExternalSecret is not synced"
        return None

    # The tail.

    def _tail(self, key: Key, obj: Obj) -> list[services.Said]:
        said: list[services.Said] = []
        for service in TAIL:
            if service in obj["spec"]["services"]:
                self._project(key, obj, service)
                said.append(self._child(key, service))
            else:
                self._unproject(key, obj, service)
                said.append((_kind(service), "True", f"{OPERATED[service][1]}NotManaged", ""))
        served = self.cluster.store.tables.get(("openstack.k-orc.cloud", "ApplicationCredential"))
        korc = served is not None
        said.append(
            ("KORCReady", "True", "KORCReady", "")
            if korc
            else ("KORCReady", "False", "WaitingForKORC", "K-ORC is not installed")
        )
        said.append(self._credential(key, obj, korc=korc))
        minted = said[-1][1] == "True"
        if minted:
            self._catalogue(obj)
        waits = ("False", "WaitingForAdminCredential", "no clouds.yaml yet")
        return [
            *said,
            *(
                (kind, "True", kind, "") if minted else (kind, *waits)
                for kind in ("CatalogReady", "ServiceAccountsReady")
            ),
        ]

    def _credential(self, key: Key, obj: Obj, *, korc: bool) -> services.Said:
        """The admin's application credential, and the clouds.yaml for K-ORC and for fleetd."""
        waits = self._after(key, obj, "KeystoneReady", 20.0, 60.0)
        if not korc or waits:
            return "AdminCredentialReady", "False", "WaitingForApplicationCredential", ""
        ref: Mapping[str, Any] = obj["spec"]["korc"]["adminCredential"]["cloudCredentialsRef"]
        secret = ref.get("secretName", "k-orc-clouds-yaml")
        cloud = openstack.of_name(self.world, key.name)
        if cloud is not None and self.cluster.get(SECRET, secret, key.namespace) is None:
            cloud.region = obj["spec"].get("region", cloud.region)
            made = cloud.mint(1)
            entry: dict[str, Any] = {
                "auth_type": "v3applicationcredential",
                "auth": {
                    "auth_url": f"{self.world.address(f'keystone-{cloud.name}')}/v3",
                    "application_credential_id": made.id,
                    "application_credential_secret": cloud.secrets[made.id],
                },
                "region_name": cloud.region,
                "endpoint_type": "public",
            }
            body = {"clouds": {ref.get("cloudName", "admin"): entry}}
            services.write_secret(
                self, obj, secret, key.namespace, {"clouds.yaml": json.dumps(body)}
            )
            minted = {"id": made.id, "restricted": True, "lastRotation": stamp(self.world)}
            self.status(key, {"adminApplicationCredential": minted})
        return "AdminCredentialReady", "True", "ApplicationCredentialReady", ""

    def _catalogue(self, obj: Obj) -> None:
        cloud = openstack.of_name(self.world, obj["metadata"]["name"])
        if cloud is None:
            return
        for service, path in _PATHS.items():
            if service in obj["spec"]["services"]:
                cloud.endpoints.setdefault(TYPES[service], cloud.address(service) + path)

    # Children.

    def _project(self, key: Key, obj: Obj, service: str) -> None:
        """Writes the child anew if it is not as it would be made; others' edits are gone then."""
        gk = OPERATED[service]
        if self.cluster.store.tables.get(gk) is None:
            return
        wanted = services.child(obj, service)
        live = self.cluster.get(gk, wanted["metadata"]["name"], key.namespace)
        if live is None or live["spec"] != wanted["spec"]:
            if live is None:
                self.cluster.create(wanted, manager=self.name)
            else:
                self.cluster.edit(
                    gk,
                    wanted["metadata"]["name"],
                    key.namespace,
                    lambda one: one.update(spec=wanted["spec"]),
                    manager=self.name,
                )

    def _unproject(self, key: Key, obj: Obj, service: str) -> None:
        allowed = shape.part(obj, "metadata.annotations").get(f"c5c3.io/allow-{service}-deletion")
        name = f"{key.name}-{service}"
        if allowed == "true" and self.cluster.get(OPERATED[service], name, key.namespace):
            self.cluster.delete(OPERATED[service], name, key.namespace)

    def _child(self, key: Key, service: str) -> services.Said:
        """Only Ready is read, and not of which generation it is."""
        kind = OPERATED[service][1]
        live = self.cluster.get(OPERATED[service], f"{key.name}-{service}", key.namespace)
        if live is not None and shape.condition(live, "Ready") == "True":
            return _kind(service), "True", f"{kind}Ready", ""
        return _kind(service), "False", f"WaitingFor{kind}", f"{kind} is not ready"

    def _say(self, key: Key, obj: Obj, said: list[services.Said]) -> None:
        generation = int(obj["metadata"].get("generation", 1))
        ready = {kind: status == "True" for kind, status, _, _ in said}
        release = obj["spec"]["openStackRelease"]
        shown: list[dict[str, Any]] = [
            {"name": name, "ready": ready.get(_kind(name), False), "release": release}
            for name in obj["spec"]["services"]
            if _kind(name) in ready
        ]
        made = [self.condition(*one, generation=generation) for one in said]
        self.status(
            key,
            {
                "conditions": made,
                "observedGeneration": generation,
                "services": shown,
                "updatePhase": "Idle",
            },
        )

    def _teardown(self, key: Key, obj: Obj) -> float | None:
        """Catalogue and credential go first, then the children, then it may go itself."""
        left = self.span(15.0, 40.0, key, "teardown") - age(
            self.world, obj["metadata"]["deletionTimestamp"]
        )
        if left > 0.01:
            return left
        cloud = openstack.of_name(self.world, key.name)
        if cloud is not None:
            cloud.endpoints.clear()
        self.cluster.delete(SECRET, "k-orc-clouds-yaml", key.namespace)
        for service in (*TAIL, "keystone"):
            if self.cluster.store.tables.get(OPERATED[service]) is not None:
                self.cluster.delete(OPERATED[service], f"{key.name}-{service}", key.namespace)
        self.cluster.remove_finalizer(*_place(key), FINALIZER)
        return None


def _kind(service: str) -> str:
    return f"{OPERATED[service][1]}Ready"


def _first(said: list[services.Said]) -> str:
    return next((f"{kind}: {message}" for kind, status, _, message in said if status != "True"), "")


def _place(key: Key) -> tuple[tuple[str, str], str, str]:
    return key.gk, key.name, key.namespace


def _number(obj: Obj) -> int:
    return int(obj["metadata"]["resourceVersion"])


def _add_finalizer(obj: dict[str, Any]) -> None:
    obj["metadata"].setdefault("finalizers", []).append(FINALIZER)


CHARTS: Mapping[str, Chart] = {
    "c5c3-operator": Chart(
        definitions=(_CONTROL_PLANES, services.KEYSTONE_SERVICES),
        controllers=(C5c3Operator, services.KeystoneServices),
        deployments=("c5c3-operator",),
    )
}
