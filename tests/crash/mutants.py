"""
Planted bugs: each one is a mistake that somebody makes, and that the harness must catch.

A harness that catches none of them proves nothing. A mutant changes one thing, either in the
driver (a subclass) or in the engine (a patch), and says which runs are expected to find it.
"""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, ClassVar

import pytest

from fleetd.clock import LoopClock
from fleetd.engine import attempts, executor, recovery
from fleetd.engine.queue import Queue
from fleetd.plan import budget, guard, planner, takes
from fleetd.store.memory import MemoryStore
from fleetd.vocabulary import (
    Condition,
    Done,
    Driver,
    Failed,
    Lost,
    Observation,
    Outcome,
    Step,
    Truth,
)
from tests.toy.driver import ToyDriver
from tests.toy.universe import InProcessWire, PoweredStore
from tests.toy.world import WIPE
from topology.resource import Ref, Resource, Topology

MakeDriver = Callable[[InProcessWire, LoopClock], Driver]
Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    name: str
    caught_by: str
    """The invariants that the first run to find it breaks, and no others: a bug that is caught for
    another reason than its own proves nothing of the check that was meant."""
    driver: MakeDriver = ToyDriver
    patch: Patch = field(default=lambda _: None)
    workflow: str = "bring-up"
    crashes: bool = True
    """False: a crash alone does not bring it out, only a far side that fails does."""


# -- Bugs in a driver ------------------------------------------------------------------------


@dataclass
class ProgressInMemory(ToyDriver):
    """Remembers what it did instead of looking: after a restart it starts over."""

    memory: dict[Ref, list[str]] = field(default_factory=dict[Ref, list[str]])

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is None:
            return ()
        remembered = {**seen.facts, "done": list(self.memory.get(want.ref, []))}
        return super().propose(want, replace(seen, facts=remembered))

    async def apply(self, step: Step) -> Outcome:
        outcome = await super().apply(step)
        self.memory.setdefault(step.ref, []).append(step.verb)
        return outcome


_instances = itertools.count()


@dataclass
class NamesMadeUp(ToyDriver):
    """Makes a name for what it creates instead of deriving it."""

    instance: int = field(default_factory=lambda: next(_instances))

    async def apply(self, step: Step) -> Outcome:
        return await super().apply(
            replace(step, args={**step.args, "name": f"{step.ref.name}-{self.instance}"})
        )


@dataclass
class KeysMadeAnew(ToyDriver):
    """Makes every key again after a start, to be on the safe side."""

    made: set[Ref] = field(default_factory=set[Ref])

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if want.ref.kind == "key" and want.ref not in self.made and seen.facts is not None:
            return super().propose(want, replace(seen, facts={}))
        return super().propose(want, seen)

    async def apply(self, step: Step) -> Outcome:
        self.made.add(step.ref)
        return await super().apply(step)


class UnknownIsAbsent(ToyDriver):
    """Takes "could not look" for "is not there"."""

    async def observe(self, want: Resource) -> Observation:
        seen = await super().observe(want)
        return replace(seen, facts={}) if seen.facts is None else seen


class FirstStepIsAll(ToyDriver):
    """Thinks a thing Ready when its first step is done."""

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        return tuple(
            replace(condition, truth=Truth.TRUE) if (seen.facts or {}).get("done") else condition
            for condition in super().judge(want, seen)
        )


@dataclass
class DoesItTwice(ToyDriver):
    """Repeats the call when the answer was lost, instead of letting somebody look."""

    async def apply(self, step: Step) -> Outcome:
        await super().apply(step)
        return await super().apply(step)


@dataclass
class RepeatsOnSilence(ToyDriver):
    """Sends again when the connection broke, though the first request may have been taken."""

    async def apply(self, step: Step) -> Outcome:
        first = await super().apply(step)
        return await super().apply(step) if isinstance(first, Failed) else first


@dataclass
class StartsOver(ToyDriver):
    """Throws away what it finds half-made after a start, and makes it anew."""

    known: set[Ref] = field(default_factory=set[Ref])

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        done = (seen.facts or {}).get("done", [])
        fresh = want.ref not in self.known
        self.known.add(want.ref)
        if fresh and want.ref.kind == "cluster" and done == ["create"]:
            return (self._step(want, WIPE, "it is half-made"),)
        return super().propose(want, seen)


