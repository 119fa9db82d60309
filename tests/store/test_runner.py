"""Where work runs: batches, the short cut, lazy work, and callers that go away."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from fleetd import clock
from fleetd.store import runner


@dataclass(frozen=True)
class Sum:
    number: int
    short: bool = True


class Desk:
    """Work with a state: remembers where and in what company each job was done."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, took: float = 0.0) -> None:
        self.batches: list[list[int]] = []
        self.threads: list[bool] = []
        """For each batch: was it done on the loop?"""
        self.left: list[int] = []
        self.flushed = asyncio.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.begun = threading.Event()
        self.time = Stopwatch()
        self.took = took
        self._loop = loop
        self._home = threading.get_ident()

    def batch(self, jobs: Sequence[Sum], /) -> Sequence[runner.Reply]:
        self.begun.set()
        self.gate.wait()
        self.time.passed += self.took
        self.batches.append([job.number for job in jobs])
        self.threads.append(threading.get_ident() == self._home)
        return [
            runner.Reply(value=job.number)
            if job.number >= 0
            else runner.Reply(error=ValueError(job.number))
            for job in jobs
        ]

    @property
    def tired(self) -> bool:
        return False

    def rest(self) -> None:
        """Nothing to do here."""

    @property
    def lazy(self) -> bool:
        return bool(self.left)

    def flush(self) -> None:
        self.left.clear()
        self._loop.call_soon_threadsafe(self.flushed.set)


class Stopwatch:
    """A clock that moves only when told."""

    def __init__(self) -> None:
        self.passed = 0.0

    def monotonic(self) -> float:
        return self.passed

    now = clock.SystemClock.now


async def test_a_lone_short_job_is_done_on_the_loop_once_the_disk_is_known() -> None:
    """The first few prove the disk quick in the thread; after that the loop does it itself."""
    desk = Desk(asyncio.get_running_loop())
    threads = runner.ThreadRunner[Sum](desk.time)
    threads.start(desk)

    for number in range(8):
        assert await threads.run(Sum(number)) == number
    for number in range(1000):
        # On a busy machine the thread may still be on its way to rest; then it takes one more.
        assert await threads.run(Sum(number)) == number
        if desk.threads[-1]:
            break
    await threads.run(Sum(99, short=False))
    await threads.stop()

    assert desk.threads[:8] == [False] * 8
    assert desk.threads[-2:] == [True, False]


async def test_one_slow_job_sends_the_next_to_the_thread() -> None:
    """A disk that was slow once is not waited for on the loop again."""
    desk = Desk(asyncio.get_running_loop())
    threads = runner.ThreadRunner[Sum](desk.time)
    threads.start(desk)
    for number in range(10):
        await threads.run(Sum(number))

    desk.took = 0.5
    await threads.run(Sum(10))
    desk.took = 0.0
    for number in range(20):
        await threads.run(Sum(number))
    await threads.stop()

    assert desk.threads[8:] == [True] * 3 + [False] * 20


async def test_many_short_jobs_are_one_batch_on_the_loop_while_the_disk_is_brisk() -> None:
    """Callers that come together share a batch; the loop does it while batches take no time, and
    leaves it to the thread when one took a tenth of the patience, was large, or was not short."""
    desk = Desk(asyncio.get_running_loop())
    threads = runner.ThreadRunner[Sum](desk.time)
    threads.start(desk)
    for number in range(9):
        await threads.run(Sum(number))

    async def crowd(size: int, *, short: bool = True) -> bool:
        """Come together twice: the first of all may still count as alone. On the loop?"""
        for _ in range(2):
            await asyncio.gather(*(threads.run(Sum(n, short)) for n in range(size)))
        assert desk.batches[-1] == list(range(size))
        return desk.threads[-1]

    async def calm() -> bool:
        # On a busy machine the thread may still be on its way to rest; then it takes one more.
        return any([await crowd(3) for _ in range(1000)])

    assert await calm()
    desk.took = 0.001
    assert not await crowd(3)
    desk.took = 0.0
    assert await calm()
    assert not await crowd(65)
    assert not await crowd(3, short=False)
    await threads.stop()


