"""
How External Secrets speaks to OpenBao: log in with a ServiceAccount's token, read, push.

The order of requests and the texts of errors are those of `real-secrets` 4 of the facts: a push
reads the data, then the metadata, writes the metadata and only then the data. It reaches OpenBao
through the world's services, as the real one does over the network. Certificates are not checked.
"""

import base64
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.world import HttpRequest, HttpResponse, Service, World

Provider = Mapping[str, Any]
MANAGED_BY = "managed-by"
OURS = "external-secrets"
TOKEN_TTL = timedelta(seconds=600)
LOGIN = "unable to log in with Kubernetes auth: "


class VaultError(Exception):
    """Its text goes into an Event, and into the condition of a PushSecret."""


class NoSecret(VaultError):
    def __init__(self) -> None:
        super().__init__("Secret does not exist")


class Vault:
    """One session: from the login to the end of the token."""

    def __init__(self, world: World, cluster: Cluster, provider: Provider, namespace: str) -> None:
        """`namespace` is that of the object the session is for; a ClusterSecretStore's references
        name their own."""
        self._world = world
        self._cluster = cluster
        self._provider = provider
        self._namespace = namespace
        self._server = str(provider["server"]).rstrip("/")
        self._mount = str(provider.get("path") or "secret").strip("/")
        self._token = ""
        self._name = ""
        """Of the service behind the address, once it was asked."""
        self.versions: dict[str, int] = {}
        """What was read, as the truth names it, in which version."""

    def __enter__(self) -> Self:
        auth: Mapping[str, Any] = self._provider.get("auth") or {}
        if "tokenSecretRef" in auth:
            self._token = self._secret_key(auth["tokenSecretRef"])
        elif "kubernetes" in auth:
            self._login(auth["kubernetes"])
        else:
            raise VaultError("no auth method was given")
        answer = self._ask("GET", "auth/token/lookup-self")
        if answer.status != 200:
            self._token = ""
            said = self._failure("GET", "auth/token/lookup-self", answer)
            raise VaultError(f"invalid vault credentials: {said}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._token and "kubernetes" in (self._provider.get("auth") or {}):
            try:
                self._ask("PUT", "auth/token/revoke-self")
            except VaultError:
                return

    # What it does.

    def read(self, key: str, version: str = "") -> Mapping[str, Any]:
        """All properties of a path."""
        path = f"{self._mount}/data/{self._key(key)}"
        answer = self._ask("GET", path, query={"version": version} if version else {})
        if answer.status == 404:
            raise NoSecret
        if answer.status != 200:
            said = self._failure("GET", path, answer)
            raise VaultError(f"cannot read secret data from Vault: {said}")
        found: Any = msgspec.json.decode(answer.body)["data"]
        self.versions[f"{self._name}/{path.replace('/data/', '/', 1)}"] = found["metadata"][
            "version"
        ]
        return found["data"]

    def generate(self, path: str, method: str, parameters: object) -> Mapping[str, Any]:
        """For a VaultDynamicSecret."""
        body: object = parameters if method != "GET" else None
        answer = self._ask(method, path.strip("/"), body)
        if answer.status != 200:
            raise VaultError(f"unable to get dynamic secret: {self._failure(method, path, answer)}")
        return msgspec.json.decode(answer.body)["data"]

    def push(self, key: str, property_: str, value: bytes | Mapping[str, str]) -> None:
        """`value` is that of one property, or all properties where none is named."""
        path = self._key(key)
        before = self._before(path)
        after = _pushed(before, property_, value)
        if before == after:
            return
        stamp = {"custom_metadata": {MANAGED_BY: OURS}}
        self._write(f"{self._mount}/metadata/{path}", stamp)
        self._write(f"{self._mount}/data/{path}", {"data": after})

    def has(self, key: str, property_: str) -> bool:
        try:
            found = self.read(key)
        except NoSecret:
            return False
        return not property_ or property_ in found

    def remove(self, key: str) -> None:
        path = self._key(key)
        if self._before(path) is None:
            return
        for what in ("data", "metadata"):
            full = f"{self._mount}/{what}/{path}"
            answer = self._ask("DELETE", full)
            if answer.status >= 400:
                raise VaultError(self._failure("DELETE", full, answer))

    def _before(self, path: str) -> Mapping[str, Any] | None:
        """What is there, if it is ours to change."""
        try:
            found = self.read(path)
        except NoSecret:
            return None
        full = f"{self._mount}/metadata/{path}"
        answer = self._ask("GET", full)
        if answer.status != 200:
            said = self._failure("GET", full, answer)
            raise VaultError(f"cannot read secret data from Vault: {said}")
        custom: Mapping[str, str] = (
            msgspec.json.decode(answer.body)["data"]["custom_metadata"] or {}
        )
        if custom.get(MANAGED_BY) != OURS:
            raise VaultError("secret not managed by external-secrets")
        return found

    def _write(self, path: str, body: object) -> None:
        answer = self._ask("PUT", path, body)
        if answer.status >= 400:
            raise VaultError(self._failure("PUT", path, answer))

    # Login.

    def _login(self, auth: Mapping[str, Any]) -> None:
        reference: Mapping[str, Any] = auth["serviceAccountRef"]
        namespace = str(reference.get("namespace") or self._namespace)
        name = str(reference["name"])
        account = self._cluster.get(("", "ServiceAccount"), name, namespace)
        if account is None:
            raise VaultError(f'{LOGIN}ServiceAccount "{name}" not found')
        tokens = self._cluster.tokens
        jwt = tokens.issue(
            f"system:serviceaccount:{namespace}:{name}",
            ("system:serviceaccounts", f"system:serviceaccounts:{namespace}"),
            expires=self._world.now() + TOKEN_TTL,
            audiences=tuple(reference.get("audiences") or ()),
            account=(namespace, name, account["metadata"]["uid"]),
        )
        path = f"auth/{str(auth['mountPath']).strip('/')}/login"
        try:
            answer = self._ask("PUT", path, {"role": auth["role"], "jwt": jwt})
        finally:
            tokens.revoke(jwt)
        if answer.status != 200:
            raise VaultError(LOGIN + self._failure("PUT", path, answer))
        self._token = msgspec.json.decode(answer.body)["auth"]["client_token"]

    def _secret_key(self, reference: Mapping[str, Any]) -> str:
        namespace = str(reference.get("namespace") or self._namespace)
        secret = self._cluster.get(("", "Secret"), str(reference["name"]), namespace)
        data: Mapping[str, str] = secret.get("data") or {} if secret is not None else {}
        key = str(reference.get("key") or "token")
        if key not in data:
            raise VaultError(f'cannot get Kubernetes secret "{reference["name"]}": not found')
        return base64.b64decode(data[key]).decode()

    # Wire.

    def _key(self, key: str) -> str:
        """A leading mount and `data/` are tolerated."""
        return key.removeprefix(f"{self._mount}/").removeprefix("data/").strip("/")

    def _ask(
        self, method: str, path: str, body: object = None, query: Mapping[str, str] | None = None
    ) -> HttpResponse:
        service = self._service()
        request = HttpRequest(
            method=method,
            path=f"/v1/{path}",
            query=query or {},
            headers={"x-vault-token": self._token} if self._token else {},
            body=msgspec.json.encode(body) if body is not None else b"",
        )
        try:
            return service.handle(request)
        except ConnectionError:
            raise VaultError(
                f"{self._dialled(method, path)}: connect: connection refused"
            ) from None

    def _service(self) -> Service:
        wanted = urlsplit(self._server)
        for name, service in self._world.services.items():
            address = urlsplit(self._world.address(name))
            if address.hostname != wanted.hostname:
                continue
            if address.port is None or address.port == wanted.port:
                self._name = name
                return service
        raise VaultError(f"dial tcp: lookup {wanted.hostname}: no such host")

    def _dialled(self, method: str, path: str) -> str:
        where = urlsplit(self._server).netloc
        return f'{method.capitalize()} "{self._server}/v1/{path}": dial tcp {where}'

    def _failure(self, method: str, path: str, answer: HttpResponse) -> str:
        try:
            said: list[str] = msgspec.json.decode(answer.body).get("errors") or []
        except msgspec.MsgspecError:
            said = []
        told = " ".join(f"* {one}" for one in said)
        return (
            f"Error making API request. URL: {method} {self._server}/v1/{path} "
            f"Code: {answer.status}. Errors: {told}"
        )


def _pushed(
    before: Mapping[str, Any] | None, property_: str, value: bytes | Mapping[str, str]
) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if property_:
        return {**(before or {}), property_: value.decode()}
    try:
        return msgspec.json.decode(value, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise VaultError(
            "error unmarshalling vault secret: invalid character looking for beginning of value"
        ) from None
