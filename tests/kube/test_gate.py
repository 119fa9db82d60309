"""The gate of a backend: concurrency, rate, and a breaker that keeps the dead from the living."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fleetd.clock import LoopClock
from fleetd.gate import Gate, GateClosed, GateLimits, Gates
from fleetd.sim import loop
from tests import defaults

START = datetime(2026, 3, 2, tzinfo=UTC)


def _gate(limits: GateLimits) -> Gate:
    return Gate("metal:eu-1", limits, LoopClock(START))


def test_no_more_calls_are_under_way_than_allowed() -> None:
    """Concurrency two: the third call waits for one of the first two, and the wait is counted."""

    async def main() -> tuple[int, float, float]:
        gate = _gate(replace(defaults.LIMITS, concurrency=2, rate=1000, burst=1000))
        most = now = 0

        async def call() -> None:
            nonlocal most, now
            async with gate.passing():
                now += 1
                most = max(most, now)
                await asyncio.sleep(10)
                now -= 1

        async with asyncio.TaskGroup() as group:
            for number in range(6):
                group.create_task(call(), name=f"call {number}")
        return most, asyncio.get_running_loop().time(), gate.waited

    assert loop.run(main()) == (2, 30.0, 2 * 10 + 2 * 20)


def test_calls_beyond_the_burst_keep_to_the_rate() -> None:
    """After a burst of five, ten calls at two a second take five seconds."""

    async def main() -> float:
        gate = _gate(replace(defaults.LIMITS, concurrency=100, rate=2, burst=5))
        for _ in range(15):
            async with gate.passing():
                pass
        return asyncio.get_running_loop().time()

    assert loop.run(main()) == pytest.approx(5.0)


def test_a_cancelled_waiter_gives_its_token_back() -> None:
    """A call that never went does not slow the next one."""

    async def main() -> float:
        gate = _gate(replace(defaults.LIMITS, concurrency=100, rate=1, burst=1))
        async with gate.passing():
            pass

        async def call() -> None:
            async with gate.passing():
                pass

        async with asyncio.TaskGroup() as group:
            waiter = group.create_task(call(), name="waiter")
            await asyncio.sleep(0)
            waiter.cancel()
        await call()
        return asyncio.get_running_loop().time()

    assert loop.run(main()) == pytest.approx(1.0)


def test_the_breaker_opens_after_silence_and_refuses_at_once() -> None:
    """Five calls without an answer; the sixth is refused without waiting, and says for how long."""

    async def main() -> tuple[bool, float, str]:
        gate = _gate(replace(defaults.LIMITS, failures_max=5, open_for=timedelta(seconds=10)))
        for _ in range(5):
            async with gate.passing():
                gate.silent()
        with pytest.raises(GateClosed) as refused:
            async with gate.passing():
                pass
        return gate.is_open, asyncio.get_running_loop().time(), str(refused.value)

    assert loop.run(main()) == (
        True,
        0.0,
        "metal:eu-1 did not answer several times; asked again in 10 s",
    )


def test_one_answer_between_silences_keeps_the_breaker_closed() -> None:
    """One dead machine among healthy ones does not close the door on all of them."""

    async def main() -> bool:
        gate = _gate(replace(defaults.LIMITS, failures_max=3))
        for _ in range(20):
            gate.silent()
            gate.silent()
            gate.answered()
        return gate.is_open

    assert loop.run(main()) is False


def test_after_the_pause_one_probe_goes_and_its_answer_decides() -> None:
    """A silent probe doubles the pause; an answered one opens the door for all."""

    async def main() -> list[object]:
        gate = _gate(replace(defaults.LIMITS, failures_max=1, open_for=timedelta(seconds=10)))
        gate.silent()
        story: list[object] = []
        await asyncio.sleep(10)
        async with gate.passing():
            with pytest.raises(GateClosed):
                async with gate.passing():
                    pass
            gate.silent()
        await asyncio.sleep(19)
        with pytest.raises(GateClosed) as refused:
            async with gate.passing():
                pass
        story.append(refused.value.again)
        await asyncio.sleep(1)
        async with gate.passing():
            gate.answered()
        story.append(gate.is_open)
        return story

    assert loop.run(main()) == [timedelta(seconds=1), False]


def test_one_dead_backend_does_not_slow_another() -> None:
    """Backends share nothing: a hundred hanging calls to one leave the other free."""

    async def main() -> float:
        gates = Gates(replace(defaults.LIMITS, concurrency=4), LoopClock(START))

        async def hang() -> None:
            async with gates.of("cluster:dead").passing():
                await asyncio.sleep(3600)

        async with asyncio.TaskGroup() as group:
            hanging = [group.create_task(hang(), name=f"hang {n}") for n in range(100)]
            await asyncio.sleep(1)
            async with gates.of("cluster:alive").passing():
                passed = asyncio.get_running_loop().time()
            for task in hanging:
                task.cancel()
        return passed

    assert loop.run(main()) == 1.0