@dataclass
class LabelsAtEveryStart(ToyDriver):
    """Writes once after each start, changed or not."""

    labelled: set[Ref] = field(default_factory=set[Ref])

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if (
            want.ref.kind == "serverpool"
            and want.ref not in self.labelled
            and seen.facts is not None
        ):
            return super().propose(want, replace(seen, facts={}))
        return super().propose(want, seen)

    async def apply(self, step: Step) -> Outcome:
        self.labelled.add(step.ref)
        return await super().apply(step)


# -- Bugs in the engine ----------------------------------------------------------------------


def outcome_not_journalled(patch: pytest.MonkeyPatch) -> None:
    """The ending is acted upon but never written down."""

    async def forget(self: Any, job: Any, seq: int, flying: Any, ending: Any) -> None:
        ended = self._clock.now()
        after = attempts.ended(flying, ending, ended, self._backoff, self._rng)
        self._state.attempted(job.step.ref, after)

    patch.setattr(executor.Executor, "_conclude", forget)


def acts_before_the_intent(patch: pytest.MonkeyPatch) -> None:
    """Sends first and writes down afterwards."""
    write, send = executor.Executor._carry_out, executor.Executor._apply

    async def hasty(self: Any, job: Any) -> None:
        power = self._store.power
        power.numbers[job.step.id] = power.writes
        job.told.append(await send(self, job))
        await write(self, job)

    async def told(_: Any, job: Any) -> Any:
        return job.told.pop()

    patch.setattr(executor._Job, "told", [], raising=False)
    patch.setattr(executor.Executor, "_carry_out", hasty)
    patch.setattr(executor.Executor, "_apply", told)


def intents_are_not_written(patch: pytest.MonkeyPatch) -> None:
    """A number is given out, and nothing is behind it."""
    numbers = itertools.count(10**6)

    async def number(_: Any, __: Any) -> int:
        return next(numbers)

    async def nothing(_: Any, seq: int, ending: Any, at: Any) -> None:
        if seq < 10**6:
            await real(_, seq, ending, at)

    real = MemoryStore.conclude
    patch.setattr(MemoryStore, "intend", number)
    patch.setattr(MemoryStore, "conclude", nothing)


def acknowledged_before_it_is_written(patch: pytest.MonkeyPatch) -> None:
    """The intent reaches the disk a moment after the caller was told that it is there."""
    real = PoweredStore.intend

    async def promise(self: Any, intent: Any) -> int:
        seq = await real(self, intent)
        kept = self.inner._journal.pop(seq)

        def write() -> None:
            if self.power.on:
                self.inner._journal[seq] = kept

        asyncio.get_running_loop().call_later(0.15, write)
        return seq

    patch.setattr(PoweredStore, "intend", promise)


def ended_before_it_is_sent(patch: pytest.MonkeyPatch) -> None:
    """The journal says that it was done before it is done."""

    async def optimist(self: Any, job: Any, flying: Any) -> Any:
        unfinished = await self._store.unfinished()
        seq = next(entry.seq for entry in unfinished if entry.intent.step == job.step.id)
        await self._store.conclude(seq, Done(), self._clock.now())
        await self._apply(job)
        return Done()

    async def again(self: Any, job: Any, seq: int, flying: Any, ending: Any) -> None:
        await self._told(job, flying, ending)

    patch.setattr(executor.Executor, "_send", optimist)
    patch.setattr(executor.Executor, "_conclude", again)


def looks_are_not_taken_again(patch: pytest.MonkeyPatch) -> None:
    """What was silent once is given up."""

    def give_up(self: Any, key: Any, **_: Any) -> timedelta:
        self.drop(key)
        return timedelta(0)

    patch.setattr(Queue, "retry", give_up)


def lost_steps_stay_open(patch: pytest.MonkeyPatch) -> None:
    """After a start, what was cut off is left as it is."""

    async def shrug(*_: Any, **__: Any) -> int:
        return 0

    patch.setattr(recovery, "recover", shrug)


def needs_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """Works on a thing before what it needs is Ready."""
    real = planner.Planner.plan

    def careless(self: Any, view: Any, policy: Any, **options: Any) -> Any:
        resources = {
            ref: replace(resource, needs=frozenset())
            for ref, resource in view.topology.resources.items()
        }
        loose = replace(
            view,
            topology=Topology(
                digest=view.topology.digest, resources=resources, edges=view.topology.edges
            ),
        )
        self.reset(loose)
        return real(self, loose, policy, **options)

    patch.setattr(planner.Planner, "plan", careless)
    _without_guard(patch)


