"""
What does a reconcile cost beside kopf's, and how soon is a change answered by a write?

The cost is measured on the far side that `bench.kube` gives, a real API server where there is one:
storms of changes, of which the first, which opens connections, does not count. How soon is
measured on `bench.kubelight`, because a real server on the same small machine cannot make that many
changes, and would be in the way; what is seen on the given far side, at a tenth of the pace, stands
beside it.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

from bench import kubefar, kubelight, measure
from bench.measure import Sizes, Timings
from bench.table import Goal, Row
from fleetd.kube import config
from fleetd.kube.client import KubeClient
from fleetd.kube.http import HttpTransport
from fleetd.kube.transport import Request
from fleetd.secrets import Secret

CHANGERS = 16
QUIET = 0.04
"""CPU seconds a second: less is rest."""
BEGUN = 0.3
"""CPU seconds."""
SETTLED = 120.0
GENTLE = 10
"""So many times slower than the pace: what a real server holds here."""


def rows(access: Secret, sizes: Sizes) -> list[Row]:
    found: Timings = {"ours": [], "kopf": [], "kopf-event": []}
    with _file(access) as path:
        for number in range(sizes.storms):
            for name in found:
                measure.progress(f"storm {number + 1} of {sizes.storms}: {name}")
                found[name].append(_cost(name, path, access, sizes))
        measure.progress(f"{sizes.pace // GENTLE:,} changes a second")
        with _reconciler("ours", path) as process:
            _rest(process.pid, sizes.pause)
            asyncio.run(_steady(access, sizes))
            given = _ended(process, sizes)
    each = measure.median(found["ours"])
    return [
        Row(
            what="reconciles of kopf's handlers",
            value=measure.ratio(found, "kopf", "ours"),
            unit="×",
            goal=Goal(least=20),
            note=f"{each * 1e6:.0f} µs of CPU each, theirs "
            f"{measure.median(found['kopf']) * 1e6:,.0f} µs; storms of {sizes.storm}",
            raw=found,
        ),
        Row(
            what="reconciles of kopf's on.event",
            value=measure.ratio(found, "kopf-event", "ours"),
            unit="×",
            goal=Goal(least=10),
            note=f"theirs {measure.median(found['kopf-event']) * 1e6:,.0f} µs",
        ),
        Row(
            what=f"event to acknowledged write at {sizes.pace // GENTLE:,}/s, median",
            value=given["woken"][0] * 1000,
            unit="ms",
            note=f"99 of 100: {given['woken'][1] * 1000:.1f} ms; by the wall, most of it the "
            "server's",
        ),
    ]


def _cost(name: str, path: Path, access: Secret, sizes: Sizes) -> float:
    """CPU seconds of one reconcile."""
    with _reconciler(name, path) as process:
        began = 0.0
        for _ in range(2):
            _rest(process.pid, sizes.pause)
            began = _cpu(process.pid)
            asyncio.run(_changes(access, list(range(sizes.storm)), 0))
        _rest(process.pid, sizes.pause)
        return (_cpu(process.pid) - began) / sizes.storm


def soon(sizes: Sizes) -> list[Row]:
    """By the wall: from the change to the acknowledged write, with nothing else on the machine."""
    measure.progress(f"{sizes.pace:,} changes a second")
    with (
        kubelight.light(sizes.storm) as access,
        _file(access) as path,
        _reconciler("ours", path) as process,
    ):
        _rest(process.pid, sizes.pause)
        before = _cpu(process.pid)
        asyncio.run(_ask_for_changes(access, sizes))
        time.sleep(sizes.seconds)
        busy = _cpu(process.pid) - before
        found = _ended(process, sizes)
    middle, late, latest = (one * 1000 for one in found["changed"])
    return [
        Row(
            what=f"change to acknowledged write at {sizes.pace:,}/s, median",
            value=middle,
            unit="ms",
            goal=Goal(most=1),
            note=f"by the wall, for {sizes.seconds} s, on a server that costs little, in another "
            f"process; {busy / sizes.pace / sizes.seconds * 1e6:.0f} µs of CPU each",
        ),
        Row(
            what="the same, 99 of 100",
            value=late,
            unit="ms",
            goal=Goal(most=10),
            note=f"999 of 1,000: {latest:.1f} ms",
        ),
    ]


@contextlib.contextmanager
def _file(access: Secret) -> Generator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kubeconfig")
        path.touch(mode=0o600)
        path.write_text(access.reveal(), encoding="utf-8")
        yield path


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


def _ended(process: "subprocess.Popen[bytes]", sizes: Sizes) -> dict[str, list[float]]:
    """What it has to say when it has done all."""
    _rest(process.pid, sizes.pause)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    return json.loads(process.stdout.readline())


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


async def _ask_for_changes(access: Secret, sizes: Sizes) -> None:
    transport = HttpTransport(config.read(access))
    query = {"pace": str(sizes.pace), "seconds": str(sizes.seconds)}
    await transport.send(Request(method="POST", path="/changes", query=query))
    await transport.close()


async def _steady(access: Secret, sizes: Sizes) -> None:
    pace = max(1, sizes.pace // GENTLE)
    todo = [number % sizes.storm for number in range(pace * sizes.seconds)]
    await _changes(access, todo, pace)


async def _changes(access: Secret, wanted: list[int], pace: int) -> None:
    """Of these objects, at so many a second, or as fast as it goes."""
    transport = HttpTransport(config.read(access))
    client = KubeClient(transport)
    kind = await client.find(*kubefar.MAP)
    began = time.monotonic()
    todo = iter(enumerate(wanted))

    async def change() -> None:
        for place, number in todo:
            if pace:
                await asyncio.sleep(max(0.0, began + place / pace - time.monotonic()))
            patch = {"data": {"want": str(time.monotonic_ns())}}
            await client.patch(kind, f"map-{number:04}", patch, kubefar.NAMESPACE)

    await asyncio.gather(*(change() for _ in range(CHANGERS)))
    await transport.close()
