"""
`fleetd doctor`: looks at a host, its settings and every far side, and says what is wrong.

It changes nothing but a file of its own in the state directory, which it removes again, and shows
no secret. Each check is a small function that gives findings; a check that fails to run is itself
a finding, so that one broken backend does not hide the others.
"""

import asyncio
import email.utils
import resource
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

import requests

from fleetd import checkup, errors, secrets
from fleetd.checkup import Finding, Level
from fleetd.clock import Clock
from fleetd.daemon.access import oidc, rules
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.kube import errors as kube
from fleetd.kube.transport import Request
from fleetd.net import Network, RealNetwork
from fleetd.secrets import Secret, SecretError
from fleetd.settings import Settings
from fleetd.surface import problems
from topology import read
from topology.documents import base
from topology.read import Reading
from topology.resource import Facts, Ref, Resource, Topology

WITHIN = 15.0
SKEW = 30.0
SHOWN = 5
HERE = frozenset({"file", "env"})
"""Kinds of access that can be read without asking a far side."""


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
        for check in (self._host, self._state, self._listen, self._tls, self._access):
            self.found += await self._run(check.__name__.strip("_"), check)
        reading = await asyncio.to_thread(
            read.read, self.settings.documents, self.settings.catalogue
        )
        self.found += documents(reading)
        if reading.topology is not None:
            await self._far_sides(reading, reading.topology)
        return self.found

    async def _run(self, what: str, check: Check) -> list[Finding]:
        try:
            return await check()
        except OSError as fault:
            words = f"{fault.filename}: {fault.strerror}" if fault.filename else str(fault)
            return [Finding(Level.BAD, what, words)]
        except errors.FleetError as fault:
            return [Finding(Level.BAD, what, str(fault))]

    async def _host(self) -> list[Finding]:
        return checkup.host(sys.version_info[:3], resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    async def _state(self) -> list[Finding]:
        return await asyncio.to_thread(checkup.state, self.settings.state, self.clock)

    async def _listen(self) -> list[Finding]:
        settings = self.settings
        return await asyncio.to_thread(checkup.listen, settings.listen, settings.tls.certificate)

    async def _tls(self) -> list[Finding]:
        return await asyncio.to_thread(checkup.encryption, self.settings.tls, self.clock.now())

    async def _access(self) -> list[Finding]:
        """The access file with all that it names, and whether its issuer answers."""
        path = self.settings.access.file
        if path is None:
            return []
        # Callers are of the real world, also where a simulated one is looked after.
        door = await asyncio.to_thread(GuardedDoor, path, RealNetwork(), self.clock)
        try:
            given = await asyncio.to_thread(rules.read, path)
            found = [Finding(Level.GOOD, "access", f"{path} is taken")]
            for one in given.tokens:
                if one.expires is not None and one.expires <= self.clock.now():
                    words = f"the token {one.name} has expired"
                    found.append(Finding(Level.NOTE, "access", words, "make another, or remove it"))
            if given.oidc is not None:
                issuer = oidc.Issuer(given.oidc, path.parent, self.clock)
                try:
                    await issuer.about()
                except problems.Refused as refused:
                    found.append(Finding(Level.BAD, "access", refused.detail, "see the network"))
            return found
        finally:
            await door.close()

    async def _far_sides(self, reading: Reading, topology: Topology) -> None:
        self.keeper.take(folders(reading))
        # Side by side: some of them may answer only after a while, or not at all.
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(
                    self._run(what, self._entered(topology.resources[ref], part)), name=what
                )
                for ref in topology.kinds.get("region", ())
                for part in ("garden", "metal", "secrets")
                for what in (f"{part} of {ref.name}",)
            ]
        for one in asked:
            self.found += one.result()
        self.found += await self._run("secrets", self._secrets(topology))

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
