"""
How dear is it to follow, list and write the objects of an API server, beside the usual clients?

All contestants speak to the same server, which is a process of its own: a real kube-apiserver where
`make parts` has built one, else the simulated one, on the wire, over TLS. They take turns; only the
CPU time of the client counts. A watch is recorded from that server and replayed. *Read and decode*
is its limit: the bytes read and thrown away, then the lines decoded to the names in them.
kubernetes_asyncio gives dicts here, which is the cheaper of its two ways. A reconcile is a change
seen, compared and written back.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec
import uvloop

from bench import kubefar, kubehung, kubereplay, measure
from bench.kubeweigh import following
from bench.measure import Sizes, Timings
from bench.table import Goal, Row
from fleetd.kube import config
from fleetd.kube.client import KubeClient
from fleetd.kube.http import HttpTransport
from fleetd.kube.kinds import Kind
from fleetd.kube.transport import Request
from fleetd.secrets import Secret

T = TypeVar("T")

CHANGERS = 16
QUIET = 0.04
"""CPU seconds a second: less is rest."""
BEGUN = 0.3
"""CPU seconds."""
SETTLED = 120.0


def run(sizes: Sizes) -> list[Row]:
    with _far(sizes) as (access, what):
        measure.progress(f"{sizes.nodes:,} nodes on {what}")
        rows = _told([*_reading(access, sizes, what), _memory(access)])
        rows += _told(_reconciling(access, sizes))
    with kubefar.simulated(1, 1, 1) as accesses:
        rows.append(_idle(accesses[0], sizes.idle))
    with kubefar.simulated(9, 0, 1) as accesses:
        rows.append(kubehung.row(_run, accesses, sizes))
    with kubefar.simulated(sizes.views, 100, 0) as accesses:
        rows.append(_view(accesses))
    return rows


def _told(rows: list[Row]) -> list[Row]:
    """It takes minutes; whoever waits may see what is known."""
    for row in rows:
        measure.progress(f"{row.what}: {row.value:.2f} {row.unit}; {row.note}")
    return rows


@contextlib.contextmanager
def _far(sizes: Sizes) -> Generator[tuple[Secret, str]]:
    if sizes.real and kubefar.real_is_there():
        with kubefar.real(sizes.nodes, sizes.storm) as accesses:
            yield accesses[0], "a real kube-apiserver"
    else:
        with kubefar.simulated(1, sizes.nodes, sizes.storm) as accesses:
            yield accesses[0], "the simulated API server"


def _run(main: Callable[[], Awaitable[T]]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:

        async def inner() -> T:
            return await main()

        return runner.run(inner())


# Reading.


def _reading(access: Secret, sizes: Sizes, what: str) -> list[Row]:
    lines = _run(lambda: _lines(access, sizes.nodes))
    with (
        tempfile.TemporaryDirectory() as folder,
        kubereplay.replayed(lines, Path(folder)) as again,
    ):
        contestants: dict[str, Callable[[], Awaitable[object]]] = {
            "read": lambda: _bytes(again, sizes.nodes),
            "transport": lambda: _transport(again, sizes.nodes),
            "ours": lambda: _watch(again, sizes.nodes),
            "kubernetes_asyncio": lambda: _their_watch(again, sizes.nodes),
            "ours, direct": lambda: _watch(access, sizes.nodes),
            "kubernetes_asyncio, direct": lambda: _their_watch(access, sizes.nodes),
            "our list": lambda: _resync(access, sizes.nodes),
            "their list": lambda: _their_list(access, sizes.nodes),
        }
        acts: dict[str, Callable[[], object]] = {
            name: (lambda act=act: _run(act)) for name, act in contestants.items()
        }
        acts["decode"] = lambda: _decode(lines)
        found = measure.in_turn(acts, sizes.rounds, apart=True)
    found["limit"] = [
        one + other for one, other in zip(found["read"], found["decode"], strict=True)
    ]
    size = sum(map(len, lines)) / len(lines) / 1000

    def each(name: str) -> str:
        return f"{measure.median(found[name]) / sizes.nodes * 1e6:.1f} µs"

    return [
        Row(
            what=f"a watch of {sizes.nodes:,}, transport: events of the limit",
            value=measure.ratio(found, "limit", "transport"),
            unit="×",
            goal=Goal(least=0.8),
            note=f"from {what}, replayed, {size:.1f} KB an event, {each('transport')} each; "
            f"limit: read {each('read')}, then decode {each('decode')}",
            raw=found,
        ),
        Row(
            what="a watch, to what a cache keeps: of kubernetes_asyncio's",
            value=measure.ratio(found, "kubernetes_asyncio", "ours"),
            unit="×",
            goal=Goal(least=12),
            note=f"{each('ours')} each, the limit {each('limit')}, theirs "
            f"{each('kubernetes_asyncio')}",
        ),
        Row(
            what="the same as the server sends it",
            value=measure.ratio(found, "kubernetes_asyncio, direct", "ours, direct"),
            unit="×",
            note=f"{each('ours, direct')} each: mostly waking up, once for each event",
        ),
        Row(
            what="a resync: objects of kubernetes_asyncio's",
            value=measure.ratio(found, "their list", "our list"),
            unit="×",
            goal=Goal(least=12),
            note=f"{measure.median(found['our list']) * 1000:.0f} ms of CPU, in pages, "
            "until the cache has all",
        ),
    ]


async def _client(access: Secret) -> tuple[HttpTransport, KubeClient, Kind]:
    transport = HttpTransport(config.read(access))
    client = KubeClient(transport)
    return transport, client, await client.find(*kubefar.NODE)


async def _lines(access: Secret, count: int) -> list[bytes]:
    transport, _, kind = await _client(access)
    found: list[bytes] = []
    stream = transport.lines(Request(method="GET", path=kind.path(), query={"watch": "1"}))
    async with contextlib.aclosing(stream):
        async for line in stream:
            found.append(line)
            if len(found) == count:
                break
    await transport.close()
    return found


async def _watch(access: Secret, count: int) -> None:
    transport, client, kind = await _client(access)
    changes = client.watch(kind)
    seen = 0
    async with contextlib.aclosing(changes):
        async for _ in changes:
            seen += 1
            if seen == count:
                break
    await transport.close()


async def _transport(access: Secret, count: int) -> None:
    """Lines, decoded as the limit decodes them."""
    transport = HttpTransport(config.read(access))
    decode = msgspec.json.Decoder(_Event).decode
    seen = 0
    lines = transport.lines(Request(method="GET", path="/api/v1/nodes", query={"watch": "1"}))
    async with contextlib.aclosing(lines):
        async for line in lines:
            decode(line)
            seen += 1
            if seen == count:
                break
    await transport.close()


class _Counting(asyncio.Protocol):
    """Reads until so many lines have come, and keeps nothing."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._tail = b""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self._left -= (self._tail + data).count(b"}}\n")
        self._tail = data[-2:]
        if self._left <= 0 and not self.done.done():
            self.done.set_result(None)


