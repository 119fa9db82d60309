"""
The API servers that are judged: the simulator in both its faces, and a real one.

Simulated time runs a hundred times as fast as ours, so a claim about ten seconds costs a tenth
of one.
"""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fleetd.kube.transport import Transport
from fleetd.sim.faces.inprocess import InProcess
from fleetd.sim.faces.wire import Wire
from fleetd.sim.kube.cluster import Cluster
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


@dataclass(frozen=True, slots=True)
class Server:
    admin: Transport
    login: Callable[[str], Transport]
    kubeconfig: dict[str, Any] = field(default_factory=dict[str, Any])
    """The administrator's, for other people's clients; empty where there is no wire."""


def _cluster() -> Cluster:
    return Cluster("judged", Hurried(), uid_of=uid_of, rbac_enforced=True)


@asynccontextmanager
async def in_process() -> AsyncGenerator[Server]:
    cluster = _cluster()

    def login(token: str) -> Transport:
        return InProcess(cluster, token=token, backend="judged")

    yield Server(login(cluster.admin_token()), login)
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
        yield Server(login(token), login, document(token))
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
        yield Server(admin, lambda token: opened_for(lab.for_token("kube", token)), document)
    finally:
        for transport in opened:
            await transport.close()


PLACES: dict[str, Callable[[], AbstractAsyncContextManager[Server]]] = {
    "in-process": in_process,
    "wire": on_the_wire,
    "real": real,
}
