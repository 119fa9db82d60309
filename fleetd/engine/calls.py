"""
One call of a driver, on a short lead: it ends in time, whatever the driver does.

`asyncio.timeout` only asks. Code that swallows the cancellation, or cleans up for ever, keeps its
caller for ever, and with it a worker, a slot of the gate and the end of the daemon. So each call is
a task of its own: past its deadline it gets a moment to clean up, and is then left to itself. Those
are strays: they are counted, and a backend that has many of them gets no more calls.

The other way round, a cancellation that comes out of a driver (it waited for a task that somebody
else ended) is that driver's fault. It must not pass for ours: a worker would end without a word.
"""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

T = TypeVar("T")

GRACE = timedelta(milliseconds=300)
"""For closing a connection after the deadline. Steps and then looks may need it when the daemon
ends, in the 2 s that are kept for that."""


STRAYS_MAX = 32
"""Of one backend: four times what its gate lets through at once by default. A stray keeps what it
holds, a connection or a thread, for as long as it likes; without a bound they would be all."""

Strays = set["asyncio.Task[Any]"]
"""Calls that were given up and have not ended."""


class TooLate(Exception):
    """No answer within the limit. Whether the deed was done is not known."""

    def __init__(self, limit: timedelta) -> None:
        super().__init__(f"no answer within {limit.total_seconds():.0f} s")


class Crowded(TooLate):
    """So many strays that the call was not even begun."""

    def __init__(self, strays: Strays) -> None:
        Exception.__init__(
            self,
            f"{len(strays)} calls to it were given up and have not ended; the next begins when one "
            "has",
        )


class Dropped(Exception):
    """The driver's own work was cancelled, by something of its own."""


async def within(limit: timedelta, call: Coroutine[Any, Any, T], *, name: str, strays: Strays) -> T:
    """What `call` returns or raises; TooLate or Dropped if it does neither. `strays` are those of
    the backend that is called; this one joins them if it does not end."""
    if len(strays) >= STRAYS_MAX:
        call.close()
        raise Crowded(strays)
    # In no group: a group waits for its tasks, and this one may have to be left behind.
    task = asyncio.get_running_loop().create_task(call, name=name)
    task.add_done_callback(_heard)
    try:
        await _ended(task, limit.total_seconds())
    except asyncio.CancelledError:
        await _part(task, strays)
        raise
    if not task.done():
        await _part(task, strays)
        # An answer that came while it was told to end is an answer.
        if not task.done() or task.cancelled() or task.exception() is not None:
            raise TooLate(limit)
    if task.cancelled():
        raise Dropped("its work was cancelled")
    return task.result()


async def _ended(task: "asyncio.Task[Any]", within: float) -> None:
    """Until it has ended, or time is up. As `asyncio.wait` does it for many: at half the cost,
    which every look and every step pays."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()

    def end(_: object) -> None:
        if not over.done():
            over.set_result(None)

    timer = loop.call_later(within, end, None)
    task.add_done_callback(end)
    try:
        await over
    finally:
        timer.cancel()
        task.remove_done_callback(end)


async def _part(task: "asyncio.Task[Any]", strays: Strays) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE.total_seconds())
    if not task.done():
        strays.add(task)
        task.add_done_callback(strays.discard)


def _heard(task: "asyncio.Task[Any]") -> None:
    """Whoever was given up has nobody left to complain to."""
    if not task.cancelled():
        task.exception()
