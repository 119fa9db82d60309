"""
Carries plans out: what they say, nothing else, and never without a durable intent first.

For each step: see that the backend's gate is open, write the intent, look once more whether the
newest plan still has it, act, write how it ended, and have the thing looked at. One resource has at
most one step under way. A step that fails stops nobody else. If the intent cannot be written,
nothing is sent: a broken store ends the daemon (`StoreBroken` travels up to the supervisor).

A plan may hold a hundred thousand steps; only as many tasks exist as the gates let through.
"""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from fleetd.clock import Clock
from fleetd.engine import answers, attempts, calls, queue, records
from fleetd.engine.state import State
from fleetd.engine.stats import Stats
from fleetd.gate import GateClosed, Gates
from fleetd.plan.view import Attempt
from fleetd.store.base import Intent, Store
from fleetd.vocabulary import Driver, Ending, Event, Failed, Lost, Plan, Step
from topology.resource import Ref

_log = structlog.stdlib.get_logger("fleetd.executor")


@dataclass(frozen=True, slots=True)
class _Job:
    step: Step
    plan: Plan
    backend: str
    driver: str


class Executor:
    def __init__(
        self,
        *,
        state: State,
        drivers: Mapping[str, Driver],
        gates: Gates,
        store: Store,
        clock: Clock,
        looks: queue.Queue[Ref],
        backoff: queue.Backoff,
        rng: random.Random,
        stats: Stats,
    ) -> None:
        self._state = state
        self._drivers = drivers
        self._gates = gates
        self._store = store
        self._clock = clock
        self._looks = looks
        self._backoff = backoff
        self._rng = rng
        self._stats = stats
        self._pending: dict[str, dict[Ref, _Job]] = {}
        """Steps that have not begun, by backend."""
        self._submitted: dict[str, list[tuple[str, Ref]]] = {}
        """What the newest plan of each region put there."""
        self._stirred: set[str] = set()
        """Backends where something may begin now."""
        self._running: dict[Ref, asyncio.Task[None]] = {}
        self._busy: dict[str, int] = {}
        self._group: asyncio.TaskGroup | None = None
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Owns the tasks of all steps; a fault in one that is not an outcome ends the daemon."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            while True:
                await self._wake.wait()
                self._wake.clear()
                stirred, self._stirred = self._stirred, set()
                for backend in sorted(stirred):
                    self._fill(backend)

    def submit(self, plan: Plan) -> None:
        """Take over the newest plan of a region. Steps of an older one that have not begun are
        forgotten; the newest says all there is to do. Costs what the two plans are, not what the
        fleet is."""
        for backend, ref in self._submitted.pop(plan.region, ()):
            self._pending.get(backend, {}).pop(ref, None)
        mine: list[tuple[str, Ref]] = []
        for step in plan.steps:
            resource = self._state.want(step.ref)
            # What comes after another is shown; when that one is done, the thing is looked at and
            # proposed anew.
            if step.after or resource is None or step.ref in self._running:
                continue
            jobs = self._pending.setdefault(resource.backend, {})
            jobs.setdefault(step.ref, _Job(step, plan, resource.backend, resource.driver))
            mine.append((resource.backend, step.ref))
            self._stirred.add(resource.backend)
        self._submitted[plan.region] = mine
        self._wake.set()

    @property
    def running(self) -> int:
        return len(self._running)

    def pending(self) -> int:
        return sum(len(jobs) for jobs in self._pending.values())

    async def drain(self, within: timedelta) -> int:
        """Begin nothing new; wait for what runs; give up on the rest. Returns how many were."""
        self._pending.clear()
        tasks = [self._running[ref] for ref in sorted(self._running)]
        if not tasks:
            return 0
        _, late = await asyncio.wait(tasks, timeout=within.total_seconds())
        for task in tasks:
            if task in late:
                task.cancel()
        if late:
            await asyncio.wait(late)
        return len(late)

    def _fill(self, backend: str) -> None:
        jobs = self._pending.get(backend, {})
        if not jobs:
            self._pending.pop(backend, None)
        slots = self._gates.limits.concurrency
        while jobs and self._busy.get(backend, 0) < slots and self._group is not None:
            ref = next(iter(jobs))
            job = jobs.pop(ref)
            if ref in self._running or not self._wants(job):
                continue
            self._busy[backend] = self._busy.get(backend, 0) + 1
            self._running[ref] = self._group.create_task(
                self._attend(job), name=f"{job.step.verb} {ref}"
            )

    def _wants(self, job: _Job) -> bool:
        resource = self._state.want(job.step.ref)
        return (
            resource is not None
            and resource.generation == job.step.generation
            and self._state.still_wanted(job.plan.region, job.step.id)
        )

    async def _attend(self, job: _Job) -> None:
        ref = job.step.ref
        try:
            self._gates.of(job.backend).check()
            if self._wants(job):
                await self._carry_out(job)
        except GateClosed:
            pass  # nothing was sent; the observer finds out why, and the plan says so
        finally:
            del self._running[ref]
            self._busy[job.backend] -= 1
            for touched in sorted({ref, *job.step.disrupts, *job.step.destroys}):
                self._looks.add(touched, priority=queue.URGENT)
            # While it ran, newer plans could not begin anything for it.
            self._state.nudge(ref)
            self._stirred.add(job.backend)
            self._wake.set()

    async def _carry_out(self, job: _Job) -> None:
        step = job.step
        began = self._clock.now()
        flying = Attempt(
            step=step.id,
            at=began,
            ending=None,
            ended_at=None,
            count=self._count(step),
            not_before=None,
            verb=step.verb,
            disrupts=step.disrupts | step.destroys,
        )
        try:
            asked = self._clock.monotonic()
            seq = await self._store.intend(_intent(job, began))
            self._stats.writes.add(self._clock.monotonic() - asked)
        except (TypeError, ValueError, OverflowError) as cause:
            await self._cannot_write(job, flying, cause)
            return
        with structlog.contextvars.bound_contextvars(
            ref=str(step.ref), plan=job.plan.id, step=step.id
        ):
            try:
                ending = await self._send(job, flying)
            except asyncio.CancelledError:
                # Told to stop in the middle of it: what became of it is not known, and saying so
                # must not be cut off as well.
                lost = Lost("told to stop before the answer came")
                await asyncio.shield(self._store.conclude(seq, lost, self._clock.now()))
                raise
            await self._conclude(job, seq, flying, ending)

    async def _send(self, job: _Job, flying: Attempt) -> Ending:
        """With the intent on disk. Writing it took time, on a bad disk seconds: whoever paused,
        withdrew or changed something meanwhile is heard."""
        wanted = await self._use_up_approval(job)
        if not wanted:
            return Failed("NotSent", "the plan changed before it was sent", retry=True)
        self._state.attempted(job.step.ref, flying)
        return await self._apply(job)

    async def _apply(self, job: _Job) -> Ending:
        step = job.step
        started = self._clock.monotonic()
        try:
            said = await calls.within(
                step.deadline,
                self._drivers[job.driver].apply(step),
                name=f"call {step.verb} {step.ref}",
                strays=self._stats.strays_of(job.backend),
            )
        except calls.TooLate as late:
            return Failed("DeadlineExceeded", str(late), retry=True)
        except Exception as cause:  # noqa: BLE001 - a driver's fault must not end the daemon
            _log.error("driver failed", driver=job.driver, verb=step.verb, exc_info=cause)
            message = f"the {job.driver} driver failed: {type(cause).__name__}"
            return Failed(answers.FAULT, message, retry=True)
        finally:
            took = self._clock.monotonic() - started
            self._stats.applied(job.driver, job.backend, took)
        return answers.outcome(said, job.driver)

    async def _cannot_write(self, job: _Job, flying: Attempt, cause: Exception) -> None:
        """A step that the journal cannot hold is not sent. Only its driver can mend that."""
        message = f"the {job.driver} driver made a step that cannot be written down: {cause}"
        await self._told(job, flying, Failed("BadStep", answers.text(message), retry=False))

    async def _conclude(self, job: _Job, seq: int, flying: Attempt, ending: Ending) -> None:
        ended = self._clock.now()
        await self._store.conclude(seq, ending, ended)
        await self._told(job, flying, ending, ended)

    async def _told(
        self, job: _Job, flying: Attempt, ending: Ending, ended: datetime | None = None
    ) -> None:
        """Count and show it; of a step that was sent only now that its ending is on disk."""
        ended = ended or self._clock.now()
        self._stats.outcomes[job.driver, type(ending).__name__] += 1
        after = attempts.ended(flying, ending, ended, self._backoff, self._rng)
        self._state.attempted(job.step.ref, after)
        reason, message = attempts.say(job.step.verb, ending)
        _log.info("step ended", verb=job.step.verb, outcome=reason, detail=message)
        event = Event(at=ended, ref=job.step.ref, reason=reason, message=message, plan=job.plan.id)
        await self._store.record([event])

    async def _use_up_approval(self, job: _Job) -> bool:
        """Whether the step is wanted still. One approval is one try: the next time a person is
        asked again."""
        step = job.step
        if step.id not in self._state.policy.approvals:
            return self._wants(job)
        await self._store.put(records.APPROVALS, {step.id: None})
        # Asked before the approval is gone for the planner too, and with it the step.
        wanted = self._wants(job)
        self._state.withdraw_approval(step)
        return wanted

    def _count(self, step: Step) -> int:
        last = self._state.view.attempts.get(step.ref)
        return last.count + 1 if last is not None and last.step == step.id else 1


def _intent(job: _Job, at: datetime) -> Intent:
    step = job.step
    return Intent(
        step=step.id,
        ref=step.ref,
        verb=step.verb,
        args=answers.args(step.args),
        generation=step.generation,
        plan=job.plan.id,
        at=at,
    )
