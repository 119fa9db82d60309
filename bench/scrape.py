"""
How dear is a scrape of 100,000 series?

The measure is what nobody can do without: sending as many bytes that lie ready, over the same HTTP
server. Beside it stands prometheus_client, which makes its text anew each time. 1,000 regions of
100 series each; nothing changed since the last scrape, or one region of a hundred did. CPU time of
the process, in which the reader runs as well: it is the same for all contestants.
"""

import asyncio
import http.client
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

from aiohttp import web
from prometheus_client import CollectorRegistry, Gauge, exposition

from bench import measure
from bench.measure import Sizes, Timings
from bench.table import Goal, Peer, Row
from fleetd.plan.capacity import Count, Place
from fleetd.plan.incidents import Report
from fleetd.surface import metrics
from fleetd.surface.metrics import Body, Metrics
from fleetd.surface.panel import NO_TIMES, Figures, Panel, QueueState, Work
from fleetd.vocabulary import HoldReason, Truth
from topology.resource import EMPTY

KINDS = tuple(f"kind{number}" for number in range(20))
SERIES = 100
"""Of one region: four for each of 20 kinds, a hold for each reason, and a handful."""
NOW = datetime(2030, 1, 1, tzinfo=UTC)


class _Fleet:
    """The part of a panel that a scrape reads."""

    def __init__(self, regions: int) -> None:
        self.marked = {f"region-{number}": 1 for number in range(regions)}
        self.planned = 0

    def change(self, count: int) -> None:
        self.planned += 1
        for region in [*self.marked][:count]:
            self.marked[region] += 1

    def marks(self) -> dict[str, int]:
        return self.marked

    def figures(self, region: str) -> Figures:
        return Figures(
            kinds=KINDS,
            resources={(kind, Truth.TRUE): 17 for kind in KINDS},
            held={HoldReason.WINDOW: 3},
            waiting=1,
            planned=self.planned,
            places={Place(region, "pool", "std-64c", "a"): Count(total=9, free=2, used=6)},
            clusters={"hv": True},
            not_ready=None,
        )

    def __getattr__(self, name: str) -> Callable[..., Any]:
        plain: dict[str, Any] = {
            "now": NOW,
            "incidents": Report(),
            "work": Work(looks={}, steps={}, outcomes={}, plans=NO_TIMES),
            "queue": QueueState(ready=0, delayed=0, working=0),
            "topology": EMPTY,
        }
        return lambda *_: plain.get(name, ())


def run(sizes: Sizes) -> list[Row]:
    regions = max(sizes.servers // SERIES, 10)
    fleet = _Fleet(regions)
    source = Metrics(cast("Panel", fleet))
    ready = source.render()
    series = sum(not line.startswith(b"#") for line in ready.splitlines())
    registry = _registry(series)
    timings = asyncio.run(_served(sizes.rounds, fleet, source, ready, registry))
    ratios = {name: measure.ratio(timings, name, "ready") for name in ("clean", "changed", "peer")}
    told = f"{series:,} series, {len(ready) >> 20} MB"
    peer = Peer(name="prometheus_client", ratio=measure.ratio(timings, "clean", "peer"))
    changed = Peer(name="prometheus_client", ratio=measure.ratio(timings, "changed", "peer"))
    return [
        Row(
            what="a scrape, nothing changed, against ready bytes",
            value=ratios["clean"],
            unit="×",
            goal=Goal(most=1.2),
            peers=(peer,),
            note=told,
            raw=timings,
        ),
        Row(
            what="the same, one region of a hundred changed",
            value=ratios["changed"],
            unit="×",
            goal=Goal(most=2.0),
            peers=(changed,),
        ),
        Row(
            what="rendering by prometheus_client against ours",
            value=measure.ratio(timings, "made by peer", "made by us"),
            unit="×",
            goal=Goal(least=100.0),
            note="text only, nothing sent, nothing changed",
        ),
    ]


def _registry(series: int) -> CollectorRegistry:
    registry = CollectorRegistry()
    gauge = Gauge("fleetd_resources", "As many.", ["kind", "region", "state"], registry=registry)
    for number in range(series):
        gauge.labels(f"kind{number % 20}", f"region-{number // 20}", "ready").set(17)
    return registry


async def _served(
    rounds: int, fleet: _Fleet, source: Metrics, ready: bytes, registry: CollectorRegistry
) -> Timings:
    async def fresh(request: web.Request) -> web.StreamResponse:
        return await metrics.send(request, await source.answer("", ""))

    async def lying(request: web.Request) -> web.StreamResponse:
        return await metrics.send(request, Body([ready], {}))

    async def peer(_: web.Request) -> web.Response:
        return web.Response(body=exposition.generate_latest(registry))

    app = web.Application()
    for path, handler in (("/fresh", fresh), ("/ready", lying), ("/peer", peer)):
        app.router.add_get(path, handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port: int = runner.addresses[0][1]
    timings: Timings = {}
    try:
        for number in range(rounds + 1):
            measure.progress(f"round {number}")
            found = {
                "ready": await _cpu(port, "/ready"),
                "clean": await _cpu(port, "/fresh"),
                "peer": await _cpu(port, "/peer"),
                "made by us": measure.cpu(source.render),
                "made by peer": measure.cpu(lambda: exposition.generate_latest(registry)),
            }
            fleet.change(max(len(fleet.marked) // 100, 1))
            found["changed"] = await _cpu(port, "/fresh")
            for name, seconds in found.items() if number else ():  # the first warms up
                timings.setdefault(name, []).append(seconds)
    finally:
        await runner.cleanup()
    return timings


async def _cpu(port: int, path: str) -> float:
    """Of the process, for a few requests in a row."""
    began = time.process_time()
    for _ in range(3):
        await asyncio.to_thread(_get, port, path)
    return time.process_time() - began


def _get(port: int, path: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", path)
    connection.getresponse().read()
    connection.close()
