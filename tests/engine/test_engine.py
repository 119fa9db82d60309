"""The engine as a whole: looks, plans, acts, remembers, stops; in virtual time, to the second."""

import asyncio
import itertools
from datetime import datetime, timedelta
from typing import Any

import pytest

from fleetd.errors import StoreBroken
from fleetd.plan.policy import Pause, Policy
from fleetd.sim import loop
from fleetd.store.base import Intent
from fleetd.store.memory import MemoryStore
from fleetd.vocabulary import (
    Done,
    Ending,
    Failed,
    HoldReason,
    Lost,
    Outcome,
    Step,
    Truth,
    Waiting,
)
from tests import defaults
from tests.engine.stage import Stage, fleet, thing
from tests.toy.universe import START
from topology.resource import Ref, Resource


def test_things_are_made_in_the_order_of_their_needs() -> None:
    """c needs b, b needs a: a first, each only when the one before is Ready."""

    async def main() -> list[str]:
        stage = Stage(fleet(thing("a"), thing("b", "a"), thing("c", "b")))
        await stage.play(60)
        return [name for _, name in stage.driver.applied]

    assert loop.run(main()) == ["a", "b", "c"]


def test_a_converged_fleet_is_looked_at_and_left_alone() -> None:
    """Over an hour: one write per thing, a look every minute or so, no more."""

    async def main() -> tuple[int, int]:
        stage = Stage(fleet(thing("a"), thing("b")))
        await stage.play(3600)
        return len(stage.driver.applied), len(stage.driver.looked)

    applied, looked = loop.run(main())
    assert applied == 2
    steady = defaults.TUNING.pace.steady.total_seconds()
    assert 2 * 3600 / (steady * 1.1) <= looked <= 2 * 3600 / (steady * 0.9) + 6


def test_a_step_that_fails_is_retried_ever_more_slowly_and_stops_nobody_else() -> None:
    """One thing fails six times; the other is done at once."""

    async def main() -> tuple[list[float], float]:
        stage = Stage(fleet(thing("bad"), thing("good")))

        async def apply(step: Step) -> Outcome:
            tries = sum(name == "bad" for _, name in stage.driver.applied)
            if step.ref.name == "bad" and tries < 7:
                return Failed("Refused", "not now", retry=True)
            stage.driver.made.add(step.ref)
            return Done()

        stage.driver.on_apply = apply
        await stage.play(600)
        bad = [at for at, name in stage.driver.applied if name == "bad"]
        good = next(at for at, name in stage.driver.applied if name == "good")
        return [later - sooner for sooner, later in itertools.pairwise(bad)], good

    gaps, good = loop.run(main())
    assert len(gaps) == 6
    assert all(2.0**n / 2 <= gap <= 2.0**n + 6 for n, gap in enumerate(gaps))
    assert good < 1


def test_a_failure_that_needs_a_person_is_held_and_not_repeated() -> None:
    """Failed without retry: one attempt, then a hold that says so, also after a restart."""

    async def main() -> tuple[int, list[tuple[HoldReason, str]]]:
        stage = Stage(fleet(thing("a")))

        async def apply(_: Step) -> Outcome:
            return Failed("Quota", "no room left", retry=False)

        stage.driver.on_apply = apply
        await stage.play(600)
        stage.stop.clear()
        daemon = await stage.play(600)
        holds = daemon.state.plans["r"].holds
        return len(stage.driver.applied), [(hold.reason, hold.message) for hold in holds]

    applied, holds = loop.run(main())
    assert applied == 1
    assert [reason for reason, _ in holds] == [HoldReason.FAILED]
    assert "no room left" in holds[0][1]


def test_a_call_that_never_answers_ends_at_its_deadline_and_is_looked_at_first() -> None:
    """The deed was done, the answer lost: nobody does it again."""

    async def main() -> tuple[int, list[Ending | None]]:
        stage = Stage(fleet(thing("a")))

        async def apply(step: Step) -> Outcome:
            stage.driver.made.add(step.ref)
            await asyncio.sleep(86400)
            return Done()

        stage.driver.on_apply = apply
        await stage.play(120)
        journal = await stage.store.journal()
        return len(stage.driver.applied), [entry.ending for entry in journal]

    applied, endings = loop.run(main())
    assert applied == 1
    assert endings == [Failed("DeadlineExceeded", "no answer within 30 s", retry=True)]


def test_a_look_that_never_answers_is_unknown_and_the_others_go_on() -> None:
    """One thing hangs; the other, on another backend, is made and stays Ready."""

    async def main() -> tuple[Truth, Truth, str]:
        stage = Stage(fleet(thing("dead", backend="far:dead"), thing("alive")))

        async def observe(want: Resource) -> None:
            if want.ref.name == "dead":
                await asyncio.sleep(86400)

        stage.driver.on_observe = observe
        daemon = await stage.play(300)
        ready = daemon.state.view.ready
        dead, alive = ready[Ref("thing", "dead")], ready[Ref("thing", "alive")]
        return dead.truth, alive.truth, dead.message

    dead, alive, message = loop.run(main())
    assert dead is Truth.UNKNOWN
    assert alive is Truth.TRUE
    assert "no answer within 20 s" in message or "did not answer" in message


def test_a_driver_that_raises_harms_only_itself() -> None:
    """A bug in a driver is an outcome and an unknown, not the end of the daemon."""

    async def main() -> list[Ending | None]:
        stage = Stage(fleet(thing("a")))

        async def apply(_: Step) -> Outcome:
            raise KeyError("oops")

        stage.driver.on_apply = apply
        await stage.play(3)
        return [entry.ending for entry in await stage.store.journal()]

    endings = loop.run(main())
    assert endings[0] == Failed("DriverFault", "the toy driver failed: KeyError", retry=True)


