"""
PushSecrets: from a Secret of the cluster to OpenBao.

The only kind whose condition carries the cause. The source is read when the PushSecret is looked
at, and never watched. Sources: `real-secrets` 4.3 of the facts.
"""

import base64
from collections.abc import Mapping
from typing import Any, Protocol

from fleetd.sim.controllers import eso_values
from fleetd.sim.controllers.base import Key, Obj, age, stamp
from fleetd.sim.controllers.eso_vault import Vault, VaultError
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.world import World

FINALIZER = "pushsecret.externalsecrets.io/finalizer"
SYNCED = "PushSecret synced successfully"
UNCHANGED = ". Existing secrets in providers unchanged."
HOUR = 3600.0


class Operator(Protocol):
    """The part of the controller that is needed here."""

    @property
    def world(self) -> World: ...

    @property
    def cluster(self) -> Cluster: ...

    @property
    def name(self) -> str: ...

    def provider(self, reference: Mapping[str, Any], namespace: str) -> Obj: ...

    def failed(self, key: Key) -> float: ...

    def succeeded(self, key: Key) -> None: ...

    def status(self, key: Key, status: Mapping[str, Any]) -> None: ...

    def say(self, obj: Obj, reason: str, message: str, *, warning: bool = False) -> None: ...

    def condition(
        self,
        kind: str,
        status: str,
        reason: str,
        message: str = "",
        *,
        generation: int | None = None,
    ) -> dict[str, Any]: ...


def reconcile(operator: Operator, key: Key, obj: Obj) -> float | None:
    spec: Obj = obj["spec"]
    deleting = "deletionTimestamp" in obj["metadata"]
    removes = spec.get("deletionPolicy") == "Delete"
    if deleting:
        return _removed(operator, key, obj)
    if removes and FINALIZER not in obj["metadata"].get("finalizers", ()):
        _hold(operator, key)
        return None
    interval = eso_values.seconds(spec.get("refreshInterval"), HOUR)
    wait = _not_due(operator, obj, interval)
    if wait is not None:
        return wait or None
    try:
        synced = _pushed(operator, key, obj)
    except VaultError as cause:
        text = str(cause)
        ready = operator.condition("Ready", "False", "Errored", text)
        operator.status(key, {"conditions": [ready]})
        operator.say(obj, "Errored", text, warning=True)
        return operator.failed(key)
    operator.succeeded(key)
    kept = spec.get("updatePolicy") == "IfNotExists"
    ready = operator.condition("Ready", "True", "Synced", SYNCED + (UNCHANGED if kept else ""))
    operator.status(
        key,
        {
            "refreshTime": stamp(operator.world),
            "syncedResourceVersion": eso_values.synced_version(obj),
            "syncedPushSecrets": synced,
            "conditions": [ready],
        },
    )
    return interval or None


def _not_due(operator: Operator, obj: Obj, interval: float) -> float | None:
    status: Obj = obj.get("status") or {}
    refreshed = status.get("refreshTime")
    if not refreshed or status.get("syncedResourceVersion") != eso_values.synced_version(obj):
        return None
    if not interval:
        return 0
    left = interval - age(operator.world, str(refreshed))
    return left if left > 0 else None


def _pushed(operator: Operator, key: Key, obj: Obj) -> dict[str, Any]:
    spec: Obj = obj["spec"]
    selector: Obj = spec["selector"].get("secret") or {}
    source = operator.cluster.get(("", "Secret"), str(selector.get("name", "")), key.namespace)
    if source is None:
        raise VaultError("could not get source secret")
    data: Mapping[str, str] = source.get("data") or {}
    synced: dict[str, Any] = {}
    references: list[Obj] = spec["secretStoreRefs"]
    for reference in references:
        kind = str(reference.get("kind") or "SecretStore")
        name = str(reference["name"])
        provider = operator.provider(reference, key.namespace)
        with Vault(operator.world, operator.cluster, provider, key.namespace) as vault:
            done: dict[str, Any] = {}
            entries: list[Obj] = spec.get("data") or []
            for entry in entries:
                _push_one(vault, entry, data, name, once=spec.get("updatePolicy") == "IfNotExists")
                remote: Obj = entry["match"]["remoteRef"]
                done["/".join(filter(None, (remote["remoteKey"], remote.get("property"))))] = entry
            synced[f"{kind}/{name}"] = done
    return synced


def _push_one(vault: Vault, entry: Obj, data: Mapping[str, str], store: str, *, once: bool) -> None:
    match: Obj = entry["match"]
    remote: Obj = match["remoteRef"]
    key, inner = str(remote["remoteKey"]), str(remote.get("property") or "")
    wanted = str(match.get("secretKey") or "")
    if wanted and wanted not in data:
        raise VaultError(f"set secret failed: secret key {wanted} does not exist")
    plain = {name: base64.b64decode(value) for name, value in data.items()}
    try:
        if once and vault.has(key, inner):
            return
        if wanted:
            vault.push(key, inner, plain[wanted])
        else:
            vault.push(key, "", {name: value.decode() for name, value in plain.items()})
    except VaultError as cause:
        raise VaultError(
            f"set secret failed: could not write remote ref {key} to target secretstore {store}: "
            f"{cause}"
        ) from None


def _hold(operator: Operator, key: Key) -> None:
    def change(obj: dict[str, Any]) -> None:
        obj["metadata"].setdefault("finalizers", []).append(FINALIZER)

    operator.cluster.edit(key.gk, key.name, key.namespace, change, manager=operator.name)


def _removed(operator: Operator, key: Key, obj: Obj) -> float | None:
    if FINALIZER not in obj["metadata"].get("finalizers", ()):
        return None
    spec: Obj = obj["spec"]
    references: list[Obj] = spec["secretStoreRefs"]
    entries: list[Obj] = spec.get("data") or []
    try:
        for reference in references:
            provider = operator.provider(reference, key.namespace)
            with Vault(operator.world, operator.cluster, provider, key.namespace) as vault:
                for entry in entries:
                    vault.remove(str(entry["match"]["remoteRef"]["remoteKey"]))
    except VaultError as cause:
        ready = operator.condition("Ready", "False", "Errored", f"delete secret failed: {cause}")
        operator.status(key, {"conditions": [ready]})
        return operator.failed(key)
    operator.cluster.remove_finalizer(key.gk, key.name, key.namespace, FINALIZER)
    return None
