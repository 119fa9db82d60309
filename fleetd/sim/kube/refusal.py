"""
Saying no, the way an API server says it: a code, a reason, a sentence and details.

The sentences are part of what is imitated: operators search for them, and fleetd's own judgement
of an answer rests on code and reason.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.values import Obj

REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Expired",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class Refused(Exception):
    """The server will not do it. `details` is that of the Status object."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        details: Obj | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason or REASONS.get(status, "")
        self.message = message
        self.details = details
        self.headers = headers or {}

    def body(self) -> Obj:
        made: Obj = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.status,
        }
        if self.details is not None:
            made["details"] = self.details
        return made


def _named(definition: Definition, name: str, **more: Any) -> Obj:  # noqa: ANN401
    details: Obj = {"name": name, "group": definition.group, "kind": definition.plural, **more}
    if not definition.group:
        del details["group"]
    return details


def not_found(definition: Definition, name: str) -> Refused:
    return Refused(
        404,
        "NotFound",
        f'{definition.resource} "{name}" not found',
        details=_named(definition, name),
    )


def already_exists(definition: Definition, name: str) -> Refused:
    return Refused(
        409,
        "AlreadyExists",
        f'{definition.resource} "{name}" already exists',
        details=_named(definition, name),
    )


def conflict(definition: Definition, name: str, why: str = "") -> Refused:
    why = why or (
        "the object has been modified; please apply your changes to the latest version and "
        "try again"
    )
    return Refused(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {definition.resource} "{name}": {why}',
        details=_named(definition, name),
    )


def forbidden(definition: Definition, name: str, why: str, causes: Sequence[Obj] = ()) -> Refused:
    details = _named(definition, name)
    if causes:
        details["causes"] = list(causes)
    return Refused(
        403, "Forbidden", f'{definition.resource} "{name}" is forbidden: {why}', details=details
    )


def invalid(definition: Definition, name: str, *problems: tuple[str, str, str]) -> Refused:
    """`problems` are (cause reason, field, message), as in `("FieldValueInvalid", "spec.x",
    'Invalid value: "y": field is immutable')`."""
    said = [f"{where}: {what}" for _, where, what in problems]
    text = said[0] if len(said) == 1 else "[" + ", ".join(said) + "]"
    kind = f"{definition.kind}.{definition.group}" if definition.group else definition.kind
    details = _named(
        definition,
        name,
        kind=definition.kind,
        causes=[{"reason": why, "message": what, "field": where} for why, where, what in problems],
    )
    return Refused(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details=details)


def bad_request(message: str) -> Refused:
    return Refused(400, "BadRequest", message)


def expired(message: str) -> Refused:
    return Refused(410, "Expired", message)


def no_such_resource() -> Refused:
    return Refused(404, "NotFound", "the server could not find the requested resource", details={})


def not_allowed() -> Refused:
    return Refused(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        details={},
    )


def plain(message: str) -> Refused:
    """What a real server's own code calls no kind of error: 500, and no reason."""
    made = Refused(500, "", message)
    made.reason = ""
    return made