async def _bytes(access: Secret, count: int) -> None:
    target = await config.load(config.read(access))
    parts = urlsplit(target.server)
    token = target.authorization.reveal() if target.authorization is not None else ""
    head = [f"GET {parts.path}/api/v1/nodes?watch=1 HTTP/1.1", f"Host: {parts.netloc}"]
    head += [f"Authorization: {token}"] if token else []
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_connection(
        lambda: _Counting(count), parts.hostname or "", parts.port or 443, ssl=target.tls
    )
    transport.write("\r\n".join((*head, "", "")).encode())
    await protocol.done
    transport.abort()
    await asyncio.sleep(0)


class _Named(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 -- as it is on the wire


class _Some(msgspec.Struct, gc=False):
    metadata: _Named


class _Event(msgspec.Struct, gc=False):
    type: str
    object: _Some


def _decode(lines: list[bytes]) -> None:
    decode = msgspec.json.Decoder(_Event).decode
    for line in lines:
        decode(line)


async def _resync(access: Secret, count: int) -> None:
    async with following(access) as cache:
        assert len(cache._objects) == count  # noqa: SLF001 -- to read them would cost


@contextlib.asynccontextmanager
async def _theirs(access: Secret):  # noqa: ANN202 -- hardly typed
    from kubernetes_asyncio import client, config  # noqa: PLC0415 -- ours must not pay for it

    theirs: Any = config

    made: Any = client.Configuration()
    await theirs.load_kube_config_from_dict(json.loads(access.reveal()), client_configuration=made)
    api: Any = client.ApiClient
    async with api(made) as opened:
        yield client.CoreV1Api(opened)


async def _their_watch(access: Secret, count: int) -> None:
    from kubernetes_asyncio import watch  # noqa: PLC0415

    async with _theirs(access) as api:
        watching: Any = watch.Watch(return_type="object")
        seen = 0
        async for _ in watching.stream(api.list_node):
            seen += 1
            if seen == count:
                break
        await watching.close()


async def _their_list(access: Secret, count: int) -> None:
    async with _theirs(access) as api:
        answer: Any = await api.list_node(_preload_content=False)
        found = json.loads(await answer.read())
        assert len(found["items"]) == count


# Memory.


def _weighed(what: str, accesses: list[Secret], count: int = 0) -> dict[str, float]:
    told = json.dumps([json.loads(one.reveal()) for one in accesses]) + "\n"
    command = [sys.executable, "-m", "bench.kubeweigh", what, str(count)]
    done = subprocess.run(command, input=told.encode(), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def _memory(access: Secret) -> Row:
    found = _weighed("cache", [access])
    each = found["bytes"] / found["count"]
    return Row(
        what="memory of a cached object of its wire size",
        value=max(each, 0.0) / found["wire"],
        unit="×",
        goal=Goal(most=1.0),
        note=f"{each / 1000:.2f} KB of RSS for one of {found['wire'] / 1000:.2f} KB",
        raw={"bytes": [found["bytes"]]},
    )


def _idle(access: Secret, count: int) -> Row:
    found = _weighed("idle", [access], count)
    return Row(
        what="memory of an idle watch over TLS",
        value=found["bytes"] / max(found["count"], 1) / 1000,
        unit="KB",
        goal=Goal(most=60),
        note=f"{found['count']:.0f} watches, on uvloop",
    )


def _view(accesses: list[Secret]) -> Row:
    found = _weighed("view", accesses)
    return Row(
        what=f"restart to a view of {len(accesses):,} clusters × 100 nodes",
        value=found["seconds"],
        unit="s",
        goal=Goal(most=15 if len(accesses) <= 100 else 60),
        note=f"by the wall; {found['cpu']:.1f} s of CPU, {found['bytes'] / 1e6:.0f} MB, "
        f"{found['count']:,.0f} nodes; one simulated server process for all",
    )


# Reconciling.


def _reconciling(access: Secret, sizes: Sizes) -> list[Row]:
    found: Timings = {"ours": [], "kopf": [], "kopf-event": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kubeconfig")
        path.touch(mode=0o600)
        path.write_text(access.reveal(), encoding="utf-8")
        changed = 0
        for number in range(sizes.storms):
            for name in found:
                measure.progress(f"storm {number + 1} of {sizes.storms}: {name}")
                changed += 1
                with _reconciler(name, path) as process:
                    _rest(process.pid, sizes.pause)
                    began = _cpu(process.pid)
                    _run(lambda: _storm(access, sizes.storm, changed))  # noqa: B023 -- at once
                    _rest(process.pid, sizes.pause)
                    found[name].append((_cpu(process.pid) - began) / sizes.storm)
        measure.progress(f"{sizes.pace:,} changes a second")
        with _reconciler("ours", path) as process:
            _rest(process.pid, sizes.pause)
            done = _run(lambda: _steady(access, sizes))
            _rest(process.pid, sizes.pause)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            median, late, _ = json.loads(process.stdout.readline())
    each = measure.median(found["ours"])
    return [
        Row(
            what="reconciles of kopf's handlers",
            value=measure.ratio(found, "kopf", "ours"),
            unit="×",
            goal=Goal(least=20),
            note=f"{each * 1e6:.0f} µs of CPU each, storms of {sizes.storm}",
            raw=found,
        ),
        Row(
            what="reconciles of kopf's on.event",
            value=measure.ratio(found, "kopf-event", "ours"),
            unit="×",
            goal=Goal(least=10),
        ),
        Row(
            what=f"event to acknowledged write at {sizes.pace:,}/s, median",
            value=median * 1000,
            unit="ms",
            goal=Goal(most=1),
            note=f"by the wall; {done} changes came in {sizes.seconds} s: "
            "server, changer and reconciler share the machine",
        ),
        Row(what="the same, 99 of 100", value=late * 1000, unit="ms", goal=Goal(most=10)),
    ]


@contextlib.contextmanager
def _reconciler(name: str, path: Path) -> Generator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "bench.kubepeers", name]
    env = {**os.environ, "KUBECONFIG": str(path)}
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _cpu(pid: int) -> float:
    """CPU seconds of all its threads, to the microsecond."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in files) / 1e9


def _rest(pid: int, pause: float) -> None:
    """Until it has done what there is to do."""
    until = time.monotonic() + SETTLED
    calm = 0
    before = _cpu(pid)
    while calm < 3 and time.monotonic() < until:
        time.sleep(pause)
        now = _cpu(pid)
        # It has not begun before it has worked for as long as it takes to import anything.
        calm = calm + 1 if now - before < QUIET * pause and now > BEGUN else 0
        before = now


async def _storm(access: Secret, count: int, value: int) -> None:
    """One change of each, as fast as it goes."""
    await _changes(access, [(number, str(value)) for number in range(count)], 0)


async def _steady(access: Secret, sizes: Sizes) -> int:
    total = sizes.pace * sizes.seconds
    wanted = [(number % sizes.storm, f"steady-{number}") for number in range(total)]
    return await _changes(access, wanted, sizes.pace)


async def _changes(access: Secret, wanted: list[tuple[int, str]], pace: int) -> int:
    """At so many a second, or as fast as it goes. Gives how many were made in time."""
    transport, client, _ = await _client(access)
    kind = await client.find(*kubefar.MAP)
    began = time.monotonic()
    todo = iter(enumerate(wanted))
    done = 0

    async def change() -> None:
        nonlocal done
        for place, (number, value) in todo:
            if pace:
                if time.monotonic() - began > len(wanted) / pace:
                    return
                await asyncio.sleep(max(0.0, began + place / pace - time.monotonic()))
            patch = {"data": {"want": value}}
            await client.patch(kind, f"map-{number:04}", patch, kubefar.NAMESPACE)
            done += 1

    await asyncio.gather(*(change() for _ in range(CHANGERS)))
    await transport.close()
    return done
