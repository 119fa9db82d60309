"""
Errors of the HTTP interface as `application/problem+json` (RFC 9457), each with a stable code.

The code is for programs and never changes; title and detail are for people. Nothing from inside
(a path, a traceback, a value) goes into an answer.
"""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
from aiohttp import web

CONTENT_TYPE = "application/problem+json"

SAFE = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
}
"""Headers of every answer that does not say something else."""
TITLES = {
    "not-found": (404, "There is no such thing"),
    "method-not-allowed": (405, "This address cannot be used that way"),
    "bad-request": (400, "The request is not understood"),
    "unknown-parameter": (400, "There is no such parameter"),
    "bad-parameter": (400, "A parameter has a wrong value"),
    "bad-body": (400, "The body is not what is expected here"),
    "too-deep": (400, "The JSON is nested deeper than 64 levels"),
    "not-json": (415, "The body must be application/json"),
    "bad-encoding": (415, "The body is packed in a way that is not known here"),
    "too-slow": (408, "The request took too long to arrive"),
    "expectation-failed": (417, "What is expected cannot be promised"),
    "foreign-origin": (403, "Another site may not use this through a browser"),
    "refused": (409, "This cannot be done now"),
    "plan-unknown": (404, "There is no such plan"),
    "plan-stale": (409, "The world has moved since the plan was made"),
    "document-owned": (409, "The document belongs to a file"),
    "change-refused": (409, "The far side would refuse this change"),
    "consent-needed": (409, "So much at once needs consent"),
    "document-changed": (412, "The document is not the one you expect"),
    "bad-etag": (400, "An ETag is not understood"),
    "bad-event-id": (400, "Last-Event-ID is not a number of this history"),
    "history-gone": (410, "History does not reach back that far"),
    "too-many-watchers": (503, "Too many watch already"),
    "documents-bad": (422, "The documents have problems"),
    "not-durable": (507, "The documents cannot be kept"),
    "continue-expired": (410, "The list has changed since it was begun"),
    "headers-too-large": (431, "The headers are larger than 16 KiB"),
    "body-too-large": (413, "The body is larger than 1 MiB"),
    "unauthorized": (401, "Say who you are"),
    "login-unavailable": (503, "Who you are cannot be found out now"),
    "login-refused": (400, "You were not logged in"),
    "forbidden": (403, "Your role does not allow this"),
    "other-region": (403, "This is outside of your regions"),
    "csrf": (403, "The session's own token is missing"),
    "too-many-requests": (429, "Too many requests"),
    "audit-broken": (507, "What cannot be audited is not done"),
    "host-not-local": (421, "This server answers to the names of the local machine only"),
    "not-ready": (503, "The daemon is not ready"),
    "internal": (500, "Something went wrong inside; the log says what"),
}


class Problem(TypedDict):
    """An error, RFC 9457. Some codes bring further members with them."""

    type: str
    title: Annotated[str, msgspec.Meta(description="For people; may change.")]
    status: int
    code: Annotated[str, msgspec.Meta(description="For programs; stays.")]
    detail: NotRequired[Annotated[str, msgspec.Meta(description="What is wrong, what to do.")]]


class Refused(Exception):
    """Answer with a problem. `more` are further members of the document."""

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,  # noqa: ANN401 -- JSON
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.headers = headers or {}
        self.more = more


def answer(
    code: str,
    detail: str = "",
    *,
    status: int = 0,
    headers: Mapping[str, str] | None = None,
    **more: Any,  # noqa: ANN401 -- JSON
) -> web.Response:
    known, title = TITLES[code]
    status = status or known
    document = {"type": "about:blank", "title": title, "status": status, "code": code}
    if detail:
        document["detail"] = detail
    told = dict(headers or {})
    if status == 401:
        told["WWW-Authenticate"] = 'Bearer realm="fleetd"'
    return web.Response(
        status=status,
        body=msgspec.json.encode(document | more),
        content_type=CONTENT_TYPE,
        headers=told,
    )


def of_http(error: web.HTTPException) -> web.Response:
    """What aiohttp itself refused."""
    by_status = {status: code for code, (status, _) in reversed(TITLES.items())}
    allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
    code = by_status.get(error.status, "bad-request")
    return answer(code, status=error.status, headers=allow)
