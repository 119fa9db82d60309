"""
`fleetd doctor`: looks at a host, its settings and every far side, and says what is wrong.

It changes nothing but a file of its own in the state directory, which it removes again, and shows
no secret. Each check is a small function that gives findings; a check that fails to run is itself
a finding, so that one broken backend does not hide the others.
"""

import asyncio
import email.utils
import enum
import os
import resource
import socket
import ssl
import statistics
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import requests

from fleetd import errors, secrets
from fleetd.clock import Clock
from fleetd.kube import errors as kube
from fleetd.kube.transport import Request
from fleetd.net import Network
from fleetd.secrets import Secret, SecretError
from fleetd.settings import Address, Settings
from topology import read
from topology.documents import base
from topology.read import Reading
from topology.resource import Facts, Ref, Resource, Topology

PYTHON = (3, 11)
FILES = 4096
ROOM = 1 << 30
SLOW = 0.02
"""Seconds for a durable write. At 20 ms each, a region of a thousand steps waits 40 s for its
disk."""
WITHIN = 15.0
SKEW = 30.0
SHOWN = 5
REMOTE = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph")
PASSING = ("tmpfs", "ramfs")
HERE = frozenset({"file", "env"})
"""Kinds of access that can be read without asking a far side."""


class Level(enum.StrEnum):
    GOOD = "ok"
    NOTE = "note"
    """Works, and somebody should know."""
    BAD = "bad"


class Finding(NamedTuple):
    level: Level
    what: str
    message: str
    advice: str = ""


Check = Callable[[], Awaitable[list[Finding]]]


class Reader(Protocol):
    def take(self, folders: Mapping[Ref, Path]) -> None: ...

    async def read(self, access: Facts, want: Resource) -> Secret: ...