async def test_a_lone_caller_lets_the_loop_turn_every_millisecond() -> None:
    """Who asks again and again is served without a pause, and others still get their turn."""
    desk = Desk(asyncio.get_running_loop(), took=0.0003)
    threads = runner.ThreadRunner[Sum](desk.time)
    threads.start(desk)
    for number in range(1000):
        # On a busy machine the thread may still be on its way to rest; then it takes one more.
        await threads.run(Sum(number))
        if desk.threads[-1]:
            break
    turns: list[int] = []

    async def watch() -> None:
        while True:
            turns.append(len(desk.batches))
            await asyncio.sleep(0)

    watching = asyncio.ensure_future(watch())
    await asyncio.sleep(0)
    began = len(turns)
    for number in range(40):
        await threads.run(Sum(number))
    watching.cancel()
    await threads.stop()

    assert 8 <= len(turns) - began <= 12


async def test_without_patience_the_loop_does_nothing_itself() -> None:
    """With a patience of zero every job goes to the thread."""
    desk = Desk(asyncio.get_running_loop())
    threads = runner.ThreadRunner[Sum](desk.time, patience=timedelta(0))
    threads.start(desk)

    for number in range(30):
        await threads.run(Sum(number))
    await threads.stop()

    assert desk.threads == [False] * 30


async def test_jobs_that_wait_together_are_done_together() -> None:
    """While one batch is under way the next gathers, and each caller gets its own answer."""
    desk = Desk(asyncio.get_running_loop())
    threads = runner.ThreadRunner[Sum](desk.time)
    threads.start(desk)
    desk.gate.clear()
    first = asyncio.ensure_future(threads.run(Sum(0)))
    await asyncio.to_thread(desk.begun.wait)
    rest = [asyncio.ensure_future(threads.run(Sum(number))) for number in (1, -2, 3)]
    await asyncio.sleep(0)
    later = asyncio.ensure_future(threads.run(Sum(4)))
    for _ in range(3):  # a task starts, joins, and what has gathered is sent
        await asyncio.sleep(0)
    desk.gate.set()

    answers = await asyncio.gather(first, *rest, later, return_exceptions=True)
    await threads.stop()

    assert [number for batch in desk.batches for number in batch] == [0, 1, -2, 3, 4]
    assert len(desk.batches) == 2
    assert [answers[0], answers[1], answers[3], answers[4]] == [0, 1, 3, 4]
    assert isinstance(answers[2], ValueError)


async def test_a_cancelled_caller_does_not_undo_its_job() -> None:
    """The job of a caller that went away is done, and its neighbours are answered."""
    desk = Desk(asyncio.get_running_loop())
    threads = runner.ThreadRunner[Sum](desk.time)
    threads.start(desk)
    desk.gate.clear()
    gone, stays = (asyncio.ensure_future(threads.run(Sum(n))) for n in (1, 2))
    await asyncio.to_thread(desk.begun.wait)
    gone.cancel()
    desk.gate.set()

    assert await stays == 2
    await threads.stop()
    assert desk.batches == [[1, 2]]


async def test_lazy_work_is_written_when_its_time_is_up() -> None:
    """What was left for later is flushed by the timer, though nobody asks for anything."""
    desk = Desk(asyncio.get_running_loop())
    threads = runner.ThreadRunner[Sum](clock.SystemClock(), lag=timedelta(milliseconds=5))
    threads.start(desk)
    desk.left.append(1)

    await threads.run(Sum(1))
    await asyncio.wait_for(desk.flushed.wait(), timeout=60)

    assert desk.left == []
    await threads.stop()


async def test_stop_flushes_what_was_left() -> None:
    """Stopping writes what would otherwise have waited."""
    desk = Desk(asyncio.get_running_loop())
    threads = runner.ThreadRunner[Sum](clock.SystemClock())
    threads.start(desk)
    desk.left.append(1)
    waiting = asyncio.ensure_future(threads.run(Sum(1)))
    await asyncio.sleep(0)

    await threads.stop()

    assert (await waiting, desk.left) == (1, [])


async def test_inline_leaves_nothing_for_later() -> None:
    """In simulation a job is done at once, alone, and lazy work with it."""
    desk = Desk(asyncio.get_running_loop())
    here = runner.InlineRunner[Sum]()
    here.start(desk)
    desk.left.append(1)

    answers = await asyncio.gather(here.run(Sum(1)), here.run(Sum(2)))
    await here.stop()

    assert (answers, desk.batches, desk.left) == ([1, 2], [[1], [2]], [])
    assert desk.threads == [True, True]
