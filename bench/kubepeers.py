"""
Reconcilers, each a program: whenever `want` of a ConfigMap changes, `have` is set to it.

`ours` is fleetd's cache, gate and client; `kopf` is kopf with handlers for what is created and
changed; `kopf-event` is kopf with a handler of raw events, which writes once. All run on uvloop,
with the kubeconfig that KUBECONFIG names, until they are killed. `want` is the moment of the
change. `ours` prints how long it took from there to the acknowledged write, and from the moment at
which it was woken, as one line of JSON, when its standard input ends.
"""

import asyncio
import json
import logging
import os
import random
import statistics
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvloop

from bench.kubefar import MAP, NAMESPACE
from fleetd.clock import SystemClock
from fleetd.gate import Gate, GateLimits
from fleetd.kube import config
from fleetd.kube.cache import Cache
from fleetd.kube.client import KubeClient, Listener
from fleetd.kube.gated import GatedTransport
from fleetd.kube.http import HttpTransport
from fleetd.kube.kinds import Kind
from fleetd.kube.slim import Slim
from fleetd.secrets import Secret
from topology.resource import Ref

WORKERS = 16
FAST = GateLimits(
    concurrency=64,
    rate=1e6,
    burst=1_000_000,
    failures_max=5,
    open_for=timedelta(seconds=10),
    open_max=timedelta(minutes=2),
)
"""The gate stays in the way, with no rate to speak of: a rate limit would be all that is measured.
It closes on a server that fails."""


class Ours:
    def __init__(self, access: Secret) -> None:
        self._clock = SystemClock()
        gate = Gate("bench", FAST, self._clock)
        self._transport = GatedTransport(HttpTransport(config.read(access)), gate, self._clock)
        self._client = KubeClient(self._transport, manager="bench", listener=_Noting(self))
        self._due: dict[str, float] = {}
        """Since when each of them is to be looked at, the first one first."""
        self._resting: list[asyncio.Future[None]] = []
        self._since_woken: list[float] = []
        self._since_changed: list[float] = []
        self.cache: Cache | None = None

    async def run(self) -> None:
        kind = await self._client.find(*MAP)
        self.cache = cache = Cache(
            self._client,
            kind,
            NAMESPACE,
            clock=self._clock,
            rng=random.Random(1),
            wake=self._wake,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(cache.run(), name="cache")
            await cache.synced(60)
            for one in cache.items():
                self._wake(Ref("map", one["metadata"]["name"]))
            for number in range(WORKERS):
                group.create_task(self._work(kind, cache), name=f"worker {number}")
            await asyncio.to_thread(sys.stdin.read)
            self._report()
            os._exit(0)

    def _wake(self, ref: Ref) -> None:
        if ref.name not in self._due:
            self._due[ref.name] = time.monotonic()
            if self._resting:
                self._resting.pop().set_result(None)

    async def _work(self, kind: Kind, cache: Cache) -> None:
        while True:
            while self._due:
                name = next(iter(self._due))
                await self._settle(kind, cache, name, self._due.pop(name))
            rest = asyncio.get_running_loop().create_future()
            self._resting.append(rest)
            await rest

    async def _settle(self, kind: Kind, cache: Cache, name: str, began: float) -> None:
        """Until it is as wanted. What the write itself changed is read here, with all that came
        meanwhile, and wakes nobody else."""
        by = Ref("map", name)
        while (seen := cache.get(name, NAMESPACE, by=by)) is not None:
            if seen["data"]["want"] == seen["data"]["have"]:
                return
            meta = {"name": name, "namespace": NAMESPACE}
            body = {"metadata": meta, "data": {"have": seen["data"]["want"]}}
            await self._client.apply(kind, body, force=True)
            now = time.monotonic()
            self._since_woken.append(now - began)
            self._since_changed.append(now - int(seen["data"]["want"]) / 1e9)
            self._due.pop(name, None)
            began = now

    def _report(self) -> None:
        found = {"woken": _cuts(self._since_woken), "changed": _cuts(self._since_changed)}
        print(json.dumps(found), flush=True)


def _cuts(took: list[float]) -> list[float]:
    """Seconds: what half of them, 99 and 99.9 of 100 stay below."""
    cuts = statistics.quantiles(took, n=1000) if len(took) > 1 else [0.0] * 999
    return [cuts[499], cuts[989], cuts[998]]


class _Noting(Listener):
    """What was written is known at once, as in the daemon."""

    def __init__(self, ours: Ours) -> None:
        self._ours = ours

    def wrote(self, kind: Kind, obj: dict[str, Any], told: Slim | None = None) -> None:
        del kind
        if self._ours.cache is not None:
            self._ours.cache.note(obj, told)

    def deleted(self, kind: Kind, name: str, namespace: str, uid: str) -> None:
        pass


def _kopf(*, events: bool) -> None:
    import kopf  # noqa: PLC0415 -- ours must not pay for it

    on: Any = kopf.on

    def settle(spec: object = None, patch: Any = None, body: Any = None, **_: object) -> None:  # noqa: ANN401 -- kopf's own
        del spec
        if body["data"]["have"] != body["data"]["want"]:
            patch["data"] = {"have": body["data"]["want"]}

    def configure(settings: Any, **_: object) -> None:  # noqa: ANN401 -- kopf's own
        settings.posting.enabled = False

    on.startup()(configure)
    if events:
        on.event("", "v1", "configmaps")(settle)
    else:
        on.create("", "v1", "configmaps")(settle)
        on.update("", "v1", "configmaps")(settle)
    logging.getLogger().setLevel(logging.ERROR)
    run: Any = kopf.run
    run(standalone=True, namespaces=[NAMESPACE], loop=uvloop.new_event_loop())


def main() -> None:
    which = sys.argv[1]
    if which == "ours":
        access = Secret(Path(os.environ["KUBECONFIG"]).read_text(encoding="utf-8"))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(Ours(access).run())
    else:
        _kopf(events=which == "kopf-event")


if __name__ == "__main__":
    main()
