"""
A whole region in bad weather, and all that its daemon lets out, by sink.

The daemon lives in virtual time, on a store on disk; far sides fail, and those that do quote what
they were sent. After that its state is served over real HTTP to somebody with a token and somebody
with a browser, and everything that can be read is read. What is secret is asked from the world
itself, not from what fleetd knows of it.
"""

import asyncio
import base64
import contextlib
import itertools
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import msgspec
import requests
import structlog

from fleetd.clock import SystemClock
from fleetd.daemon.access import tokens
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.daemon.audit import Log
from fleetd.daemon.window import Window
from fleetd.kube.transport import Request
from fleetd.net import RealNetwork
from fleetd.secrets import SHORTEST, Secret
from fleetd.settings import Address, LogFormat, Settings
from fleetd.sim import chaos, loop, script, twin
from fleetd.sim.faces.weather import Fate
from fleetd.sim.faults import Climate
from fleetd.sim.ledger import Ledger
from fleetd.sim.mishaps import Mishaps
from fleetd.sim.net import SimNetwork
from fleetd.sim.services.openbao.data import Data
from fleetd.sim.services.openbao.service import OpenBao
from fleetd.sim.services.openstack import Cloud
from fleetd.sim.twin import Twin, Wanted
from fleetd.sim.world import HttpRequest, HttpResponse, Service, World
from fleetd.store import runner, sqlite
from fleetd.surface import http, table
from fleetd.surface.routes import Route
from tests.cli import programs
from tests.real.process import free_ports
from tests.secrets import sinks
from tests.surface import issuers
from tests.surface.browsers import Browser
from tests.surface.desks import FakeDesk
from tests.twin import stage, test_credentials, workflows

SEED = 3
BROKEN = (
    "openbao eu-1 sealed",
    "bmc metal-01 refuses",
    "cluster hv unreachable",
    "token cp expired",
    "ceph st degraded",
)
"""What nobody mends any more."""
AFTER = timedelta(minutes=20)
BUG_EVERY = 40
CLI = (
    ("tree",),
    ("get", "openbao", "-o", "yaml"),
    ("describe", "cluster/hv", "-o", "json"),
    ("why", "openbao/mgmt"),
    ("events", "-o", "wide"),
    ("credentials", "-o", "json"),
    ("plan",),
)
PLAIN = {
    *test_credentials.PLAIN,
    *("mon_host", "fsid", "userID", "ceph-username", "cluster-name"),
}
"""Keys of Secrets whose values are names and places."""
NEWS = 1000
"""Events that are read as they come."""


class Quoting(Climate):
    """Whoever fails says what it was sent, and so do the ways."""

    def before(self, backend: str, request: Request) -> Fate:
        fate, said = super().before(backend, request), request.body.decode(errors="replace")
        if fate.lost:
            return replace(fate, lost=f"{fate.lost} after {said}")
        if fate.answer is None or fate.answer.status not in (500, 503):
            return fate
        told = {"kind": "Status", "code": fate.answer.status, "message": f"cannot take {said}"}
        return replace(fate, answer=replace(fate.answer, body=json.dumps(told).encode()))

    def over(self, name: str, request: HttpRequest, service: Service) -> HttpResponse:
        said = f"{request.body.decode(errors='replace')} {dict(request.headers)}"
        faults = self.hits.total()
        try:
            answer = super().over(name, request, service)
        except requests.RequestException as cause:
            raise type(cause)(f"{cause} after {said}") from cause
        if self.hits.total() == faults or answer.status < 400:
            return answer  # its own: OpenBao says by its status how it is
        errors = [*_errors(answer.body), f"cannot take {said}"]
        told = json.dumps({"errors": errors, "error": said}).encode()
        return HttpResponse(status=answer.status, body=told, headers=answer.headers)


def _errors(body: bytes) -> list[str]:
    """What OpenBao itself says of it: by these words a write that came too late is known."""
    try:
        said: Any = json.loads(body)
    except ValueError:
        return []
    if not isinstance(said, dict) or "errors" not in said:
        return []
    return [str(one) for one in cast("list[object]", said["errors"])]


