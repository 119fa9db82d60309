"""Shared polls: one question for many, never an answer from before a deed, and no end of memory."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from fleetd.clock import LoopClock
from fleetd.polls import Polls
from fleetd.sim import loop

START = datetime(2026, 3, 2, tzinfo=UTC)
FRESH = timedelta(seconds=3)


class Far:
    """Takes a second to answer, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.fault: Exception | None = None

    async def answer(self) -> int:
        self.asked += 1
        mine = self.asked
        await asyncio.sleep(1)
        if self.fault is not None:
            raise self.fault
        return mine


def play(script: Callable[[Polls, Far], Awaitable[None]]) -> None:
    async def main() -> None:
        await script(Polls(LoopClock(START)), Far())

    loop.run(main())


def ask(polls: Polls, far: Far, key: str = "nodes") -> Awaitable[int]:
    return polls.get("metal:eu-1", key, far.answer, lambda _: FRESH)


def test_a_thousand_looks_are_one_question() -> None:
    """Who comes while it is asked waits for the same answer; after it is old it is asked again."""

    async def script(polls: Polls, far: Far) -> None:
        assert set(await asyncio.gather(*(ask(polls, far) for _ in range(1000)))) == {1}
        assert await ask(polls, far) == 1
        await asyncio.sleep(2)
        assert await ask(polls, far) == 2

    play(script)


def test_a_failure_is_shared_and_not_kept() -> None:
    """All who waited are told at the same time; the next one asks."""

    async def script(polls: Polls, far: Far) -> None:
        far.fault = ValueError("no")
        waiting = (ask(polls, far) for _ in range(3))
        told = await asyncio.gather(*waiting, return_exceptions=True)
        assert [str(one) for one in told] == ["no", "no", "no"]
        assert far.asked == 1
        with pytest.raises(ValueError, match="no"):
            await ask(polls, far)
        assert far.asked == 2

    play(script)


def test_who_asked_may_be_called_off() -> None:
    """A look that ran out of time takes nobody with it: the next one asks."""

    async def script(polls: Polls, far: Far) -> None:
        async with asyncio.TaskGroup() as group:
            first = group.create_task(asyncio.wait_for(ask(polls, far), 10), name="first")
            second = group.create_task(asyncio.wait_for(ask(polls, far), 10), name="second")
            await asyncio.sleep(0.5)
            first.cancel()
        assert await second == 2

    play(script)


def test_no_answer_is_older_than_a_deed() -> None:
    """Forgotten while it was under way: whoever waited has it, whoever comes after asks anew."""

    async def script(polls: Polls, far: Far) -> None:
        async with asyncio.TaskGroup() as group:
            before = group.create_task(asyncio.wait_for(ask(polls, far), 10), name="before")
            await asyncio.sleep(0.5)
            polls.forget("metal:eu-1", "nodes")
            after = group.create_task(asyncio.wait_for(ask(polls, far), 10), name="after")
        assert (await before, await after) == (1, 2)
        assert await ask(polls, far) == 2

    play(script)


def test_what_is_kept_is_bounded() -> None:
    """What is old goes when something is kept, and of more than it may keep the oldest goes."""

    async def main() -> tuple[int, int]:
        polls, far = Polls(LoopClock(START), kept_max=10), Far()
        await asyncio.gather(*(ask(polls, far, str(number)) for number in range(50)))
        most = len(polls)
        for number in range(20):
            await asyncio.sleep(3)
            await ask(polls, far, f"later {number}")
        return most, len(polls)

    assert loop.run(main()) == (10, 1)
