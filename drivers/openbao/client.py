"""
OpenBao on the wire: hvac's adapter below, plain values above, and one place where errors turn.

    BaoError
     ├─ Unreachable   no answer, or none that OpenBao gives
     ├─ Sealed        it answers, but nothing can be asked of it yet
     ├─ Denied        the token may not, or is no good
     ├─ Missing       nothing at that path
     └─ Refused       400: it will not be done as asked

Blocking: to be used inside of `Network.blocking`, with a session of its own each time, so that no
answer rests on a connection that was made before a certificate changed. A message is OpenBao's
own words, scrubbed and cut short; it never holds a request's body.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

import hvac.adapters
import hvac.exceptions
import msgspec
import requests

from fleetd import errors, secrets
from fleetd.kube.facts import part
from fleetd.secrets import Secret

ANSWER = 30
"""Seconds for one request. Initialising waits for an election, 8 s with the default settings."""
SAID_MAX = 300
SAFE = "/~-._"
"""Of a path; `/` parts the names in it."""
EMPTY = 204
NOT_ANSWERING = 0
ACTIVE = 200


class BaoError(errors.FleetError):
    """OpenBao did not do what was asked."""

    passing = False
    """Whether the same request may succeed later without anybody's doing."""


class Unreachable(BaoError):
    passing = True


class Sealed(BaoError):
    passing = True


class Denied(BaoError):
    pass


class Missing(BaoError):
    pass


class Refused(BaoError):
    pass


