"""
How dear is it to follow, list and write the objects of an API server, beside the usual clients?

All contestants speak to the same server, which is a process of its own: a real kube-apiserver where
`make parts` has built one, else the simulated one, on the wire, over TLS. They take turns; only the
CPU time of the client counts, and all run on uvloop. A watch and a list are recorded from that
server and replayed. *Read and decode* is the limit: the bytes read and thrown away, then the lines
decoded to the names in them. kubernetes_asyncio gives dicts here, the cheaper of its two ways.
"""

import asyncio
import contextlib
import json
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

from bench import kubefar, kubehung, kubereplay, kubestorm, measure
from bench.kubeweigh import behind, following
from bench.measure import Sizes, Timings
from bench.table import Goal, Row
from fleetd.kube import config
from fleetd.kube.client import PAGE, KubeClient
from fleetd.kube.connections import AT_ONCE
from fleetd.kube.http import HttpTransport
from fleetd.kube.kinds import Kind
from fleetd.kube.pages import IN_SHORT
from fleetd.kube.transport import JSON, Request
from fleetd.secrets import Secret

T = TypeVar("T")


def run(sizes: Sizes) -> list[Row]:
    with _far(sizes) as (access, what):
        measure.progress(f"{sizes.nodes:,} nodes on {what}")
        rows = _told([*_reading(access, sizes, what), _memory(access), _still(access)])
        rows += _told(kubestorm.rows(access, sizes))
    rows += _told(kubestorm.soon(sizes))
    with kubefar.simulated(1, 1, 1) as accesses:
        rows.append(_idle(accesses[0], sizes.idle))
    with kubefar.simulated(9, 0, 1) as accesses:
        rows.append(kubehung.row(_run, accesses, sizes))
    for views, within, most in ((sizes.views, 15, 0), (sizes.many, 60, 2000)):
        measure.progress(f"{views:,} clusters")
        with kubefar.simulated(views, 100, 0) as accesses:
            rows += _told(_view(accesses, within, most))
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
    recorded = _run(lambda: _recorded(access, sizes.nodes))
    lines = recorded.lines
    events = sizes.nodes * kubereplay.TIMES
    with (
        tempfile.TemporaryDirectory() as folder,
        kubereplay.replayed(recorded, Path(folder)) as again,
    ):
        contestants: dict[str, Callable[[], Awaitable[object]]] = {
            "read": lambda: _bytes(again, "/api/v1/nodes?watch=1", recorded.wire_size()),
            "transport": lambda: _transport(again, events),
            "ours": lambda: _watch(again, events),
            "kubernetes_asyncio": lambda: _their_watch(again, events),
            "ours, direct": lambda: _watch(access, sizes.nodes),
            "kubernetes_asyncio, direct": lambda: _their_watch(access, sizes.nodes),
            "read list": lambda: _bytes(again, "/api/v1/nodes", len(recorded.whole)),
            "our first list": lambda: _first(again, sizes.nodes),
            "our list": lambda: _resync(again, sizes.nodes),
            "their list": lambda: _their_list(again, sizes.nodes),
            "our list, direct": lambda: _resync(access, sizes.nodes),
            "their list, direct": lambda: _their_list(access, sizes.nodes),
        }
        acts: dict[str, Callable[[], object]] = {
            name: (lambda act=act: _run(act)) for name, act in contestants.items()
        }
        acts["decode"] = lambda: _decode(lines, kubereplay.TIMES)
        found = measure.in_turn(acts, sizes.rounds, apart=True)
    found["limit"] = [
        one + other for one, other in zip(found["read"], found["decode"], strict=True)
    ]
    found["list limit"] = [
        one + other / kubereplay.TIMES
        for one, other in zip(found["read list"], found["decode"], strict=True)
    ]
    size = sum(map(len, lines)) / len(lines) / 1000
    return _read_rows(found, sizes.nodes, f"from {what}, replayed, {size:.1f} KB an event")


def _read_rows(found: Timings, nodes: int, what: str) -> list[Row]:
    def each(name: str, times: int = kubereplay.TIMES) -> str:
        return f"{measure.median(found[name]) / nodes / times * 1e6:.1f} µs"

    limit = measure.ratio(found, "kubernetes_asyncio", "limit")
    list_limit = measure.ratio(found, "their list", "list limit")
    return [
        Row(
            what=f"a watch of {nodes:,}, transport: events of the limit",
            value=measure.ratio(found, "limit", "transport"),
            unit="×",
            goal=Goal(least=0.8),
            note=f"{what}, {each('transport')} each; limit: read {each('read')}, then decode "
            f"{each('decode')}",
            raw=found,
        ),
        Row(
            what="a watch, to what a cache keeps: of kubernetes_asyncio's",
            value=measure.ratio(found, "kubernetes_asyncio", "ours"),
            unit="×",
            goal=Goal(least=12),
            note=f"{each('ours')} each, theirs {each('kubernetes_asyncio')}; "
            f"the limit is {limit:.1f} × theirs",
        ),
        Row(
            what="the same as the server sends it",
            value=measure.ratio(found, "kubernetes_asyncio, direct", "ours, direct"),
            unit="×",
            note=f"{each('ours, direct', 1)} each: mostly waking up, once for each event",
        ),
        Row(
            what="a resync: objects of kubernetes_asyncio's",
            value=measure.ratio(found, "their list", "our list"),
            unit="×",
            goal=Goal(least=12),
            note=f"replayed, all as it was; {each('our list', 1)} each until the cache knows, "
            f"theirs {each('their list', 1)} to dicts; all of them for the first time "
            f"{each('our first list', 1)}, where to read and decode is {list_limit:.1f} × theirs",
        ),
        Row(
            what="the same as the server sends it",
            value=measure.ratio(found, "their list, direct", "our list, direct"),
            unit="×",
            note=f"{each('our list, direct', 1)} each: it comes in small TLS records",
        ),
    ]


