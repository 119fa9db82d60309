"""
What a cache, an idle watch and a whole view hold and cost, and how long a loop stands still.

Each in a process that has done nothing else before: `python -m bench.kubeweigh
cache|idle|view|still COUNT`, with the kubeconfigs as a line of JSON on stdin. The answer is a line
of JSON too.
"""

import asyncio
import contextlib
import gc
import json
import os
import random
import sys
import time
from asyncio import events
from collections.abc import Generator

import uvloop

from bench import measure
from bench.kubefar import NODE
from bench.kubepeers import FAST
from fleetd.clock import SystemClock
from fleetd.gate import Gates
from fleetd.kube import config, errors
from fleetd.kube.cache import Cache
from fleetd.kube.client import KubeClient
from fleetd.kube.clusters import Clusters
from fleetd.kube.http import HttpTransport
from fleetd.kube.transport import Request
from fleetd.secrets import Secret
from topology.resource import Ref


@contextlib.asynccontextmanager
async def following(access: Secret):  # noqa: ANN201 -- a cache that is synced
    """A cache of all nodes, kept up to date."""
    transport = HttpTransport(config.read(access))
    client = KubeClient(transport)
    kind = await client.find(*NODE)
    cache = Cache(client, kind, clock=SystemClock(), rng=random.Random(1), wake=_nobody)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(cache.run(), name="cache")
        await cache.synced(120)
        yield cache
        task.cancel()
    await transport.close()


@contextlib.asynccontextmanager
async def behind(access: Secret):  # noqa: ANN201 -- a cache that has listed once
    """One of all nodes, which follows nothing now and has to list again."""
    transport = HttpTransport(config.read(access))
    client = KubeClient(transport)
    kind = await client.find(*NODE)
    cache = Cache(client, kind, clock=SystemClock(), rng=random.Random(1), wake=_nobody)
    await cache._catch_up()  # noqa: SLF001 -- `run` would go on to watch
    cache._version = ""  # noqa: SLF001
    yield cache
    await transport.close()


def unhindered() -> Clusters:
    """As the daemon has them, with gates that have no rate to speak of; nobody is woken."""
    clock = SystemClock()
    return Clusters(
        lambda access: HttpTransport(config.read(access)),
        gates=Gates(FAST, clock),
        clock=clock,
        rng=random.Random(1),
        wake=_nobody,
    )


def _nobody(_: Ref) -> None:
    pass


async def _cache(accesses: list[Secret]) -> dict[str, float]:
    transport = HttpTransport(config.read(accesses[0]))
    client = KubeClient(transport)
    kind = await client.find(*NODE)
    first = await transport.send(Request(method="GET", path=kind.path(), query={"limit": "1"}))
    # What one page takes is not an object's, and is taken once.
    await transport.send(Request(method="GET", path=kind.path(), query={"limit": "500"}))
    await transport.close()
    gc.collect()
    before = measure.resident()
    async with following(accesses[0]) as cache:
        await asyncio.sleep(0.5)
        gc.collect()
        count = sum([1 async for _ in cache.each()])
        return {
            "bytes": float(measure.resident() - before),
            "count": float(count),
            "wire": float(len(first.body)),
        }


async def _idle(accesses: list[Secret], count: int) -> dict[str, float]:
    """Watches as a cache has them: from the version of a list on."""
    transport = HttpTransport(config.read(accesses[0]))
    path = "/api/v1/configmaps"
    listed = await transport.send(Request(method="GET", path=path, query={"limit": "1"}))
    version = json.loads(listed.body)["metadata"]["resourceVersion"]
    asked = Request(method="GET", path=path, query={"watch": "1", "resourceVersion": version})

    async def watch() -> None:
        async for _ in transport.lines(asked):
            pass

    async def opened(some: int) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(watch(), name=f"watch {n}") for n in range(some)]
        await asyncio.sleep(0.5 + some / 40)
        return tasks

    first = await opened(count // 10)
    gc.collect()
    before = measure.resident()
    tasks = await opened(count)
    gc.collect()
    held = measure.resident() - before
    open_ = sum(not task.done() for task in tasks)
    for task in (*first, *tasks):
        task.cancel()
    return {"bytes": float(held), "count": float(open_)}


async def _view(accesses: list[Secret]) -> dict[str, float]:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    began, cpu, failed = time.monotonic(), time.process_time(), 0
    clusters = unhindered()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(clusters.run(), name="clusters")
        await asyncio.sleep(0)
        for number, access in enumerate(accesses):
            clusters.put(f"cluster:{number}", access)

        async def look(number: int) -> int:
            """As an observer would: who fails looks again later."""
            while True:
                try:
                    cache = await clusters.cache(f"cluster:{number}", *NODE, within=300)
                    return len(cache.items())
                except errors.KubeError:
                    nonlocal failed
                    failed += 1
                    await asyncio.sleep(1)

        seen = await asyncio.gather(*(look(number) for number in range(len(accesses))))
        done = time.monotonic() - began, time.process_time() - cpu
        running.cancel()
    return {
        "seconds": done[0],
        "cpu": done[1],
        "bytes": float(measure.resident()),
        "count": float(sum(seen)),
        "failed": float(failed),
    }


async def _still(accesses: list[Secret]) -> dict[str, float]:
    """While all is listed, read, listed again, and read again."""
    with _timed() as longest:
        async with following(accesses[0]) as cache:
            count = await _read_all(cache)
            client = KubeClient(HttpTransport(config.read(accesses[0])))
            first = cache._listed_at  # noqa: SLF001 -- nobody else needs to know
            cache.use(client)
            async with asyncio.timeout(120):
                while cache._listed_at == first:  # noqa: SLF001, ASYNC110 -- it is not said
                    await asyncio.sleep(0.1)
            count = await _read_all(cache)
    return {"seconds": longest[0], "count": float(count)}


async def _read_all(cache: Cache) -> int:
    return sum([1 async for _ in cache.each(by=Ref("bench", "reader"))])


@contextlib.contextmanager
def _timed() -> Generator[list[float]]:
    """The CPU seconds of the longest callback of a loop that is asyncio's own."""
    longest = [0.0]
    run = events.Handle._run  # noqa: SLF001 -- the one place through which every callback goes

    def timed(self: events.Handle) -> None:
        began = time.thread_time()
        run(self)
        longest[0] = max(longest[0], time.thread_time() - began)

    events.Handle._run = timed  # noqa: SLF001
    try:
        yield longest
    finally:
        events.Handle._run = run  # noqa: SLF001


def main() -> None:
    accesses = [Secret(json.dumps(one)) for one in json.loads(sys.stdin.readline())]
    # uvloop does not tell how long a callback takes.
    factory = asyncio.new_event_loop if sys.argv[1] == "still" else uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        match sys.argv[1]:
            case "cache":
                found = runner.run(_cache(accesses))
            case "idle":
                found = runner.run(_idle(accesses, int(sys.argv[2])))
            case "still":
                found = runner.run(_still(accesses))
            case _:
                found = runner.run(_view(accesses))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
