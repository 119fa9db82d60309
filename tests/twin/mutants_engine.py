"""
Planted bugs in the planner and the engine that only a whole region with real drivers brings out,
and those of the journal. The engine alone is tried on a toy world (`tests.crash.mutants`).
"""

from dataclasses import replace
from typing import Any

import pytest
import structlog

from fleetd import objects
from fleetd.engine import executor, observer, retirement
from fleetd.plan import gates, guard, verdict
from fleetd.vocabulary import Failed, Observation, Outcome, Step


def intent_after_the_deed(patch: pytest.MonkeyPatch) -> None:
    """Sends first and writes down afterwards."""
    real, apply = executor.Executor._carry_out, executor.Executor._apply
    told: dict[str, Any] = {}

    async def hasty(self: Any, job: Any) -> None:
        with structlog.contextvars.bound_contextvars(step=job.step.id):
            told[job.step.id] = await apply(self, job)
        await real(self, job)

    async def remembered(_: Any, job: Any) -> Any:
        return told.pop(job.step.id)

    patch.setattr(executor.Executor, "_carry_out", hasty)
    patch.setattr(executor.Executor, "_apply", remembered)


def outcomes_are_not_written(patch: pytest.MonkeyPatch) -> None:
    """The ending is acted upon but never written down."""

    async def conclude(self: Any, job: Any, seq: int, flying: Any, ending: Any) -> None:
        del seq
        await self._told(job, flying, ending)

    patch.setattr(executor.Executor, "_conclude", conclude)


def decided_on_the_old_look(patch: pytest.MonkeyPatch) -> None:
    """After a step the next plan is made at once, from what was seen before it."""
    real = verdict._look_first

    def look_first(case: Any) -> Any:
        seen = case.seen
        if seen is not None and case.attempt is not None and case.attempt.ended_at is not None:
            case.seen = replace(seen, at=max(seen.at, case.attempt.ended_at))
        return real(case)

    patch.setattr(verdict, "_look_first", look_first)


def looked_at_once(patch: pytest.MonkeyPatch) -> None:
    """What is Ready is not looked at again: whoever changes it will say so."""
    real = observer.Observer._next_look

    def next_look(self: Any, ref: Any, seen: Observation, ready: Any) -> None:
        if seen.facts is not None and ready.truth == "True":
            self._looks.succeeded(ref)
            return
        real(self, ref, seen, ready)

    patch.setattr(observer.Observer, "_next_look", next_look)


def what_is_not_named_goes(patch: pytest.MonkeyPatch) -> None:
    """What no document names any more is to be gone."""
    real = retirement.tombstones

    def tombstones(orphans: Any, retired: Any) -> Any:
        return real(orphans, {*retired, *orphans})

    patch.setattr(retirement, "tombstones", tombstones)


def needs_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """Works on a thing before what it needs is Ready."""
    real = verdict.decide

    def decide(case: Any) -> Any:
        case.blocked = None
        return real(case)

    patch.setattr(verdict, "decide", decide)
    _without_guard(patch)


def windows_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """Disruptive work starts whenever it is due."""

    def opened(*_: Any) -> None:
        return None

    patch.setattr(gates.Gates, "_closed", opened)
    _without_guard(patch)


def failures_are_final(patch: pytest.MonkeyPatch) -> None:
    """A write that was refused for now is given up."""
    real = objects.ObjectDriver.apply

    async def apply(self: Any, step: Step) -> Outcome:
        said = await real(self, step)
        return replace(said, retry=False) if isinstance(said, Failed) else said

    patch.setattr(objects.ObjectDriver, "apply", apply)


def _without_guard(patch: pytest.MonkeyPatch) -> None:
    """The second opinion would refuse such plans; here the first one is on trial."""

    def content(*_: Any, **__: Any) -> list[str]:
        return []

    patch.setattr(guard, "guard", content)
