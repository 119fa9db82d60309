"""
The API servers fleetd has access to, by backend: a client and the caches of each.

A kubeconfig is kept in memory only, and is replaced while everything runs: caches go on with the
new one, requests under way end on the old one. Whatever a client from here writes is noted in the
caches, so no driver reads an answer that is older than its own deed. The one rule: `run` owns every
cache, and no cache, however it fails, ends it.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog

from fleetd.clock import Clock
from fleetd.gate import Gates
from fleetd.kube import client as kube
from fleetd.kube import errors, secretview
from fleetd.kube.cache import Cache, Stale
from fleetd.kube.client import KubeClient
from fleetd.kube.gated import GatedTransport
from fleetd.kube.kinds import Kind
from fleetd.kube.room import MIB, MOST, Room
from fleetd.kube.secretview import SecretView
from fleetd.kube.slim import Memo, Object, Slim
from fleetd.kube.transport import Transport
from fleetd.secrets import Secret
from topology.resource import Ref

_log = structlog.stdlib.get_logger("fleetd.kube.clusters")

SYNC_LIMIT = 10.0
"""Seconds for the first list of a cache. A look has 20, and wants some for the rest."""
UNUSED = timedelta(minutes=30)
"""A cache that nobody has read for so long is given up. What is Ready is looked at every few
minutes, so all its readers are gone."""
UNSERVED = timedelta(minutes=5)
"""So long may a server not know a kind that it knew: it forgets some for a while when it starts."""
LINGER = timedelta(seconds=60)
"""How long an old connection is kept for the requests under way on it. Longer than any of them."""
TEND = 30.0
"""Seconds between rounds in which unused caches and old connections are given up."""
CLOSE_LIMIT = 5.0
"""Seconds for all that are closed at once. A stop has 10 for everything."""


class NoAccess(errors.KubeError):
    """There is no kubeconfig for it, or not yet."""


@contextmanager
def _named(backend: str) -> Generator[None]:
    """Whoever fails in here says who it was that did not answer as it should."""
    try:
        yield
    except errors.KubeError as cause:
        if cause.passing and not cause.silent:
            cause.silent = backend
        raise


_Which = tuple[str, str, str]
"""Group, kind and namespace of a cache."""


@dataclass(slots=True)
class _Kept:
    cache: Cache
    task: asyncio.Task[None]


class _Caches(dict[_Which, _Kept]):
    """Of one backend; they outlive the client they began with."""

    def __init__(self, room: Room) -> None:
        super().__init__()
        self.room = room

    def wrote(self, kind: Kind, obj: Object, told: Slim | None = None) -> None:
        for cache in self._of(kind):
            cache.note(obj, told)

    def deleted(self, kind: Kind, name: str, namespace: str, uid: str) -> None:
        for cache in self._of(kind):
            cache.note_deleted(name, namespace, uid)

    def _of(self, kind: Kind) -> list[Cache]:
        wanted = (kind.group, kind.kind)
        return [kept.cache for which, kept in self.items() if which[:2] == wanted]


class _Lent(NamedTuple):
    kubeconfig: Secret
    expires: datetime | None


@dataclass(slots=True, kw_only=True)
class _Backend:
    kubeconfig: Secret
    expires: datetime | None
    transport: Transport
    client: KubeClient
    caches: _Caches
    lent: _Lent | None


class Clusters:
    def __init__(
        self,
        connect: Callable[[Secret], Transport],
        *,
        gates: Gates,
        clock: Clock,
        rng: random.Random,
        wake: Callable[[Ref], None],
        manager: str = kube.MANAGER,
        kept: int = MOST,
    ) -> None:
        """`connect` is `Network.kube`; `wake` is called for who read what has changed; `kept`: MiB
        of one server at most."""
        self._connect = connect
        self._gates = gates
        self._clock = clock
        self._rng = rng
        self._wake = wake
        self._manager = manager
        self._memo = Memo()
        self._kept = kept * MIB
        self._backends: dict[str, _Backend] = {}
        self._old: list[tuple[float, Transport]] = []
        self._group: asyncio.TaskGroup | None = None

    def put(self, backend: str, kubeconfig: Secret, *, expires: datetime | None = None) -> None:
        """Access to `backend` from now on. Raises KubeError if the kubeconfig is no good; then
        everything stays as it was."""
        known = self._backends.get(backend)
        if known is not None and known.kubeconfig == kubeconfig:
            known.expires = expires
            return
        transport = GatedTransport(self._connect(kubeconfig), self._gates.of(backend), self._clock)
        caches = known.caches if known is not None else _Caches(Room(self._kept))
        client = KubeClient(transport, manager=self._manager, listener=caches)
        self._backends[backend] = _Backend(
            kubeconfig=kubeconfig,
            expires=expires,
            transport=transport,
            client=client,
            caches=caches,
            lent=known.lent if known is not None else None,
        )
        for kept in caches.values():
            kept.cache.use(client)
        if known is not None:
            self._retire(known.transport)

    def lend(self, backend: str, kubeconfig: Secret, *, expires: datetime | None) -> None:
        """What is handed on from now on instead of the one in use, which is for fleetd alone.
        Raises `NoAccess`."""
        self._known(backend).lent = _Lent(kubeconfig, expires)

    @asynccontextmanager
    async def trial(self, backend: str, kubeconfig: Secret) -> AsyncGenerator[KubeClient]:
        """A client of its own for a kubeconfig that is not in force: to try it, or to do with it
        what the one in force may not. Raises KubeError if it is no good."""
        transport = GatedTransport(self._connect(kubeconfig), self._gates.of(backend), self._clock)
        try:
            known = self._backends.get(backend)
            caches = known.caches if known is not None else None
            yield KubeClient(transport, manager=self._manager, listener=caches)
        finally:
            self._retire(transport)

    def drop(self, backend: str) -> None:
        known = self._backends.pop(backend, None)
        if known is None:
            return
        for kept in known.caches.values():
            kept.task.cancel()
        self._retire(known.transport)

    def has(self, backend: str) -> bool:
        return backend in self._backends

    def alone(self, backend: str) -> bool:
        """Whether the one in use is for fleetd alone, and others are handed another."""
        known = self._backends.get(backend)
        lent = known.lent if known is not None else None
        return known is not None and lent is not None and lent.kubeconfig != known.kubeconfig

    def ends(self, backend: str) -> datetime | None:
        """When the one in use ceases to be good; None if there is none, or it does not say."""
        known = self._backends.get(backend)
        return known.expires if known is not None else None

    def expires(self, backend: str) -> datetime | None:
        """The same of the one that is handed on (`kubeconfig`)."""
        known = self._backends.get(backend)
        lent = known.lent if known is not None else None
        return lent.expires if lent is not None else self.ends(backend)

    def kubeconfig(self, backend: str) -> Secret:
        """For who hands it on: the one that was lent, or else the one in use. Raises
        `NoAccess`."""
        known = self._known(backend)
        return known.lent.kubeconfig if known.lent is not None else known.kubeconfig

    def client(self, backend: str) -> KubeClient:
        return self._known(backend).client

    async def secret(self, backend: str, name: str, namespace: str) -> SecretView | None:
        """One Secret, as the server has it now; None if there is none."""
        there = self.client(backend)
        with _named(backend):
            live = await there.get(await there.find(*secretview.KIND), name, namespace)
        return SecretView.of(live) if live is not None else None

    async def cache(
        self,
        backend: str,
        group: str,
        kind: str,
        namespace: str = "",
        *,
        within: float = SYNC_LIMIT,
    ) -> Cache:
        """Synced, after so many seconds at the latest, and with a connection. Raises `NotServed`
        if the server does not serve the kind, `Stale` if it cannot be asked."""
        if (group, kind) == secretview.KIND:
            raise errors.Invalid("Secrets are not collected; ask for one by its name")
        which = (group, kind, namespace)
        kept = self._known(backend).caches.get(which)
        if kept is not None and self._given_up(kept.cache):
            self._stop(backend, which)
            kept = None
        with _named(backend):
            if kept is None:
                found = await self._known(backend).client.find(group, kind)
                # Others may have come first while the server was asked.
                kept = self._known(backend).caches.get(which) or self._start(backend, which, found)
            await kept.cache.synced(within)
            kept.cache.check()
        return kept.cache

    def deaf(self, backend: str) -> list[str]:
        """What is not heard of any more there, and why: whoever reads it is blind."""
        known = self._backends.get(backend)
        found: list[str] = []
        for kept in known.caches.values() if known is not None else ():
            try:
                kept.cache.check()
            except Stale as cause:
                if kept.cache.lost_since is not None:
                    found.append(str(cause))
        return sorted(found)

    async def refresh(
        self, backend: str, kind: Kind, name: str, namespace: str = ""
    ) -> Object | None:
        """Ask the server itself, and let the caches know: for what must not be decided on an old
        answer."""
        live = await self.client(backend).get(kind, name, namespace)
        if live is not None and self.has(backend):
            self._known(backend).caches.wrote(kind, live)
        return live

    async def run(self) -> None:
        """Owns the caches and connections; until cancelled. After it nothing is open."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                try:
                    while True:
                        await asyncio.sleep(TEND)
                        self._give_up_unused()
                        await self._close_old(self._clock.monotonic())
                finally:
                    # A group that ends takes no new task; whoever asks for a cache is told.
                    self._group = None
        finally:
            await self.close()

    async def close(self) -> None:
        """All connections, where `run` did not run."""
        for backend in list(self._backends):
            self.drop(backend)
        await self._close_old(float("inf"))

    def _known(self, backend: str) -> _Backend:
        known = self._backends.get(backend)
        if known is None:
            raise NoAccess(f"there is no kubeconfig for {backend} yet")
        return known

    def _start(self, backend: str, which: _Which, kind: Kind) -> _Kept:
        if self._group is None:
            raise NoAccess("no cache can be kept: Clusters.run is not running")
        known = self._known(backend)
        cache = Cache(
            known.client,
            kind,
            which[2],
            clock=self._clock,
            rng=self._rng,
            wake=self._wake,
            memo=self._memo,
            room=known.caches.room,
        )
        task = self._group.create_task(
            self._keep(backend, which, cache), name=f"cache {backend} {cache}"
        )
        kept = _Kept(cache, task)
        known.caches[which] = kept
        return kept

    async def _keep(self, backend: str, which: _Which, cache: Cache) -> None:
        try:
            await cache.run()
        except Exception as cause:  # noqa: BLE001 - whatever it was, the next reader makes a new one
            _log.error("cache failed", backend=backend, cache=str(cache), exc_info=cause)
        finally:
            known = self._backends.get(backend)
            kept = known.caches.get(which) if known is not None else None
            if known is not None and kept is not None and kept.cache is cache:
                del known.caches[which]

    def _stop(self, backend: str, which: _Which) -> None:
        kept = self._known(backend).caches.pop(which, None)
        if kept is not None:
            kept.task.cancel()

    def _given_up(self, cache: Cache) -> bool:
        return cache.unserved and cache.lost_for > UNSERVED

    def _give_up_unused(self) -> None:
        for backend, known in self._backends.items():
            for which, kept in list(known.caches.items()):
                if kept.cache.idle > UNUSED:
                    self._stop(backend, which)

    def _retire(self, transport: Transport) -> None:
        self._old.append((self._clock.monotonic() + LINGER.total_seconds(), transport))

    async def _close_old(self, now: float) -> None:
        due = [transport for at, transport in self._old if at <= now]
        self._old = [(at, transport) for at, transport in self._old if at > now]
        for transport in due:
            try:
                async with asyncio.timeout(CLOSE_LIMIT / len(due)):
                    await transport.close()
            except Exception as cause:  # noqa: BLE001 - it is not needed any more either way
                _log.warning("connection not closed", exc_info=cause)
