"""
An event loop whose time jumps instead of passing.

When every task waits for a timer, the loop moves its clock to that timer and goes on: a month of
waiting takes as long as its work. Nothing else about asyncio is changed, so production code runs
in it unmodified, and the same start gives the same order of everything, on every machine.

There is no outside: a thread or a socket answers when it likes, while the clock here jumps hours
ahead, and no two runs would be alike. Whoever asks for one is told so (`Outside`). If nothing
at all can ever wake the loop, it says that too (`Deadlock`) instead of hanging.
"""

import asyncio
import contextvars
import gc
import heapq
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

_COLLECTED = (50_000, 20, 50)
"""Objects between two collections, and rounds of those. An hour's looks are made within seconds
here, and the collector's usual pace is meant for the hour."""


class Deadlock(RuntimeError):
    """Every task waits, and no timer is set that could wake one."""


class Outside(RuntimeError):
    """Something asked for a thread, a socket or a process in virtual time."""


class _JumpingSelector(selectors.DefaultSelector):
    """A real selector that never waits: where asyncio asks it to wait, time is moved instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:
            return []  # there is work, and outside is nobody to ask but a signal, which can wait
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise Deadlock("every task waits and no timer is set")
        self.now += max(timeout, 0.0)
        return []


class _Timer(asyncio.TimerHandle):
    """Compared with nothing but its like: half a million times in an hour of a region."""

    __slots__ = ()

    def __lt__(self, other: Any) -> bool:  # noqa: ANN401 - as quick as can be
        mine: Any = self
        return mine._when < other._when


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        timer: Any = _Timer(when, callback, args, self, context)
        heapq.heappush(vars(self)["_scheduled"], timer)
        timer._scheduled = True  # noqa: SLF001 - as asyncio does it
        return timer

    def run_forever(self) -> None:
        usual = gc.get_threshold()
        gc.set_threshold(*_COLLECTED)
        try:
            super().run_forever()
        finally:
            gc.set_threshold(*usual)


def _no_outside(*_args: object, **_options: object) -> NoReturn:
    raise Outside(
        "virtual time has no threads, sockets or processes: run the work inline, or give the code "
        "a transport that calls the simulated world"
    )


for _way_out in (
    *("run_in_executor", "subprocess_exec", "subprocess_shell"),
    *("create_connection", "create_server", "create_datagram_endpoint"),
    *("create_unix_connection", "create_unix_server", "connect_read_pipe", "connect_write_pipe"),
    *("add_reader", "add_writer", "sock_connect", "sock_accept"),
):
    setattr(VirtualLoop, _way_out, _no_outside)


def run(main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in virtual time, from loop time zero."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
