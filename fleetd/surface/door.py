"""
Who is let in: the door that every request passes, and how often one caller may.

Here are the door for the machine itself, where nobody is asked for a proof, and the limits. Ways to
prove who one is are `fleetd.daemon.access`.
"""

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from fleetd.clock import Clock
from fleetd.surface import problems
from fleetd.surface.identity import LOCAL, Identity

_LOCAL_NAME = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.IGNORECASE)
LOGIN, CALLBACK, LOGOUT = "/login", "/login/callback", "/logout"
CALLERS_MAX = 10_000
"""Whose limits are remembered; whoever comes back after that many others begins anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knock:
    """What a request brings to prove whose it is."""

    path: str
    host: str
    address: str = ""
    """Where it comes from: the machine, or a proxy before it."""
    bearer: str = ""
    """The token that was sent; empty if none was."""
    forwarded: bool = False
    """It came through a proxy."""
    session: str = ""
    """The cookie of a browser's session."""
    passive: bool = False
    """A page asks by itself, so it does not tell that somebody sits before it."""
    certificate: Mapping[str, Any] | None = None
    """Of the client, as the ssl module tells it; it was verified."""


class Logins(Protocol):
    """Logging in with a browser, at somebody else's door. All of these raise Refused."""

    @property
    def secure(self) -> bool:
        """Whether browsers come over https."""
        ...

    @property
    def origin(self) -> str:
        """Where browsers find the page."""
        ...

    async def begin(self, then: str) -> tuple[str, str]:
        """Where to send the browser, and what it brings back, sealed."""
        ...

    async def finish(self, sealed: str, told: Mapping[str, str], before: str) -> tuple[str, str]:
        """The cookie of a new session, instead of the one before, and where to go on."""
        ...

    async def end(self, session: str) -> str:
        """Where to go to end what the other door knows, too."""
        ...


class Door(Protocol):
    @property
    def logins(self) -> Logins | None:
        """None: nobody logs in with a browser here."""
        ...

    async def identify(self, knock: Knock) -> Identity:
        """Raises Refused if nobody is to be let in."""
        ...

    def complaint(self) -> str:
        """Why it does not know its own rules; empty if all is well."""
        ...


class LocalDoor:
    """For loopback: everybody who reaches it is on this machine. It answers to the names of the
    machine only: a web page elsewhere must not be able to use it through somebody's browser."""

    logins: Logins | None = None

    async def identify(self, knock: Knock) -> Identity:
        if knock.path.startswith("/api/") and not _LOCAL_NAME.fullmatch(knock.host):
            raise problems.Refused("host-not-local", "use http://127.0.0.1 or a tunnel to it")
        if knock.forwarded:
            raise problems.Refused(
                "unauthorized",
                "this came through a proxy, and without a way to log in only callers on this "
                "machine are let in; set access.file",
            )
        return LOCAL

    def complaint(self) -> str:
        return ""


class Rate(NamedTuple):
    per_second: float
    burst: int


@dataclass(slots=True)
class Buckets:
    """A token bucket for each caller."""

    rate: Rate
    clock: Clock
    _kept: "OrderedDict[str, tuple[float, float]]" = field(
        default_factory=OrderedDict[str, tuple[float, float]]
    )
    """What is left, and when that was."""

    def take(self, caller: str) -> float:
        """0 if the caller may go on; else the seconds until it may."""
        now = self.clock.monotonic()
        left, at = self._kept.pop(caller, (float(self.rate.burst), now))
        left = min(left + (now - at) * self.rate.per_second, float(self.rate.burst))
        wait = 0.0 if left >= 1 else (1 - left) / self.rate.per_second
        self._kept[caller] = (left if wait else left - 1, now)
        while len(self._kept) > CALLERS_MAX:
            self._kept.popitem(last=False)
        return wait
