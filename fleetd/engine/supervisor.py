"""
Starts every loop in one TaskGroup, and ends them in the right order.

A loop that crashes ends them all, and the process with them; whoever started the process starts
it again, and nothing is lost because everything that matters was written before it was done.
Told to stop, it begins nothing new, waits for what is under way (`drain`), gives up on the rest
as lost, and only then ends the loops.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import structlog

from fleetd.engine import queue
from fleetd.engine.executor import Executor
from fleetd.engine.observer import Observer
from fleetd.engine.planning import Planning
from fleetd.engine.state import State
from fleetd.store.base import Store
from topology.resource import Ref

_log = structlog.stdlib.get_logger("fleetd.supervisor")

TRIM_EVERY = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What the daemon keeps, and how it stops."""

    events_max: int
    journal_max: int
    drain: timedelta
    """How long steps in flight may finish."""
    workers: int
    """Looks under way at once, over all backends; each backend's gate allows a few of them."""


class Supervisor:
    def __init__(
        self,
        *,
        state: State,
        observer: Observer,
        planning: Planning,
        executor: Executor,
        looks: queue.Queue[Ref],
        store: Store,
        upkeep: Upkeep,
    ) -> None:
        self._state = state
        self._observer = observer
        self._planning = planning
        self._executor = executor
        self._looks = looks
        self._store = store
        self._upkeep = upkeep

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set, or a loop fails."""
        self.look_at_everything()
        async with asyncio.TaskGroup() as group:
            loops = [
                group.create_task(self._executor.run(), name="executor"),
                group.create_task(self._planning.run(), name="planning"),
                group.create_task(self._trim(), name="trim"),
            ]
            loops += [
                group.create_task(self._observer.run(), name=f"observer {number}")
                for number in range(self._upkeep.workers)
            ]
            group.create_task(self._end(stop, loops), name="end")

    def look_at_everything(self) -> None:
        seen = self._state.view.seen
        for ref in self._state.view.topology.resources:
            self._looks.add(ref, priority=queue.SOON if ref in seen else queue.URGENT)

    async def _end(self, stop: asyncio.Event, loops: "list[asyncio.Task[None]]") -> None:
        await stop.wait()
        self._state.stopping = True
        late = await self._executor.drain(self._upkeep.drain)
        _log.info("drained", given_up=late)
        for loop in loops:
            loop.cancel()

    async def _trim(self) -> None:
        """At once, too: a daemon that is started again and again must not grow without end."""
        while True:
            await self._store.trim(
                events_max=self._upkeep.events_max, journal_max=self._upkeep.journal_max
            )
            await asyncio.sleep(TRIM_EVERY.total_seconds())
