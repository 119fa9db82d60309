"""
What does one cluster that hangs cost nine others?

Both contestants ask nine good servers the same number of questions, by `Clusters`, with gates as
the daemon has them but for the rate. In one of them a tenth server takes every connection and says
nothing, and readers ask it all the while. Only the CPU time of the asking process counts.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

from bench import measure
from bench.kubefar import MAP, NAMESPACE, NODE
from bench.kubeweigh import unhindered
from bench.measure import Sizes
from bench.table import Goal, Row
from fleetd.kube import errors
from fleetd.kube.clusters import Clusters
from fleetd.secrets import Secret

ASKERS = 4
"""At each good server, at once."""
READERS = 16
"""Of the one that hangs."""
HUNG = "cluster:hung"
CONFIG = """
{{"apiVersion": "v1", "kind": "Config", "current-context": "x",
"contexts": [{{"name": "x", "context": {{"cluster": "x", "user": "x"}}}}],
"clusters": [{{"name": "x", "cluster": {{"server": "http://127.0.0.1:{port}"}}}}],
"users": [{{"name": "x", "user": {{}}}}]}}
"""


def row(
    run: Callable[[Callable[[], Awaitable[object]]], object], accesses: list[Secret], sizes: Sizes
) -> Row:
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent:
        hung = Secret(CONFIG.format(port=silent.getsockname()[1]))
        found = measure.in_turn(
            {
                "nine": lambda: run(lambda: _ask(accesses, None, sizes.questions)),
                "with a hung one": lambda: run(lambda: _ask(accesses, hung, sizes.questions)),
            },
            sizes.rounds,
        )
    return Row(
        what="nine clusters beside one that hangs, of nine alone",
        value=measure.ratio(found, "nine", "with a hung one"),
        unit="×",
        goal=Goal(least=0.95),
        note=f"questions per CPU second, {sizes.questions * len(accesses):,} each time",
        raw=found,
    )


async def _ask(accesses: list[Secret], hung: Secret | None, questions: int) -> None:
    clusters = unhindered()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(clusters.run(), name="clusters")]
        await asyncio.sleep(0)
        if hung is not None:
            clusters.put(HUNG, hung)
            tasks += [
                group.create_task(_read(clusters), name=f"reader {number}")
                for number in range(READERS)
            ]
        names = [f"cluster:{number}" for number in range(len(accesses))]
        for name, access in zip(names, accesses, strict=True):
            clusters.put(name, access)
        each = questions // ASKERS
        await asyncio.gather(
            *(_question(clusters, name, each) for name in names for _ in range(ASKERS))
        )
        for task in tasks:
            task.cancel()


async def _read(clusters: Clusters) -> None:
    """As an observer would: looks, fails, and looks again later."""
    while True:
        with contextlib.suppress(errors.KubeError):
            await clusters.cache(HUNG, *NODE, within=0.5)
        await asyncio.sleep(0.1)


async def _question(clusters: Clusters, name: str, count: int) -> None:
    client = clusters.client(name)
    kind = await client.find(*MAP)
    for _ in range(count):
        await client.get(kind, "map-0000", NAMESPACE)
