"""
What a server says about itself: version, health, groups, kinds and their schemas.

Generated from the definitions; of groups and kinds again whenever one is served or is not any more.
"""

from typing import TYPE_CHECKING, Any

from fleetd.kube.transport import Request, Response
from fleetd.sim.kube import openapi
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.values import Obj, encode

if TYPE_CHECKING:
    from fleetd.sim.kube.cluster import Cluster

_JSON = {"content-type": "application/json"}
_ALIVE = tuple(
    f"/{name}{rest}" for name in ("healthz", "livez", "readyz") for rest in ("", "/ping")
)
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
_TEXT = {"content-type": "text/plain; charset=utf-8"}


def public(path: str) -> bool:
    """What everybody may ask: how it is, and its version; single checks are not for everybody."""
    return path in _PUBLIC


def answer(cluster: "Cluster", request: Request) -> Response | None:
    """None: there is no such page."""
    if request.method not in ("GET", "HEAD"):
        return None
    path = request.path.rstrip("/")
    if path == "/openapi/v2" and openapi.PROTOBUF in request.accept:
        # Asked for with an @, which no media type may have, and answered without.
        headers = {"content-type": "application/" + openapi.PROTOBUF.replace("@", ".")}
        return Response(status=200, body=openapi.NOTHING, headers=headers)
    if path in _ALIVE:
        return Response(status=200, body=b"ok", headers=_TEXT)
    known = cluster.store.pages.get(path)
    if known is None:
        found = _page(cluster, path)
        if found is None:
            return None
        known = encode(found)
        if path.startswith("/api"):
            cluster.store.pages[path] = known
    return Response(status=200, body=known, headers=_JSON)


def _page(cluster: "Cluster", path: str) -> Obj | None:
    parts = path.strip("/").split("/")
    if parts[0] == "openapi":
        return _schemas(cluster, parts[1:])
    match parts:
        case ["version"]:
            return _version(cluster)
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(name, some) for name, some in sorted(_groups(cluster).items()) if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group]:
            some = _groups(cluster).get(group)
            if not group or some is None:
                return None
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, some)}
        case ["api", version]:
            return _resources(cluster, "", version)
        case ["apis", group, version]:
            return _resources(cluster, group, version)
        case _:
            return None


def _schemas(cluster: "Cluster", parts: list[str]) -> Obj | None:
    definitions = _definitions(cluster)
    match parts:
        case ["v2"]:
            return openapi.v2(definitions)
        case ["v3"]:
            return openapi.index(definitions)
        case ["v3", "api", version]:
            return openapi.v3(definitions, "", version)
        case ["v3", "apis", group, version]:
            return openapi.v3(definitions, group, version)
        case _:
            return None


def _definitions(cluster: "Cluster") -> list[Definition]:
    return [table.definition for _, table in sorted(cluster.store.tables.items())]


def _version(cluster: "Cluster") -> Obj:
    major, minor, *_ = cluster.version.lstrip("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": cluster.version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _groups(cluster: "Cluster") -> dict[str, list[str]]:
    """Group to its versions, the preferred one first."""
    found: dict[str, list[str]] = {}
    for definition in _definitions(cluster):
        versions = found.setdefault(definition.group, [])
        versions.extend(one for one in definition.versions if one not in versions)
    return found


def _group(name: str, versions: list[str]) -> Obj:
    shown = [{"groupVersion": f"{name}/{one}", "version": one} for one in versions]
    return {"name": name, "versions": shown, "preferredVersion": shown[0]}


def _resources(cluster: "Cluster", group: str, version: str) -> Obj | None:
    listed: list[Obj] = []
    for definition in _definitions(cluster):
        if definition.group == group and version in definition.versions:
            listed.extend(_resource(definition))
    if not listed:
        return None
    group_version = f"{group}/{version}" if group else version
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": sorted(listed, key=lambda one: one["name"]),
    }


def _resource(definition: Definition) -> list[Obj]:
    main: Obj = {
        "name": definition.plural,
        "singularName": definition.kind.lower(),
        "namespaced": definition.namespaced,
        "kind": definition.kind,
        "verbs": list(definition.verbs),
    }
    if definition.short_names:
        main["shortNames"] = list(definition.short_names)
    if definition.categories:
        main["categories"] = list(definition.categories)
    made = [main]
    if definition.status:
        made.append(_sub(definition, "status", ("get", "patch", "update")))
    if definition.scale is not None:
        made.append(_sub(definition, "scale", ("get", "patch", "update")))
    made.extend(_sub(definition, name, ("create",)) for name in definition.subresources)
    return made


_KINDS: dict[str, tuple[str, str, str]] = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
"""Subresources that are objects of another kind."""


def _sub(definition: Definition, name: str, verbs: tuple[str, ...]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": f"{definition.plural}/{name}",
        "singularName": "",
        "namespaced": definition.namespaced,
        "kind": definition.kind,
        "verbs": list(verbs),
    }
    if name in _KINDS:
        group, version, kind = _KINDS[name]
        made |= {"group": group, "version": version, "kind": kind}
    return made