@dataclass(kw_only=True)
class Doctor:
    settings: Settings
    net: Network
    clock: Clock
    keeper: Reader
    found: list[Finding] = field(default_factory=list[Finding])

    async def look(self) -> Sequence[Finding]:
        """All findings, in the order in which a person would mend them."""
        for check in (self._host, self._state, self._listen):
            await self._run(check.__name__.strip("_"), check)
        reading = await asyncio.to_thread(
            read.read, self.settings.documents, self.settings.catalogue
        )
        self.found += documents(reading)
        if reading.topology is not None:
            await self._far_sides(reading, reading.topology)
        return self.found

    async def _run(self, what: str, check: Check) -> None:
        try:
            self.found += await check()
        except (OSError, errors.FleetError) as fault:
            self.found.append(Finding(Level.BAD, what, str(fault)))

    async def _host(self) -> list[Finding]:
        return host(sys.version_info[:3], resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    async def _state(self) -> list[Finding]:
        return await asyncio.to_thread(state, self.settings.state, self.clock)

    async def _listen(self) -> list[Finding]:
        settings = self.settings
        return await asyncio.to_thread(listen, settings.listen, settings.tls.certificate)

    async def _far_sides(self, reading: Reading, topology: Topology) -> None:
        self.keeper.take(folders(reading))
        for ref in topology.kinds.get("region", ()):
            region = topology.resources[ref]
            for part in ("garden", "metal", "secrets"):
                await self._run(f"{part} of {ref.name}", self._entered(region, part))
        await self._run("secrets", self._secrets(topology))

    def _entered(self, region: Resource, part: str) -> Check:
        async def check() -> list[Finding]:
            spec: Facts | None = region.spec.get(part)
            what = f"{part} of {region.ref.name}"
            if spec is None:
                return []
            if (url := str(spec.get("url") or spec.get("address") or "")).startswith("http"):
                return await asyncio.to_thread(http_server, self.net, url, what)
            if part == "secrets" or not HERE & spec["access"].keys():
                return []
            kubeconfig = await self.keeper.read(spec["access"], region)
            return await api_server(self.net, self.clock, kubeconfig, what)

        return check

    def _secrets(self, topology: Topology) -> Check:
        async def check() -> list[Finding]:
            found: list[Finding] = []
            good = later = 0
            for owner, access, want in accesses(topology):
                if not HERE & access.keys():
                    later += 1
                    continue
                try:
                    await self.keeper.read(access, want)
                    good += 1
                except SecretError as fault:
                    found.append(Finding(Level.BAD, f"secret of {owner}", str(fault)))
            words = f"{good} can be read"
            words += f"; {later} are read from OpenBao or a cluster when used" if later else ""
            return [*found, Finding(Level.GOOD, "secrets", words)]

        return check


def host(version: Sequence[int], files: int) -> list[Finding]:
    shown = ".".join(str(part) for part in version)
    found = [
        Finding(Level.GOOD, "python", shown)
        if tuple(version) >= PYTHON
        else Finding(Level.BAD, "python", f"{shown} is too old", "install Python 3.11 or newer")
    ]
    if files < FILES:
        words = f"{files} open files are few: each cluster needs some twenty connections"
        advice = f"raise the limit to {FILES} or more (LimitNOFILE= in the unit, ulimit -n)"
        found.append(Finding(Level.NOTE, "open files", words, advice))
    else:
        found.append(Finding(Level.GOOD, "open files", f"{files} allowed"))
    return found


def state(folder: Path, clock: Clock) -> list[Finding]:
    """Whether the daemon can keep what it must remember there, and how fast."""
    if not folder.exists():
        above = next(one for one in folder.parents if one.exists())
        if not os.access(above, os.W_OK):
            advice = f"make it yourself: install -d -m 0700 -o fleetd {folder}"
            words = f"{folder} does not exist and cannot be made"
            return [Finding(Level.BAD, "state", words, advice)]
        return [Finding(Level.GOOD, "state", f"{folder} will be made")]
    found: list[Finding] = []
    mode = folder.stat().st_mode & 0o777
    if mode & 0o077:
        words = f"{folder} can be read by others (mode {mode:04o})"
        found.append(Finding(Level.BAD, "state", words, f"chmod 700 {folder}"))
    kind = filesystem(folder, Path("/proc/self/mounts"))
    if kind in REMOTE:
        words = f"{folder} is on {kind}: its promises about durable writes are not to be relied on"
        found.append(Finding(Level.BAD, "state", words, "use a local disk"))
    elif kind in PASSING:
        words = f"{folder} is on {kind} and is gone after a restart of the machine"
        found.append(Finding(Level.NOTE, "state", words, "use a disk"))
    stat = os.statvfs(folder)
    free = stat.f_bavail * stat.f_frsize
    if free < ROOM:
        words = f"{free >> 20} MB are free at {folder}"
        found.append(Finding(Level.BAD, "state", words, "make room: at least 1 GB"))
    took = durable(folder, clock)
    words = f"a durable write in {folder} takes {took * 1000:.1f} ms"
    if took > SLOW:
        advice = "steps wait for it; use a faster disk for the state"
        found.append(Finding(Level.NOTE, "state", words, advice))
    else:
        found.append(Finding(Level.GOOD, "state", words))
    return found


def durable(folder: Path, clock: Clock) -> float:
    """Median of a few small writes that are flushed to the disk."""
    times: list[float] = []
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
        for _ in range(5):
            began = clock.monotonic()
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
            times.append(clock.monotonic() - began)
    return statistics.median(times)


def filesystem(folder: Path, mounts: Path) -> str:
    """The type of the file system that a folder is on; empty where nobody says."""
    try:
        lines = mounts.read_text("utf-8").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    place = str(folder.resolve())
    for line in lines:
        _, point, type_, *_ = line.split(" ")
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, type_
    return kind


def listen(address: Address, certificate: Path | None = None) -> list[Finding]:
    """Free, or a fleetd is there already. `certificate`: what it shows, if it has one."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as door:
            door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            door.bind((address.host, address.port))
    except OSError as cause:
        if _shows(address, certificate) if certificate is not None else _answers(address):
            return [Finding(Level.GOOD, "listen", f"a fleetd serves on {address}")]
        words = f"cannot listen on {address}: {cause.strerror}"
        return [Finding(Level.BAD, "listen", words, "stop what uses it, or choose another")]
    return [Finding(Level.GOOD, "listen", f"{address} is free")]


def _answers(address: Address) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}/healthz", timeout=5) as answer:
            return answer.read(16) == b"ok\n"
    except (OSError, urllib.error.URLError, ValueError):
        return False


def _shows(address: Address, certificate: Path) -> bool:
    """Whether who is there has our certificate, and by the handshake its key: that is fleetd."""
    try:
        shown = ssl.get_server_certificate((address.host, address.port), timeout=5)
        ours = certificate.read_text("ascii").partition(ssl.PEM_FOOTER)[0] + ssl.PEM_FOOTER
        return ssl.PEM_cert_to_DER_cert(shown) == ssl.PEM_cert_to_DER_cert(ours)
    except (OSError, ValueError):
        return False


def documents(reading: Reading) -> list[Finding]:
    if reading.topology is None:
        some = [Finding(Level.BAD, "documents", str(one)) for one in reading.problems[:SHOWN]]
        rest = len(reading.problems) - SHOWN
        if rest > 0:
            advice = "`fleetctl validate` shows all"
            some.append(Finding(Level.BAD, "documents", f"and {rest} more problems", advice))
        return some
    kinds = reading.topology.kinds
    if not kinds.get("region"):
        words = "there are none"
        return [Finding(Level.BAD, "documents", words, "name a folder with --documents")]
    sizes = {kind: len(kinds.get(kind, ())) for kind in ("region", "cluster", "server")}
    counts = [f"{size} {kind}{'s' * (size != 1)}" for kind, size in sizes.items()]
    return [Finding(Level.GOOD, "documents", ", ".join(counts))]


async def api_server(net: Network, clock: Clock, kubeconfig: Secret, what: str) -> list[Finding]:
    """Whether it answers, takes the credentials, and lives in the same time."""
    transport = net.kube(kubeconfig)
    try:
        async with asyncio.timeout(WITHIN):
            answer = await transport.send(Request(method="GET", path="/version"))
            who = await transport.send(Request(method="GET", path="/apis"))
    except TimeoutError:
        return [Finding(Level.BAD, what, f"no answer within {WITHIN:.0f} s", "see the network")]
    except kube.KubeError as fault:
        return [Finding(Level.BAD, what, str(fault))]
    finally:
        await transport.close()
    for one in (answer, who):
        if one.status != 200:
            return [Finding(Level.BAD, what, str(kube.of(one.status, one.body, one.headers)))]
    found = [Finding(Level.GOOD, what, "answers, and takes the credentials")]
    apart = clock_apart(answer.headers.get("date"), clock)
    if apart > SKEW:
        words = f"its clock and ours are {apart:.0f} s apart; tokens will be refused"
        found.append(Finding(Level.BAD, what, words, "see that both use a time server"))
    return found


def http_server(net: Network, url: str, what: str) -> list[Finding]:
    """Whether anything answers there, with a certificate that is trusted."""
    with requests.Session() as session:
        session.trust_env = False
        for scheme in ("https://", "http://"):
            session.mount(scheme, net.adapter(WITHIN))
        try:
            answer = session.get(url, allow_redirects=False)
        except requests.exceptions.SSLError as fault:
            advice = "name the authority in network.authorities, or mend the certificate"
            return [Finding(Level.BAD, what, f"{url}: {_cause(fault)}", advice)]
        except requests.RequestException as fault:
            return [Finding(Level.BAD, what, f"{url}: {_cause(fault)}", "see the network")]
    return [Finding(Level.GOOD, what, f"{url} answers ({answer.status_code})")]


def _cause(fault: BaseException) -> str:
    """The innermost reason: those around it repeat the address."""
    inner: object = fault
    while isinstance(inner, BaseException):
        fault = inner
        inner = (
            fault.args[0]
            if fault.args and isinstance(fault.args[0], BaseException)
            else (getattr(fault, "reason", None))
        )
    return str(fault)


def clock_apart(date: str | None, clock: Clock) -> float:
    if not date:
        return 0.0
    try:
        told = email.utils.parsedate_to_datetime(date)
    except ValueError:
        return 0.0
    return abs((clock.now() - told).total_seconds())


class Files:
    """Reads what lies in files and variables, as the daemon would; the rest is asked of far sides
    when it is used."""

    def __init__(self, environ: Mapping[str, str], folder: Path) -> None:
        self._environ = environ
        self._folder = folder
        self._folders: Mapping[Ref, Path] = {}

    def take(self, folders: Mapping[Ref, Path]) -> None:
        self._folders = folders

    async def read(self, access: Facts, want: Resource) -> Secret:
        named = base.Access.model_validate(dict(access))
        folder = self._folders.get(want.owner, self._folder) if want.owner else self._folder
        return await asyncio.to_thread(secrets.resolve, named, folder, self._environ)


def folders(reading: Reading) -> dict[Ref, Path]:
    """Where each document lies."""
    return {
        Ref(item.kind.lower(), item.name): item.folder.absolute() for item in reading.bundle.items
    }


def accesses(topology: Topology) -> Iterator[tuple[Ref, Facts, Resource]]:
    """What documents name as secret, once each: whose it is, how it is named, and where it was."""
    known: set[str] = set()
    for ref, want in topology.resources.items():
        for access in _named(want.spec):
            key = repr((want.region, sorted(access.items())))
            if key not in known:
                known.add(key)
                yield want.owner or ref, access, want


def _named(spec: object) -> Iterator[Facts]:
    """Every `access` in a spec, however deep."""
    if isinstance(spec, Mapping):
        inside = cast("Mapping[str, object]", spec)
        for name, value in inside.items():
            if name == "access" and isinstance(value, Mapping):
                given = cast("Facts", value)
                yield {key: part for key, part in given.items() if part is not None}
            else:
                yield from _named(value)
    elif isinstance(spec, (list, tuple)):
        for value in cast("Sequence[object]", spec):
            yield from _named(value)
