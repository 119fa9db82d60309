"""
External Secrets on one cluster: stores, ExternalSecrets and PushSecrets.

Imitates v0.20 as it was seen (`real-secrets` 4 of the facts), traps included: conditions are
generic and the cause is only in an Event; after errors it comes back with a growing pause of up to
seven minutes, whatever the refresh interval says; a store that recovers wakes nobody; a PushSecret
does not watch its source; a refresh interval of zero makes it deaf to every poke.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fleetd.sim.chart import Chart
from fleetd.sim.controllers import eso_push, eso_values
from fleetd.sim.controllers.base import Controller, Key, Obj, age, stamp
from fleetd.sim.controllers.eso_vault import NoSecret, Vault, VaultError
from fleetd.sim.controllers.eso_wants import consumer, fetched, secret_of
from fleetd.sim.kube.cluster import GK, Change
from fleetd.sim.kube.definitions import Column, Definition

GROUP = "external-secrets.io"
GENERATORS = "generators.external-secrets.io"
CLUSTER_STORE: GK = (GROUP, "ClusterSecretStore")
STORE: GK = (GROUP, "SecretStore")
EXTERNAL: GK = (GROUP, "ExternalSecret")
PUSH: GK = (GROUP, "PushSecret")
SECRET: GK = ("", "Secret")
STORE_REQUEUE = 300.0
"""Seconds; `--store-requeue-interval`."""
HOUR = 3600.0
LAG = 60.0
"""Seconds until a lagging operator sees again whether it may work."""
FINALIZER = "externalsecrets.external-secrets.io/externalsecret-cleanup"
GENERIC = "could not get secret data from provider"


class ExternalSecrets(Controller):
    name = "external-secrets"
    watches = (CLUSTER_STORE, STORE, EXTERNAL, PUSH)

    def __init__(self, world: Any, cluster: Any) -> None:  # noqa: ANN401 - as the base has them
        super().__init__(world, cluster)
        self._failures: dict[Key, int] = {}
        """Lost with its pod, as the queue of the real one."""

    def start(self) -> None:
        """Its chart brings the account with which it logs in."""
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": self.name, "namespace": self.name},
        }
        self.cluster.apply(space, manager="helm")
        self.cluster.apply(account, manager="helm")
        super().start()

    def keys(self, change: Change) -> Iterable[Key]:
        yield from super().keys(change)
        if change.gk == SECRET:
            owners: list[Obj] = change.object["metadata"].get("ownerReferences") or []
            for owner in owners:
                if owner["kind"] == "ExternalSecret":
                    yield Key(EXTERNAL, change.object["metadata"]["namespace"], owner["name"])

    def reconcile(self, key: Key) -> float | None:
        if ("eso", self.cluster.name, "lagging") in self.world.mishaps:
            return LAG
        obj = self.get(key)
        if obj is None:
            self._failures.pop(key, None)
            return None
        match key.gk[1]:
            case "ExternalSecret":
                return self._external(key, obj)
            case "PushSecret":
                return eso_push.reconcile(self, key, obj)
            case _:
                return self._store(key, obj)

    # Stores.

    def _store(self, key: Key, obj: Obj) -> float | None:
        if "deletionTimestamp" in obj["metadata"]:
            return None
        provider = eso_values.part(eso_values.part(obj["spec"], "provider"), "vault")
        if not provider:
            self._store_failed(key, obj, "InvalidStoreConfiguration", "no supported provider")
            return None
        try:
            with Vault(self.world, self.cluster, provider, key.namespace):
                pass
        except VaultError as cause:
            self._store_failed(key, obj, "InvalidProviderConfig", str(cause))
            return self.failed(key)
        self._failures.pop(key, None)
        ready = self.condition("Ready", "True", "Valid", "store validated")
        self.status(key, {"capabilities": "ReadWrite", "conditions": [ready]})
        return STORE_REQUEUE

    def _store_failed(self, key: Key, obj: Obj, reason: str, cause: str) -> None:
        ready = self.condition("Ready", "False", reason, "unable to create client")
        self.status(key, {"conditions": [ready]})
        self.say(obj, reason, cause, warning=True)

    def provider(self, reference: Mapping[str, Any], namespace: str) -> Obj:
        """Of a store that is Ready; raises VaultError."""
        kind = str(reference.get("kind") or "SecretStore")
        name = str(reference["name"])
        where = "" if kind == "ClusterSecretStore" else namespace
        store = self.cluster.get((GROUP, kind), name, where)
        if store is None:
            raise VaultError(f'could not get {kind} "{name}": not found')
        if not is_ready(store):
            raise VaultError(f'{kind} "{name}" is not ready')
        return store["spec"]["provider"]["vault"]

    # ExternalSecrets.

    def _external(self, key: Key, obj: Obj) -> float | None:
        spec: Obj = obj["spec"]
        if "deletionTimestamp" in obj["metadata"]:
            self._external_deleted(key, obj)
            return None
        if FINALIZER not in obj["metadata"].get("finalizers", ()):
            self._adopt(key)
            return None  # its own write wakes it again
        interval = eso_values.seconds(spec.get("refreshInterval"), HOUR)
        wait = self._not_due(obj, interval)
        if wait is not None:
            return wait or None
        try:
            values = fetched(self, obj, key.namespace)
        except NoSecret as cause:
            return self._missing(key, obj, cause)
        except VaultError as cause:
            self._external_failed(key, obj, str(cause))
            return self.failed(key)
        self._write(key, obj, values)
        self._failures.pop(key, None)
        fresh = self.get(key) or obj
        self.status(
            key,
            {
                "refreshTime": stamp(self.world),
                "syncedResourceVersion": eso_values.synced_version(fresh),
                "binding": {"name": target_name(obj)},
                "conditions": [self.condition("Ready", "True", "SecretSynced", "secret synced")],
            },
        )
        return interval or None

    def _not_due(self, obj: Obj, interval: float) -> float | None:
        """Seconds until the next refresh (0 for never), or None if it is due now."""
        status: Obj = obj.get("status") or {}
        synced = status.get("syncedResourceVersion")
        refreshed = status.get("refreshTime")
        policy = obj["spec"].get("refreshPolicy") or "Periodic"
        if not synced or not refreshed or not self._intact(obj):
            return None
        if policy == "CreatedOnce" or (policy == "Periodic" and not interval):
            return 0
        if synced != eso_values.synced_version(obj):
            return None
        if policy == "OnChange":
            return 0
        left = interval - age(self.world, str(refreshed))
        return left if left > 0 else None

    def _intact(self, obj: Obj) -> bool:
        secret = self.cluster.get(SECRET, target_name(obj), obj["metadata"]["namespace"])
        if secret is None:
            return _reason(obj) == "SecretDeleted"
        noted = eso_values.part(secret["metadata"], "annotations").get(eso_values.DATA_HASH)
        return noted is None or noted == eso_values.data_hash(eso_values.part(secret, "data"))

    def _missing(self, key: Key, obj: Obj, cause: NoSecret) -> float | None:
        target: Obj = obj["spec"].get("target") or {}
        if target.get("deletionPolicy") != "Delete":
            self._external_failed(key, obj, str(cause))
            return self.failed(key)
        self.cluster.delete(SECRET, target_name(obj), key.namespace)
        self.say(obj, "MissingProviderSecret", str(cause), warning=True)
        said = "secret deleted due to DeletionPolicy=Delete"
        self.status(
            key,
            {
                "refreshTime": stamp(self.world),
                "syncedResourceVersion": eso_values.synced_version(obj),
                "conditions": [self.condition("Ready", "True", "SecretDeleted", said)],
            },
        )
        return eso_values.seconds(obj["spec"].get("refreshInterval"), HOUR) or None

    def _external_failed(self, key: Key, obj: Obj, cause: str) -> None:
        ready = self.condition("Ready", "False", "SecretSyncedError", GENERIC)
        self.status(key, {"conditions": [ready]})
        self.say(obj, "UpdateFailed", cause, warning=True)

    def _external_deleted(self, key: Key, obj: Obj) -> None:
        target: Obj = obj["spec"].get("target") or {}
        if target.get("deletionPolicy") == "Delete":
            self.cluster.delete(SECRET, target_name(obj), key.namespace)
        self.world.truth.leaves(consumer(self.cluster.name, obj))
        self.cluster.remove_finalizer(EXTERNAL, key.name, key.namespace, FINALIZER)

    def _adopt(self, key: Key) -> None:
        """The real one writes its finalizer with the whole spec, and so `1h` becomes `1h0m0s`."""

        def change(obj: dict[str, Any]) -> None:
            obj["metadata"].setdefault("finalizers", []).append(FINALIZER)
            given = obj["spec"].get("refreshInterval")
            if given:
                obj["spec"]["refreshInterval"] = eso_values.go_duration(str(given))

        self.cluster.edit(EXTERNAL, key.name, key.namespace, change, manager=self.name)

    def _write(self, key: Key, obj: Obj, values: Mapping[str, str]) -> None:
        target: Obj = obj["spec"].get("target") or {}
        name = target_name(obj)
        live = self.cluster.get(SECRET, name, key.namespace)
        wanted = secret_of(obj, values, live)
        if wanted is None:
            return
        if live is None:
            self.cluster.create(wanted, manager=self.name)
            self.say(obj, "Created", "secret created")
            return

        def change(secret: dict[str, Any]) -> None:
            secret["data"] = wanted["data"]
            metadata = secret["metadata"]
            for part in ("labels", "annotations"):
                metadata[part] = {**(metadata.get(part) or {}), **wanted["metadata"].get(part, {})}
            if target.get("creationPolicy", "Owner") == "Owner":
                metadata["ownerReferences"] = wanted["metadata"]["ownerReferences"]

        before = live["metadata"]["resourceVersion"]
        after = self.cluster.edit(SECRET, name, key.namespace, change, manager=self.name)
        if after is not None and after["metadata"]["resourceVersion"] != before:
            self.say(obj, "Updated", "secret updated")

    # For all of them.

    def failed(self, key: Key) -> float:
        self._failures[key] = self._failures.get(key, 0) + 1
        return eso_values.backoff(self._failures[key])

    def succeeded(self, key: Key) -> None:
        self._failures.pop(key, None)

    def say(self, obj: Obj, reason: str, message: str, *, warning: bool = False) -> None:
        """An Event; the same again moves its time."""
        metadata = obj["metadata"]
        namespace = metadata.get("namespace") or "default"
        token = self.world.token(self.cluster.name, metadata["uid"], reason, message)
        name = f"{metadata['name']}.{token[:12]}"

        def again(event: dict[str, Any]) -> None:
            event["lastTimestamp"] = stamp(self.world)
            event["count"] = int(event.get("count", 1)) + 1

        event: GK = ("", "Event")
        if self.cluster.edit(event, name, namespace, again, manager=self.name) is None:
            self.event(obj, reason, message, warning=warning)


def target_name(obj: Obj) -> str:
    target: Obj = obj["spec"].get("target") or {}
    return str(target.get("name") or obj["metadata"]["name"])


def is_ready(obj: Obj) -> bool:
    ready = eso_values.conditions(obj).get("Ready")
    return ready is not None and ready["status"] == "True"


def _reason(obj: Obj) -> str:
    ready = eso_values.conditions(obj).get("Ready")
    return str(ready["reason"]) if ready is not None else ""


_READY = Column("Ready", "status.conditions[Ready]")


def _kind(kind: str, plural: str, short: str, **more: Any) -> Definition:  # noqa: ANN401
    settings: dict[str, Any] = {"group": GROUP, "short_names": (short,), **more}
    return Definition(
        kind=kind,
        plural=plural,
        categories=("external-secrets",),
        columns=(_READY,),
        **settings,
    )


DEFINITIONS = (
    _kind("ClusterSecretStore", "clustersecretstores", "css", namespaced=False),
    _kind("SecretStore", "secretstores", "ss"),
    _kind("ExternalSecret", "externalsecrets", "es"),
    _kind("PushSecret", "pushsecrets", "ps", versions=("v1alpha1",)),
    _kind("ClusterExternalSecret", "clusterexternalsecrets", "ces", namespaced=False),
    _kind(
        "VaultDynamicSecret",
        "vaultdynamicsecrets",
        "vds",
        group=GENERATORS,
        versions=("v1alpha1",),
    ),
)
CHARTS: Mapping[str, Chart] = {
    "external-secrets": Chart(
        definitions=DEFINITIONS,
        controllers=(ExternalSecrets,),
        deployments=("external-secrets", "external-secrets-webhook"),
        seconds=(15.0, 45.0),
    ),
}
