"""The work queue: one place per key, one worker per key; earlier and more urgent win."""

import asyncio
import random
from datetime import timedelta

import pytest

from fleetd.engine.queue import ROUTINE, SOON, URGENT, Lanes, Queue
from fleetd.sim import loop
from tests import defaults


def _queue(keys_max: int = 100) -> Queue[str]:
    return Queue(defaults.BACKOFF, random.Random(1), keys_max)


def _seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def test_a_key_added_twice_is_handed_out_once() -> None:
    """Two wake-ups for one thing are one piece of work."""

    async def main() -> list[str]:
        queue = _queue()
        queue.add("a")
        queue.add("a")
        queue.add("b")
        return [await queue.get(), await queue.get(), str(len(queue))]

    assert loop.run(main()) == ["a", "b", "0"]


def test_a_key_added_while_a_worker_has_it_comes_back_after_done() -> None:
    """A change that arrives during the work is not lost, and is not worked on twice at once."""

    async def main() -> tuple[int, str]:
        queue = _queue()
        queue.add("a")
        await queue.get()
        queue.add("a")
        before = queue.due()
        queue.done("a")
        return before, await queue.get()

    assert loop.run(main()) == (0, "a")


def test_the_earlier_time_and_the_higher_priority_win() -> None:
    """Adding a key again never makes it later or less urgent."""

    async def main() -> list[tuple[str, float]]:
        queue = _queue()
        queue.add("a", after=_seconds(50), priority=URGENT)
        queue.add("a", after=_seconds(10), priority=ROUTINE)
        queue.add("a", after=_seconds(90), priority=ROUTINE)
        queue.add("b", after=_seconds(10), priority=SOON)
        now = asyncio.get_running_loop().time
        return [(await queue.get(), now()), (await queue.get(), now())]

    assert loop.run(main()) == [("a", 10.0), ("b", 10.0)]


def test_keys_come_when_they_are_due_and_not_before() -> None:
    """Delays are exact in virtual time."""

    async def main() -> list[tuple[str, float]]:
        queue = _queue()
        for key, delay in (("late", 3600.0), ("soon", 5.0), ("now", 0.0)):
            queue.add(key, after=_seconds(delay))
        now = asyncio.get_running_loop().time
        return [(await queue.get(), now()) for _ in range(3)]

    assert loop.run(main()) == [("now", 0.0), ("soon", 5.0), ("late", 3600.0)]


def test_a_worker_that_is_cancelled_does_not_swallow_a_wake_up() -> None:
    """The key that woke a cancelled worker goes to the next one."""

    async def main() -> str:
        queue = _queue()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(queue.get(), name="first")
            second = group.create_task(queue.get(), name="second")
            await asyncio.sleep(0)
            queue.add("a")
            first.cancel()
            return await second

    assert loop.run(main()) == "a"


def test_failures_in_a_row_wait_longer_and_a_success_forgets_them() -> None:
    """Backoff doubles up to its maximum, within half of it by jitter."""

    async def main() -> tuple[list[float], float]:
        queue = _queue()
        delays: list[float] = []
        for _ in range(12):
            delays.append(queue.retry("a").total_seconds())
            await queue.get()
            queue.done("a")
        queue.succeeded("a")
        return delays, queue.retry("a").total_seconds()

    delays, after_success = loop.run(main())
    caps = [min(2.0**number, 300.0) for number in range(12)]
    assert all(cap / 2 <= delay <= cap for delay, cap in zip(delays, caps, strict=True))
    assert 0.5 <= after_success <= 1.0


def test_keys_that_failed_together_do_not_come_back_together() -> None:
    """Jitter spreads a thousand retries over half of the delay."""
    backoff = defaults.BACKOFF
    rng = random.Random(7)
    delays = [backoff.delay(5, rng).total_seconds() for _ in range(1000)]

    assert min(delays) < 9
    assert max(delays) > 15
    assert len({round(delay, 3) for delay in delays}) > 900


def test_the_queue_is_bounded() -> None:
    """A leak of keys is an error, not a slow death."""

    async def main() -> None:
        queue = _queue(keys_max=3)
        for number in range(4):
            queue.add(str(number))

    with pytest.raises(OverflowError, match="3 keys"):
        loop.run(main())


def test_a_dropped_key_is_gone() -> None:
    """What left the documents is not looked at again."""

    async def main() -> tuple[str, int]:
        queue = _queue()
        queue.add("gone", after=_seconds(1))
        queue.add("kept", after=_seconds(2))
        queue.drop("gone")
        return await queue.get(), len(queue)

    assert loop.run(main()) == ("kept", 0)


