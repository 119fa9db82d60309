"""
An event loop whose time jumps instead of passing.

When every task waits for a timer, the loop moves its clock to that timer and goes on: a month of
waiting takes as long as its work. Production code runs in it unmodified: what is due is called in
the order in which it was asked for, also where it is due at one moment, so that the same start
gives the same order of everything, on every machine.

There is no outside: a thread or a socket answers when it likes, while the clock here jumps hours
ahead, and no two runs would be alike. Whoever asks for one is told so (`Outside`). If nothing
at all can ever wake the loop, it says that too (`Deadlock`) instead of hanging.
"""

import asyncio
import contextvars
import functools
import gc
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

_COLLECTED = (500_000, 20, 50)
"""Objects between two collections, and rounds of those. An hour's looks are made within seconds
here, and the collector's usual pace is meant for the hour."""


class Deadlock(RuntimeError):
    """Every task waits, and no timer is set that could wake one."""


class Outside(RuntimeError):
    """Something asked for a thread, a socket or a process in virtual time."""


class _Call(functools.partial[object]):
    """What was asked for, with its context. Called off, it calls nothing."""

    def cancel(self) -> None:
        mine: Any = self  # typeshed does not know how a partial is changed
        mine.__setstate__((_nothing, (), {}, None))

    def cancelled(self) -> bool:
        return self.func is _nothing


def _nothing() -> None:
    """Stands where a call was called off."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Has no selector, for there is nobody to wait for: what is due is called in the order in
    which it was asked for, and then time jumps to the next moment for which something is set."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._soon: deque[_Call] = deque()
        self._moments: list[float] = []
        """A heap of the keys of `_set`."""
        self._set: dict[float, list[_Call]] = {}
        self._ends = False

    def time(self) -> float:
        return self._now

    # What is asked for. Any: asyncio's own handles know their loop, which is not asked again.

    def call_soon(
        self,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> Any:  # noqa: ANN401 - see above
        call = _Call((context or contextvars.copy_context()).run, callback, *args)
        self._soon.append(call)
        return call

    call_soon_threadsafe = call_soon
    """A signal's; no thread has a part in this."""

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> Any:  # noqa: ANN401 - see above
        call = _Call((context or contextvars.copy_context()).run, callback, *args)
        if when <= self._now:
            self._soon.append(call)
        elif when in self._set:
            self._set[when].append(call)
        else:
            self._set[when] = [call]
            heapq.heappush(self._moments, when)
        return call

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> Any:  # noqa: ANN401 - see above
        return self.call_at(self._now + delay, callback, *args, context=context)

    # What is done.

    def run_forever(self) -> None:
        usual = gc.get_threshold()
        gc.set_threshold(*_COLLECTED)
        try:
            super().run_forever()
        finally:
            self._ends = False
            gc.set_threshold(*usual)

    def stop(self) -> None:
        self._ends = True
        super().stop()

    def close(self) -> None:
        super().close()
        self._soon.clear()
        self._moments.clear()
        self._set.clear()

    def _run_once(self) -> None:
        """Instead of asyncio's own; comes back when the loop is to stop."""
        soon = self._soon
        while not self._ends:
            if not soon:
                if not self._moments:
                    raise Deadlock("every task waits and no timer is set")
                self._now = heapq.heappop(self._moments)
                soon.extend(self._set.pop(self._now))
            for _ in range(len(soon)):
                call = soon.popleft()
                try:
                    call()
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as fault:  # noqa: BLE001 - told as asyncio does it
                    self.call_exception_handler(
                        {"message": f"exception in {call!r}", "exception": fault}
                    )


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
