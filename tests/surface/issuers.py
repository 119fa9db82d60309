"""An issuer of OpenID Connect on loopback, for tests: discovery, keys that rotate, tokens, and
people who log in without being asked anything."""

import base64
import contextlib
import hashlib
import secrets as chance
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

AUDIENCE = "fleetd"
CLIENT, SECRET = "fleetd-page", "s3cret/with+signs of-a-client"


@dataclass
class Issuer:
    url: str = ""
    keys: dict[str, ec.EllipticCurvePrivateKey] = field(
        default_factory=dict[str, ec.EllipticCurvePrivateKey]
    )
    asked: int = 0
    """How often somebody wanted the keys."""
    says: str = ""
    """Who it says it is, if that is somebody else."""
    down: bool = False
    person: tuple[str, tuple[str, ...]] = ("ada", ("ops",))
    """Who logs in next, with their groups."""
    claims: dict[str, Any] = field(default_factory=dict[str, Any])
    """Others than the right ones, in the next id token."""
    codes: dict[str, tuple[dict[str, str], tuple[str, tuple[str, ...]]]] = field(
        default_factory=dict[str, tuple[dict[str, str], tuple[str, tuple[str, ...]]]]
    )
    """What was asked for each code, and who logged in."""
    forms: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """What was sent to have a token."""

    def __post_init__(self) -> None:
        self.rotate("k1")

    def rotate(self, name: str) -> None:
        self.keys = {name: ec.generate_private_key(ec.SECP256R1())}

    def token(
        self, *groups: str, headers: dict[str, Any] | None = None, key: Any = None, **claims: Any
    ) -> str:
        (name,) = self.keys
        told = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ada",
            "exp": datetime.now(UTC) + timedelta(minutes=5),
            "groups": list(groups),
            **claims,
        }
        plain = {name: value for name, value in told.items() if value is not None}
        head = {"kid": name, **(headers or {})}
        algorithm = head.pop("alg", "ES256")
        return jwt.encode(plain, key or self.keys[name], algorithm=algorithm, headers=head)

    async def configuration(self, _request: web.Request) -> web.Response:
        if self.down:
            raise web.HTTPServiceUnavailable
        return web.json_response(
            {
                "issuer": self.says or self.url,
                "jwks_uri": f"{self.url}/keys",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "end_session_endpoint": f"{self.url}/end",
            }
        )

    async def authorize(self, request: web.Request) -> web.Response:
        asked = dict(request.query)
        code = chance.token_urlsafe(16)
        self.codes[code] = asked, self.person
        back = f"{asked['redirect_uri']}?code={code}&state={asked['state']}&session_state=x"
        return web.Response(status=302, headers={"Location": back})

    async def redeem(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.forms.append(form)
        pair = base64.b64decode(request.headers.get("Authorization", "").removeprefix("Basic "))
        asked, (name, groups) = self.codes.pop(form["code"], ({}, ("", ())))
        made = hashlib.sha256(form["code_verifier"].encode()).digest()
        if (
            base64.urlsafe_b64encode(made).rstrip(b"=").decode() != asked.get("code_challenge")
            or asked["code_challenge_method"] != "S256"
            or form["redirect_uri"] != asked["redirect_uri"]
            or pair.decode() != f"{CLIENT}:{quote(SECRET, safe='')}"
        ):
            return web.json_response({"error": "invalid_grant"}, status=400)
        told: dict[str, Any] = {"sub": name, "aud": CLIENT, "nonce": asked["nonce"]} | self.claims
        return web.json_response({"id_token": self.token(*groups, **told), "token_type": "Bearer"})

    async def key_set(self, _request: web.Request) -> web.Response:
        self.asked += 1
        found: list[dict[str, Any]] = [
            {**ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": name}
            for name, key in self.keys.items()
        ]
        return web.json_response({"keys": [*found, {"kty": "oct", "k": "AAAA", "kid": "oct"}]})


@contextlib.asynccontextmanager
async def running() -> AsyncGenerator[Issuer]:
    issuer = Issuer()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", issuer.configuration)
    app.router.add_get("/keys", issuer.key_set)
    app.router.add_get("/authorize", issuer.authorize)
    app.router.add_post("/token", issuer.redeem)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    issuer.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield issuer
    finally:
        await runner.cleanup()
