"""A daemon's HTTP face on a panel made by hand, in a thread: a browser is driven beside it."""

import asyncio
import contextlib
import ssl
import tempfile
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path

from fleetd.settings import Address
from fleetd.store.base import Recorded
from fleetd.surface import http
from fleetd.surface.door import Door
from fleetd.surface.panel import Tally
from fleetd.vocabulary import Event, Hold, HoldReason, Truth
from tests.surface import panels
from tests.surface.desks import FakeDesk
from tests.surface.panels import NOW, FakePanel
from topology import read
from topology.examples import large
from topology.resource import Ref

APPROVAL = "approve-me"
NASTY = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"


@dataclass
class Stage:
    url: str
    panel: FakePanel
    desk: FakeDesk
    call: Callable[[Callable[[], None]], None]
    """Has something done in the server's own thread."""

    def happens(self, ref: Ref, message: str) -> None:
        """An event, as the engine would have stored it."""

        def record() -> None:
            seq = self.panel.history[-1].seq + 1
            event = Event(at=NOW, ref=ref, reason="StepDone", message=message)
            self.panel.history.append(Recorded(seq=seq, event=event))

        self.call(record)


@contextlib.contextmanager
def on(
    panel: FakePanel,
    *,
    port: int = 0,
    door: Door | None = None,
    tls: ssl.SSLContext | None = None,
) -> Generator[Stage]:
    desk = FakeDesk(waiting={APPROVAL: [panels.CLUSTER]}, orphans=[panels.CLUSTER])
    loop = asyncio.new_event_loop()
    address: list[str] = []
    up, end = threading.Event(), asyncio.Event()

    async def serve() -> None:
        here = Address("127.0.0.1", port)
        async with http.serving(panel, here, desk=desk, door=door, tls=tls) as server:
            address.append(server.url)
            up.set()
            await end.wait()
        if tls is not None:
            await asyncio.sleep(0.25)  # both sides say goodbye before such a connection is closed

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    if not up.wait(120):
        raise TimeoutError("the server did not come up")

    def call(act: Callable[[], None]) -> None:
        done = threading.Event()
        loop.call_soon_threadsafe(lambda: (act(), done.set()))
        if not done.wait(120):
            raise TimeoutError("the server's loop stands still")

    try:
        yield Stage(address[0], panel, desk, call)
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(120)
        loop.close()


def small() -> FakePanel:
    """One region in which something of everything is going on."""
    panel = panels.small("cluster/hv is being made")
    plan = panel.plans["eu-1"]
    waiting = Hold(
        ref=panels.POOL,
        reason=HoldReason.APPROVAL,
        message=NASTY,
        approval=APPROVAL,
        until=NOW + timedelta(hours=2),
        steps=(replace(plan.steps[0], destroys=frozenset({Ref("server", "a")})),),
    )
    panel.plans["eu-1"] = replace(plan, holds=(*plan.holds, waiting))
    return panel


def fleet(clusters: int, servers: int) -> FakePanel:
    """A large one, mostly Ready."""
    with tempfile.TemporaryDirectory() as folder:
        large.write(Path(folder), clusters, servers)
        topology = read.read([Path(folder)]).topology
    if topology is None:
        raise ValueError("the example has problems")
    judged = {
        ref: panels.ready(Truth.FALSE, "Broken", "it does not answer")
        if number % 97 == 0
        else panels.ready(Truth.TRUE)
        for number, ref in enumerate(topology.resources)
    }
    return Still(want=topology, judged=judged, history=panels.small().history)


class Still(FakePanel):
    """Counts once: a daemon keeps its counts, and does not walk the fleet for each reader."""

    @cached_property
    def counted(self) -> Tally:
        return super().tally()

    def tally(self) -> Tally:
        return self.counted
