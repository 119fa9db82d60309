"""
One call of a driver, on a short lead: it ends in time, whatever the driver does.

`asyncio.timeout` only asks. Code that swallows the cancellation, or cleans up for ever, keeps its
caller for ever, and with it a worker, a slot of the gate and the end of the daemon. So each call is
a task of its own: past its deadline it gets a moment to clean up, and is then left to itself.

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


class TooLate(Exception):
    """No answer within the limit. Whether the deed was done is not known."""

    def __init__(self, limit: timedelta) -> None:
        super().__init__(f"no answer within {limit.total_seconds():.0f} s")


class Dropped(Exception):
    """The driver's own work was cancelled, by something of its own."""


async def within(limit: timedelta, call: Coroutine[Any, Any, T], *, name: str) -> T:
    """What `call` returns or raises; TooLate or Dropped if it does neither."""
    # In no group: a group waits for its tasks, and this one may have to be left behind.
    task = asyncio.get_running_loop().create_task(call, name=name)
    task.add_done_callback(_heard)
    try:
        await asyncio.wait({task}, timeout=limit.total_seconds())
    except asyncio.CancelledError:
        await _part(task)
        raise
    if not task.done():
        await _part(task)
        # An answer that came while it was told to end is an answer.
        if not task.done() or task.cancelled() or task.exception() is not None:
            raise TooLate(limit)
    if task.cancelled():
        raise Dropped("its work was cancelled")
    return task.result()


async def _part(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE.total_seconds())


def _heard(task: "asyncio.Task[Any]") -> None:
    """Whoever was given up has nobody left to complain to."""
    if not task.cancelled():
        task.exception()
