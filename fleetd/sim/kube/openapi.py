"""
Schemas of the served kinds, enough for `kubectl explain` and `kubectl apply`.

A custom resource brings its own schema; for other kinds one is made that allows anything below
spec and status, and names the lists that apply merges. Generated, never kept.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from fleetd.sim.kube.definitions import Definition, Shape
from fleetd.sim.kube.values import Obj

PROTOBUF = "com.github.proto-openapi.spec.v2@v1.0+protobuf"
NOTHING = b"\x0a\x032.0\x12\x19\x0a\x0aKubernetes\x12\x0bunversioned"
"""The second version of OpenAPI as kubectl asks for it: a document without any schema, encoded.
kubectl checks a list by it on its own side, and leaves alone what it does not find."""

_INFO = {"title": "Kubernetes", "version": "unversioned"}
_ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_META_NAME = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_META: Obj = {
    "type": "object",
    "description": "ObjectMeta is metadata that all persisted resources must have.",
    "properties": {
        "name": {"type": "string", "description": "Unique within a namespace."},
        "namespace": {"type": "string", "description": "Where it is."},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "ownerReferences": {"type": "array", "items": _ANYTHING},
        "generateName": {"type": "string"},
        "resourceVersion": {"type": "string"},
        "uid": {"type": "string"},
        "generation": {"type": "integer"},
        "creationTimestamp": {"type": "string"},
        "deletionTimestamp": {"type": "string"},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "managedFields": {"type": "array", "items": _ANYTHING},
    },
}


def _name(definition: Definition, version: str) -> str:
    group = ".".join(reversed((definition.group or "core.api.k8s.io").split(".")))
    return f"{group}.{version}.{definition.kind}"


def _schema(definition: Definition, version: str, reference: str) -> Obj:
    given: Mapping[str, Any] = (
        definition.schema
        or definition.known
        or {
            "type": "object",
            "properties": _made(definition.shape, ("spec", "status") if definition.status else ()),
            "x-kubernetes-preserve-unknown-fields": True,
        }
    )
    if definition.schema is None and definition.known is not None:
        given = _with_shape(given, definition.shape)
    properties: Obj = {
        "apiVersion": {"type": "string", "description": "The version of this form of it."},
        "kind": {"type": "string", "description": f"Always {definition.kind}."},
        **given.get("properties", {}),
        "metadata": {"$ref": f"{reference}{_META_NAME}"},
    }
    return {
        "description": f"{definition.kind} of {definition.group or 'the core group'}.",
        **given,
        "properties": properties,
        "x-kubernetes-group-version-kind": [
            {"group": definition.group, "version": version, "kind": definition.kind}
        ],
    }


def _made(shape: Shape, parts: tuple[str, ...]) -> Obj:
    """The places that are known of a kind without a schema."""
    return {
        name: _of_shape(child)
        for name, child in {**dict.fromkeys(parts, Shape()), **shape.children}.items()
        if name != "metadata"
    }


def _with_shape(given: Mapping[str, Any], shape: Shape) -> Mapping[str, Any]:
    """With what apply must know of the lists."""
    made: Obj = dict(given)
    if shape.keys is not None and given.get("type") == "array":
        made["x-kubernetes-list-type"] = "map" if shape.keys else "set"
        if shape.keys:
            made["x-kubernetes-list-map-keys"] = list(shape.keys)
        if shape.children:
            made["items"] = _with_shape(given["items"], Shape(children=shape.children))
    elif shape.children and "properties" in given:
        made["properties"] = {
            name: _with_shape(inner, shape.child(name))
            for name, inner in given["properties"].items()
        }
    return made


def _of_shape(shape: Shape) -> Obj:
    below = {name: _of_shape(child) for name, child in shape.children.items()}
    if shape.keys is None:
        return {**_ANYTHING, "properties": below} if below else dict(_ANYTHING)
    if not shape.keys:
        return {
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-list-type": "set",
        }
    return {
        "type": "array",
        "items": {**_ANYTHING, "properties": below} if below else dict(_ANYTHING),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(shape.keys),
    }


def _places(definition: Definition, version: str) -> list[str]:
    base = f"/apis/{definition.group}/{version}" if definition.group else f"/api/{version}"
    if definition.namespaced:
        base += "/namespaces/{namespace}"
    return [f"{base}/{definition.plural}", f"{base}/{definition.plural}/{{name}}"]


def _paths(definition: Definition, version: str) -> Obj:
    """Where the kind is; the parameters say that dry runs and field validation are understood."""
    kind = {"group": definition.group, "version": version, "kind": definition.kind}
    query = [
        {"name": name, "in": "query", "schema": {"type": "string"}}
        for name in ("dryRun", "fieldManager", "fieldValidation", "force")
    ]
    responses = {"200": {"description": "OK"}}
    action: Obj = {
        "parameters": query,
        "responses": responses,
        "x-kubernetes-group-version-kind": kind,
    }
    many, one = _places(definition, version)
    return {
        many: {
            "get": {"responses": responses, "x-kubernetes-group-version-kind": kind},
            "post": {**action, "x-kubernetes-action": "post"},
        },
        one: {
            "get": {"responses": responses, "x-kubernetes-group-version-kind": kind},
            "put": {**action, "x-kubernetes-action": "put"},
            "patch": {**action, "x-kubernetes-action": "patch"},
            "delete": {**action, "x-kubernetes-action": "delete"},
        },
    }


def index(definitions: Iterable[Definition]) -> Obj:
    pages: Obj = {}
    for definition in definitions:
        for version in definition.versions:
            page = f"apis/{definition.group}/{version}" if definition.group else f"api/{version}"
            pages[page] = {"serverRelativeURL": f"/openapi/v3/{page}"}
    return {"paths": pages}


def v3(definitions: Iterable[Definition], group: str, version: str) -> Obj | None:
    schemas: Obj = {}
    paths: Obj = {}
    for definition in definitions:
        if definition.group == group and version in definition.versions:
            name = _name(definition, version)
            schemas[name] = _schema(definition, version, "#/components/schemas/")
            paths |= _paths(definition, version)
    if not schemas:
        return None
    schemas[_META_NAME] = _META
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": paths,
        "components": {"schemas": schemas},
    }


def v2(definitions: Iterable[Definition]) -> Obj:
    made: Obj = {_META_NAME: _META}
    paths: Obj = {}
    for definition in definitions:
        for version in definition.versions:
            made[_name(definition, version)] = _schema(definition, version, "#/definitions/")
            paths |= _paths(definition, version)
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": made}
