"""
Who is calling: tokens and the users behind them.

A token is derived from what it stands for, so a seed gives the same tokens every time. It looks
like a JWT, for clients read expiry dates out of it; its signature is a digest that means nothing
outside this world. A deleted ServiceAccount's token is good for another ten seconds, as the
authenticator of a real server caches.
"""

import base64
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fleetd.sim.kube.store import Store
from fleetd.sim.kube.values import Obj, encode
from fleetd.sim.time import Time

MASTERS = "system:masters"
GRACE = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, str], ...] = ()

    @property
    def master(self) -> bool:
        return MASTERS in self.groups

    def shown(self) -> Obj:
        """As in a TokenReview."""
        made: Obj = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            made["uid"] = self.uid
        if self.extra:
            made["extra"] = {name: [value] for name, value in self.extra}
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What a token stands for."""

    user: User
    expires: datetime | None
    audiences: tuple[str, ...]
    account: tuple[str, str, str] | None = None
    """Namespace, name and uid of the ServiceAccount, if it is one's."""


@dataclass(frozen=True, slots=True)
class Trust:
    """An issuer whose tokens are believed, as structured authentication has it."""

    issuer: str
    audiences: tuple[str, ...]
    prefix: str


class BadToken(Exception):
    """The text is that of `TokenReview.status.error`."""


@dataclass(slots=True)
class Tokens:
    name: str
    time: Time
    store: Store
    passes: dict[str, Pass] = field(default_factory=dict[str, Pass])
    gone: dict[str, datetime] = field(default_factory=dict[str, datetime])
    """When a ServiceAccount, by uid, was deleted."""
    count: int = 0
    late: list[str] = field(default_factory=list[str])
    """Who came with a token that had ended, each time."""
    trusts: tuple[Trust, ...] = ()
    keys: Callable[[str], "Tokens | None"] = lambda _issuer: None
    """Where the keys of an issuer are published; None: nowhere."""

    @property
    def audience(self) -> str:
        return f"https://{self.name}.sim.invalid"

    def issue(
        self,
        user: str,
        groups: Iterable[str],
        *,
        expires: datetime | None = None,
        audiences: tuple[str, ...] = (),
        account: tuple[str, str, str] | None = None,
    ) -> str:
        self.count += 1
        made = Pass(
            user=User(
                user,
                (*groups, "system:authenticated"),
                account[2] if account is not None else "",
            ),
            expires=expires,
            audiences=audiences or (self.audience,),
            account=account,
        )
        token = self._text(made)
        self.passes[token] = made
        return token

    def _text(self, made: Pass) -> str:
        claims: Obj = {
            "aud": list(made.audiences),
            "iat": int(self.time.now().timestamp()),
            "iss": self.audience,
            "jti": str(self.count),
            "sub": made.user.name,
        }
        if made.expires is not None:
            claims["exp"] = int(made.expires.timestamp())
        if made.account is not None:
            namespace, name, uid = made.account
            claims["kubernetes.io"] = {
                "namespace": namespace,
                "serviceaccount": {"name": name, "uid": uid},
            }
        text = _base64(encode({"alg": "ES256"})) + "." + _base64(encode(claims))
        seal = hashlib.blake2b(f"{self.name}/{text}".encode(), digest_size=24).digest()
        return f"{text}.{_base64(seal)}"

    def revoke(self, token: str) -> None:
        self.passes.pop(token, None)

    def deleted(self, uid: str) -> None:
        self.gone[uid] = self.time.now()

    def user(self, token: str, audiences: tuple[str, ...] = ()) -> User:
        """Raises `BadToken`. The audience is that of this server, unless others are named."""
        found = self.passes.get(token)
        now = self.time.now()
        if found is None:
            return self._stranger(token)
        if found.expires is not None and now >= found.expires:
            self.late.append(found.user.name)
            raise BadToken("[invalid bearer token, service account token has expired]")
        if found.account is not None:
            uid = found.account[2]
            if uid not in self.store.uids and now - self.gone.get(uid, now - GRACE) >= GRACE:
                raise BadToken("[invalid bearer token, service account token has been invalidated]")
        wanted = audiences or (self.audience,)
        if not set(found.audiences) & set(wanted):
            raise BadToken(
                f"[invalid bearer token, token audiences {_listed(found.audiences)} is invalid for "
                f"the target audiences {_listed(wanted)}]"
            )
        return found.user

    def _stranger(self, token: str) -> User:
        """Of an issuer that is believed, and for an audience that it is believed for."""
        for one in self.trusts:
            theirs = self.keys(one.issuer)
            if theirs is not None and token in theirs.passes:
                known = theirs.user(token, one.audiences)
                return User(f"{one.prefix}{known.name}", ("system:authenticated",))
        raise BadToken("invalid bearer token")

    def audiences(self, token: str, wanted: tuple[str, ...]) -> list[str]:
        given = self.passes[token].audiences if token in self.passes else ()
        return [one for one in wanted or (self.audience,) if one in given]


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _listed(names: Iterable[str]) -> str:
    return "[" + " ".join(f'"{name}"' for name in names) + "]"


def kubeconfig(name: str, server: str, token: str, authority: bytes = b"") -> Obj:
    """A kubeconfig with one context; as JSON it is also YAML. `authority` is PEM."""
    cluster = {"server": server}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
