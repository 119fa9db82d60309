"""
What all simulated OpenStack APIs share: routes, tokens, versions, and how they refuse.

An `Api` has a table of routes; a route gets a `Call` and gives a body. One rule: without a good
token only the version documents are shown, and without the role admin nothing else is.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from fleetd.sim.services.openstack import Cloud, Token
from fleetd.sim.world import HttpRequest, HttpResponse

JSON = {"content-type": "application/json"}


class Refused(Exception):
    """Answered with this status and sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    request: HttpRequest
    parts: Mapping[str, str]
    """What the names in a route's path stand for."""
    token: Token | None

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query

    def body(self) -> dict[str, Any]:
        try:
            return msgspec.json.decode(self.request.body, type=dict[str, Any])
        except msgspec.MsgspecError:
            raise Refused(400, "Malformed request body") from None


Answer = Callable[[Any, Call], "HttpResponse | dict[str, Any] | None"]


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: re.Pattern[str]
    answer: Answer
    open: bool


def route(method: str, path: str, answer: Answer, *, free: bool = False) -> Route:
    """`{id}` in a path is one segment. `free`: needs no token."""
    pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)
    return Route(method, re.compile(pattern + "/?"), answer, free)


class Api:
    service: ClassVar[str] = ""
    routes: ClassVar[tuple[Route, ...]] = ()
    microversion: ClassVar[str] = ""
    """Name of the service in the header OpenStack-API-Version; empty where there is none."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud

    @property
    def address(self) -> str:
        return self.cloud.address(self.service)

    def handle(self, request: HttpRequest) -> HttpResponse:
        if not self.cloud.up(self.service):
            # What a load balancer says that has nobody behind it.
            return HttpResponse(status=503, body=b"no server is available to handle this request\n")
        try:
            return self._answer(request)
        except Refused as no:
            return refusal(no.status, no.message)

    def _answer(self, request: HttpRequest) -> HttpResponse:
        path = "/" + request.path.strip("/")
        known = [one for one in self.routes if one.path.fullmatch(path)]
        found = next((one for one in known if one.method == request.method), None)
        if found is None:
            raise Refused(405 if known else 404, "The resource could not be found.")
        token = self.token(request)
        if not found.open:
            self._admin(token)
        match = found.path.fullmatch(path)
        parts = match.groupdict() if match else {}
        answer = found.answer(self, Call(request=request, parts=parts, token=token))
        if isinstance(answer, HttpResponse):
            return answer
        if answer is None:
            return HttpResponse(status=204)
        return reply(answer, headers=self._headers(request))

    def _headers(self, request: HttpRequest) -> dict[str, str]:
        asked = request.headers.get("openstack-api-version", "")
        if not self.microversion or not asked:
            return {}
        return {"openstack-api-version": asked, "vary": "OpenStack-API-Version"}

    def token(self, request: HttpRequest) -> Token | None:
        found = self.cloud.tokens.get(request.headers.get("x-auth-token", ""))
        if found is None or found.expires <= self.cloud.world.elapsed():
            return None
        if found.by not in self.cloud.secrets:
            return None
        return found

    def _admin(self, token: Token | None) -> None:
        if not self.cloud.up("keystone"):
            # Whoever is asked asks Keystone what the token is worth.
            raise Refused(503, "The Keystone service is temporarily unavailable.")
        if token is None:
            raise Refused(401, "The request you have made requires authentication.")
        if not self.cloud.allowed(token.user, token.project):
            raise Refused(403, "Policy does not allow this request to be performed.")


def reply(
    body: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    return HttpResponse(
        status=status, body=msgspec.json.encode(body), headers={**JSON, **(headers or {})}
    )


def refusal(status: int, message: str) -> HttpResponse:
    return reply({"error": {"code": status, "message": message}}, status=status)


def text(value: Any) -> str:  # noqa: ANN401 - from a JSON body
    """A string out of a body, or a 400."""
    if not isinstance(value, str) or not value:
        raise Refused(400, "Invalid input: a name is missing")
    return value