def test_work_on_one_key_is_serial_and_on_many_is_parallel() -> None:
    """Eight workers on three keys: never two on one key, three at once overall."""

    async def main() -> tuple[int, int]:
        queue = _queue()
        busy: dict[str, int] = {}
        most_per_key = most = done = 0

        async def work() -> None:
            nonlocal most_per_key, most, done
            while True:
                key = await queue.get()
                busy[key] = busy.get(key, 0) + 1
                most_per_key = max(most_per_key, busy[key])
                most = max(most, sum(busy.values()))
                queue.add(key)
                await asyncio.sleep(1)
                busy[key] -= 1
                done += 1
                queue.done(key)

        for key in "abc":
            queue.add(key)
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(work(), name=f"worker {n}") for n in range(8)]
            await asyncio.sleep(10.5)
            for worker in workers:
                worker.cancel()
        assert done == 30
        return most_per_key, most

    assert loop.run(main()) == (1, 3)


def _laned(widths: dict[str, int]) -> Queue[str]:
    """The lane of a key is its first letter."""
    lanes: Lanes[str] = Lanes(lambda key: key[0], lambda lane: widths[lane])
    return Queue(defaults.BACKOFF, random.Random(1), lanes=lanes)


async def _now(queue: Queue[str]) -> list[str]:
    """All keys that can be had without waiting."""
    found: list[str] = []
    while True:
        try:
            async with asyncio.timeout(0):
                found.append(await queue.get())
        except TimeoutError:
            return found


def test_a_full_lane_holds_up_nobody_else() -> None:
    """Of five keys of a lane for two, three wait beside it, the most urgent first; another lane
    does not notice. What is done makes room for one."""

    async def main() -> list[object]:
        queue = _laned({"a": 2, "b": 9})
        for number in range(5):
            queue.add(f"a{number}", priority=URGENT if number == 4 else ROUTINE)
        for number in range(3):
            queue.add(f"b{number}")
        first = await _now(queue)
        waiting = queue.due()
        queue.done("a0")
        second = await _now(queue)
        return [first, waiting, second, len(queue)]

    assert loop.run(main()) == [["a4", "a0", "b0", "b1", "b2"], 3, ["a1"], 2]


def test_a_lane_that_grows_lets_more_through_and_wakes_the_workers_for_them() -> None:
    """One at a time until the first answer; then four workers that wait get four keys."""

    async def main() -> tuple[int, list[str]]:
        widths = {"a": 1}
        queue = _laned(widths)
        for number in range(9):
            queue.add(f"a{number}")
        first = await _now(queue)
        got: list[str] = []

        async def worker() -> None:
            got.append(await queue.get())

        async with asyncio.TaskGroup() as group:
            for number in range(4):
                group.create_task(worker(), name=f"worker {number}")
            await asyncio.sleep(0)
            widths["a"] = 4
            queue.done(first[0])
        return len(first), got

    assert loop.run(main()) == (1, ["a1", "a2", "a3", "a4"])


def test_a_key_that_leaves_while_it_waits_beside_its_lane_blocks_nobody() -> None:
    """Dropped, or added again more urgently: the next one in line gets the place."""

    async def main() -> list[list[str]]:
        queue = _laned({"a": 1})
        for number in range(5):
            queue.add(f"a{number}")
        story = [await _now(queue)]
        queue.drop("a1")
        queue.add("a3", priority=URGENT)
        queue.done("a0")
        for _ in range(3):
            story.append(await _now(queue))
            queue.done(story[-1][0])
        story.append(await _now(queue))
        return story

    assert loop.run(main()) == [["a0"], ["a3"], ["a2"], ["a4"], []]


def test_a_key_dropped_after_it_was_let_off_leaves_its_place_to_the_next() -> None:
    """Between the word that there is room and the worker that comes for it."""

    async def main() -> list[str]:
        queue = _laned({"a": 1})
        for number in range(3):
            queue.add(f"a{number}")
        assert await _now(queue) == ["a0"]
        got: list[str] = []

        async def worker() -> None:
            got.append(await queue.get())

        async with asyncio.TaskGroup() as group:
            group.create_task(worker(), name="worker")
            await asyncio.sleep(0)
            queue.done("a0")
            queue.drop("a1")
        return got

    assert loop.run(main()) == ["a2"]


def test_a_wake_up_passes_over_a_worker_that_was_just_cancelled() -> None:
    """Cancelled and woken in one turn of the loop: the key goes to the next worker, and whoever
    added it hears no complaint."""

    async def main() -> list[str]:
        queue = _queue()
        got: list[str] = []

        async def worker(name: str) -> None:
            got.append(f"{name} {await queue.get()}")

        first = asyncio.create_task(worker("first"), name="first")
        second = asyncio.create_task(worker("second"), name="second")
        await asyncio.sleep(0)
        first.cancel()
        queue.add("a")
        await second
        return got

    assert loop.run(main()) == ["second a"]
