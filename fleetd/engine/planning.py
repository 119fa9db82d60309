"""
The plan loop: when something changed, or time alone may have changed something, decide anew.

It plans only the regions that are dirty, one after the other, and lets everybody else run in
between. A plan that does not pass lint and guard is not carried out, and nothing of the one
before it is begun any more; the refusal is counted, logged, and told by `/readyz`.
"""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import structlog

from fleetd.clock import Clock
from fleetd.engine.state import State
from fleetd.engine.stats import Stats
from fleetd.plan import guard, lint
from fleetd.vocabulary import Driver, Plan

_log = structlog.stdlib.get_logger("fleetd.planning")

GATHER = timedelta(milliseconds=20)
"""News that arrive together are planned together: 50 plans a second of a region at most, while a
person still sees an answer at once."""


class Planning:
    def __init__(
        self,
        *,
        state: State,
        drivers: Mapping[str, Driver],
        clock: Clock,
        submit: Callable[[Plan], None],
        stats: Stats,
    ) -> None:
        self._state = state
        self._drivers = drivers
        self._clock = clock
        self._submit = submit
        self._stats = stats
        self._again: dict[str, datetime] = {}

    async def run(self) -> None:
        while True:
            await self._news()
            await asyncio.sleep(GATHER.total_seconds())
            self._state.changed.clear()
            self._wake_by_time()
            while self._state.dirty and not self._state.stopping:
                region = min(self._state.dirty)
                self._state.dirty.discard(region)
                self.plan(region)
                await asyncio.sleep(0)

    def plan(self, region: str) -> None:
        state = self._state
        started = self._clock.monotonic()
        now = self._clock.now()
        plan = state.planner.plan(state.view, state.policy, region=region, now=now)
        state.compare(plan, now)
        self._stats.plans.add(self._clock.monotonic() - started)
        if plan.again is None:
            self._again.pop(region, None)
        else:
            self._again[region] = plan.again
        if not state.knows(plan):
            faults = lint.lint(plan, state.view.topology, self._drivers)
            faults += guard.guard(plan, state.view, state.policy, now=now)
            if faults:
                self._stats.plans_refused += 1
                _log.error("plan refused", region=region, faults=faults[:5], count=len(faults))
                state.plan_refused(region, faults[0])
                return
            state.planned(plan)
        # Also when nothing changed: a step that found its gate closed was put down again, and
        # only a plan picks it up.
        self._submit(plan)

    async def _news(self) -> None:
        """Until something changed, or the earliest moment at which time alone may matter."""
        if self._state.dirty:
            return
        soonest = min(self._again.values(), default=None)
        if soonest is None:
            await self._state.changed.wait()
            return
        left = max((soonest - self._clock.now()).total_seconds(), 0.0)
        try:
            async with asyncio.timeout(left):
                await self._state.changed.wait()
        except TimeoutError:
            pass

    def _wake_by_time(self) -> None:
        now = self._clock.now()
        for region in [region for region, at in self._again.items() if at <= now]:
            del self._again[region]
            self._state.dirty.add(region)
