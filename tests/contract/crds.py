"""
The real schemas of the systems we drive, for checking what drivers write: the only place that
knows where they lie. Where they are absent, tests are skipped by name.

`problems` validates an object against a custom resource's structural schema, or against a kind of
an aggregated API by its OpenAPI definition. Unknown fields are problems: a server would drop them.
"""

import copy
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

CRDS = Path(__file__).parents[3] / "shared" / "crds"
GARDENER = "com.github.gardener.gardener.pkg.apis."
_REF = "#/definitions/"
_QUANTITY = {"type": ["string", "number"]}
_BUILT_IN: dict[str, dict[str, Any]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _QUANTITY,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["integer", "string"]},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.Duration": {"type": "string"},
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object"},
}


def problems(body: Mapping[str, Any], group: str, kind: str) -> list[str]:
    """What is wrong with an object of a custom resource; empty if nothing."""
    return _validate(body, _crd(group, kind))


def openapi_problems(body: Mapping[str, Any], definition: str) -> list[str]:
    """The same for Gardener's aggregated API: `core.v1beta1.Shoot`."""
    return _validate(body, _definition(definition))


def _validate(body: Mapping[str, Any], schema: dict[str, Any]) -> list[str]:
    validator = jsonschema.Draft7Validator(schema)
    plain = json.loads(json.dumps(body))
    return sorted(
        f"{'.'.join(str(part) for part in fault.absolute_path)}: {fault.message[:200]}"
        for fault in validator.iter_errors(plain)  # pyright: ignore[reportUnknownMemberType]
    )


@lru_cache
def _crd(group: str, kind: str) -> dict[str, Any]:
    if not CRDS.is_dir():
        pytest.skip("needs ../shared/crds, the CRDs of the systems we drive")
    for path in sorted(CRDS.glob(f"*/{group}_*.yaml")):
        found = yaml.safe_load(path.read_text("utf-8"))
        if found["spec"]["names"]["kind"] == kind:
            version = next(one for one in found["spec"]["versions"] if one.get("storage"))
            schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
            _closed(schema)
            schema["properties"]["metadata"] = {"type": "object"}
            return schema
    raise LookupError(f"there is no CRD of {kind} in group {group}")


def _closed(schema: Any) -> None:
    """As JSON schema: no unknown fields, numbers or text where either may stand."""
    if not isinstance(schema, dict):
        return
    node: dict[str, Any] = schema  # pyright: ignore[reportUnknownVariableType]
    if node.pop("x-kubernetes-int-or-string", False):
        node.pop("anyOf", None)
        node["type"] = ["integer", "string"]
    nullable = node.pop("nullable", False)
    if nullable and isinstance(node.get("type"), str):
        node["type"] = [node["type"], "null"]
    free = node.pop("x-kubernetes-preserve-unknown-fields", False)
    if "properties" in node and not free and "additionalProperties" not in node:
        node["additionalProperties"] = False
    node.pop("format", None)
    for inner in node.get("properties", {}).values():
        _closed(inner)
    for key in ("items", "additionalProperties"):
        _closed(node.get(key))


@lru_cache
def _definition(name: str) -> dict[str, Any]:
    path = CRDS / "gardener" / "gardener-openapi-v2.json"
    if not path.is_file():
        pytest.skip("needs ../shared/crds, the API of Gardener")
    known: dict[str, Any] = json.loads(path.read_text("utf-8"))["definitions"]
    return _resolved(known, GARDENER + name)


def _resolved(known: dict[str, Any], name: str) -> dict[str, Any]:
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    schema: dict[str, Any] = copy.deepcopy(known[name]) if name in known else {}
    _fill(known, schema)
    _closed(schema)
    return schema


def _fill(known: dict[str, Any], schema: Any) -> None:
    if not isinstance(schema, dict):
        return
    node: dict[str, Any] = schema  # pyright: ignore[reportUnknownVariableType]
    ref = node.pop("$ref", None)
    if ref is not None:
        node.update(_resolved(known, str(ref).removeprefix(_REF)))
        return
    for inner in node.get("properties", {}).values():
        _fill(known, inner)
    for key in ("items", "additionalProperties"):
        _fill(known, node.get(key))