@dataclass
class Life:
    """What is left of a daemon that was stopped."""

    twin: Twin
    folder: Path
    climate: Climate
    log: str
    values: dict[str, str] = field(default_factory=dict[str, str])
    """Everything secret, by what it is."""


def lived(folder: Path) -> Life:
    """From nothing to a region, in bad weather; then it breaks and stays broken."""
    with sinks.logs(LogFormat.JSON) as stream:
        found = loop.run(_live(folder))
        return replace(found, log=stream.getvalue())


async def _live(folder: Path) -> Life:
    region = stage.Region.of(seed=SEED)
    flow = test_credentials.FLOW.replace("SINCE", "")
    workflows.change(region, {test_credentials.CLOUD: flow + test_credentials.CLOUD})
    world, topology = region.world, region.topology
    climate = Quoting(world, Ledger(), chance=chaos.CHANCE)
    mishaps = Mishaps(world, climate, stage.clusters(topology))
    mishaps.plan(chaos.lines(SEED, mishaps, topology, chaos.UNTIL))
    store = sqlite.SqliteStore(folder / "state", runner.InlineRunner())
    await store.open()
    wanted = Wanted(topology=topology, catalogue=region.catalogue, policy=region.policy)
    net = SimNetwork(world, climate)
    daemon = Twin(world, net, store, wanted, Settings().drivers)
    for one in daemon.drivers.values():
        _with_a_bug(one, world)
    values: dict[str, str] = {}
    broken: list[float] = []

    def over() -> bool:
        values.update(one for one in secrets_of(world) if len(one[1]) >= SHORTEST)
        if daemon.all_ready() and not broken:
            broken.append(world.elapsed())
            for line in BROKEN:
                mishaps.begin(script.read(f"at 0: {line}"))
        return bool(broken) and world.elapsed() >= broken[0] + AFTER.total_seconds()

    assert await twin.live(daemon, until=over, within=stage.WITHIN, every=60.0), daemon.unready()
    await store.close()
    assert world.failures == []
    return Life(twin=daemon, folder=folder, climate=climate, log="", values=values)


def _with_a_bug(driver: Any, world: World) -> None:
    """Every so many looks it fails over what it has in its hands."""
    look, looks = driver.observe, itertools.count(1)

    async def observe(want: Any) -> Any:
        seen = await look(want)
        if next(looks) % BUG_EVERY == 0:
            held = Secret(next(iter(world.truth.machines.values())).password)
            raise KeyError(f"{seen} has no {held.reveal()}")
        return seen

    driver.observe = observe


def secrets_of(world: World) -> Iterator[tuple[str, str]]:
    """What the world keeps secret now, each under a name of its own."""
    for machine in world.truth.machines.values():
        yield "password of the BMCs", machine.password
    for cluster in world.clusters.values():
        for number, one in enumerate(cluster.tokens.passes):
            yield f"token {number} of cluster {cluster.name}", one
        for secret in cluster.list(("", "Secret")):
            data: dict[str, str] = secret.get("data") or {}
            place = f"{cluster.name} {secret['metadata']['name']}"
            for key in data.keys() - PLAIN:
                yield f"{place} {key}", base64.b64decode(data[key]).decode(errors="replace")
    for service in world.services.values():
        if isinstance(service, OpenBao):
            yield from _kept(service.data)
        cloud = getattr(service, "cloud", None)
        if isinstance(cloud, Cloud):
            yield from ((f"OpenStack password of {who}", one) for who, one in cloud.secrets.items())


def _kept(data: Data) -> Iterator[tuple[str, str]]:
    """By OpenBao."""
    yield from ((f"unseal key {number}", one) for number, one in enumerate(data.shares))
    yield from ((f"OpenBao token {number}", one) for number, one in enumerate(data.tokens))
    for mount in data.mounts.values():
        for path, entry in mount.entries.items():
            for number, version in entry.versions.items():
                for key in version.data.keys() - PLAIN:
                    yield f"{mount.path}{path} {key} {number}", str(version.data[key])


