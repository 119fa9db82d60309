"""
The observe loop: look, judge, settle, remember, and say when to look again. It repairs nothing.

A look that fails is a look that saw nothing (`facts=None`); how long to wait after it is the
queue's business. The moment of an observation is when the look *began*: an answer that was on its
way while a step was carried out must not pass for a look at what the step did.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

import structlog

from fleetd import conditions, gate
from fleetd.clock import Clock
from fleetd.engine import answers, calls, queue, records
from fleetd.engine.state import State
from fleetd.engine.stats import Stats
from fleetd.store.base import Store
from fleetd.vocabulary import ABSENT, Condition, Driver, Event, Observation, Truth
from topology import blind
from topology.resource import Ref, Resource

_log = structlog.stdlib.get_logger("fleetd.observer")


_SILENT = "see whether it is up, and whether this machine reaches it"
CALM = 4
"""So many times as rarely is looked at what is calm; see `calm_pace`."""


def calm_pace(steady: timedelta, stale_after: timedelta) -> timedelta:
    """With its jitter of a tenth it comes before an observation grows stale."""
    return max(min(steady * CALM, stale_after * 4 / 5), steady)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often things are looked at."""

    steady: timedelta
    """A Ready thing."""
    calm: timedelta
    """A Ready thing whose changes wake us, or that nobody but us changes. A look now and then finds
    what no watch tells."""
    moving: timedelta
    """A thing on its way to Ready: people wait for it. What is not there yet is looked at as
    rarely as what is Ready: it changes only by our own doing, and that is looked at at once, or
    when something that it needs becomes Ready."""
    deadline: timedelta
    """One look."""
    grace: timedelta
    """How long a thing that was Ready may fail before it counts as not Ready."""


