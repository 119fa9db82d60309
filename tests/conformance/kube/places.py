"""
The API servers that are judged: the simulator in both its faces, and a real one.

Simulated time runs a hundred times as fast as ours, so a claim about ten seconds costs a tenth
of one.
"""

import asyncio
import functools
import hashlib
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import aiohttp

from fleetd.kube import config
from fleetd.kube.transport import Request, Response, Transport
from fleetd.sim.faces.inprocess import InProcess
from fleetd.sim.faces.wire import Wire
from fleetd.sim.kube.cluster import Cluster
from tests.conformance.kube.api import Answer
from tests.real import lab, reach

PACE = 100.0
START = datetime(2030, 1, 1, tzinfo=UTC)


class Hurried:
    """Simulated time over an ordinary loop, a hundred times as fast."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._zero = self._loop.time()

    def now(self) -> datetime:
        return START + timedelta(seconds=(self._loop.time() - self._zero) * PACE)

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        self._loop.call_later(seconds / PACE, call)


def uid_of(text: str) -> str:
    return str(uuid.UUID(bytes=hashlib.blake2b(text.encode(), digest_size=16).digest()))


class Asked(Protocol):
    async def __call__(
        self, method: str, path: str, headers: Mapping[str, str], token: str = ""
    ) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Server:
    admin: Transport
    login: Callable[[str], Transport]
    asked: Asked
    """A request with headers of its own, by the administrator or the holder of a token."""
    kubeconfig: dict[str, Any] = field(default_factory=dict[str, Any])
    """The administrator's, for other people's clients; empty where there is no wire."""


def _by_http(of_token: Callable[[str], dict[str, Any]], document: dict[str, Any]) -> Asked:
    async def asked(method: str, path: str, headers: Mapping[str, str], token: str = "") -> Answer:
        kubeconfig = of_token(token) if token else document
        target = await config.load(config.read(reach.text(kubeconfig)))
        given = dict(headers)
        if target.authorization is not None:
            given["authorization"] = target.authorization.reveal()
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                method, target.server + path, headers=given, ssl=target.tls or True
            ) as answer,
        ):
            return Answer(answer.status, await answer.read(), dict(answer.headers))

    return asked


def _cluster() -> Cluster:
    return Cluster("judged", Hurried(), uid_of=uid_of, rbac_enforced=True)


@asynccontextmanager
async def in_process() -> AsyncGenerator[Server]:
    cluster = _cluster()

    def login(token: str) -> Transport:
        return InProcess(cluster, token=token, backend="judged")

    async def asked(method: str, path: str, headers: Mapping[str, str], token: str = "") -> Answer:
        said = {"authorization": f"Bearer {token or cluster.admin_token()}", **headers}
        answer = cluster.handle(Request(method=method, path=path), said)
        assert isinstance(answer, Response)
        return Answer(answer.status, answer.body, answer.headers)

    yield Server(login(cluster.admin_token()), login, asked)
    cluster.end_watches()


@asynccontextmanager
async def on_the_wire() -> AsyncGenerator[Server]:
    cluster = _cluster()
    wire = Wire()
    wire.add("/k8s/judged", cluster)
    address = await wire.start()
    opened: list[Transport] = []

    def document(token: str) -> dict[str, Any]:
        return cluster.kubeconfig(f"{address}/k8s/judged", token)

    def login(token: str) -> Transport:
        made = reach.transport(document(token))
        opened.append(made)
        return made

    try:
        token = cluster.admin_token()
        yield Server(login(token), login, _by_http(document, document(token)), document(token))
    finally:
        for transport in opened:
            await transport.close()
        cluster.end_watches()
        await wire.stop()


@asynccontextmanager
async def real() -> AsyncGenerator[Server]:
    """One server for all tests, with the controllers of Kubernetes. See `tests.real.lab`."""
    opened: list[Transport] = []

    def opened_for(document: dict[str, Any]) -> Transport:
        made = reach.transport(document)
        opened.append(made)
        return made

    try:
        document = lab.admin("kube")
        admin = opened_for(document)
        of_token = functools.partial(lab.for_token, "kube")
        asked = _by_http(of_token, document)
        yield Server(admin, lambda token: opened_for(of_token(token)), asked, document)
    finally:
        for transport in opened:
            await transport.close()


PLACES: dict[str, Callable[[], AbstractAsyncContextManager[Server]]] = {
    "in-process": in_process,
    "wire": on_the_wire,
    "real": real,
}