async def _client(access: Secret) -> tuple[HttpTransport, KubeClient, Kind]:
    transport = HttpTransport(config.read(access))
    client = KubeClient(transport)
    return transport, client, await client.find(*kubefar.NODE)


async def _recorded(access: Secret, count: int) -> kubereplay.Recorded:
    transport, _, kind = await _client(access)
    lines: list[bytes] = []
    stream = transport.lines(Request(method="GET", path=kind.path(), query={"watch": "1"}))
    async with contextlib.aclosing(stream):
        async for some in stream:
            lines += some[: count - len(lines)]
            if len(lines) == count:
                break
    whole = await transport.send(Request(method="GET", path=kind.path()))
    pages = await _paged(transport, kind, JSON)
    short = await _paged(transport, kind, IN_SHORT)
    await transport.close()
    return kubereplay.Recorded(lines, whole.body, pages, short)


async def _paged(transport: HttpTransport, kind: Kind, accept: str) -> dict[str, bytes]:
    """By what they continue, as who begins with a first page that was kept will ask."""
    found: dict[str, bytes] = {}
    query, more = {"limit": str(PAGE)}, ""
    while True:
        request = Request(method="GET", path=kind.path(), query=query, accept=accept)
        page = await transport.send(request)
        found[more] = page.body
        more = json.loads(page.body)["metadata"].get("continue", "")
        if not more:
            return found
        query["continue"] = more


async def _watch(access: Secret, count: int) -> None:
    transport, client, kind = await _client(access)
    changes = client.watch(kind)
    seen = 0
    async with contextlib.aclosing(changes):
        async for some in changes:
            seen += len(some)
            if seen >= count:
                break
    await transport.close()


async def _transport(access: Secret, count: int) -> None:
    """Lines, decoded as the limit decodes them."""
    transport = HttpTransport(config.read(access))
    decode = msgspec.json.Decoder(_Event).decode
    seen = 0
    lines = transport.lines(Request(method="GET", path="/api/v1/nodes", query={"watch": "1"}))
    async with contextlib.aclosing(lines):
        async for some in lines:
            for line in some:
                decode(line)
            seen += len(some)
            if seen >= count:
                break
    await transport.close()


class _Counting(asyncio.BufferedProtocol):
    """Reads until so many bytes have come, and keeps nothing."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._room = memoryview(bytearray(AT_ONCE))
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def get_buffer(self, sizehint: int) -> memoryview:
        del sizehint
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self._left -= nbytes
        if self._left <= 0 and not self.done.done():
            self.done.set_result(None)


async def _bytes(access: Secret, path: str, count: int) -> None:
    target = await config.load(config.read(access))
    parts = urlsplit(target.server)
    head = f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n"
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.create_connection(
        lambda: _Counting(count), parts.hostname or "", parts.port or 443, ssl=target.tls
    )
    transport.write(head.encode())
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


def _decode(lines: list[bytes], times: int) -> None:
    decode = msgspec.json.Decoder(_Event).decode
    for _ in range(times):
        for line in lines:
            decode(line)


async def _first(access: Secret, count: int) -> None:
    async with following(access) as cache:
        assert len(cache._objects) == count  # noqa: SLF001 -- to read them would cost


async def _resync(access: Secret, count: int) -> float:
    """CPU seconds until a cache that has all of them, and has lost its watch, is right again."""
    async with behind(access) as cache:
        began = time.process_time()
        await cache._catch_up()  # noqa: SLF001 -- as after a watch that ended with 410
        assert len(cache._objects) == count  # noqa: SLF001
        return time.process_time() - began


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
    # What the caches log comes before it.
    return json.loads(done.stdout.splitlines()[-1])


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


def _view(accesses: list[Secret], within: float, most: float) -> list[Row]:
    """`most`: megabytes that it may hold; 0 where nobody said."""
    found = _weighed("view", accesses)
    held = Row(
        what=f"memory of a view of {len(accesses):,} clusters × 100 nodes",
        value=found["bytes"] / 1e6,
        unit="MB",
        goal=Goal(most=most),
    )
    return [
        Row(
            what=f"restart to a view of {len(accesses):,} clusters × 100 nodes",
            value=found["seconds"],
            unit="s",
            goal=Goal(most=within),
            note=f"by the wall, on one core; {found['cpu']:.1f} s of CPU, "
            f"{found['bytes'] / 1e6:.0f} MB, {found['count']:,.0f} nodes, {found['failed']:.0f} "
            "looks in vain; one simulated server process for all",
        ),
        *([held] if most else []),
    ]


def _still(access: Secret) -> Row:
    found = _weighed("still", [access])
    return Row(
        what=f"longest stand-still of a loop with {found['count']:,.0f} objects",
        value=found["seconds"] * 1000,
        unit="ms",
        goal=Goal(most=20),
        note="CPU time of a callback of asyncio's own loop, while they are listed, read, listed "
        "again and read again",
    )
