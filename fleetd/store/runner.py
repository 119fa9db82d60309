"""
Where the work of a store runs: in a thread of its own, or right here.

`ThreadRunner` is for the daemon. Jobs that wait together are done together, which is what makes
group commit: while one batch is being synced, the next gathers. `InlineRunner` does each job at
once on the caller's thread; it is for simulation, where everything must happen in one order.
`app` chooses; a store cannot tell which one it has.

The rule: a job that was handed over is done, whether or not its caller still waits for it.
"""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from fleetd.clock import Clock


class Sized(Protocol):
    @property
    def short(self) -> bool:
        """It does little more than one sync."""
        ...


Job = TypeVar("Job", bound=Sized)
Job_contra = TypeVar("Job_contra", bound=Sized, contravariant=True)


class Reply(msgspec.Struct, frozen=True):
    """What became of one job."""

    value: Any = None
    error: Exception | None = None


class Work(Protocol[Job_contra]):
    """The one who does the jobs. Never called by two threads at once, and never raises."""

    def batch(self, jobs: Sequence[Job_contra], /) -> Sequence[Reply]:
        """Do them, in order, and return one reply for each."""
        ...

    def rest(self) -> None:
        """Do what nobody waits for, if it is time to."""
        ...

    @property
    def tired(self) -> bool:
        """`rest` has something to do."""
        ...

    @property
    def lazy(self) -> bool:
        """Something was left that `flush` must write soon."""
        ...

    def flush(self) -> None:
        """Write what was left for later."""
        ...


class Runner(Protocol[Job]):
    def start(self, work: Work[Job]) -> None: ...

    def run(self, job: Job) -> Awaitable[Any]:
        """Hand a job over; wait for its value, or get its error."""
        ...

    async def stop(self) -> None:
        """Finish what was handed over; take no more."""
        ...


class InlineRunner(Generic[Job]):
    """Each job alone, at once, on the caller's thread. Nothing is ever left for later."""

    def __init__(self) -> None:
        self._work: Work[Job] | None = None

    def start(self, work: Work[Job]) -> None:
        self._work = work

    async def run(self, job: Job) -> Any:  # noqa: ANN401 - the value is the job's own
        if self._work is None:
            raise RuntimeError("the runner is not started")
        (reply,) = self._work.batch([job])
        if self._work.lazy:
            self._work.flush()
        self._work.rest()
        # Give way once, as a thread would: the moment between "it is done" and "the caller knows"
        # exists in the daemon, so a simulation must be able to stop the caller in it.
        await asyncio.sleep(0)
        if reply.error is not None:
            raise reply.error
        return reply.value

    async def stop(self) -> None:
        self._work = None


class _Batch(NamedTuple, Generic[Job]):
    jobs: Sequence[Job]
    futures: Sequence[asyncio.Future[Any]]


_WARY_AT_FIRST = 8
_WARY = 100
_STAY = 0.001
"""Seconds that one caller may ask again and again before the loop turns."""
_CROWD = 64
"""Jobs that the loop does together at most: half a millisecond of work."""


