"""What an ExternalSecret asks for, read from OpenBao, and the Secret that is made of it."""

import base64
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from fleetd.sim.controllers import eso_values
from fleetd.sim.controllers.base import Obj
from fleetd.sim.controllers.eso_vault import NoSecret, Vault, VaultError
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.world import World

GENERATORS = "generators.external-secrets.io"
MANAGED = "reconcile.external-secrets.io/managed"


class Operator(Protocol):
    """The part of the controller that is needed here."""

    @property
    def world(self) -> World: ...

    @property
    def cluster(self) -> Cluster: ...

    def provider(self, reference: Mapping[str, Any], namespace: str) -> Obj: ...


def fetched(operator: Operator, obj: Obj, namespace: str) -> dict[str, str]:
    """Every key of the Secret to be, in base64. Raises VaultError."""
    spec: Obj = obj["spec"]
    data: list[Obj] = spec.get("data") or []
    more: list[Obj] = spec.get("dataFrom") or []
    found: dict[str, str] = {}
    generators = [one for one in more if "generatorRef" in (one.get("sourceRef") or {})]
    if data or len(generators) < len(more):
        provider = operator.provider(spec["secretStoreRef"], namespace)
        with Vault(operator.world, operator.cluster, provider, namespace) as vault:
            for number, one in enumerate(more):
                if "extract" in one:
                    values = _all_of(vault, one["extract"], f"dataFrom[{number}].extract")
                    found |= {key: _encoded(value) for key, value in values.items()}
            for number, one in enumerate(data):
                found[str(one["secretKey"])] = _one_of(vault, one["remoteRef"], number)
            _noted(operator, consumer(operator.cluster.name, obj), vault.versions, found)
    for one in generators:
        reference: Obj = one["sourceRef"]["generatorRef"]
        values = _generated(operator, reference, namespace)
        found |= {key: _encoded(value) for key, value in values.items()}
    return found


def consumer(cluster: str, obj: Obj) -> str:
    """How the truth calls who uses what an ExternalSecret brings."""
    target: Obj = obj["spec"].get("target") or {}
    metadata = obj["metadata"]
    name = target.get("name") or metadata["name"]
    return f"secret {cluster}/{metadata['namespace']}/{name}"


def _noted(
    operator: Operator, user: str, versions: Mapping[str, int], values: Mapping[str, str]
) -> None:
    """What whoever reads the Secret uses from now on."""
    truth = operator.world.truth
    for path, version in versions.items():
        truth.uses(path, user, str(version))
    for value in values.values():
        truth.has(user, base64.b64decode(value).decode("utf-8", "replace"))


def _all_of(vault: Vault, reference: Obj, where: str) -> Mapping[str, Any]:
    key = str(reference["key"])
    try:
        found = vault.read(key, str(reference.get("version") or ""))
    except NoSecret:
        raise
    except VaultError as cause:
        raise VaultError(f"error processing spec.{where} (key: {key}), err: {cause}") from None
    inner = reference.get("property")
    if not inner:
        return found
    return msgspec.json.decode(_property(found, str(inner)), type=dict[str, Any])


def _one_of(vault: Vault, reference: Obj, number: int) -> str:
    key = str(reference["key"])
    where = f"error processing spec.data[{number}] (key: {key}), err: "
    try:
        found = vault.read(key, str(reference.get("version") or ""))
        inner = reference.get("property")
        if not inner:
            return _encoded(found)
        return eso_values.encoded(_property(found, str(inner)))
    except NoSecret as cause:
        missing = NoSecret()
        missing.args = (f"{where}{cause}",)
        raise missing from None
    except VaultError as cause:
        raise VaultError(f"{where}{cause}") from None


def _property(found: Mapping[str, Any], name: str) -> str:
    if name not in found:
        raise VaultError(f'cannot find secret data for key: "{name}"')
    value = found[name]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _generated(operator: Operator, reference: Obj, namespace: str) -> Mapping[str, Any]:
    kind, name = str(reference["kind"]), str(reference["name"])
    found = operator.cluster.get((GENERATORS, kind), name, namespace)
    if found is None:
        raise VaultError(f'error using generator: {kind} "{name}" not found')
    spec: Obj = found["spec"]
    with Vault(operator.world, operator.cluster, spec["provider"], namespace) as vault:
        method = str(spec.get("method") or "GET")
        return vault.generate(str(spec["path"]), method, spec.get("parameters"))


def _encoded(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return eso_values.encoded(text)


def secret_of(obj: Obj, values: Mapping[str, str], live: Obj | None) -> dict[str, Any] | None:
    """The Secret as it should be; None where the ExternalSecret may not make it."""
    metadata, spec = obj["metadata"], obj["spec"]
    target: Obj = spec.get("target") or {}
    policy = target.get("creationPolicy") or "Owner"
    if policy == "None" or (policy == "Merge" and live is None):
        return None
    template: Obj = target.get("template") or {}
    data = _templated(template, values)
    if policy in ("Merge", "CreateOrMerge") and live is not None:
        data = {**eso_values.part(live, "data"), **data}
    extra: Obj = template.get("metadata") or {}
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": target.get("name") or metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {MANAGED: "true", **(extra.get("labels") or {})},
            "annotations": {
                eso_values.DATA_HASH: eso_values.data_hash(data),
                **(extra.get("annotations") or {}),
            },
        },
        "type": template.get("type") or "Opaque",
        "data": data,
    }
    if policy == "Owner":
        made["metadata"]["ownerReferences"] = [
            {
                "apiVersion": obj["apiVersion"],
                "kind": "ExternalSecret",
                "name": metadata["name"],
                "uid": metadata["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    return made


def _templated(template: Obj, values: Mapping[str, str]) -> dict[str, str]:
    written: Mapping[str, str] = template.get("data") or {}
    if not written:
        return dict(values)
    plain = {key: base64.b64decode(value).decode() for key, value in values.items()}
    made = {
        key: eso_values.encoded(eso_values.rendered(text, plain)) for key, text in written.items()
    }
    return {**values, **made} if template.get("mergePolicy") == "Merge" else made
