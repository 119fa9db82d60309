"""
One request to an API server, understood: which verb on which object of which kind, by whom.

Reading a request never depends on what is stored; what it means for the store is for `verbs` and
`reading`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

import msgspec

from fleetd import plainyaml
from fleetd.kube.transport import APPLY, Request
from fleetd.sim.kube import protobuf, refusal
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
    warnings: list[str] = field(default_factory=list[str])
    """What the caller is told beside the answer."""

    @property
    def definition(self) -> Definition:
        return self.table.definition

    @property
    def dry_run(self) -> bool:
        return dry(self.request.query.get("dryRun", ""), _OPTIONS.get(self.verb, ""))

    @property
    def field_validation(self) -> str:
        """What becomes of fields that nobody knows: Ignore, Warn or Strict."""
        asked = self.request.query.get("fieldValidation", "")
        if asked not in ("", "Ignore", "Warn", "Strict"):
            raise bad_option(
                _OPTIONS.get(self.verb, "UpdateOptions"),
                "FieldValueNotSupported",
                "fieldValidation",
                f'Unsupported value: "{asked}": supported values: "", "Ignore", "Strict", "Warn"',
            )
        return asked or "Warn"

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


_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


def dry(asked: str, options: str) -> bool:
    """Whether nothing is to be kept; `options` is the kind of the options, for the complaint."""
    if asked not in ("", "All"):
        raise bad_option(
            options or "DeleteOptions",
            "FieldValueNotSupported",
            "dryRun",
            f'Unsupported value: ["{asked}"]: supported values: "All"',
        )
    return asked == "All"


def bad_option(options: str, reason: str, where: str, what: str) -> refusal.Refused:
    details: Obj = {
        "group": "meta.k8s.io",
        "kind": options,
        "causes": [{"reason": reason, "message": what, "field": where}],
    }
    return refusal.Refused(
        422, "Invalid", f'{options}.meta.k8s.io "" is invalid: {where}: {what}', details=details
    )


def parsed(request: Request) -> Any:  # noqa: ANN401 - any JSON value
    kind = request.content_type.split(";")[0].strip()
    if kind in ("application/yaml", APPLY):
        try:
            return decode(request.body)
        except msgspec.DecodeError:
            return _yaml(request.body)
    if kind == protobuf.MEDIA_TYPE:
        return protobuf.decode(request.body)
    if kind.startswith("application/") and kind.endswith("json"):
        try:
            return decode(request.body)
        except msgspec.DecodeError as cause:
            raise refusal.bad_request(f"the object provided is unrecognized: {cause}") from None
    raise refusal.Refused(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf",
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
