"""
How fleetd reaches and enters the OpenBao of a region.

A managed one is found by the Service of its chart, and entered with the root token that lies in
the Secret of its initialisation; one of the customer's own by the documents' address and access.
The token is kept in memory, and forgotten when OpenBao refuses it. Nothing here is a fact: an
address may be shown, a token never leaves this module but towards OpenBao.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import requests

from drivers.openbao import client, fleet
from drivers.openbao.client import Bao
from fleetd.gate import GateClosed
from fleetd.kube import errors
from fleetd.secrets import Secret, SecretError
from fleetd.tools import Tools
from topology.resource import Facts, Resource

T = TypeVar("T")

MANAGED = "managed"
NAMESPACE = "shared-services"
SERVICE = "openbao"
KEYS = "openbao-init-keys"
INIT_OUTPUT = "init-output"
PORT = 8200
THRESHOLD = 3


class NoAddress(client.Unreachable):
    """Its Service has none yet."""


@dataclass(frozen=True, slots=True)
class Output:
    """What OpenBao said when it was initialised, and never says again."""

    token: Secret | None = None
    keys: tuple[Secret, ...] = ()
    threshold: int = THRESHOLD


class Access:
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._tokens: dict[str, Secret] = {}
        """By region."""

    async def ask(self, want: Resource, call: Callable[[Bao], T]) -> T:
        """The result of `call` with an open OpenBao, over a fresh connection."""
        url = await self.address(want)
        token = await self._token(want)
        try:
            return await self._call(backend(want.region), url, call, token)
        except client.Denied:
            # It may be ours that is no good any more; the next look reads it again.
            self._tokens.pop(want.region, None)
            raise

    async def ask_as_nobody(self, want: Resource, call: Callable[[Bao], T]) -> T:
        """The same without a token: for who logs in."""
        url = await self.address(want)
        return await self._call(backend(want.region), url, call, None)

    async def ask_member(self, region: str, url: str, call: Callable[[Bao], T]) -> T:
        """The same at one member. That it is silent is what one wants to know of it, and says
        nothing about the others."""
        return await self._call(f"{backend(region)}/members", url, call, None, counted=False)

    async def _call(
        self,
        backend: str,
        url: str,
        call: Callable[[Bao], T],
        token: Secret | None,
        *,
        counted: bool = True,
    ) -> T:
        def run(session: requests.Session) -> T:
            return call(Bao(url, token, session))

        try:
            return await self._tools.net.blocking(backend, run, counted=counted)
        except GateClosed as closed:
            raise client.Unreachable(str(closed)) from None

    async def address(self, want: Resource) -> str:
        told = fleet.secrets_of(self._tools.fleet.everything(), want)
        if told["address"] != MANAGED:
            return str(told["address"])
        service = await self._service(self._backend(want), SERVICE)
        if service is None:
            raise NoAddress("the Service of OpenBao is not there yet")
        url = url_of(service)
        if not url:
            raise NoAddress("the Service of OpenBao has no address yet")
        return url

    async def output(self, backend: str) -> "Output | None":
        """The keys and the root token of a managed OpenBao; None: there is no such Secret; without
        keys: it is there, but holds none yet."""
        found = await self._tools.clusters.secret(backend, KEYS, NAMESPACE)
        if found is None:
            return None
        if INIT_OUTPUT not in found.values:
            return Output()
        try:
            told = msgspec.json.decode(found.values[INIT_OUTPUT].reveal(), type=dict[str, Any])
            return Output(
                token=Secret(str(told["root_token"])),
                keys=tuple(Secret(str(key)) for key in told["unseal_keys_b64"]),
                threshold=int(told.get("unseal_threshold") or THRESHOLD),
            )
        except (KeyError, TypeError, ValueError, msgspec.MsgspecError):
            # Raised from outside of this block: the decoder's error shows what it read.
            pass
        raise SecretError(f"{INIT_OUTPUT} of Secret {NAMESPACE}/{KEYS} is not as OpenBao gave it")

    async def secret(self, access: Facts, want: Resource) -> Secret:
        """For `tools.secrets`: what a document names by `{openbao: {path, key}}`."""
        named: Facts = access["openbao"]
        path, key = str(named["path"]), str(named.get("key") or "value")
        mount = str(fleet.secrets_of(self._tools.fleet.everything(), want)["mount"])
        try:
            found = await self.ask(want, lambda bao: bao.secret(mount, path))
        except client.BaoError as cause:
            raise SecretError(f"{mount}/{path} cannot be read: {cause}") from None
        if found is None or key not in found.values:
            raise SecretError(f"there is no {key} at {mount}/{path} in OpenBao; write it there")
        return found.values[key]

    async def _token(self, want: Resource) -> Secret:
        known = self._tokens.get(want.region)
        if known is not None:
            return known
        topology = self._tools.fleet.everything()
        told = fleet.secrets_of(topology, want)
        if told["address"] == MANAGED:
            found = await self.output(self._backend(want))
            if found is None or found.token is None:
                raise client.Sealed("OpenBao is not open: it was not initialised by fleetd yet")
            token = found.token
        else:
            if not told.get("access"):
                raise SecretError("the documents do not say how to log in to OpenBao; give access")
            token = await self._tools.secrets.read(told["access"], want)
        self._tokens[want.region] = token
        return token

    def _backend(self, want: Resource) -> str:
        cluster = fleet.management(self._tools.fleet.everything(), want)
        return f"cluster:{cluster}"

    async def _service(self, backend: str, name: str) -> dict[str, Any] | None:
        try:
            cache = await self._tools.clusters.cache(backend, "", "Service")
        except errors.NotFound:
            return None
        return cache.get(name, NAMESPACE)


def backend(region: str) -> str:
    return f"openbao:{region}"


def url_of(service: Mapping[str, Any], scheme: str = "") -> str:
    """Where a Service of type LoadBalancer is reached; empty: nowhere yet. The chart names its
    port after what is spoken there."""
    status: Mapping[str, Any] = service.get("status") or {}
    balancer: Mapping[str, Any] = status.get("loadBalancer") or {}
    ingress: list[Mapping[str, Any]] = balancer.get("ingress") or []
    if not ingress:
        return ""
    host = ingress[0].get("hostname") or ingress[0].get("ip") or ""
    ports: list[Mapping[str, Any]] = service["spec"].get("ports") or []
    told: list[Mapping[str, Any]] = ingress[0].get("ports") or []
    port = told[0]["port"] if told else ports[0]["port"] if ports else PORT
    spoken = scheme or ("http" if ports and ports[0].get("name") == "http" else "https")
    return f"{spoken}://{host}:{port}" if host else ""