class ThreadRunner(Generic[Job]):
    """
    One thread that does everything in batches, and a short cut for a lone job on a quick disk.

    Handing a job to a thread and waking the loop again costs two wake-ups, together about as much
    as a sync on a good disk. So a short job that is alone is done on the loop itself, as long as
    the disk is quick. `patience` says what is quick. One sync that takes longer sends the next
    hundred to the thread, so a disk in trouble holds up the loop once and not again. Zero: always
    the thread. Five milliseconds is a quarter of the longest pause the loop may make, and well
    above the slowest of a thousand syncs of a good disk (one to two).

    Such a caller goes on at once, and may ask again, for a millisecond; then the loop turns.

    Many short jobs that come together are done on the loop too, as one batch, but only while a
    batch takes less than a tenth of `patience`. They come again and again, and a loop that mostly
    waits for the disk does nothing else; a thread would leave it free. Below that there is little
    to win: waking a thread and being woken costs a tenth of a millisecond by itself.

    `lag`: how long lazy work may wait for company before it is written on its own.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        patience: timedelta = timedelta(milliseconds=5),
        lag: timedelta = timedelta(seconds=1),
    ) -> None:
        self._clock = clock
        self._patience = patience.total_seconds()
        self._crowd_patience = self._patience / 10
        self._took = 0.0
        """Seconds of the last batch of short jobs."""
        self._looked = 0.0
        """When that was done."""
        self._guest: asyncio.Task[Any] | None = None
        """Who is being served on the loop in this turn of it."""
        self._leaves = 0.0
        """When the guest must let the loop turn."""
        self._lag = lag.total_seconds()
        self._inbox: queue.SimpleQueue[_Batch[Job] | None] = queue.SimpleQueue()
        self._gathered: list[Job] = []
        self._futures: list[asyncio.Future[Any]] = []
        self._wary = _WARY_AT_FIRST
        """How many batches must still be quick before the loop trusts the disk."""
        self._alone = True
        """Nobody else asked for anything in the last turn of the loop. Without this rule the first
        of many callers would be served here, then the second, and none would share a sync."""
        self._busy = threading.Lock()
        """Held by whoever is working."""
        self._work: Work[Job] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self, work: Work[Job]) -> None:
        if self._thread is not None:
            raise RuntimeError("the runner is started already")
        self._work = work
        self._loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = self._loop.create_future()
        self._ended = ended
        self._thread = threading.Thread(
            target=self._serve, args=(work, self._loop, ended), name="fleetd-store", daemon=True
        )
        self._thread.start()

    async def run(self, job: Job) -> Any:  # noqa: ANN401 - the value is the job's own
        if self._loop is None or self._work is None:
            raise RuntimeError("the runner is not started")
        task = asyncio.current_task()
        if (
            (self._alone or self._guest is task)
            and job.short
            and not self._wary
            and self._busy.acquire(blocking=False)
        ):
            if self._alone:
                self._alone, self._guest = False, task
                self._leaves = self._clock.monotonic() + _STAY
                self._loop.call_soon(self._turn)
            (reply,) = self._here(self._work, (job,))
            if self._looked >= self._leaves:
                # Others had to stand still meanwhile; now it is their turn.
                await asyncio.sleep(0)
            if reply.error is not None:
                raise reply.error
            return reply.value
        future: asyncio.Future[Any] = self._loop.create_future()
        if not self._gathered:
            # Everybody who is ready to run in this turn of the loop may still join.
            self._loop.call_soon(self._send)
        self._gathered.append(job)
        self._futures.append(future)
        return await future

    async def stop(self) -> None:
        if self._thread is None:
            return
        self._send()
        self._inbox.put(None)
        await self._ended
        self._thread.join()
        self._thread = self._loop = self._work = None

    def _here(self, work: Work[Job], jobs: Sequence[Job]) -> Sequence[Reply]:
        """Do short jobs on the loop; `_busy` is held."""
        try:
            replies = self._timed(work, jobs, short=True)
            tired = work.tired
        finally:
            self._busy.release()
        if tired:
            self._inbox.put(_Batch((), ()))
        return replies

    def _turn(self) -> None:
        """The loop has turned: if nobody else came meanwhile, the next one is alone again."""
        self._alone, self._guest = not self._gathered, None

    def _send(self) -> None:
        """Do what has gathered, or pass it on."""
        jobs, futures = self._gathered, self._futures
        if not jobs:
            return
        self._gathered, self._futures = [], []
        self._alone = len(jobs) == 1
        if self._work is not None and self._brisk(jobs) and self._busy.acquire(blocking=False):
            _resolve(futures, self._here(self._work, jobs))
        else:
            self._inbox.put(_Batch(jobs, futures))

    def _brisk(self, jobs: Sequence[Job]) -> bool:
        """These are done before a thread would have been woken and have woken us."""
        return (
            not self._wary
            and self._took < self._crowd_patience
            and len(jobs) <= _CROWD
            and all(job.short for job in jobs)
        )

    def _serve(
        self, work: Work[Job], loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]
    ) -> None:
        """The thread: take all that waits, do it, answer, rest."""
        due: float | None = None
        stopping = False
        while not stopping:
            batches, stopping = self._take(due)
            with self._busy:
                self._do(work, loop, batches)
                if due is not None and self._clock.monotonic() >= due:
                    work.flush()
                work.rest()
                lazy = work.lazy
            if not lazy:
                due = None
            elif due is None:
                due = self._clock.monotonic() + self._lag
        with self._busy:
            work.flush()
        _tell(loop, _end, ended)

    def _take(self, due: float | None) -> tuple[list[_Batch[Job]], bool]:
        """All batches that wait, and whether the end was asked for."""
        taken: list[_Batch[Job]] = []
        wait = None if due is None else max(0.0, due - self._clock.monotonic())
        try:
            first = self._inbox.get(timeout=wait)
            while first is not None:
                taken.append(first)
                first = self._inbox.get_nowait()
        except queue.Empty:
            return taken, False
        return taken, True

    def _do(
        self, work: Work[Job], loop: asyncio.AbstractEventLoop, batches: Sequence[_Batch[Job]]
    ) -> None:
        jobs = [job for batch in batches for job in batch.jobs]
        if jobs:
            futures = [future for batch in batches for future in batch.futures]
            short = all(job.short for job in jobs)
            _tell(loop, _resolve, futures, self._timed(work, jobs, short=short))

    def _timed(self, work: Work[Job], jobs: Sequence[Job], *, short: bool) -> Sequence[Reply]:
        began = self._clock.monotonic()
        replies = work.batch(jobs)
        if short:
            self._looked = self._clock.monotonic()
            self._took = self._looked - began
            if self._took >= self._patience:
                self._wary = _WARY
            elif self._wary:
                self._wary -= 1
        return replies


def _resolve(futures: Sequence[asyncio.Future[Any]], replies: Sequence[Reply]) -> None:
    for future, reply in zip(futures, replies, strict=True):
        # A caller that was cancelled has a future that is done; its job was done all the same.
        if future.done():
            continue
        if reply.error is not None:
            future.set_exception(reply.error)
        else:
            future.set_result(reply.value)


def _end(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


def _tell(loop: asyncio.AbstractEventLoop, what: Callable[..., object], *args: object) -> None:
    # A loop that was closed under us has nobody left to tell; the work itself is done.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(what, *args)
