"""
What a route is: everything that can be known of it before somebody asks.

The table of all routes is `surface.table`. From it come the server's own routing, authorisation
and checks (`http`), the OpenAPI document (`openapi`) and `docs/http.md`, so none of them can say
something else than the others.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fleetd.surface import asking, problems
from fleetd.surface.desk import Desk
from fleetd.surface.identity import Identity, Role, Scope
from fleetd.surface.kept import Kept
from fleetd.surface.panel import Panel
from topology.resource import Ref

JSON = "application/json"
EVENT_STREAM = "text/event-stream"
TEXT = "text/plain"
HTML = "text/html"
ANY = "*/*"
REDIRECT = ""
"""Nothing to read: the browser is sent elsewhere."""
T = TypeVar("T")
READS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, as far as a handler needs to know it."""

    panel: Panel
    """As far as the caller may see."""
    caller: Identity
    kept: Kept
    who: str
    """How the caller is called in history."""
    path: Mapping[str, str]
    given: Any
    """The parameters of a read, the body of a write, as the route's type."""
    query: Any = None
    """The parameters of a write."""
    desk: Desk | None = None
    match: str | None = None
    """If-Match, as it was sent."""
    none_match: str | None = None

    def as_(self, kind: type[T]) -> T:
        """What was given; the route's type was checked when it was read."""
        assert isinstance(self.given, kind)  # noqa: S101 -- the table says so
        return self.given

    def sees(self, ref: Ref) -> bool:
        """Whether the caller may hear of a thing, which need not exist any more."""
        if self.caller.regions is None:
            return True
        return ref in self.panel.topology().resources or ref in self.panel.orphans()


Handler = Callable[[Asked], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    method: str
    path: str
    name: str
    """In OpenAPI, audit and log; stays."""
    summary: str
    role: Role
    scope: Scope
    about: str = ""
    """More for who reads the reference."""
    query: type[asking.Query] = asking.Query
    body: Any = None
    """Type of what is sent."""
    answer: Any = None
    """Type of what is answered, where that is JSON."""
    media: str = JSON
    codes: tuple[str, ...] = ()
    """Problems beside those that follow from all the rest."""
    handler: Handler | None = None
    """None: the server answers by itself."""
    tag: str = field(default="fleet")

    @property
    def writes(self) -> bool:
        return self.method not in READS

    @property
    def parameters(self) -> tuple[str, ...]:
        """In the path."""
        pieces = self.path.split("/")
        return tuple(piece[1:-1] for piece in pieces if piece.startswith("{"))

    @property
    def problems(self) -> tuple[str, ...]:
        """Every code that can be answered, in the order of the table of problems."""
        found = {"bad-request", "unknown-parameter", "headers-too-large", *self.codes}
        if self.query is not asking.Query:
            found.add("bad-parameter")
        if self.role is not Role.OPEN:
            found |= {"unauthorized", "forbidden", "too-many-requests", "host-not-local"}
            found.add("login-unavailable")
        if self.scope is Scope.CHECKED:
            found.add("other-region")
        if self.writes:
            found |= {"body-too-large", "foreign-origin", "csrf", "refused", "audit-broken"}
        if self.body is not None:
            found |= {"bad-body", "too-deep", "not-json"}
        return tuple(code for code in problems.TITLES if code in found)