def test_waiting_is_asked_again_when_the_far_side_said_and_not_before() -> None:
    """Waiting for a minute: the same step is not sent again within it."""

    async def main() -> list[float]:
        stage = Stage(fleet(thing("a")))

        async def apply(step: Step) -> Outcome:
            if len(stage.driver.applied) == 3:
                stage.driver.made.add(step.ref)
            return Waiting("Busy", timedelta(seconds=60))

        stage.driver.on_apply = apply
        await stage.play(300)
        return [at for at, _ in stage.driver.applied]

    times = loop.run(main())
    assert len(times) == 3
    assert all(60 <= later - sooner < 70 for sooner, later in itertools.pairwise(times))


def test_what_is_paused_is_not_touched() -> None:
    """A pause of one thing holds it; the rest goes on."""

    async def main() -> tuple[list[str], list[HoldReason]]:
        pause = Pause(scope="thing/a", who="ops", why="disk swap", since=START)
        policy = Policy(pauses={pause.scope: pause})
        stage = Stage(fleet(thing("a"), thing("b")), policy=policy)
        daemon = await stage.play(60)
        holds = [hold.reason for hold in daemon.state.plans["r"].holds]
        return [name for _, name in stage.driver.applied], holds

    assert loop.run(main()) == (["b"], [HoldReason.PAUSED])


def test_stop_waits_for_what_is_under_way() -> None:
    """A step that takes five seconds is finished and written down before the end."""

    async def main() -> tuple[float, list[Ending | None]]:
        stage = Stage(fleet(thing("a")))

        async def apply(_: Step) -> Outcome:
            await asyncio.sleep(5)
            return Done()

        stage.driver.on_apply = apply
        await stage.play(1)
        ended = stage.clock.monotonic()
        return ended, [entry.ending for entry in await stage.store.journal()]

    ended, endings = loop.run(main())
    assert 5 <= ended <= 6
    assert endings == [Done()]


def test_stop_gives_up_on_what_takes_too_long_and_says_so() -> None:
    """Within ten seconds it ends; the step that hangs is written down as lost."""

    async def main() -> tuple[float, list[Ending | None]]:
        stage = Stage(fleet(thing("a")))

        async def apply(_: Step) -> Outcome:
            await asyncio.sleep(25)
            return Done()

        stage.driver.on_apply = apply
        await stage.play(1)
        ended = stage.clock.monotonic()
        return ended, [entry.ending for entry in await stage.store.journal()]

    ended, endings = loop.run(main())
    assert ended <= 1 + 10
    assert endings == [Lost("told to stop before the answer came")]


def test_nothing_new_is_begun_after_the_word_to_stop() -> None:
    """While the first step is waited for, the next in line is not sent."""

    async def main() -> list[str]:
        stage = Stage(fleet(thing("a"), thing("b", "a")))

        async def apply(step: Step) -> Outcome:
            await asyncio.sleep(4)
            stage.driver.made.add(step.ref)
            return Done()

        stage.driver.on_apply = apply
        await stage.play(1)
        return [name for _, name in stage.driver.applied]

    assert loop.run(main()) == ["a"]


class _FullDisk(MemoryStore):
    """Fails at the first intent, as a full disk does."""

    async def intend(self, intent: Intent) -> int:
        raise StoreBroken("no space left on device")


def test_without_a_durable_intent_nothing_is_sent() -> None:
    """The disk is full: the daemon ends, and the world was not touched."""

    async def main() -> int:
        stage = Stage(fleet(thing("a")), store=_FullDisk())
        with pytest.raises(BaseExceptionGroup) as ended:
            await stage.play(60)
        assert ended.group_contains(StoreBroken)
        return len(stage.driver.applied)

    assert loop.run(main()) == 0


class _NoEnding(MemoryStore):
    """Takes intents, and fails when the ending is to be written."""

    async def conclude(self, seq: int, ending: Ending, at: datetime) -> None:
        raise StoreBroken("input/output error")


def test_an_ending_that_cannot_be_written_ends_the_daemon() -> None:
    """One step was sent and could not be accounted for; no second one is sent."""

    async def main() -> list[str]:
        stage = Stage(fleet(thing("a"), thing("b", "a")), store=_NoEnding())
        with pytest.raises(BaseExceptionGroup):
            await stage.play(600)
        return [name for _, name in stage.driver.applied]

    assert loop.run(main()) == ["a"]


def test_no_more_steps_run_at_once_than_the_backend_takes() -> None:
    """A hundred things on one backend of sixteen slots: never more than sixteen calls."""

    async def main() -> tuple[int, int]:
        stage = Stage(fleet(*(thing(f"t{number:03}") for number in range(100))))
        now = most = 0

        async def apply(step: Step) -> Outcome:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await asyncio.sleep(2)
            now -= 1
            stage.driver.made.add(step.ref)
            return Done()

        stage.driver.on_apply = apply
        await stage.play(300)
        return most, len(stage.driver.made)

    most, made = loop.run(main())
    assert most <= 16
    assert made == 100


def test_conditions_keep_their_times_over_a_restart() -> None:
    """Ready since the first run, not since the last start."""

    async def main() -> tuple[Any, Any]:
        stage = Stage(fleet(thing("a")))
        first = await stage.play(120)
        stage.stop.clear()
        second = await stage.play(120)
        ref = Ref("thing", "a")
        return first.state.view.ready[ref].since, second.state.view.ready[ref].since

    first, second = loop.run(main())
    assert first == second
