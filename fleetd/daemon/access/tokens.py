"""
Bearer tokens of fleetd's own: made once, shown once, kept as a digest.

256 bits of chance cannot be guessed, so a fast digest is as good as a slow one, and a slow one per
request would let any caller keep the processor busy. Only texts of this very form are looked up,
so that a word somebody thought of can never be a token.
"""

import hashlib
import hmac
import re
import secrets as chance
from collections.abc import Iterable, Mapping
from datetime import datetime

from fleetd.daemon.access.rules import Token, granted
from fleetd.surface import problems
from fleetd.surface.identity import Identity

PREFIX = "fleetd_"
_FORM = re.compile(r"fleetd_[A-Za-z0-9_-]{43}")


def new() -> str:
    return PREFIX + chance.token_urlsafe(32)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class Tokens:
    def __init__(self, known: Iterable[Token]) -> None:
        self._known: Mapping[str, Token] = {one.sha256: one for one in known}

    def identify(self, token: str, now: datetime) -> Identity:
        """Raises Refused."""
        made = digest(token) if _FORM.fullmatch(token) else ""
        found = self._known.get(made)
        if found is None or not hmac.compare_digest(found.sha256, made):
            raise problems.Refused("unauthorized", "this token is not known here")
        if found.expires is not None and found.expires <= now:
            raise problems.Refused("unauthorized", f"the token {found.name} has expired")
        known = granted([found], name=f"token:{found.name}", how="token")
        assert known is not None  # noqa: S101 -- of one grant there is an identity
        return known