# What can be read of it afterwards.


@dataclass
class Served:
    url: str
    session: aiohttp.ClientSession
    token: str
    browser: Browser

    async def read(self, path: str, **headers: str) -> bytes:
        """Head and body of an answer."""
        given = {"Authorization": f"Bearer {self.token}", **headers}
        async with self.session.get(
            f"{self.url}{path}", headers=given, allow_redirects=False
        ) as answer:
            assert answer.status < 500 or path == "/readyz", (path, await answer.text())
            head = "\n".join(f"{name}: {value}" for name, value in answer.headers.items())
            return head.encode() + b"\n" + await answer.read()


@contextlib.asynccontextmanager
async def served(life: Life, panel: type[Window]) -> AsyncGenerator[Served]:
    """Over HTTP, with everything by which people and programs prove who they are. What they are
    let in by joins the secrets."""
    daemon, folder = life.twin, life.folder
    token, scrape = tokens.new(), tokens.new()
    store = sqlite.SqliteStore(folder / "state", runner.ThreadRunner(SystemClock()))
    await store.open()
    window = panel(
        state=daemon.state,
        store=store,
        clock=daemon.clock,
        gates=daemon.core.gates,
        looks=daemon.core.looks,
        executor=daemon.core.executor,
        stats=daemon.core.stats,
        documents_source=cast("Any", _documents(life)),
        rules=daemon.rules,
        grace=timedelta(minutes=1),
    )
    (port,) = free_ports(1)
    address = Address("127.0.0.1", port)
    async with issuers.running() as issuer, aiohttp.ClientSession() as session:
        door = GuardedDoor(
            _access(folder, issuer.url, f"http://{address}", token), RealNetwork(), SystemClock()
        )
        async with http.serving(
            window,
            address,
            desk=FakeDesk(),
            metrics_token=Secret(scrape),
            door=door,
            rate=http.Rate(1e6, 10**6),
            audit=Log(folder / "audit", SystemClock()),
        ) as server:
            browser = Browser(session)
            await browser.log_in(server.url)
            life.values |= {
                "admin token": token,
                "scrape token": scrape,
                "client secret": issuers.SECRET,
                "session": browser.cookies["fleetd"],
            }
            yield Served(server.url, session, token, browser)
        await door.close()
    await store.close()


def _documents(life: Life) -> object:
    """As a daemon would show them: their words stand in the specs."""
    accepted = [
        {"kind": ref.kind, "metadata": {"name": ref.name}, "spec": dict(one.spec)}
        for ref, one in life.twin.state.declared.resources.items()
    ]
    return SimpleNamespace(accepted=accepted, complaint="")


def _access(folder: Path, issuer: str, url: str, token: str) -> Path:
    (folder / "client").write_text(issuers.SECRET)
    (folder / "client").chmod(0o600)
    path = folder / "access.toml"
    path.write_text(
        f'[[tokens]]\nname = "x"\nsha256 = "{tokens.digest(token)}"\nrole = "admin"\n'
        f'[oidc]\nissuer = "{issuer}"\naudience = "fleetd"\n'
        '[[oidc.grants]]\ngroup = "ops"\nrole = "admin"\n'
        f'[oidc.browser]\nclient_id = "{issuers.CLIENT}"\nurl = "{url}"\n'
        'client_secret_file = "client"\n'
    )
    path.chmod(0o600)
    return path


async def shown(life: Life, panel: type[Window] = Window, *, said: str = "") -> dict[str, bytes]:
    """By sink, all that comes out. `said` is what somebody tells the daemon."""
    with sinks.logs(LogFormat.JSON) as stream:
        async with served(life, panel) as there:
            await _tell(there, said or life.values["password of the BMCs"])
            found = {
                "HTTP": await _asked(life, there),
                "metrics": await _scraped(there),
                "page": await _page(there),
                "watch": await _watched(there),
                "CLI": await _typed(life, there),
            }
            found["store"] = _files(life.folder / "state")
        if said:
            _fail_over(said)
        log = life.log + stream.getvalue()
    raised = [line for line in log.splitlines() if "Traceback (most recent call last)" in line]
    return {
        **found,
        "audit": _files(life.folder / "audit"),
        "log": log.encode(),
        "tracebacks": "\n".join(raised).encode(),
    }