def translated(url: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever hvac gives
    """The one seam: what hvac and requests raise becomes a BaoError."""
    try:
        return call()
    except hvac.exceptions.VaultError as cause:
        made = _error(cause)
    except (AttributeError, TypeError):
        made = Unreachable(f"OpenBao at {url} answers an error that is none of its own")
    except (requests.RequestException, OSError, ValueError) as cause:
        made = Unreachable(f"OpenBao at {url} does not answer: {type(cause).__name__}")
    # From outside of the block: the library's exception carries requests and answers, and must
    # not hang on to ours as its context.
    raise made


def _error(cause: hvac.exceptions.VaultError) -> BaoError:
    given: object = getattr(cause, "errors", None)
    said = "; ".join(str(one) for one in cast("list[object]", given)) if given else ""
    words = secrets.scrub(said)[:SAID_MAX]
    match cause:
        case hvac.exceptions.VaultDown() | hvac.exceptions.VaultNotInitialized():
            return Sealed(f"OpenBao is not open: {words or 'no reason given'}")
        case hvac.exceptions.Forbidden() | hvac.exceptions.Unauthorized():
            return Denied(f"OpenBao refuses: {words or 'permission denied'}")
        case hvac.exceptions.InvalidPath() if _own(cause):
            return Missing("there is nothing at this path in OpenBao")
        case hvac.exceptions.InvalidRequest():
            return Refused(f"OpenBao will not do it: {words or 'bad request'}")
        case _:
            return Unreachable(f"OpenBao is not well: {words or type(cause).__name__}")


def _own(cause: hvac.exceptions.VaultError) -> bool:
    """Whether OpenBao said it: a proxy on the way has a 404 as well, and knows of no path."""
    told: object = getattr(cause, "json", None)
    return isinstance(told, dict) and bool({"errors", "data"} & cast("dict[str, Any]", told).keys())


@dataclass(frozen=True, slots=True)
class Kept:
    """One version of a path of the KV engine."""

    version: int
    values: Mapping[str, Secret]


def _wrapped(value: object) -> Secret:
    """What is no text becomes the JSON that it came as."""
    return Secret(value if isinstance(value, str) else msgspec.json.encode(value).decode())


class Bao:
    """One OpenBao, or one member of it, while a session lasts."""

    def __init__(self, url: str, token: Secret | None, session: requests.Session) -> None:
        self._url = url
        # Not by way of hvac's client, which makes an object for each engine that OpenBao may have.
        self._adapter: Any = hvac.adapters.JSONAdapter(
            base_uri=url,
            token=token.reveal() if token is not None else "",
            session=session,
            timeout=ANSWER,
            allow_redirects=False,
            verify=True,
        )

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: str
    ) -> dict[str, Any]:
        """The whole answer; empty where OpenBao sends none, which it says by 204. Anything else
        (a redirect, a page of a proxy) is not its answer, and nothing was done by it."""
        answer = self._send(method, path, json=body, params=query or None)
        if isinstance(answer, dict):
            return cast("dict[str, Any]", answer)
        if answer.status_code != EMPTY:
            raise self._strange(f"{answer.status_code}, as something else would")
        return {}

    def _strange(self, what: str) -> Unreachable:
        return Unreachable(f"OpenBao at {self._url} answers {what}; look at what is in between")

    def _send(self, method: str, path: str, **options: Any) -> Any:  # noqa: ANN401 - hvac's
        # A name may have any character, and some of them would end the path of a URL.
        if {".", ".."} & set(path.split("/")):
            raise Refused(f"{path} is no path: none of its parts may be '.' or '..'")
        where = f"/v1/{quote(path, safe=SAFE)}"
        return translated(self._url, lambda: self._adapter.request(method, where, **options))

    def read(self, path: str, **query: str) -> dict[str, Any] | None:
        """`data` of the answer; None if there is nothing."""
        try:
            answer = self.ask("get", path, None, **query)
        except Missing:
            return None
        if "data" not in answer:
            raise self._strange("without data")
        found: dict[str, Any] | None = answer["data"]
        return found

    def keys(self, path: str) -> list[str]:
        """By GET: the verb LIST is OpenBao's own, and proxies on the way refuse it."""
        try:
            answer = self.ask("get", path, None, list="true")
        except Missing:
            return []
        found: object = part(answer, "data").get("keys")
        if not isinstance(found, list):
            raise self._strange("without the keys that it was asked for")
        return [str(key) for key in cast("list[object]", found)]

    def write(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self.ask("post", path, body)

    # Members.

    def code(self) -> int:
        """Status of sys/health; 0: OpenBao does not answer. A balancer in front of it knows the
        same numbers, so the answer must be one that only OpenBao gives."""
        try:
            answer = self._send("get", "sys/health", raise_exception=False)
            if isinstance(answer, dict):  # hvac gives the body itself for 200
                return ACTIVE if "sealed" in answer else NOT_ANSWERING
            told = translated(self._url, answer.json)
        except Unreachable:
            return NOT_ANSWERING
        theirs = isinstance(told, dict) and "sealed" in told
        return int(answer.status_code) if theirs else NOT_ANSWERING

    def peers(self) -> int:
        found = part(self.read("sys/storage/raft/configuration"), "config").get("servers")
        if not isinstance(found, list):
            raise self._strange("without its peers")
        return len(cast("list[object]", found))

    # KV v2.

    def metadata(self, mount: str, path: str) -> dict[str, Any] | None:
        return self.read(f"{mount}/metadata/{path}")

    def secret(self, mount: str, path: str, version: int = 0) -> Kept | None:
        """A version, or the newest; None if there is none, or it was deleted."""
        found = self.read(f"{mount}/data/{path}", version=str(version))
        if found is None or found.get("data") is None:
            return None
        values = {str(key): _wrapped(value) for key, value in found["data"].items()}
        return Kept(int(found["metadata"]["version"]), values)

    def put(self, mount: str, path: str, values: Mapping[str, Secret], cas: int) -> bool:
        """A new version, if `cas` is the newest now. False: it is not."""
        data = {key: value.reveal() for key, value in values.items()}
        try:
            self.write(f"{mount}/data/{path}", {"data": data, "options": {"cas": cas}})
        except Refused as cause:
            if "check-and-set" in str(cause):
                return False
            raise
        return True

    def destroy(self, mount: str, path: str, versions: Sequence[int]) -> None:
        """For good: the data of these versions is gone; that they were stays known."""
        self.write(f"{mount}/destroy/{path}", {"versions": list(versions)})

    def stamp(self, mount: str, path: str, custom: Mapping[str, str]) -> None:
        """Adds to the custom metadata; what others keep there stays."""
        known = self.metadata(mount, path) or {}
        before: Mapping[str, str] = known.get("custom_metadata") or {}
        self.write(f"{mount}/metadata/{path}", {"custom_metadata": {**before, **custom}})

    def random(self, count: int) -> bytes:
        """Chance of a good source, and the same way in every world."""
        answer = self.write(f"sys/tools/random/{count}", {"format": "hex"})
        return bytes.fromhex(answer["data"]["random_bytes"])

    # Kubernetes auth.

    def login(self, mount: str, role: str, jwt: Secret) -> None:
        """Tries a login, and forgets the token; raises Denied or Refused."""
        self.write(f"auth/{mount}/login", {"role": role, "jwt": jwt.reveal()})
