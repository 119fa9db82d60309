"""
What the server fills in, or refuses, of built-in kinds: admission hooks like those of controllers.

Only what a reader relies on: the phase of a namespace, the type and encoding of a Secret, the
replicas of a Deployment.
"""

import base64
from typing import cast

from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import User
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.values import GK, Obj
from fleetd.sim.kube.writing import Hook


def _namespace(operation: str, new: Obj | None, old: Obj | None, _user: User) -> Obj | None:
    if operation == "UPDATE" and new is not None and old is not None:
        # Only the finalize subresource changes the spec.
        return {**new, "spec": old.get("spec", {})}
    if operation != "CREATE" or new is None:
        return None
    metadata = new["metadata"]
    given: Obj = metadata.get("labels") or {}
    labels = {**given, "kubernetes.io/metadata.name": metadata["name"]}
    return {
        **new,
        "metadata": {**metadata, "labels": labels},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _secret(operation: str, new: Obj | None, old: Obj | None, _user: User) -> Obj | None:
    if new is None or operation not in ("CREATE", "UPDATE"):
        return None
    _check_sealed("Secret", "secrets", new, old)
    made: Obj = {"type": "Opaque", **new}
    plain: Obj = made.pop("stringData", None) or {}
    data: Obj = {**(made.get("data") or {}), **_encoded(plain)}
    for name, value in data.items():
        if not isinstance(value, str) or not _is_base64(value):
            raise refusal.bad_request(
                'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at '
                f"input byte 0 (key {name})"
            )
    if data:
        made["data"] = data
    return made


def _encoded(plain: Obj) -> dict[str, str]:
    return {name: base64.b64encode(str(text).encode()).decode() for name, text in plain.items()}


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def _config_map(operation: str, new: Obj | None, old: Obj | None, _user: User) -> Obj | None:
    if new is None or operation not in ("CREATE", "UPDATE"):
        return None
    _check_sealed("ConfigMap", "configmaps", new, old)
    for name, value in cast("Obj", new.get("data") or {}).items():
        if not isinstance(value, str):
            raise refusal.bad_request(
                'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot '
                f"unmarshal into Go struct field ConfigMap.data of type string (key {name})"
            )
    return None


def _check_sealed(kind: str, plural: str, new: Obj, old: Obj | None) -> None:
    """`immutable: true` holds for good."""
    if old is None or not old.get("immutable"):
        return
    if any(old.get(name) != new.get(name) for name in ("data", "binaryData", "immutable")):
        raise refusal.invalid(
            Definition(group="", kind=kind, plural=plural),
            new["metadata"]["name"],
            (
                "FieldValueForbidden",
                "data",
                "Forbidden: field is immutable when `immutable` is set",
            ),
        )


def _deployment(operation: str, new: Obj | None, _old: Obj | None, _user: User) -> Obj | None:
    if new is None or operation not in ("CREATE", "UPDATE") or not new.get("spec"):
        return None
    return {**new, "spec": {"replicas": 1, **new["spec"]}}


HOOKS: dict[GK, Hook] = {
    ("", "Namespace"): _namespace,
    ("", "Secret"): _secret,
    ("", "ConfigMap"): _config_map,
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _deployment,
}
