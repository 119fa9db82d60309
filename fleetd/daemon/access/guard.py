"""
The door where callers prove who they are, by the rules of the access file as it is now.

The file is looked at every two seconds. One that became bad changes nothing, and `/readyz` says
so: better the old rules than none. What is sent decides which way is tried, and only that one: a
bad token is not made good by a certificate.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog

from fleetd import errors
from fleetd.clock import Clock
from fleetd.daemon.access import oidc, rules, tokens
from fleetd.daemon.access.kubernetes import Reviewer
from fleetd.daemon.access.login import Login
from fleetd.daemon.access.marks import mark
from fleetd.daemon.access.rules import Rules
from fleetd.daemon.access.sessions import Sessions
from fleetd.net import Network
from fleetd.surface import problems
from fleetd.surface.door import Knock
from fleetd.surface.identity import Identity

_log = structlog.stdlib.get_logger("fleetd.access")

EVERY = timedelta(seconds=2)
_HINT = "send Authorization: Bearer TOKEN, or a certificate, or log in with a browser"


@dataclass(frozen=True, slots=True)
class _Ways:
    """The rules that count, and what was made of them."""

    rules: Rules
    tokens: tokens.Tokens
    issuer: oidc.Issuer | None
    login: Login | None
    reviewer: Reviewer | None


class GuardedDoor:
    """Implements `surface.door.Door`."""

    def __init__(self, path: Path, net: Network, clock: Clock) -> None:
        """Reads the file; raises SettingsError. Blocks."""
        self._path, self._net, self._clock = path, net, clock
        self._mark: tuple[int, ...] = mark(path)
        self._complaint = ""
        self._sessions = Sessions(clock)
        self._ways = self._made(rules.read(path), None)

    def complaint(self) -> str:
        return self._complaint

    @property
    def logins(self) -> Login | None:
        return self._ways.login

    async def identify(self, knock: Knock) -> Identity:
        ways = self._ways
        if knock.bearer:
            return await self._by_token(ways, knock.bearer, knock.address)
        if knock.session and ways.login is not None:
            return ways.login.identify(knock)
        if knock.certificate and ways.rules.certificates is not None:
            return _by_certificate(ways.rules.certificates, knock.certificate)
        raise problems.Refused("unauthorized", _HINT)

    async def _by_token(self, ways: _Ways, token: str, address: str) -> Identity:
        if not token.isascii():
            raise problems.Refused("unauthorized", "this token is not known here")
        if token.startswith(tokens.PREFIX):
            return ways.tokens.identify(token, self._clock.now())
        if ways.issuer is not None and oidc.is_oidc(token, ways.issuer.rules.issuer):
            return await ways.issuer.identify(token)
        if ways.reviewer is not None:
            return await ways.reviewer.identify(token, address)
        raise problems.Refused("unauthorized", "this token is not known here")

    async def run(self) -> None:
        """Keep the rules as the file is."""
        while True:
            await asyncio.sleep(EVERY.total_seconds())
            await self.look()

    async def look(self) -> None:
        now = await asyncio.to_thread(mark, self._path)
        if now == self._mark:
            return
        before = self._ways
        try:
            found = await asyncio.to_thread(rules.read, self._path)
            self._ways = await asyncio.to_thread(self._made, found, before)
        except errors.SettingsError as wrong:
            if self._complaint != str(wrong):
                _log.error("access file not taken", why=str(wrong))
            self._complaint = str(wrong)
            return
        self._mark, self._complaint = now, ""
        _log.info("access file taken", tokens=len(self._ways.rules.tokens))
        if before.reviewer is not None and before.reviewer is not self._ways.reviewer:
            await before.reviewer.close()

    async def close(self) -> None:
        if self._ways.reviewer is not None:
            await self._ways.reviewer.close()

    def _made(self, found: Rules, before: _Ways | None) -> _Ways:
        """What did not change is kept, with the keys it has fetched."""
        folder = self._path.parent
        issuer = login = reviewer = None
        if before is not None and before.rules.oidc == found.oidc:
            issuer, login = before.issuer, before.login
        elif found.oidc is not None:
            issuer = oidc.Issuer(found.oidc, folder, self._clock)
            if (browser := found.oidc.browser) is not None:
                login = Login(browser, issuer, self._sessions, folder)
        if before is not None and before.rules.kubernetes == found.kubernetes:
            reviewer = before.reviewer
        elif found.kubernetes is not None:
            reviewer = Reviewer(found.kubernetes, folder, self._net, self._clock)
        return _Ways(found, tokens.Tokens(found.tokens), issuer, login, reviewer)


def names(certificate: Mapping[str, Any]) -> list[str]:
    """How a certificate calls its owner: common name first, then the alternative names."""
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    found = [value for key, value in subject if key == "commonName"]
    return found + [
        value
        for key, value in certificate.get("subjectAltName", ())
        if key in {"DNS", "URI", "email"}
    ]


def _by_certificate(given: rules.Certificates, certificate: Mapping[str, Any]) -> Identity:
    called = names(certificate)
    fitting = [one for one in given.grants if one.name in called]
    known = rules.granted(fitting, name=fitting[0].name if fitting else "", how="certificate")
    if known is None:
        name = called[0] if called else "without a name"
        raise problems.Refused("forbidden", f"the certificate {name[:80]} may do nothing here")
    return known
