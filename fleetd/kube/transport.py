"""
The seam between fleetd and an API server: a request gives a response, a watch gives lines.

There are two transports: HTTP (`fleetd.kube.http`) and the simulated world called in-process
(`fleetd.sim.faces`). Nothing above this file knows which one it has. A transport neither retries
nor decides: it delivers, or it raises `Unreachable` with what stood in the way.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    """Absolute, below the server's address, percent-encoded: `/api/v1/namespaces/default`."""
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON
    opened: Callable[[], None] | None = field(default=None, compare=False, repr=False)
    """Of a watch: called when the server has taken it; the first line may come much later."""

    @property
    def writes(self) -> bool:
        return self.method not in ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names in lower case."""


class Transport(Protocol):
    async def send(self, request: Request) -> Response:
        """Any status is an answer. Raises `errors.Unreachable` if there is none."""
        ...

    def lines(self, request: Request) -> AsyncIterator[list[bytes]]:
        """The lines of a watch, as many at once as have come; ends when the server ends it. Raises
        the error of `errors.of` for a status other than 200, `errors.Unreachable` for a broken
        connection. Whoever stops reading closes it with `aclose`."""
        ...

    async def close(self) -> None: ...