def wake_ups_get_lost(patch: pytest.MonkeyPatch) -> None:
    """A key that is added while a worker has it is forgotten."""

    def done(self: Any, key: Any) -> None:
        self.lanes.leave(self._working.pop(key))
        self._again.pop(key, None)

    patch.setattr(Queue, "done", done)


def failures_are_final(patch: pytest.MonkeyPatch) -> None:
    """A step that failed once is not tried again for a week."""
    real = attempts.ended

    def final(flying: Any, ending: Any, at: Any, backoff: Any, rng: Any) -> Any:
        ended = real(flying, ending, at, backoff, rng)
        late = ended.not_before is not None and type(ending).__name__ == "Failed"
        return replace(ended, not_before=at + timedelta(days=7)) if late else ended

    patch.setattr(attempts, "ended", final)


class _NothingIsDown:
    """A view of the world in which everything stands."""

    down: ClassVar[dict[str, set[int]]] = {}

    def is_down(self, row: int) -> bool:
        return False


def what_is_down_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    """The budget sees only what the plan itself takes down."""

    def blind(self: Any, table: Any, standing: Any, policy: Any, taken: Any) -> None:
        self._table, self._standing, self._policy = table, _NothingIsDown(), policy
        self._taken, self._gone, self._answers, self.regions = {}, set(), {}, set()

    patch.setattr(budget.Budget, "__init__", blind)
    _without_guard(patch)


def what_goes_down_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    """A step under way counts for nothing until somebody sees what it did."""

    def nothing(*_: Any) -> frozenset[Ref]:
        return frozenset()

    patch.setattr(takes, "taken", nothing)
    _without_guard(patch)


def _without_guard(patch: pytest.MonkeyPatch) -> None:
    """The second opinion would refuse such plans; here the first one is on trial."""

    def content(*_: Any, **__: Any) -> list[str]:
        return []

    patch.setattr(guard, "guard", content)


def the_journal_is_not_read(patch: pytest.MonkeyPatch) -> None:
    """After a start, open entries are closed under a number that was never given."""

    async def wrong(self: Any, seq: int, ending: Any, at: Any) -> None:
        if isinstance(ending, Lost):
            return
        await real(self, seq, ending, at)

    real = MemoryStore.conclude
    patch.setattr(MemoryStore, "conclude", wrong)


MUTANTS = (
    Mutant("progress kept in memory", "I7 I9", driver=ProgressInMemory),
    Mutant("name made at random", "I8", driver=NamesMadeUp),
    Mutant("key made anew after a start", "I7 I9", driver=KeysMadeAnew),
    Mutant("unknown taken for absent", "I9", driver=UnknownIsAbsent, crashes=False),
    Mutant("first sub-step taken for all", "I12", driver=FirstStepIsAll),
    Mutant("call repeated inside the driver", "I9 I15", driver=DoesItTwice),
    Mutant(
        "call repeated when the answer is lost", "I9 I15", driver=RepeatsOnSilence, crashes=False
    ),
    Mutant("starts over what is half-made", "I8", driver=StartsOver),
    Mutant("writes after every start", "I7", driver=LabelsAtEveryStart),
    Mutant("outcome not journalled", "I15", patch=outcome_not_journalled),
    Mutant("acts before the intent", "I15", patch=acts_before_the_intent),
    Mutant("intents are not written", "I15", patch=intents_are_not_written),
    Mutant("acknowledged before it is written", "I15", patch=acknowledged_before_it_is_written),
    Mutant("ended before it is sent", "I15", patch=ended_before_it_is_sent),
    Mutant("lost steps stay open", "I15", patch=lost_steps_stay_open),
    Mutant("endings of lost steps are dropped", "I15", patch=the_journal_is_not_read),
    Mutant("needs are ignored", "I12", patch=needs_are_ignored),
    Mutant("wake-ups get lost", "I6", patch=wake_ups_get_lost),
    Mutant("silence is final", "I6", patch=looks_are_not_taken_again, crashes=False),
    Mutant("failures are final", "I6", patch=failures_are_final, crashes=False),
    Mutant(
        "budget ignores what is down",
        "I11",
        patch=what_is_down_is_not_counted,
        workflow="upgrade",
    ),
    Mutant(
        "budget ignores what goes down",
        "I11",
        patch=what_goes_down_is_not_counted,
        workflow="upgrade",
    ),
)
