"""
Sessions of browsers: who logged in, kept in memory until they leave, are away or time is up.

Names and groups are kept and no role: what somebody may do is asked of the access file at every
request. Nothing is on disk, so a daemon that starts anew knows nobody. The rule: there are never
more than `ALL` of them, and never more than `EACH` of one person, who cannot push others out.
What browsers keep for us until they are logged in is sealed here, and takes no room at all.
"""

import hashlib
import secrets as chance
from collections import OrderedDict
from dataclasses import dataclass

from cryptography.fernet import Fernet, InvalidToken

from fleetd.clock import Clock
from fleetd.daemon.access.rules import Browser
from fleetd.surface import problems

ALL = 1000
EACH = 10
LEAVE = 600
"""Seconds for which a browser may be away at the issuer."""


@dataclass(slots=True)
class Session:
    name: str
    groups: tuple[str, ...]
    at: str
    """The issuer and the client with which they logged in."""
    csrf: str
    begun: float
    used: float


class Sessions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seal = Fernet(Fernet.generate_key())
        self._kept: OrderedDict[bytes, Session] = OrderedDict()
        """By the digest of the cookie; the one that was used last is last."""

    def __len__(self) -> int:
        return len(self._kept)

    def open(self, name: str, groups: tuple[str, ...], at: str) -> str:
        """What goes into the cookie."""
        own = [key for key, one in self._kept.items() if one.name == name]
        for key in own[: len(own) - EACH + 1] if len(own) >= EACH else ():
            del self._kept[key]
        while len(self._kept) >= ALL:
            self._kept.popitem(last=False)
        now, cookie = self._clock.monotonic(), chance.token_urlsafe(32)
        made = Session(name, groups, at, chance.token_urlsafe(32), now, now)
        self._kept[_key(cookie)] = made
        return cookie

    def find(self, cookie: str, at: str, limits: Browser, *, passive: bool) -> Session:
        """Raises Refused. `passive`: nobody need be there who asks."""
        key, now = _key(cookie), self._clock.monotonic()
        found = self._kept.get(key)
        if (
            found is None
            or found.at != at
            or now - found.begun >= limits.hours * 3600
            or now - found.used >= limits.idle_minutes * 60
        ):
            self._kept.pop(key, None)
            raise problems.Refused("unauthorized", "your session has ended; log in again")
        if not passive:
            found.used = now
            self._kept.move_to_end(key)
        return found

    def seal(self, content: bytes) -> str:
        return self._seal.encrypt_at_time(content, self._second()).decode()

    def unseal(self, sealed: str) -> bytes | None:
        """None if it was not sealed here, or is too old."""
        try:
            return self._seal.decrypt_at_time(sealed.encode(), LEAVE, self._second())
        except (InvalidToken, UnicodeEncodeError):
            return None

    def _second(self) -> int:
        return int(self._clock.now().timestamp())

    def end(self, cookie: str) -> Session | None:
        return self._kept.pop(_key(cookie), None)


def _key(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode("utf-8", "surrogateescape")).digest()