class Widths:
    """How many looks at one backend may be under way. A backend whose looks do not come back in
    time gets one: it then holds one worker for a deadline and not all that it may have. This is
    about workers, and blames nobody: who is dead is found out where requests leave (`gate`)."""

    def __init__(self, concurrency: int, workers: int) -> None:
        """Never so wide that one slow backend takes more than a quarter of the workers."""
        self._widest = min(concurrency, max(workers // 4, 1))
        self._back: set[str] = set()

    def of(self, backend: str) -> int:
        return self._widest if backend in self._back or not backend else 1

    def came_back(self, backend: str) -> None:
        self._back.add(backend)

    def hung(self, backend: str) -> None:
        self._back.discard(backend)


def lanes(state: State, widths: Widths) -> queue.Lanes[Ref]:
    """A lane per backend."""

    def lane(ref: Ref) -> str:
        want = state.want(ref)
        return want.backend if want is not None else ""

    return queue.Lanes(lane, widths.of)


class Observer:
    def __init__(
        self,
        *,
        state: State,
        drivers: Mapping[str, Driver],
        widths: Widths,
        store: Store,
        clock: Clock,
        looks: queue.Queue[Ref],
        pace: Pace,
        rng: random.Random,
        stats: Stats,
    ) -> None:
        self._state = state
        self._drivers = drivers
        self._widths = widths
        self._store = store
        self._clock = clock
        self._looks = looks
        self._pace = pace
        self._rng = rng
        self._stats = stats
        self._silent: set[Ref] = set()
        self._behind: dict[str, dict[Ref, None]] = {}
        """By who did not answer: what could not be looked at because of that."""
        self._unjudged: set[Ref] = set()

    async def run(self) -> None:
        """One worker; start as many as looks should be under way at once."""
        while True:
            ref = await self._looks.get()
            try:
                await self.look(ref)
            finally:
                self._looks.done(ref)

    async def look(self, ref: Ref) -> None:
        want = self._state.want(ref)
        driver = self._drivers.get(want.driver) if want is not None else None
        if want is None or driver is None:
            self._looks.drop(ref)
            self._silent.discard(ref)
            self._unjudged.discard(ref)
            return
        self._state.allow_for_the_clock(ref, self._clock.now())
        seen = await self._observe(want, driver)
        judged = self._judge(want, driver, seen) if seen.facts else ()
        old = self._state.view.ready.get(ref)
        ready = conditions.of(want, seen, judged, old, grace=self._pace.grace)
        if self._state.want(ref) is not want:
            # The documents changed while we looked; what we judged is not asked for any more.
            self._looks.add(ref, priority=queue.SOON)
            return
        await self._remember(old, ready, ref)
        if want.absent and ready.truth is Truth.TRUE:
            await self._bury(ref)
            return
        self._state.saw(seen, ready)
        self._next_look(ref, seen, ready)
        if ready.truth is Truth.TRUE and (old is None or old.truth is not Truth.TRUE):
            self._look_at_who_waited(ref)

    def _look_at_who_waited(self, ref: Ref) -> None:
        """Something became Ready. Who needs it and was not there or could not be looked at until
        now, mostly for want of it, need not wait for the next look."""
        view = self._state.view
        for user in view.topology.needed_by.get(ref, ()):
            seen, ready = view.seen.get(user), view.ready.get(user)
            if seen is None or seen.facts is None or (ready and ready.reason == ABSENT):
                self._looks.add(user, priority=queue.SOON)

    async def _observe(self, want: Resource, driver: Driver) -> Observation:
        began = self._clock.now()
        started = self._clock.monotonic()
        error, reason, silent = "", blind.NOT_OBSERVED, ""
        given_up: list[str] = []
        gate.GIVEN_UP.set(given_up)
        try:
            seen = await calls.within(
                self._pace.deadline,
                driver.observe(want),
                name=f"look {want.ref}",
                strays=self._stats.strays_of(want.backend),
            )
            # Asked in here: facts that cannot be read are a fault of the driver.
            digest = answers.digest(seen.facts)
            error = answers.text(seen.error)
            reason = seen.blind if seen.blind in blind.REASONS else blind.NOT_OBSERVED
            silent = seen.silent
        except calls.TooLate as late:
            # It may have asked several: told is who let the time pass.
            silent = given_up[0] if given_up else ""
            side = silent or want.backend
            error = f"{side}: {late}" if side else str(late)
            reason = blind.NO_ANSWER
            self._widths.hung(want.backend)
        except Exception as cause:  # noqa: BLE001 - a driver's fault must not end the daemon
            error = f"the {want.driver} driver failed: {type(cause).__name__}"
            if want.ref not in self._silent:
                _log.error("driver failed", ref=str(want.ref), driver=want.driver, exc_info=cause)
        else:
            self._widths.came_back(want.backend)
            if seen.facts is not None:
                self._heard(want.ref)
                self._stats.looked_at[want.driver, "seen"] += 1
                return Observation(
                    ref=want.ref, at=began, facts=seen.facts, digest=digest, calm=seen.calm
                )
        finally:
            took = self._clock.monotonic() - started
            self._stats.looked(want.driver, want.backend, took)
        if reason == blind.NO_ANSWER:
            error = f"{error}; {_SILENT}"
        self._missed(want.ref, error, silent or want.backend)
        self._stats.looked_at[want.driver, "blind"] += 1
        return Observation(
            ref=want.ref, at=began, facts=None, error=error, blind=reason, silent=silent
        )

    def _judge(self, want: Resource, driver: Driver, seen: Observation) -> tuple[Condition, ...]:
        """What the driver thinks of it; if it fails over what it saw, nobody knows."""
        try:
            judged = answers.conditions(driver.judge(want, seen))
        except Exception as cause:  # noqa: BLE001 - a driver's fault must not end the daemon
            if want.ref not in self._unjudged:
                self._unjudged.add(want.ref)
                _log.error("driver failed", ref=str(want.ref), driver=want.driver, exc_info=cause)
            return (answers.fault(want, seen.at, cause),)
        self._unjudged.discard(want.ref)
        return judged

    async def _remember(self, old: Condition | None, ready: Condition, ref: Ref) -> None:
        if (
            old is not None
            and old.truth is ready.truth
            and old.reason == ready.reason
            and old.generation == ready.generation
        ):
            return
        await self._store.put(records.CONDITIONS, {str(ref): records.encode(ready)})
        if old is None or old.truth is not ready.truth:
            reason = {Truth.TRUE: "Ready", Truth.FALSE: "NotReady", Truth.UNKNOWN: "Unknown"}
            message = (
                ready.message if ready.truth is Truth.TRUE else f"{ready.reason}: {ready.message}"
            )
            event = Event(
                at=self._clock.now(), ref=ref, reason=reason[ready.truth], message=message
            )
            await self._store.record([event])

    async def _bury(self, ref: Ref) -> None:
        """What was retired is gone. Its records go in an order that a crash can only make us do
        again: as long as the orphan is known, so is its retirement."""
        for table in (records.CONDITIONS, records.ORPHANS, records.RETIRED):
            await self._store.put(table, {str(ref): None})
        waited = self._state.view.topology.needed_by.get(ref, ())
        self._state.bury(ref)
        self._looks.drop(ref)
        for other in waited:
            self._looks.add(other, priority=queue.SOON)

    def _next_look(self, ref: Ref, seen: Observation, ready: Condition) -> None:
        if seen.facts is None:
            self._looks.retry(ref)
            return
        self._looks.succeeded(ref)
        pace = self._pace.steady
        if seen.calm and (ready.truth is Truth.TRUE or ready.reason == ABSENT):
            pace = self._pace.calm
        if ready.truth is not Truth.TRUE and ready.reason != ABSENT:
            # The longer a state lasts, the less a second matters: a tenth of its age.
            age = (seen.at - ready.reason_since) / 10
            pace = min(max(age, self._pace.moving), self._pace.steady)
        # A tenth either way, so that looks that began together drift apart.
        self._looks.add(ref, after=pace * (0.9 + self._rng.random() / 5))

    def _missed(self, ref: Ref, error: str, side: str) -> None:
        """One line when a thing goes away, not one a look. `side`: who did not answer."""
        if side:
            self._behind.setdefault(side, {})[ref] = None
        if ref not in self._silent:
            self._silent.add(ref)
            _log.info("cannot look", ref=str(ref), error=error)

    def _heard(self, ref: Ref) -> None:
        if ref in self._silent:
            self._silent.discard(ref)
            _log.info("can look again", ref=str(ref))
            # Who answers one answers the others, and they need not wait for their own time.
            for side in [side for side, refs in self._behind.items() if ref in refs]:
                for other in self._behind.pop(side):
                    if other != ref and other in self._silent:
                        self._looks.add(other, priority=queue.SOON)
