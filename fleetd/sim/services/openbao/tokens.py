"""Tokens: how they are made, found, renewed and ended, and AppRole, which makes them too."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fleetd.sim.services.openbao import answers, calls, policy
from fleetd.sim.services.openbao.calls import Call
from fleetd.sim.services.openbao.data import Data, Mount, Token
from fleetd.sim.world import HttpResponse, World

TTL = 32 * 86400
"""What OpenBao gives where nobody says otherwise."""
CROWD = 128
SECRET_ID = "secret-id/"  # noqa: S105 - a path


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a login, or whoever creates a token, asks for."""

    policies: tuple[str, ...]
    display_name: str
    path: str
    ttl: int = TTL
    max_ttl: int = 0
    meta: Mapping[str, str] | None = None
    renewable: bool = True
    endless: bool = False


class Tokens:
    def __init__(self, world: World, name: str, data: Data) -> None:
        self._world = world
        self._name = name
        self.data = data
        self._crowd = CROWD

    def make(self, grant: Grant) -> Token:
        number = str(self.data.number("token"))
        now = self._world.now()
        text = self._world.token(self._name, self.data.cluster_id, "token", number)
        token = Token(
            id=f"s.{text[:24]}",
            accessor=text[24:],
            policies=grant.policies,
            display_name=grant.display_name,
            path=grant.path,
            created=now,
            expires=None if grant.endless else now + timedelta(seconds=grant.ttl),
            max_expires=now + timedelta(seconds=grant.max_ttl) if grant.max_ttl else None,
            ttl=0 if grant.endless else grant.ttl,
            meta=dict(grant.meta or {}),
            renewable=grant.renewable and not grant.endless,
        )
        self.data.tokens[token.id] = token
        return token

    def find(self, text: str) -> Token | None:
        token = self.data.tokens.get(text)
        if token is not None and token.expires is not None and token.expires <= self._world.now():
            self.end(token)
            return None
        return token

    def end(self, token: Token) -> None:
        """With everything it holds: that is why a database user dies with its token."""
        self.data.tokens.pop(token.id, None)
        for lease in [one for one in self.data.leases.values() if one.token == token.id]:
            del self.data.leases[lease.id]

    def _forget_old(self) -> None:
        """Tokens that ended by themselves; looked for only now and then."""
        if len(self.data.tokens) >= self._crowd:
            now = self._world.now()
            for token in list(self.data.tokens.values()):
                if token.expires is not None and token.expires <= now:
                    self.end(token)
            self._crowd = 2 * len(self.data.tokens) + CROWD

    def granted(self, token: Token, path: str) -> frozenset[str]:
        if policy.ROOT in token.policies:
            return policy.CAPABILITIES - {"deny"} | {"root"}
        texts = [self.data.policies[name] for name in token.policies if name in self.data.policies]
        return policy.granted(texts, path, token.meta)

    # auth/token/

    def handle(self, call: Call) -> HttpResponse:
        mine = call.token
        if mine is None:
            raise answers.denied()
        match call.path:
            case "lookup-self":
                return answers.data(self._shown(mine))
            case "renew-self":
                return self._renewed(mine, call)
            case "revoke-self":
                self.end(mine)
                return answers.nothing()
            case "create" | "create-orphan":
                return self._created(mine, call)
            case "lookup" | "revoke" | "renew":
                other = self.find(str(call.body.get("token") or ""))
                if other is None:
                    raise answers.Refused(403, "bad token")
                if call.path == "lookup":
                    return answers.data(self._shown(other))
                if call.path == "renew":
                    return self._renewed(other, call)
                self.end(other)
                return answers.nothing()
            case _:
                raise answers.Refused(404)

    def auth(self, token: Token) -> dict[str, Any]:
        return {
            "client_token": token.id,
            "accessor": token.accessor,
            "policies": list(token.policies),
            "token_policies": list(token.policies),
            "metadata": token.meta or None,
            "lease_duration": token.ttl,
            "renewable": token.renewable,
            "entity_id": "",
            "token_type": "service",
            "orphan": True,
        }

    def _created(self, mine: Token, call: Call) -> HttpResponse:
        asked = tuple(calls.words(call.body.get("policies"))) or mine.policies
        root = policy.ROOT in mine.policies
        if not root and not set(asked) <= {*mine.policies, policy.DEFAULT}:
            raise answers.Refused(400, "child policies must be subset of parent")
        if policy.ROOT not in asked and not call.body.get("no_default_policy"):
            asked = with_default(asked)
        ttl = calls.seconds(call.body.get("period") or call.body.get("ttl"), TTL)
        made = self.make(
            Grant(
                policies=asked,
                display_name=f"token-{call.body.get('display_name', '')}".rstrip("-"),
                path="auth/token/create",
                ttl=ttl,
                meta=call.body.get("meta"),
                renewable=bool(call.body.get("renewable", True)),
            )
        )
        return answers.auth(self.auth(made))

    def _renewed(self, token: Token, call: Call) -> HttpResponse:
        if not token.renewable:
            raise answers.Refused(400, "lease is not renewable")
        ttl = calls.seconds(call.body.get("increment"), token.ttl)
        until = self._world.now() + timedelta(seconds=ttl)
        token.expires = min(until, token.max_expires) if token.max_expires else until
        return answers.auth(self.auth(token))

    def _shown(self, token: Token) -> dict[str, Any]:
        left = _left(token, self._world.now())
        return {
            "id": token.id,
            "accessor": token.accessor,
            "policies": list(token.policies),
            "display_name": token.display_name,
            "path": token.path,
            "creation_time": int(token.created.timestamp()),
            "creation_ttl": token.ttl,
            "expire_time": token.expires.isoformat() if token.expires else None,
            "ttl": left,
            "renewable": token.renewable,
            "meta": token.meta or None,
            "num_uses": 0,
            "orphan": True,
            "type": "service",
        }

    # auth/approle/

    def approle(self, mount: Mount, call: Call) -> HttpResponse:
        head, _, rest = call.path.partition("/")
        if head == "login":
            return self._approle_login(mount, call)
        if head != "role":
            raise answers.Refused(404)
        name, _, what = rest.partition("/")
        if call.operation == "list":
            return answers.keys(
                [key.removeprefix("role/") for key in mount.settings if key.startswith("role/")]
            )
        role = mount.settings.get(f"role/{name}")
        if not what:
            return self._approle(mount, name, role, call)
        if role is None:
            raise answers.Refused(404)
        if what == "role-id":
            return answers.data({"role_id": self._role_id(mount, name)})
        if what != "secret-id":
            raise answers.Refused(404)
        number = str(self.data.number("secret-id"))
        secret = self._world.token(self._name, self.data.cluster_id, "secret-id", number)
        ttl = calls.seconds(role.get("secret_id_ttl"), 0)
        ends = self._world.now() + timedelta(seconds=ttl) if ttl else None
        mount.settings[f"{SECRET_ID}{secret}"] = {"role": name, "expires": ends}
        return answers.data(
            {"secret_id": secret, "secret_id_accessor": secret[::-1], "secret_id_ttl": ttl}
        )

    def _approle(
        self, mount: Mount, name: str, role: dict[str, Any] | None, call: Call
    ) -> HttpResponse:
        match call.operation:
            case "read":
                if role is None:
                    raise answers.Refused(404)
                return answers.data(role)
            case "delete":
                mount.settings.pop(f"role/{name}", None)
                return answers.nothing()
            case _:
                mount.settings[f"role/{name}"] = {**(role or {}), **call.body}
                return answers.nothing()

    def _role_id(self, mount: Mount, name: str) -> str:
        return self._world.uid(f"{self._name}/{self.data.cluster_id}/{mount.path}{name}")

    def _approle_login(self, mount: Mount, call: Call) -> HttpResponse:
        secret = mount.settings.get(f"{SECRET_ID}{call.body.get('secret_id')}")
        name = secret["role"] if secret else ""
        ends: datetime | None = secret["expires"] if secret else None
        if not secret or (ends is not None and ends <= self._world.now()):
            raise answers.Refused(400, "invalid role or secret ID")
        if call.body.get("role_id") != self._role_id(mount, name):
            raise answers.Refused(400, "invalid role or secret ID")
        role = mount.settings[f"role/{name}"]
        return self.login(mount, role, "approle", {"role_name": name})

    def login(
        self, mount: Mount, role: Mapping[str, Any], display: str, meta: Mapping[str, str]
    ) -> HttpResponse:
        """A token as a role of an auth method says."""
        asked = tuple(calls.words(role.get("token_policies") or role.get("policies")))
        if not role.get("token_no_default_policy"):
            asked = with_default(asked)
        self._forget_old()
        made = self.make(
            Grant(
                policies=asked,
                display_name=display,
                path=f"{mount.path}login",
                ttl=calls.seconds(role.get("token_ttl") or role.get("ttl"), TTL),
                max_ttl=calls.seconds(role.get("token_max_ttl") or role.get("max_ttl"), 0),
                meta=meta,
            )
        )
        return answers.auth(self.auth(made))


def with_default(asked: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({policy.DEFAULT, *asked}))


def _left(token: Token, now: datetime) -> int:
    return int((token.expires - now).total_seconds()) if token.expires else 0
