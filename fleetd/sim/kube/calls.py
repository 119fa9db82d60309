"""
One request to an API server, understood: which verb on which object of which kind, by whom.

Reading a request never depends on what is stored; what it means for the store is for `verbs` and
`reading`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

import msgspec

from fleetd import plainyaml
from fleetd.kube.transport import APPLY, Request
from fleetd.sim.kube import refusal
from fleetd.sim.kube.access import User
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.store import Table
from fleetd.sim.kube.values import Obj, decode

STRATEGIC = "application/strategic-merge-patch+json"
_OF_NAMESPACES = ("status", "finalize")


class Target(NamedTuple):
    """What a path names. An empty plural: a group and version as such."""

    group: str
    version: str
    namespace: str
    plural: str
    name: str
    subresource: str


@lru_cache(maxsize=4096)
def target(path: str) -> Target | None:
    """None: the path is not one of a resource."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if len(rest) >= 3 and rest[0] == "namespaces" and rest[2] not in _OF_NAMESPACES:
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "", "")[:3]
    return Target(group, version, namespace, plural, name, subresource)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a custom subresource is given: see `Cluster.subresource`."""

    request: Request
    headers: Mapping[str, str]
    user: User
    table: Table
    target: Target
    verb: str

    @property
    def definition(self) -> Definition:
        return self.table.definition

    @property
    def dry_run(self) -> bool:
        asked = self.request.query.get("dryRun", "")
        if asked not in ("", "All"):
            raise refusal.Refused(
                422,
                "Invalid",
                f'dryRun: Unsupported value: "{asked}": supported values: "All"',
            )
        return asked == "All"

    @property
    def manager(self) -> str:
        """As a real server: the parameter, else the program's name."""
        named = self.request.query.get("fieldManager")
        return named or self.headers.get("user-agent", "").split("/")[0] or "unknown"

    def body(self) -> Obj:
        """The object that was sent."""
        made = parsed(self.request)
        if not isinstance(made, dict):
            raise refusal.bad_request("the body is not an object")
        return cast("Obj", made)


def parsed(request: Request) -> Any:  # noqa: ANN401 - any JSON value
    kind = request.content_type.split(";")[0].strip()
    if kind in ("application/yaml", APPLY):
        try:
            return decode(request.body)
        except msgspec.DecodeError:
            return _yaml(request.body)
    if kind.startswith("application/") and kind.endswith("json"):
        try:
            return decode(request.body)
        except msgspec.DecodeError as cause:
            raise refusal.bad_request(f"the object provided is unrecognized: {cause}") from None
    raise refusal.Refused(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml",
    )


def _yaml(body: bytes) -> Any:  # noqa: ANN401
    try:
        return plainyaml.load(body)
    except plainyaml.Error:
        raise refusal.bad_request("error decoding YAML: the body cannot be read") from None


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def verb(request: Request, name: str) -> str:
    if request.method in ("GET", "HEAD"):
        if name:
            return "get"
        return "watch" if watching(request) else "list"
    if request.method == "DELETE" and not name:
        return "deletecollection"
    return _VERBS.get(request.method, "")


def watching(request: Request) -> bool:
    return request.query.get("watch", "") in ("1", "true", "True")


def true(text: str) -> bool:
    return text in ("1", "true", "True", "t", "T")


def forbidden(user: User, asked: str, where: Target, definition: Definition) -> refusal.Refused:
    resource = where.plural + (f"/{where.subresource}" if where.subresource else "")
    scope = f'in the namespace "{where.namespace}"' if where.namespace else "at the cluster scope"
    named = f'{definition.resource} "{where.name}"' if where.name else definition.resource
    details: Obj = {"name": where.name, "group": where.group, "kind": where.plural}
    return refusal.Refused(
        403,
        "Forbidden",
        f'{named} is forbidden: User "{user.name}" cannot {asked} resource "{resource}" in API '
        f'group "{where.group}" {scope}',
        details={key: value for key, value in details.items() if value},
    )
