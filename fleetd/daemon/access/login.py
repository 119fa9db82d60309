"""
Logging in with a browser: the authorization code flow of OpenID Connect, with PKCE.

What must be remembered between leaving and coming back (state, nonce, verifier, where to) is
sealed into a cookie of that browser, with a key that lives as long as the process: whoever comes
back with another one did not leave from here, and logins that are never finished take no room.
The tokens of the issuer are read once, for name and groups, and not kept.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets as chance
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec
import structlog

from fleetd import errors, secrets
from fleetd.daemon.access.oidc import Answered, Issuer, check_address, unavailable
from fleetd.daemon.access.rules import Browser
from fleetd.daemon.access.sessions import Sessions
from fleetd.surface import problems
from fleetd.surface.door import CALLBACK, Knock
from fleetd.surface.identity import Identity
from topology.documents.base import Access

_log = structlog.stdlib.get_logger("fleetd.access")


class _Left(msgspec.Struct, frozen=True):
    """What is sealed when a browser leaves."""

    state: str
    nonce: str
    verifier: str
    then: str


class Login:
    """Implements `surface.door.Logins` for one client of one issuer."""

    def __init__(self, rules: Browser, issuer: Issuer, sessions: Sessions, folder: Path) -> None:
        """Raises SettingsError. Blocks."""
        self._rules, self._issuer = rules, issuer
        self._sessions, self._folder = sessions, folder
        self._at = f"{issuer.rules.issuer} {rules.client_id}"
        try:
            _check(rules)
            self._secret()
        except (ValueError, secrets.SecretError) as wrong:
            raise errors.SettingsError(f"access file: oidc.browser: {wrong}") from None
        parts = urlsplit(rules.url)
        self.secure = parts.scheme == "https"
        self.origin = f"{parts.scheme}://{parts.netloc}".lower()

    def _secret(self) -> secrets.Secret | None:
        """Read each time: it is replaced while the daemon runs. Blocks."""
        file = self._rules.client_secret_file
        return secrets.resolve(Access(file=file), self._folder, {}) if file else None

    def identify(self, knock: Knock) -> Identity:
        """Who the session of a cookie is of. Raises Refused."""
        found = self._sessions.find(knock.session, self._at, self._rules, passive=knock.passive)
        known = self._issuer.known(found.name, found.groups, how="session")
        return replace(known, csrf=found.csrf)

    async def begin(self, then: str) -> tuple[str, str]:
        """Where to send the browser, and what to seal it with. Raises Refused."""
        about = await self._issuer.about()
        state, nonce, verifier = (chance.token_urlsafe(32) for _ in range(3))
        left = _Left(state, nonce, verifier, then)
        challenge = hashlib.sha256(left.verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": self._rules.client_id,
            "redirect_uri": self.origin + CALLBACK,
            "scope": " ".join(self._rules.scopes),
            "state": left.state,
            "nonce": left.nonce,
            "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
        }
        url = _with(self._door(about, "authorization_endpoint"), asked)
        return url, self._sessions.seal(msgspec.json.encode(left))

    async def finish(self, sealed: str, told: Mapping[str, str], before: str) -> tuple[str, str]:
        """The new session's cookie, and where to go on. `before`: a session that ends by it.
        Raises Refused."""
        plain = self._sessions.unseal(sealed)
        if plain is None:
            raise _again("this browser did not begin to log in, or it took too long")
        left = msgspec.json.decode(plain, type=_Left)
        if not hmac.compare_digest(
            left.state.encode(), told.get("state", "").encode(errors="replace")
        ):
            raise _again("the answer is not to the question that this browser asked")
        if told.get("iss", self._issuer.rules.issuer) != self._issuer.rules.issuer:
            raise _again("another issuer answered")
        if "error" in told:
            # Its words are a stranger's: anybody can write them into an address.
            raise _again("the issuer did not let you in")
        name, groups = await self._redeem(told.get("code", ""), left)
        self._issuer.known(name, groups, how="session")
        self._sessions.end(before)
        cookie = self._sessions.open(name, groups, self._at)
        _log.info("logged in", who=name, sessions=len(self._sessions))
        return cookie, left.then

    async def _redeem(self, code: str, left: _Left) -> tuple[str, tuple[str, ...]]:
        """The code becomes a token of the issuer, the token becomes a name and groups."""
        about, issuer = await self._issuer.about(), self._issuer.rules.issuer
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.origin + CALLBACK,
            "code_verifier": left.verifier,
            "client_id": self._rules.client_id,
        }
        headers: dict[str, str] = {}
        try:
            secret = await asyncio.to_thread(self._secret)
            if secret is not None:
                self._prove(about, secret, form, headers)
            url = self._door(about, "token_endpoint")
            answer = await self._issuer.send("POST", url, form, headers)
        except secrets.SecretError as wrong:
            _log.error("client secret not read", why=str(wrong))
            raise unavailable(issuer) from None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as cause:
            # repr would do for a log, if it were sure that nobody's words hold what was sent.
            status = cause.status if isinstance(cause, Answered) else 0
            _log.error("login failed", issuer=issuer, status=status, why=type(cause).__name__)
            if 400 <= status < 500:
                raise _again("the issuer did not take its own answer back") from None
            raise unavailable(issuer) from None
        token = str(answer.get("id_token", ""))
        claims = await self._issuer.claims(token, audience=self._rules.client_id)
        if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), left.nonce.encode()):
            raise _again("the issuer's token was made for another login")
        if claims.get("azp", self._rules.client_id) != self._rules.client_id:
            raise _again("the issuer's token was made for another client")
        return self._issuer.called(claims)

    def _prove(
        self,
        about: Mapping[str, object],
        secret: secrets.Secret,
        form: dict[str, str],
        headers: dict[str, str],
    ) -> None:
        known = about.get("token_endpoint_auth_methods_supported")
        if isinstance(known, list) and "client_secret_basic" not in known:
            form["client_secret"] = secret.reveal()
            return
        pair = f"{quote(self._rules.client_id, safe='')}:{quote(secret.reveal(), safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"

    async def end(self, session: str) -> str:
        """End a session; where the issuer's own is ended, or the page."""
        ended = self._sessions.end(session)
        if ended is None:
            return "/"
        _log.info("logged out", who=ended.name)
        try:
            about = await self._issuer.about()
            url = self._door(about, "end_session_endpoint")
        except problems.Refused:
            return "/"  # it is away, or has no such door; ours is closed
        asked = {
            "client_id": self._rules.client_id,
            "post_logout_redirect_uri": f"{self.origin}/",
        }
        return _with(url, asked)

    def _door(self, about: Mapping[str, object], name: str) -> str:
        """An address that the issuer names. Raises Refused."""
        url = str(about.get(name, ""))
        try:
            check_address(url)
        except ValueError:
            raise unavailable(self._issuer.rules.issuer) from None
        return url


def _check(rules: Browser) -> None:
    check_address(rules.url)
    parts = urlsplit(rules.url)
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{rules.url} has more than scheme, host and port")
    if "openid" not in rules.scopes:
        raise ValueError("scopes are without openid, so nobody would tell who it is")


def _with(url: str, asked: Mapping[str, str]) -> str:
    return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(asked)}"


def _again(why: str) -> problems.Refused:
    return problems.Refused("login-refused", f"{why}; log in again")
