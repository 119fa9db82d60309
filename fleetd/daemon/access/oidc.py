"""
OpenID Connect: a token that an issuer signed, checked with the issuer's own keys.

Keys are fetched when they are first needed, again each hour, and when a token names one that is not
known: keys are rotated. That last is bounded, so that nobody makes us ask the issuer by sending
junk. Only signatures with a private key count. Times are compared with the clock that comes in.
"""

import asyncio
import ipaddress
import ssl
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
import jwt
import msgspec
import structlog

from fleetd import errors
from fleetd.clock import Clock
from fleetd.daemon.access.rules import Oidc, for_groups, granted
from fleetd.surface import problems
from fleetd.surface.identity import Identity

_log = structlog.stdlib.get_logger("fleetd.access")

ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
LEEWAY = timedelta(seconds=60)
"""By which two clocks may differ."""
KEPT = 3600.0
"""Seconds for which keys are believed to be current."""
NOT_SOONER = 30.0
"""Seconds between two fetches, whatever tokens are sent."""
WITHIN = 5.0
LARGEST = 256 * 1024
_CONFIGURATION = "/.well-known/openid-configuration"


def is_oidc(token: str, issuer: str) -> bool:
    """Whether a token says that it is of this issuer. Proves nothing."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError:
        return False
    return claims.get("iss") == issuer


class Answered(ValueError):
    """The issuer answered something else than what was asked for."""

    def __init__(self, status: int, size: int) -> None:
        super().__init__(f"answered {status}, {size} bytes")
        self.status = status


class Issuer:
    def __init__(self, rules: Oidc, folder: Path, clock: Clock) -> None:
        """Raises SettingsError if the address is one that must not be asked."""
        self._rules = rules
        self._clock = clock
        self._trust = _trust(rules, folder)
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._about: Mapping[str, Any] = {}
        self._fetched: float | None = None
        self._tried: float | None = None
        self._failed = False
        """Whether it did not answer when it was asked last."""
        self._fetching = asyncio.Lock()

    @property
    def rules(self) -> Oidc:
        return self._rules

    async def identify(self, token: str) -> Identity:
        """Raises Refused."""
        return self.known(*self.called(await self.claims(token)), how="oidc")

    def called(self, claims: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
        """The name and the groups of whom claims are about. Raises Refused."""
        name = claims.get(self._rules.name)
        if not isinstance(name, str) or not name or len(name) > 253 or not name.isprintable():
            raise problems.Refused(
                "unauthorized", f"the token has no claim {self._rules.name} with a name"
            )
        listed: object = claims.get(self._rules.groups)
        groups = cast("list[object]", listed) if isinstance(listed, list) else []
        return name, tuple(map(str, groups))

    def known(self, name: str, groups: Iterable[str], *, how: str) -> Identity:
        """Who that is by the grants of now. Raises Refused."""
        fitting = for_groups(self._rules.grants, user=name, groups=groups)
        known = granted(fitting, name=name, how=how)
        if known is None:
            raise problems.Refused("forbidden", f"{name} is in no group that may do anything here")
        return known

    async def claims(self, token: str, *, audience: str = "") -> Mapping[str, Any]:
        """What a token says, after all of it was checked. Raises Refused."""
        try:
            head = jwt.get_unverified_header(token)
            key = await self._key(str(head.get("kid", "")))
            if head.get("alg") not in ALGORITHMS:
                raise problems.Refused("unauthorized", "the token is signed in a way we refuse")
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=sorted(ALGORITHMS),
                audience=audience or self._rules.audience,
                issuer=self._rules.issuer,
                options={
                    "require": ["exp", "iss", "aud"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.InvalidAudienceError:
            raise problems.Refused("unauthorized", "the token is for somebody else") from None
        except (jwt.PyJWTError, ValueError, TypeError):
            raise problems.Refused("unauthorized", "the token is not a good one") from None
        self._check_times(claims)
        return claims

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self._clock.now()
        ends, begins = _moment(claims.get("exp")), _moment(claims.get("nbf", 0))
        if ends is None or begins is None:
            raise problems.Refused("unauthorized", "the token has no times that can be read")
        if ends + LEEWAY <= now:
            raise problems.Refused("unauthorized", "the token has expired")
        if begins - LEEWAY > now:
            raise problems.Refused("unauthorized", "the token does not hold yet")

    async def _key(self, name: str) -> jwt.PyJWK:
        if self._stale() or name not in self._keys:
            async with self._fetching:
                if self._stale() or name not in self._keys:
                    await self._fetch()
        found = self._keys.get(name)
        if found is None and self._failed:
            raise unavailable(self._rules.issuer)  # it may be a new key
        if found is None:
            raise problems.Refused("unauthorized", "the token is signed with a key nobody knows")
        return found

    async def about(self) -> Mapping[str, Any]:
        """Where the issuer says its doors are, and that it was there just now. Raises Refused."""
        async with self._fetching:
            if not self._recent():
                await self._fetch()
            if not self._recent():
                raise unavailable(self._rules.issuer)
        return self._about

    def _recent(self) -> bool:
        now = self._clock.monotonic()
        return self._fetched is not None and now - self._fetched <= NOT_SOONER

    def _stale(self) -> bool:
        return self._fetched is None or self._clock.monotonic() - self._fetched > KEPT

    async def _fetch(self) -> None:
        """Keys that are there stay if the issuer does not answer, for as long as they are kept."""
        now = self._clock.monotonic()
        if self._tried is not None and now - self._tried < NOT_SOONER:
            if self._stale():
                raise unavailable(self._rules.issuer)
            return
        self._tried, self._failed = now, True
        try:
            self._about, self._keys = await self._ask()
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError, jwt.PyJWTError) as cause:
            _log.error("the issuer does not answer", issuer=self._rules.issuer, why=repr(cause))
            if self._stale():
                raise unavailable(self._rules.issuer) from None
            return
        self._fetched, self._failed = now, False

    async def _ask(self) -> tuple[Mapping[str, Any], Mapping[str, jwt.PyJWK]]:
        told = await self._configuration()
        document = await self.send("GET", str(told.get("jwks_uri", "")))
        listed = document.get("keys")
        found: dict[str, jwt.PyJWK] = {}
        for one in cast("list[Any]", listed) if isinstance(listed, list) else []:
            if isinstance(one, dict) and one.get("use", "sig") == "sig" and one.get("kty") != "oct":  # pyright: ignore[reportUnknownMemberType]
                try:
                    key = jwt.PyJWK(cast("dict[str, Any]", one))
                except jwt.PyJWTError:
                    continue  # of a kind that we do not know; others may be good
                found[key.key_id or ""] = key
        return told, found

    async def _configuration(self) -> Mapping[str, Any]:
        """What the issuer says of itself. Raises ValueError if it is somebody else."""
        told = await self.send("GET", self._rules.issuer.rstrip("/") + _CONFIGURATION)
        if told.get("issuer") != self._rules.issuer:
            raise ValueError("it says it is another issuer")
        return told

    async def send(
        self,
        method: str,
        url: str,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """What it answers. Raises Answered if that is no, ValueError if it is no answer, and what
        the network has to say."""
        check_address(url)
        timeout = aiohttp.ClientTimeout(total=WITHIN)
        async with (
            aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
            session.request(
                method, url, data=form, headers=headers, ssl=self._trust, allow_redirects=False
            ) as answer,
        ):
            body = await answer.content.read(LARGEST + 1)
            while len(body) <= LARGEST and (more := await answer.content.read(LARGEST)):
                body += more
            if answer.status != 200 or len(body) > LARGEST:
                raise Answered(answer.status, len(body))
        return msgspec.json.decode(body, type=dict[str, Any])


def check_address(url: str) -> None:
    """Signatures are as good as the way on which the keys came."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        near = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        near = False
    if parts.scheme != "https" and not (parts.scheme == "http" and near):
        raise ValueError(f"{url[:200]} is not an https address")


def _trust(rules: Oidc, folder: Path) -> ssl.SSLContext:
    try:
        check_address(rules.issuer)
        path = str(folder / rules.authorities) if rules.authorities else None
        return ssl.create_default_context(cafile=path)
    except (ValueError, OSError) as wrong:
        raise errors.SettingsError(f"access file: oidc: {wrong}") from None


def _moment(value: object) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def unavailable(issuer: str) -> problems.Refused:
    return problems.Refused("login-unavailable", f"{issuer} does not answer; try again")
