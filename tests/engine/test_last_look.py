"""Between the plan and the deed time passes: what was changed meanwhile is heard."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from fleetd.clock import LoopClock
from fleetd.plan.policy import Pause, Policy
from fleetd.sim import loop
from fleetd.store.base import Intent
from fleetd.store.memory import MemoryStore
from fleetd.vocabulary import Done, Ending, Failed, HoldReason, Observation, Step, make_step
from tests import defaults
from tests.engine.stage import Scripted, Stage, fleet, thing
from tests.toy.universe import START, Daemon
from topology.resource import Ref, Resource

A = Ref("thing", "a")
PAUSE = Pause(scope="thing/a", who="ops", why="disk swap", since=START)


class SlowDisk(MemoryStore):
    """Takes five seconds for each intent; or, where it is told to, for records instead."""

    slow_records = False

    async def intend(self, intent: Intent) -> int:
        if not self.slow_records:
            await asyncio.sleep(5)
        return await super().intend(intent)

    async def put(self, table: str, values: Mapping[str, bytes | None]) -> None:
        if self.slow_records:
            await asyncio.sleep(5)
        await super().put(table, values)


@dataclass
class Destroys(Scripted):
    """Its step needs approval."""

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is None or seen.facts.get("made"):
            return ()
        deadline = timedelta(seconds=30)
        return (
            make_step(
                want, "make", {"version": 1}, why="why not", deadline=deadline, destroys=[want.ref]
            ),
        )


def _meanwhile(
    stage: Stage, change: Callable[[Daemon], None], *, at: float = 3
) -> tuple[int, list[Ending | None]]:
    """Steps sent, and endings, when something changes while the first intent is being written."""

    async def main() -> tuple[int, list[Ending | None]]:
        await stage.store.open()
        daemon = stage.daemon()
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(daemon.run(stop), name="daemon")
            await asyncio.sleep(at)
            change(daemon)
            await asyncio.sleep(60)
            stop.set()
        return len(stage.driver.applied), [entry.ending for entry in await stage.store.journal()]

    return loop.run(main())


NOT_SENT = Failed("NotSent", "the plan changed before it was sent", retry=True)


def test_a_pause_while_the_intent_is_written_is_heard() -> None:
    """Nothing is sent, and the journal says so."""
    stage = Stage(fleet(thing("a")), store=SlowDisk())

    def pause(daemon: Daemon) -> None:
        daemon.state.set_policy(replace(daemon.state.policy, pauses={PAUSE.scope: PAUSE}))

    assert _meanwhile(stage, pause) == (0, [NOT_SENT])


def test_documents_that_change_while_the_intent_is_written_are_heard() -> None:
    """The step of the old generation is not sent; that of the new one is, after a look."""
    stage = Stage(fleet(thing("a")), store=SlowDisk())
    new = replace(stage.topology, digest="e" * 16, resources={A: replace(thing("a"), generation=2)})

    def change(daemon: Daemon) -> None:
        daemon.state.accept(new, {})
        daemon.supervisor.look_at_everything()

    applied, endings = _meanwhile(stage, change)
    assert (applied, endings) == (1, [NOT_SENT, Done()])


def test_a_stop_while_the_intent_is_written_is_heard() -> None:
    """Nothing is begun after the word to stop, though its intent stands in the journal."""

    async def main() -> tuple[int, list[Ending | None]]:
        stage = Stage(fleet(thing("a")), store=SlowDisk())
        await stage.play(3)
        return len(stage.driver.applied), [entry.ending for entry in await stage.store.journal()]

    assert loop.run(main()) == (0, [NOT_SENT])


def test_an_approval_that_is_withdrawn_counts_at_once() -> None:
    """Also for a step of the plan that stands: it waits for its turn at the gate, the approval
    goes, and no new plan was made yet."""
    stage = Stage(fleet(thing("a")), store=SlowDisk())
    stage.driver = Destroys(stage.clock)
    step = stage.driver.propose(
        stage.topology.resources[A], Observation(ref=A, at=START, facts={})
    )[0]
    stage.policy = Policy(approvals=frozenset({step.id}))

    def withdraw(daemon: Daemon) -> None:
        daemon.state.withdraw_approval(step)

    assert _meanwhile(stage, withdraw, at=5.01) == (0, [NOT_SENT])


def test_an_approved_step_is_sent_once_and_the_approval_is_gone() -> None:
    """One approval is one try: it fails, and a person is asked again."""
    stage = Stage(fleet(thing("a")))
    stage.driver = Destroys(stage.clock)
    step = stage.driver.propose(
        stage.topology.resources[A], Observation(ref=A, at=START, facts={})
    )[0]
    stage.policy = Policy(approvals=frozenset({step.id}))

    async def fail(_: Step) -> Failed:
        return Failed("Refused", "not now", retry=True)

    stage.driver.on_apply = fail

    async def main() -> tuple[int, list[HoldReason]]:
        daemon = await stage.play(300)
        return len(stage.driver.applied), [hold.reason for hold in daemon.state.plans["r"].holds]

    assert loop.run(main()) == (1, [HoldReason.APPROVAL])


def test_a_change_that_concerns_no_step_stops_none() -> None:
    """Somebody consents to something else: the plan stays, and is carried out."""
    stage = Stage(fleet(thing("a")), store=SlowDisk())

    def consent(daemon: Daemon) -> None:
        daemon.state.set_policy(replace(daemon.state.policy, consents=frozenset({"other"})))

    assert _meanwhile(stage, consent) == (1, [Done()])


def _story(stage: Stage, *, at: float) -> list[str]:
    """Looks and deeds, with their generations, when `a` is asked for differently at a moment. A
    look takes a second."""
    story: list[str] = []

    async def observe(want: Resource) -> None:
        await asyncio.sleep(1)
        story.append(f"look {want.generation}")

    async def apply(step: Step) -> Done:
        story.append(f"{step.verb} {step.generation}")
        stage.driver.made.add(step.ref)
        return Done()

    stage.driver.on_observe, stage.driver.on_apply = observe, apply
    resource = replace(thing("a"), generation=2)

    def change(daemon: Daemon) -> None:
        daemon.state.accept(replace(stage.topology, digest="e", resources={A: resource}), {})
        daemon.state.set_policy(replace(daemon.state.policy, pauses={}))
        daemon.supervisor.look_at_everything()

    _meanwhile(stage, change, at=at)
    return story


def test_a_thing_that_is_asked_for_differently_is_looked_at_before_anything_is_done() -> None:
    """What was seen of the old generation is no ground to act for the new one."""
    stage = Stage(fleet(thing("a")), policy=Policy(pauses={PAUSE.scope: PAUSE}))

    assert _story(stage, at=3)[:3] == ["look 1", "look 2", "make 2"]


def test_a_look_that_was_judged_for_the_old_documents_does_not_count_for_the_new() -> None:
    """The documents change while what was thought of it is being written down."""
    store = SlowDisk()
    store.slow_records = True
    stage = Stage(fleet(thing("a")), store=store)

    assert _story(stage, at=3)[:3] == ["look 1", "look 2", "make 2"]


@dataclass
class JumpyClock(LoopClock):
    """A clock that is put forward or back while the daemon runs."""

    jump: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        super().__init__(START)

    def now(self) -> datetime:
        return super().now() + self.jump


def test_a_clock_that_is_put_back_holds_nothing_up() -> None:
    """One hour back after a step has failed: the look that follows counts, and the step is tried
    again within two rounds of looks."""

    async def main() -> int:
        clock = JumpyClock()
        stage = Stage(fleet(thing("a")), clock=clock)

        async def apply(step: Step) -> Done | Failed:
            if len(stage.driver.applied) == 1:
                clock.jump = timedelta(hours=1)
                return Failed("Refused", "not now", retry=True)
            stage.driver.made.add(step.ref)
            return Done()

        async def observe(_: Resource) -> None:
            await asyncio.sleep(0.1)
            clock.jump = timedelta(0)

        stage.driver.on_apply, stage.driver.on_observe = apply, observe
        await stage.play(2 * defaults.TUNING.pace.steady.total_seconds())
        return len(stage.driver.applied)

    assert loop.run(main()) == 2


def test_a_clock_that_was_wrong_before_the_start_holds_nothing_up() -> None:
    """The first daemon's clock was a day ahead, and its step failed: the next daemon tries again
    soon, not tomorrow."""

    async def main() -> int:
        clock = JumpyClock(jump=timedelta(days=1))
        stage = Stage(fleet(thing("a")), clock=clock)

        async def apply(step: Step) -> Done | Failed:
            if len(stage.driver.applied) == 1:
                return Failed("Refused", "not now", retry=True)
            stage.driver.made.add(step.ref)
            return Done()

        stage.driver.on_apply = apply
        await stage.play(0.5)
        clock.jump = timedelta(0)
        stage.stop.clear()
        await stage.play(60)
        return len(stage.driver.applied)

    assert loop.run(main()) == 2


def test_a_daemon_that_never_lives_long_still_trims() -> None:
    """The bound on the journal holds from the start on, not after ten minutes."""

    async def main() -> int:
        stage = Stage(fleet(thing("a")))
        trimmed = 0

        class Counts(MemoryStore):
            async def trim(self, *, events_max: int, journal_max: int) -> None:
                nonlocal trimmed
                trimmed += 1
                await super().trim(events_max=events_max, journal_max=journal_max)

        stage.store = Counts()
        await stage.play(1)
        return trimmed

    assert loop.run(main()) == 1
