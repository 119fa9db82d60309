"""
What an API server can answer instead of what was asked for.

    KubeError
     ├─ Unreachable        no answer at all, or one that is not from an API server
     │   ├─ Untrusted      its certificate is not of the authority that we were told
     │   ├─ Garbled        something answers that is no API server
     │   ├─ TooMuch        it sends more than is kept of one server
     │   └─ Closed         it was not asked: it did not answer others, or wants a pause
     ├─ Unauthorized       401: the credentials are not good, or not good any more
     ├─ Forbidden          403: they are good, but this is not allowed, or admission refused it
     ├─ NotFound           404: the object, or the whole kind
     │   └─ NotServed      the server does not know the kind, or not now
     ├─ OtherVersion       it knows the kind, but in no version that we speak
     ├─ Conflict           409: somebody else was faster, or owns the field
     │   └─ AlreadyExists
     ├─ Gone               410: the history does not go back that far
     ├─ Invalid            400, 405, 413, 415, 422: it will not be accepted as it is
     ├─ TooMany            429: come back later
     └─ ServerFault        5xx: theirs

Only `Unreachable`, `TooMany` and `ServerFault` may pass by themselves. A message is the server's
own words, cut short, and what to do where that is ours to say; it never holds a request's body.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec

from fleetd import errors
from topology import blind

SAID_MAX = 400
UNREADABLE = (msgspec.MsgspecError, RecursionError)
"""What decoding raises for what is no JSON, is not shaped as asked, or is nested without end."""


class KubeError(errors.FleetError):
    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        """The `reason` of the Status object, e.g. AlreadyExists; empty where there was none."""

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later without anybody's doing."""
        return False


class Unreachable(KubeError):
    blind = blind.NO_ANSWER

    def __init__(self, message: str, *, backend: str = "") -> None:
        super().__init__(f"{backend}: {message}" if backend else message)
        self.backend = self.silent = backend
        """Who was silent; empty where only one can be meant."""

    @property
    def passing(self) -> bool:
        return True


class Untrusted(Unreachable):
    blind = blind.NOT_TRUSTED


class Garbled(Unreachable):
    blind = blind.NOT_AN_API_SERVER


class TooMuch(Unreachable):
    blind = blind.TOO_MUCH


class Closed(Unreachable):
    def __init__(
        self, message: str, backend: str, again: timedelta, cause: Unreachable | None = None
    ) -> None:
        """`cause`: how the last request that was sent ended, if nobody answered it."""
        super().__init__(f"{message}; the last time: {cause}" if cause is not None else message)
        self.backend = self.silent = backend
        self.again = again
        if cause is not None:
            self.blind = cause.blind


class Unauthorized(KubeError):
    blind = blind.NOT_LET_IN


class Forbidden(KubeError):
    blind = blind.NOT_ALLOWED


class NotFound(KubeError):
    pass


class NotServed(NotFound):
    """Says nothing about objects: a server that starts forgets kinds for a while."""


class OtherVersion(KubeError):
    blind = blind.OTHER_VERSION


class Conflict(KubeError):
    managers: tuple[str, ...] = ()
    """Who owns what was to be changed; empty where somebody was only faster."""


class AlreadyExists(Conflict):
    pass


class Gone(KubeError):
    pass


class Invalid(KubeError):
    pass


class TooMany(KubeError):
    def __init__(self, message: str, *, status: int, reason: str, retry_after: float) -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after

    @property
    def passing(self) -> bool:
        return True


class ServerFault(KubeError):
    @property
    def passing(self) -> bool:
        return True


_TO_DO = {
    401: "the server does not take the credentials; renew the kubeconfig",
    403: "if a right is missing, grant it to the user of the kubeconfig",
}
_BY_STATUS: Mapping[int, type[KubeError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
}


def of(status: int, body: bytes, headers: Mapping[str, str]) -> KubeError:
    """The error for an answer that is not 2xx. An aggregated API that is away answers in plain
    text without a Status object, so nothing of it is taken for granted."""
    if 300 <= status < 400:
        where = _place(headers.get("location") or "")
        return not_an_api_server(f"it answers {status} and sends us {where}")
    page = _is_page(body, headers)
    if page and status < 500:
        return not_an_api_server(f"it answers {status} with a web page")
    message, reason, managers = ("", "", ()) if page else _said(body)
    message = message or f"the server answered {status}"
    if page:
        message += " with a web page, as a proxy or a balancer before it does"
    if status in _TO_DO:
        message = f"{message}: {_TO_DO[status]}"
    if status == 429:
        return TooMany(
            message, status=status, reason=reason, retry_after=_seconds(headers.get("retry-after"))
        )
    if reason == "AlreadyExists":
        return AlreadyExists(message, status=status, reason=reason)
    if status >= 500:
        return ServerFault(message, status=status, reason=reason)
    if managers:
        message = f"owned by {', '.join(managers)}: {message}"
    made = _BY_STATUS.get(status, Invalid)(message, status=status, reason=reason)
    if isinstance(made, Conflict):
        made.managers = managers
    return made


def of_status(status: Mapping[str, Any]) -> KubeError:
    """The error for a Status object that came as a line of a watch."""
    code = status.get("code")
    return of(code if isinstance(code, int) else 500, msgspec.json.encode(status), {})


def not_an_api_server(what: str) -> Garbled:
    """`what`: a sentence about what it does."""
    return Garbled(f"{what}, as no API server does; is the address of the kubeconfig right?")


def check_form(path: str, headers: Mapping[str, str]) -> None:
    """Raises `Garbled` for an answer that says that it is no JSON."""
    form = headers.get("content-type") or "application/json"
    if not form.lower().startswith("application/json"):
        raise not_an_api_server(f"{path} answers in {form[:60]!a}")


def _is_page(body: bytes, headers: Mapping[str, str]) -> bool:
    return body[:64].lstrip()[:1] == b"<" or "html" in headers.get("content-type", "").lower()


def _place(location: str) -> str:
    """The host alone: the rest may hold a key."""
    try:
        host = urlsplit(location).hostname or ""
    except ValueError:
        host = ""
    return f"to {host[:SAID_MAX]}" if host and host.isprintable() else "elsewhere"


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    causes: list[_Cause] | None = None


class _Status(msgspec.Struct):
    message: str | None = None
    reason: str | None = None
    details: _Details | None = None


def _said(body: bytes) -> tuple[str, str, tuple[str, ...]]:
    """Words, reason, and the managers that a conflict is with."""
    try:
        status = msgspec.json.decode(body, type=_Status)
    except (msgspec.ValidationError, RecursionError):
        return "", "", ()
    except msgspec.DecodeError:
        text = body[: 4 * SAID_MAX].decode("utf-8", "replace").strip()
        return " ".join(text.split())[:SAID_MAX], "", ()
    causes = (status.details.causes if status.details is not None else None) or ()
    # As `conflict with "kubectl" using v1`.
    managers = (
        one.message.split('"')[1]
        for one in causes
        if one.reason == "FieldManagerConflict" and one.message.count('"') >= 2
    )
    return (status.message or "")[:SAID_MAX], status.reason or "", tuple(dict.fromkeys(managers))


def _seconds(text: str | None) -> float:
    try:
        return max(float(text or 1), 0.0)
    except ValueError:
        return 1.0
