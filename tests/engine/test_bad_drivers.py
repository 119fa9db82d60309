"""A driver may be wrong in every way that Python allows: it harms itself and nobody else."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

import pytest

from fleetd.engine import answers, calls
from fleetd.engine.stats import Stats
from fleetd.secrets import REGISTRY, Secret
from fleetd.sim import loop
from fleetd.vocabulary import (
    Condition,
    Done,
    Ending,
    Failed,
    HoldReason,
    Observation,
    Outcome,
    Step,
    Truth,
    Waiting,
    make_step,
)
from tests.engine.stage import Scripted, Stage, fleet, thing
from topology.resource import Ref, Resource

A, B = Ref("thing", "a"), Ref("thing", "b")


@dataclass
class Judges(Scripted):
    """Fails over what it saw of one thing."""

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        if want.ref == A:
            raise KeyError("status")
        return super().judge(want, seen)


@dataclass
class Sees(Scripted):
    """Gives back for one thing whatever it is told to."""

    sight: Any = None

    async def observe(self, want: Resource) -> Observation:
        seen = await super().observe(want)
        return replace(seen, facts=self.sight) if want.ref == A else seen


@dataclass
class Answers(Scripted):
    """Answers one thing with whatever it is told to."""

    answer: Any = None

    async def apply(self, step: Step) -> Outcome:
        done = await super().apply(step)
        return self.answer if step.ref == A else done


@dataclass
class Proposes(Scripted):
    """Makes steps with arguments that no journal can hold."""

    args: dict[str, Any] = field(default_factory=dict[str, Any])

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if want.ref != A or seen.facts is None:
            return super().propose(want, seen)
        deadline = timedelta(seconds=30)
        return (make_step(want, "make", self.args, why="it is not there", deadline=deadline),)


def _stage(driver: type[Scripted], **options: Any) -> Stage:
    stage = Stage(fleet(thing("a"), thing("b", backend="far:other")))
    stage.driver = driver(stage.clock, **options)
    return stage


async def _endings(stage: Stage, ref: Ref) -> list[Ending | None]:
    return [entry.ending for entry in await stage.store.journal() if entry.intent.ref == ref]


def test_a_driver_that_cannot_judge_leaves_the_thing_unknown() -> None:
    """KeyError in `judge`: Unknown with a reason, looked at again; the other thing is Ready."""

    async def main() -> tuple[Condition, Truth]:
        daemon = await _stage(Judges).play(120)
        ready = daemon.state.view.ready
        return ready[A], ready[B].truth

    a, b = loop.run(main())
    assert (a.truth, a.reason) == (Truth.UNKNOWN, "DriverFault")
    assert a.message == "the toy driver could not judge it: KeyError"
    assert b is Truth.TRUE


@pytest.mark.parametrize(
    "sight",
    [{"name": "\ud83d"}, {"at": object()}, ["a", "list"], "made"],
    ids=["half an emoji", "an object", "a list", "a text"],
)
def test_facts_that_cannot_be_read_are_a_look_that_saw_nothing(sight: Any) -> None:
    """What no fingerprint can be made of: could not look, and the daemon goes on."""

    async def main() -> tuple[Condition, Truth]:
        daemon = await _stage(Sees, sight=sight).play(120)
        ready = daemon.state.view.ready
        return ready[A], ready[B].truth

    a, b = loop.run(main())
    assert (a.truth, a.reason) == (Truth.UNKNOWN, "NotObserved")
    assert "the toy driver failed" in a.message or "did not answer" in a.message
    assert b is Truth.TRUE


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (
            None,
            Failed(
                "DriverFault", "the toy driver answered with NoneType instead of an outcome", True
            ),
        ),
        (Waiting("Busy", timedelta.max), Waiting("Busy", timedelta(days=1))),
        (Waiting("Busy", timedelta(-1)), Waiting("Busy", timedelta(0))),
        (Failed("No", "\ud83d end", True), Failed("No", "? end", True)),
        (Failed("No", cast("str", KeyError("x")), True), Failed("No", "'x'", True)),
        (Failed("No", "x" * 10**6, True), Failed("No", "x" * 2000 + "...", True)),
    ],
    ids=["none", "for ever", "before now", "half an emoji", "an exception", "a megabyte"],
)
def test_an_answer_that_cannot_be_kept_is_made_fit(answer: Any, kept: Outcome) -> None:
    """The journal stays readable, the daemon alive, the other thing made."""

    async def main() -> tuple[list[Ending | None], int]:
        stage = _stage(Answers, answer=answer)
        await stage.play(5)
        return await _endings(stage, A), len(await _endings(stage, B))

    endings, others = loop.run(main())
    assert endings[0] == kept
    assert others == 1


@pytest.mark.parametrize(
    "args",
    [{"when": {1, 2}}, {"text": "\ud83d"}, {"raw": b"x"}],
    ids=["a set", "half an emoji", "bytes"],
)
def test_a_step_that_cannot_be_written_down_is_not_sent(args: dict[str, Any]) -> None:
    """Nothing goes out without an intent; the hold says whose fault it is; the rest goes on."""

    async def main() -> tuple[list[str], list[tuple[HoldReason, str]]]:
        stage = _stage(Proposes, args=args)
        daemon = await stage.play(60)
        holds = [(hold.reason, hold.message) for hold in daemon.state.plans["r"].holds]
        return [name for _, name in stage.driver.applied], holds

    applied, holds = loop.run(main())
    assert applied == ["b"]
    ((reason, message),) = holds
    assert reason in {HoldReason.FAILED, HoldReason.STUCK}
    assert "driver" in message


def test_what_a_far_side_repeats_of_a_secret_is_not_kept() -> None:
    """Journal, events and conditions are filtered before they are written."""
    token = Secret("canary-5f2d9a7b1c").reveal()

    async def main() -> str:
        stage = _stage(Answers, answer=Failed("Refused", f"bad token {token}", retry=True))

        async def observe(_: Resource) -> None:
            if len(stage.driver.looked) > 4:
                raise ConnectionError(token)

        stage.driver.on_observe = observe
        await stage.play(60)
        journal, events = await stage.store.journal(), await stage.store.events()
        return f"{journal} {events} {await stage.store.load('conditions')}"

    try:
        kept = loop.run(main())
    finally:
        REGISTRY.forget()
    assert "bad token <secret>" in kept
    assert token not in kept


def test_a_cancellation_out_of_a_driver_ends_no_worker() -> None:
    """A shared task of the driver was cancelled, three hundred times: things are still made and
    looked at, and the step is tried again."""

    async def main() -> tuple[list[Ending | None], Truth, int]:
        stage = Stage(fleet(thing("a")))
        left = 300

        async def fall() -> None:
            nonlocal left
            if left:
                left -= 1
                shared = asyncio.create_task(asyncio.sleep(3600))
                shared.cancel()
                await shared

        async def apply(step: Step) -> Outcome:
            await fall()
            stage.driver.made.add(step.ref)
            return Done()

        async def observe(_: Resource) -> None:
            if stage.driver.applied:
                await fall()

        stage.driver.on_apply = apply
        stage.driver.on_observe = observe
        daemon = await stage.play(86_400 * 3)
        return await _endings(stage, A), daemon.state.view.ready[A].truth, left

    endings, truth, left = loop.run(main())
    assert left == 0
    assert endings[0] == Failed("DriverFault", "the toy driver failed: Dropped", retry=True)
    assert endings[-1] == Done()
    assert truth is Truth.TRUE


async def _stubborn() -> None:
    """Does not let go, whatever it is told."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


