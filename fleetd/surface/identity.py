"""
Who asks, and how much they may: the words of authorisation, without any way to find out.

How somebody proves who they are is `fleetd.daemon.access`; what a route wants is said in
`surface.table`. One rule: a caller without a role for something is refused, and a caller that is
limited to regions neither sees nor touches anything outside of them.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Role(enum.IntEnum):
    """Each may do what those before it may."""

    OPEN = 0
    """Nobody in particular."""
    VIEWER = 1
    """Reads."""
    OPERATOR = 2
    """Runs what is declared: pauses, approves, retires, plans."""
    ADMIN = 3
    """Changes what is declared, and reads the audit log."""

    @property
    def word(self) -> str:
        return self.name.lower()


class Scope(enum.Enum):
    """What being limited to regions does to a route."""

    NONE = "says nothing about a region"
    FILTERED = "answers as if only the caller's regions existed"
    CHECKED = "refused if it touches something outside of the caller's regions"
    FLEET = "only for callers that are not limited to regions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A caller who is known."""

    name: str
    """As it stands in history and audit: `ada`, `token:ci`."""
    role: Role
    how: str
    """local, token, oidc, kubernetes, certificate or session."""
    regions: frozenset[str] | None = None
    """None: all of them."""
    csrf: str = ""
    """What a browser's session must send along with a write."""

    def may_touch(self, regions: Iterable[str]) -> bool:
        """Whether all of these regions are the caller's. What belongs to no region is `""`."""
        return self.regions is None or self.regions.issuperset(regions)


LOCAL = Identity(name="local", role=Role.ADMIN, how="local")
"""Whoever is on this machine, where nobody is asked for a proof."""
NOBODY = Identity(name="", role=Role.OPEN, how="")
