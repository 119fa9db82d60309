"""
The documents as Kubernetes custom resource definitions.

Kubernetes takes a part of JSON schema only ("structural schemas"): no references, no unknown
keywords, no `additionalProperties: false`. What it does not take is translated or refused here,
so that a new keyword in a model fails a test and not an installation. Defaults are left out on
purpose: stored in the cluster they would outlive a better default of the next release.
"""

from collections.abc import Mapping
from typing import Any

import yaml

Schema = dict[str, Any]

GROUP = "fleet.c5c3.io"
VERSION = "v1alpha1"

_KEPT = frozenset(
    {
        "type", "description", "enum", "pattern", "format", "minimum", "maximum", "minLength",
        "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "required",
    }
)  # fmt: skip
_TRANSLATED = frozenset(
    {"$ref", "anyOf", "oneOf", "const", "properties", "items", "additionalProperties"}
)
_DROPPED = frozenset({"title", "default", "$schema", "$defs", "examples"})
_COLUMNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Region": (("Provider", ".spec.metal.provider"),),
    "Cluster": (
        ("Region", ".spec.region"),
        ("Role", ".spec.role"),
        ("Kubernetes", ".spec.kubernetes"),
    ),
    "ServerPool": (("Region", ".spec.region"), ("Class", ".spec.class")),
    "Cloud": (("Region", ".spec.region"), ("Release", ".spec.release")),
    "CredentialFlow": (("Region", ".spec.region"), ("Path", ".spec.path")),
    "Rollout": (("Region", ".spec.region"),),
    "Maintenance": (("Region", ".spec.region"), ("Reason", ".spec.reason")),
}


def plural(kind: str) -> str:
    return kind.lower() + "s"


def file_name(kind: str) -> str:
    return f"{GROUP}_{plural(kind)}.yaml"


def text(kind: str, schema: Schema) -> str:
    """The definition of a kind as YAML."""
    head = "# Generated from the models in topology/documents by `python -m topology.schema`.\n"
    return head + yaml.safe_dump(
        definition(kind, schema), sort_keys=False, width=100, allow_unicode=True
    )


def definition(kind: str, schema: Schema) -> Schema:
    structure = structural(schema)
    properties: Schema = structure["properties"]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural(kind)}.{GROUP}",
            "labels": {"app.kubernetes.io/part-of": "fleetd"},
        },
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural(kind),
                "singular": kind.lower(),
                "categories": ["fleet"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": _columns(kind),
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "description": schema["description"],
                            "required": ["spec"],
                            "properties": {
                                "apiVersion": {"type": "string"},
                                "kind": {"type": "string"},
                                "metadata": {"type": "object"},
                                "spec": properties["spec"],
                                "status": {
                                    "type": "object",
                                    "description": "Written by fleetd.",
                                    "x-kubernetes-preserve-unknown-fields": True,
                                },
                            },
                        }
                    },
                }
            ],
        },
    }


def _columns(kind: str) -> list[Schema]:
    ready = '.status.conditions[?(@.type=="Ready")]'
    columns = [*_COLUMNS[kind], ("Ready", f"{ready}.status"), ("Why", f"{ready}.reason")]
    shown: list[Schema] = [
        {"name": name, "type": "string", "jsonPath": path} for name, path in columns
    ]
    return [*shown, {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]


def structural(schema: Schema) -> Schema:
    """A JSON schema of pydantic as one that Kubernetes takes."""
    return _structural(schema, schema.get("$defs", {}))


def _structural(schema: Schema, shared: Mapping[str, Schema]) -> Schema:
    unknown = sorted(set(schema) - _KEPT - _DROPPED - _TRANSLATED)
    if unknown:
        raise ValueError(f"no translation for {', '.join(unknown)}")
    made: Schema = {}
    if "$ref" in schema:
        made |= _structural(shared[schema["$ref"].rsplit("/", 1)[1]], shared)
    if "anyOf" in schema:
        made |= _arms(schema["anyOf"], shared)
    made |= {key: value for key, value in schema.items() if key in _KEPT}
    if "const" in schema:
        made["enum"] = [schema["const"]]
    if "properties" in schema:
        parts: Schema = schema["properties"]
        made["properties"] = {name: _structural(part, shared) for name, part in parts.items()}
    if "items" in schema:
        made["items"] = _structural(schema["items"], shared)
    if "oneOf" in schema:
        made["oneOf"] = [_only_required(part) for part in schema["oneOf"]]
    return made | _open_ended(schema.get("additionalProperties", False), shared)


def _open_ended(others: "Schema | bool", shared: Mapping[str, Schema]) -> Schema:
    """What else a mapping may hold. Nothing is what Kubernetes does by itself: it prunes."""
    if isinstance(others, dict):
        return {"additionalProperties": _structural(others, shared)}
    return {"x-kubernetes-preserve-unknown-fields": True} if others else {}


def _arms(arms: list[Schema], shared: Mapping[str, Schema]) -> Schema:
    """A choice between schemas: with null, of number and text, or of two formats."""
    rest = [arm for arm in arms if arm.get("type") != "null"]
    nullable: Schema = {"nullable": True} if len(rest) < len(arms) else {}
    if len(rest) == 1:
        made = {**_structural(rest[0], shared), **nullable}
        if nullable and "enum" in made:
            made["enum"] = [*made["enum"], None]
        return made
    if {arm.get("type") for arm in rest} == {"integer", "string"}:
        limits = {k: v for arm in rest for k, v in arm.items() if k not in {"type", "title"}}
        return {"x-kubernetes-int-or-string": True, **limits, **nullable}
    if all(set(arm) == {"format"} for arm in rest):
        return {"anyOf": rest, **nullable}
    raise ValueError(f"no translation for the choice {arms!r}")


def _only_required(arm: Schema) -> Schema:
    if set(arm) != {"required"}:
        raise ValueError(f"no translation for the choice {arm!r}")
    return arm