def test_a_driver_that_ignores_its_deadline_is_left_behind() -> None:
    """The step ends at its deadline and the look at its own; the daemon ends in time."""

    async def main() -> tuple[list[Ending | None], float, Truth]:
        stage = _stage(Scripted)

        async def apply(step: Step) -> Outcome:
            if step.ref == A:
                await _stubborn()
            stage.driver.made.add(step.ref)
            return Done()

        async def observe(want: Resource) -> None:
            if want.ref == A and stage.clock.monotonic() > 20:
                await _stubborn()

        stage.driver.on_apply = apply
        stage.driver.on_observe = observe
        daemon = await stage.play(120)
        ended = stage.clock.monotonic()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.get_coro().close()  # nothing else ends them
        return await _endings(stage, A), ended, daemon.state.view.ready[B].truth

    endings, ended, b = loop.run(main())
    assert endings[0] == Failed("DeadlineExceeded", "no answer within 30 s", retry=True)
    assert ended < 130
    assert b is Truth.TRUE


def test_an_answer_that_comes_while_the_call_is_ended_is_an_answer() -> None:
    """Known is better than unknown: a call that finishes instead of giving up has finished."""

    async def late() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "done all the same"
        return "never"

    assert (
        loop.run(calls.within(timedelta(seconds=1), late(), name="late", strays=set()))
        == "done all the same"
    )


def test_a_time_out_of_the_driver_is_not_ours() -> None:
    """A TimeoutError that the driver raises is its fault, not a deadline that has passed."""

    async def impatient() -> None:
        raise TimeoutError("my own")

    with pytest.raises(TimeoutError, match="my own"):
        loop.run(calls.within(timedelta(seconds=1), impatient(), name="impatient", strays=set()))


def test_no_secret_is_cut_in_two_by_the_bound() -> None:
    """A message that is cut off just inside a secret does not show its beginning."""
    token = Secret("canary-77aa").reveal()
    try:
        said = answers.text("x" * (answers.TEXT_MAX - 5) + token)
    finally:
        REGISTRY.forget()
    assert "canary" not in said


def test_calls_that_never_end_are_counted_and_bounded() -> None:
    """A backend whose calls cannot be ended gets no more of them, until some have ended; another
    backend is called as before."""
    stats = Stats()

    async def deaf(until: asyncio.Event) -> None:
        while not until.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await until.wait()

    async def call(backend: str, until: asyncio.Event) -> str:
        strays = stats.strays_of(backend)
        try:
            await calls.within(timedelta(seconds=1), deaf(until), name="deaf", strays=strays)
        except calls.TooLate as late:
            return type(late).__name__
        return "answered"

    async def main() -> None:
        until = asyncio.Event()
        for _ in range(calls.STRAYS_MAX):
            assert await call("cluster:a", until) == "TooLate"
        assert stats.abandoned == calls.STRAYS_MAX
        assert await call("cluster:a", until) == "Crowded"
        assert await call("cluster:b", until) == "TooLate"
        until.set()
        await asyncio.sleep(1)
        assert stats.abandoned == 0
        assert await call("cluster:a", until) == "answered"

    loop.run(main())