def _fail_over(text: str) -> None:
    try:
        raise ValueError(text)  # noqa: TRY301 - a traceback is wanted
    except ValueError as cause:
        structlog.stdlib.get_logger("fleetd.test").error("failed", exc_info=cause)


async def _asked(life: Life, there: Served) -> bytes:
    """Every route that answers with JSON or text."""
    own = {"login", "loginCallback", "metrics", "watch", "page", "asset", "assetInFolder"}
    asked = [one for one in table.ROUTES if one.method == "GET" and one.name not in own]
    paths = [path for route in asked for path in _paths(route, life)]
    return b"\n".join([await there.read(path) for path in paths])


def _paths(route: Route, life: Life) -> list[str]:
    """Of one route: everything that it can be asked for."""
    refs = list(life.twin.state.declared.resources)
    if route.parameters == ("kind", "name"):
        return [route.path.format(kind=ref.kind, name=ref.name) for ref in refs]
    if route.parameters in {("name",), ("region",)}:
        (name,) = route.parameters
        return [route.path.format(**{name: one}) for one in life.twin.state.declared.regions]
    assert route.parameters == (), f"{route.name} is not asked for its secrets here"
    query = {"search": "?q=openbao", "listEvents": "?limit=1000&newest=true"}
    return [route.path + query.get(route.name, "")]


async def _scraped(there: Served) -> bytes:
    open_ = {"Accept": "application/openmetrics-text; version=1.0.0"}
    return await there.read("/metrics") + await there.read("/metrics", **open_)


async def _page(there: Served) -> bytes:
    """All its files."""
    files = ["/", *(f"/assets/{name}" for name in http.page.load() if name != http.page.INDEX)]
    return b"\n".join([await there.read(path) for path in files])


async def _watched(there: Served) -> bytes:
    """As a browser does it."""
    cookie = {"Cookie": f"fleetd={there.browser.cookies['fleetd']}"}
    events = msgspec.json.decode(
        (await there.read("/api/v1/events?newest=true&limit=1")).rpartition(b"\n")[2]
    )
    newest = events["items"][0]["seq"]
    last, read = f"id: {newest}\n".encode(), b""
    async with there.session.get(
        f"{there.url}/api/v1/watch?after={max(newest - NEWS, 0)}", headers=cookie
    ) as answer:
        assert answer.status == 200
        async with asyncio.timeout(30):
            while last not in read:
                read += await answer.content.readany()
    return read


async def _typed(life: Life, there: Served) -> bytes:
    """By people, in processes that have never heard of any secret but their own."""
    env = {"FLEETCTL_SERVER": there.url, "FLEETCTL_TOKEN": there.token}
    lines = [("audit", "list", str(life.folder / "audit")), *CLI]
    ran = [await asyncio.to_thread(programs.fleetctl, *words, env=env) for words in lines]
    assert {one.code for one in ran[1:]} <= {0, 1}, ran
    return "\n".join(one.out + one.err for one in ran).encode()


async def _tell(there: Served, text: str) -> None:
    """Somebody has a secret in the clipboard, and it goes to the wrong place."""
    body = {"scope": "cluster/hv", "reason": f"it is {text}"}
    mark = {"X-CSRF-Token": await there.browser.mark(there.url)}
    status, _, told = await there.browser.ask("POST", f"{there.url}/api/v1/pause", mark, json=body)
    assert status == 200, told


def _files(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def named(values: Mapping[str, str]) -> dict[str, str]:
    """Each value once: many lie in several places."""
    found = {value: name for name, value in sorted(values.items())}
    return {name: value for value, name in found.items()}
