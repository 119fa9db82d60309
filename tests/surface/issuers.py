"""An issuer of OpenID Connect on loopback, for tests: discovery, keys that rotate, tokens."""

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

AUDIENCE = "fleetd"


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
        return web.json_response({"issuer": self.says or self.url, "jwks_uri": f"{self.url}/keys"})

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
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    issuer.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield issuer
    finally:
        await runner.cleanup()
