"""
Everything that can be set, as one frozen tree. Read once, handed down, never changed.

This is the shape, the defaults and the reasons; where values come from (flags, environment, file)
is `fleetd.cli.sources`. The docstring below a field is its `--help` text and its line in
`fleetd config`, so its first sentence must stand alone. One rule: a function takes the two values
it needs, not the tree.

A field `observe.interval` is the flag `--observe-interval`, the variable
`FLEETD_OBSERVE_INTERVAL`, and the key `interval` in the table `[observe]` of the file.
"""

import enum
import ipaddress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, NamedTuple

from topology.documents import base


class Bounds(NamedTuple):
    """Smallest and largest value that can work. Durations are in seconds."""

    low: float
    high: float


class StoreKind(enum.StrEnum):
    SQLITE = "sqlite"
    MEMORY = "memory"


class LogFormat(enum.StrEnum):
    AUTO = "auto"
    HUMAN = "human"
    JSON = "json"


class LogLevel(enum.StrEnum):
    DEBUG = "debug"
    INFO = "info"
    ERROR = "error"


class Address(NamedTuple):
    """Where the daemon listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it. A name other than localhost is not trusted to
        be: what it resolves to can change after the check."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


DAY = 86_400.0
DRIVERS = tuple(
    f"drivers.{name}"
    for name in (
        *("ceph", "cloud", "eso", "flux", "gardener", "greenhouse", "hypervisor", "ironcore"),
        *("ironic", "kubernetes", "openbao", "openstack"),
    )
)
"""Those that come with fleetd."""
LISTEN = Address("127.0.0.1", 8440)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    format: LogFormat = LogFormat.AUTO
    """Shape of log lines: auto, human or json. Auto is human on a terminal and JSON elsewhere,
    because what is not a person is a log collector."""
    level: LogLevel = LogLevel.INFO
    """Least important line that is written: debug, info or error. Info has one line per change,
    so a quiet fleet is a quiet log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveSettings:
    interval: Annotated[timedelta, Bounds(1, DAY)] = timedelta(seconds=60)
    """How often a thing is looked at when nothing happens. 2,000 servers every 60 s are 33 looks
    a second, which 256 workers finish even when each look takes seven seconds."""
    deadline: Annotated[timedelta, Bounds(0.1, 600)] = timedelta(seconds=20)
    """How long one look may take. A BMC behind a busy switch needs up to 15 s; one that needs
    more is reported as not observed, and is not waited for."""
    moving: Annotated[timedelta, Bounds(0.1, 3600)] = timedelta(seconds=5)
    """How often a thing is looked at that is not Ready: people wait for it."""
    workers: Annotated[int, Bounds(1, 4096)] = 256
    """How many looks run at once, over all backends. Each backend has its own limit below
    (execute.concurrency), and one look at a time while it does not answer, so that 32 slow
    backends or 256 dead ones leave workers for the rest."""
    stale_after: Annotated[timedelta, Bounds(2, 7 * DAY)] = timedelta(minutes=5)
    """Age from which nothing is decided on what was seen. Five missed looks at the default
    interval; must be longer than the interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteSettings:
    concurrency: Annotated[int, Bounds(1, 1024)] = 8
    """Calls in flight to one backend. A garden takes far more; a metal API in front of old BMCs
    does not."""
    rate: Annotated[float, Bounds(0.01, 10_000)] = 20.0
    """Calls per second to one backend, on average. Half of what a Kubernetes API server grants
    one client by default, because others use it too."""
    burst: Annotated[int, Bounds(1, 10_000)] = 40
    """Calls to one backend that may come at once after a quiet time. Two seconds of the rate."""
    drain: Annotated[timedelta, Bounds(0, 600)] = timedelta(seconds=10)
    """How long steps in flight may finish after SIGTERM. Must stay below the time the service
    manager waits before it kills (systemd 90 s, Kubernetes 30 s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    failures: Annotated[int, Bounds(1, 1000)] = 5
    """Failures in a row after which a backend is left alone. One or two are noise; five at 20 s
    each have already cost a worker more than a minute."""
    cooldown: Annotated[timedelta, Bounds(1, DAY)] = timedelta(seconds=15)
    """How long it is left alone the first time. Then one call goes through as a trial."""
    cooldown_max: Annotated[timedelta, Bounds(1, DAY)] = timedelta(minutes=5)
    """Longest time it is left alone. The wait doubles with each failed trial up to this, so that
    a backend that returns is seen within five minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffSettings:
    base: Annotated[timedelta, Bounds(0.01, 3600)] = timedelta(seconds=1)
    """Wait after the first failure of a thing. Doubles with each further one, with jitter."""
    max: Annotated[timedelta, Bounds(1, DAY)] = timedelta(minutes=5)
    """Longest wait between two attempts at a thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    events_max: Annotated[int, Bounds(100, 100_000_000)] = 100_000
    """Events kept; the oldest go first. About 30 MB on disk, and some weeks of a region."""
    journal_max: Annotated[int, Bounds(100, 100_000_000)] = 50_000
    """Finished journal entries kept. Unfinished ones are always kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    token: base.Access | None = None
    """Where the token for /metrics is found: file:PATH or env:NAME. Without one, /metrics is open
    to whoever reaches the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    proxy: str | None = None
    """Proxy on the way to BMCs, OpenBao and OpenStack, http://HOST:PORT. That of an API server is
    named by its kubeconfig. Nothing is read from HTTP_PROXY and its like."""
    direct: tuple[str, ...] = ()
    """Hosts and domains that are reached without the proxy."""
    authorities: Path | None = None
    """File with the certificates (PEM) that are trusted on those ways, instead of the public
    ones."""
    kept: Annotated[int, Bounds(16, 1_000_000)] = 1024
    """MiB that are kept in memory of one API server, at most. One that sends more is TooMuch, and
    its objects are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings:
    file: Path | None = None
    """File (TOML) that says who may do what; see docs/access.md. Looked at every two seconds.
    Without one, everybody on this machine may do everything, and nobody else is let in."""
    rate: Annotated[float, Bounds(0.1, 100_000)] = 200.0
    """Requests per second that one caller may send, on average. A page that shows everything
    needs some ten."""
    burst: Annotated[int, Bounds(1, 100_000)] = 400
    """Requests of one caller that may come at once after a quiet time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    certificate: Path | None = None
    """File with the server's certificate and its chain (PEM). Looked at every two seconds."""
    key: Path | None = None
    """File with the certificate's private key (PEM), without a password."""
    clients: Path | None = None
    """File with the authorities (PEM) whose client certificates are believed; what they may do
    stands in access.file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    documents: tuple[Path, ...] = ()
    """Folders or files with the documents of the fleet. Several are read as one set."""
    catalogue: tuple[Path, ...] = ()
    """Folders with your own components, beside those that fleetd brings."""
    state: Path = Path("/var/lib/fleetd")
    """Folder for what the daemon remembers. It can be rebuilt from documents and world, so it
    needs a disk that keeps its promises, not a backup."""
    listen: Address = LISTEN
    """Address of the HTTP server, HOST:PORT. One that other machines can reach needs
    access.file and a certificate. Port 0 takes a free one."""
    store: StoreKind = StoreKind.SQLITE
    """Where state is kept: sqlite, or memory (forgets all at exit; for trying things out)."""
    drivers: tuple[str, ...] = DRIVERS
    """Python modules with drivers, as package.module; each has a DRIVER or DRIVERS. What has no
    driver is held with reason NoDriver."""
    sim: int | None = None
    """Seed of a simulated world to run on, in this process, instead of the real one. The documents
    decide what the world is made of; nothing outside is touched."""
    pace: Annotated[float, Bounds(1, 1000)] = 1.0
    """How many times faster than life time runs, for showing things with a simulated world. Real
    clusters need a pace of 1."""
    pace_with: Path | None = None
    """A file by which programs with the same pace agree about the time; the first of them makes
    it. None gets ahead of the others, however busy the machine is."""
    consents: tuple[str, ...] = ()
    """Ids of mass changes that you agree to, as the refusal names them. Each holds for one set of
    documents only."""
    reload: Annotated[timedelta, Bounds(1, DAY)] = timedelta(seconds=10)
    """How often the documents are looked at for changes. SIGHUP looks at once."""
    grace: Annotated[timedelta, Bounds(0, 3600)] = timedelta(seconds=90)
    """How long a failure must last before Ready turns False. Longer than one look and its retry,
    so that one lost packet pages nobody."""
    log: LogSettings = field(default_factory=LogSettings)
    observe: ObserveSettings = field(default_factory=ObserveSettings)
    execute: ExecuteSettings = field(default_factory=ExecuteSettings)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    backoff: BackoffSettings = field(default_factory=BackoffSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    access: AccessSettings = field(default_factory=AccessSettings)
    tls: TlsSettings = field(default_factory=TlsSettings)


def contradictions(settings: Settings) -> list[tuple[str, str]]:
    """What is right field by field and wrong together: (field, what is wrong and what to do)."""
    found: dict[str, str] = {}
    if settings.observe.stale_after <= settings.observe.interval:
        found["observe.stale_after"] = (
            "is not longer than observe.interval, so everything would always be stale; "
            "make it at least twice the interval"
        )
    if settings.breaker.cooldown_max < settings.breaker.cooldown:
        found["breaker.cooldown_max"] = "is shorter than breaker.cooldown; raise it"
    if settings.backoff.max < settings.backoff.base:
        found["backoff.max"] = "is shorter than backoff.base; raise it"
    tls, access = settings.tls, settings.access
    if (tls.certificate is None) is not (tls.key is None):
        found["tls.key"] = "and tls.certificate belong together; give both or none"
    if tls.clients is not None and (tls.certificate is None or access.file is None):
        found["tls.clients"] = "needs tls.certificate, and access.file to say what they may do"
    if not settings.listen.loopback and (tls.certificate is None or access.file is None):
        found["listen"] = (
            f"{settings.listen} can be reached from other machines; give access.file, "
            "tls.certificate and tls.key, or use 127.0.0.1 and a tunnel"
        )
    return list(found.items())
