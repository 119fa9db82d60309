"""
The simulated world: clusters, services and machines behind the wire, all from one seed.

It knows nothing of fleetd's drivers or planner; they meet it as requests. Its time is that of the
running event loop, virtual or paced, and its chance comes in named streams: what is drawn for one
thing does not depend on what happened to another, so a changed fleet stays comparable with the old
one. The one rule: whatever happens here follows from the seed and the requests, and is told in the
trace.
"""

import asyncio
import hashlib
import random
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol, cast

from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.recent import Recent
from fleetd.sim.truth import Truth

_SPACE = uuid.UUID("5d5a2f0e-4d0e-4a5c-9a51-2f1cb3f6a001")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """To a service that is no API server."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Service(Protocol):
    """OpenBao, Ironic, Keystone, Nova, a BMC: a request gives a response."""

    def handle(self, request: HttpRequest) -> HttpResponse: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """One line of the trace."""

    at: float
    """Seconds since the world began."""
    what: str
    where: str
    detail: str

    def __str__(self) -> str:
        return f"{timedelta(seconds=round(self.at, 3))} {self.where}: {self.what} {self.detail}"


class Broken(Exception):
    """The simulator itself erred, or was asked for something that cannot be."""


class Befallen(set[tuple[str, str, str]]):
    """Mishaps that last, and how often somebody whom they concern asked: one that nobody ever asks
    about does nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[tuple[str, str, str]] = Counter()

    def __contains__(self, mishap: object) -> bool:
        found = super().__contains__(mishap)
        if found:
            self.asked[cast("tuple[str, str, str]", mishap)] += 1
        return found


class World:
    def __init__(self, seed: int, start: datetime) -> None:
        self.seed = seed
        self.luck: object = seed
        """What durations and faults are drawn from. Names and keys stay those of the seed."""
        self.start = start
        self._noted = (0.0, start)
        """Asked many times in a moment."""
        self.clusters: dict[str, Cluster] = {}
        self.services: dict[str, Service] = {}
        self.hosts: dict[str, str] = {}
        """Services that are reached under a name of the documents."""
        self.truth = Truth()
        self.trace = Recent[Happening]()
        self.told: Callable[[Happening], None] | None = None
        self.failures: list[BaseException] = []
        """What controllers raised; a run with one of these has failed."""
        self.address: Callable[[str], str] = lambda name: f"https://{name}.sim"
        """Where a cluster or service is reached; the wire face puts its own here."""
        self.appeared: Callable[[str], None] | None = None
        """Told when a cluster comes to be; the wire face serves it then."""
        self.newcomers: list[Callable[[Cluster], None]] = []
        """Called with each cluster that comes to be."""
        self.controllers: dict[tuple[str, str], Any] = {}
        """Those that run, by cluster and name."""
        self.skew = timedelta(0)
        """How far the daemon's clock on the wall is off."""
        self.mishaps = Befallen()
        """What goes wrong inside of controllers: ("shoot", "hv", "stuck"), ("image",
        "cp/keystone-operator", "bad"), ("eso", "hv", "lagging"), ("ceph", "st", "degraded").
        Controllers ask; `fleetd.sim.mishaps` says."""
        self.listeners: list[Callable[[tuple[str, str, str]], None]] = []
        """Called when a mishap begins or is over."""

    # Time and chance.

    def now(self) -> datetime:
        at = self.elapsed()
        if at != self._noted[0]:
            self._noted = (at, self.start + timedelta(seconds=at))
        return self._noted[1]

    def elapsed(self) -> float:
        return asyncio.get_running_loop().time()

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """`call` in that time. What it raises is kept and fails the run."""
        asyncio.get_running_loop().call_later(max(seconds, 0.0), self._guarded, call)

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as fault:  # noqa: BLE001 - kept; the run fails with it
            self.failures.append(fault)
            self.tell("broke", "world", f"{type(fault).__name__}: {fault}")

    def stream(self, *purpose: str) -> random.Random:
        """A stream of its own for each purpose: the same for the same luck and words."""
        return random.Random(f"{self.luck}/{'/'.join(purpose)}")  # noqa: S311 - no secret hangs on it

    def span(self, low: float, high: float, *purpose: str) -> float:
        """Seconds between two bounds, drawn for this purpose."""
        return low + (high - low) * self.stream(*purpose).random()

    def uid(self, name: str) -> str:
        return str(uuid.uuid5(_SPACE, f"{self.seed}/{name}"))

    def token(self, *words: str) -> str:
        """Something that looks random and is not: keys, tokens, passwords of the world."""
        return hashlib.blake2b(
            f"{self.seed}/{'/'.join(words)}".encode(), digest_size=20
        ).hexdigest()

    # Places.

    def add_cluster(self, name: str) -> Cluster:
        if name in self.clusters:
            raise Broken(f"there is a cluster {name} already")
        cluster = Cluster(
            name,
            self,
            uid_of=lambda words: self.uid(f"{name}/{words}"),
            rbac_enforced=True,
        )
        self.clusters[name] = cluster
        if self.appeared is not None:
            self.appeared(name)
        for welcome in self.newcomers:
            welcome(cluster)
        return cluster

    def remove_cluster(self, name: str) -> None:
        self.clusters.pop(name, None)
        for key in [key for key in self.controllers if key[0] == name]:
            self.controllers.pop(key).stop()

    # The trace.

    def tell(self, what: str, where: str, detail: str = "") -> None:
        happening = Happening(at=self.elapsed(), what=what, where=where, detail=detail)
        self.trace.append(happening)
        if self.told is not None:
            self.told(happening)
