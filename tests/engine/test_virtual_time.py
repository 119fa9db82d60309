"""Virtual time: waiting costs nothing, order is kept, a dead end is named."""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from fleetd.sim import loop


def test_a_month_passes_in_no_time() -> None:
    """Thirty days of sleeping take less than a second of processor time, and end on the second."""

    async def main() -> float:
        for _ in range(30 * 24):
            await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    before = time.process_time()
    assert loop.run(main()) == 30 * 86400
    assert time.process_time() - before < 1


def test_timers_fire_in_the_order_of_their_times() -> None:
    """Tasks that sleep wake in the order in which they are due."""

    async def main() -> list[int]:
        woken: list[int] = []

        async def sleeper(seconds: int) -> None:
            await asyncio.sleep(seconds)
            woken.append(seconds)

        async with asyncio.TaskGroup() as group:
            for seconds in (50, 10, 40, 20, 30):
                group.create_task(sleeper(seconds), name=f"sleeper {seconds}")
        return woken

    assert loop.run(main()) == [10, 20, 30, 40, 50]


def test_timers_of_one_moment_fire_in_the_order_in_which_they_were_set() -> None:
    """However they were set, and what is due at once comes between its neighbours."""

    async def main() -> list[str]:
        here, called = asyncio.get_running_loop(), list[str]()
        for number in range(20):
            here.call_at(3.0, called.append, f"at {number}")
            here.call_later(3.0, called.append, f"in {number}")
        await asyncio.sleep(5)
        here.call_soon(called.append, "soon")
        here.call_at(4.0, called.append, "late")
        here.call_soon(called.append, "last")
        await asyncio.sleep(1)
        return called

    both = [f"{how} {number}" for number in range(20) for how in ("at", "in")]
    assert loop.run(main()) == [*both, "soon", "late", "last"]


def test_what_was_called_off_is_not_called() -> None:
    """Called off before its moment, at its moment, and one that was to come at once."""

    async def main() -> tuple[list[str], float]:
        here, called = asyncio.get_running_loop(), list[str]()
        early = here.call_later(1, called.append, "early")
        doomed = list[asyncio.TimerHandle]()
        here.call_later(2, lambda: [one.cancel() for one in doomed])
        doomed.append(here.call_later(2, called.append, "doomed"))
        here.call_later(2, called.append, "kept")
        early.cancel()
        here.call_soon(called.append, "soon").cancel()
        assert early.cancelled()
        moments = list[float]()
        here.call_later(2, lambda: moments.append(here.time()))
        await asyncio.sleep(2)
        return called, moments[0]

    assert loop.run(main()) == (["kept"], 2.0)


def test_only_timers_that_were_called_off_are_a_dead_end() -> None:
    """No time passes for them, and nobody waits for ever."""

    async def main() -> None:
        asyncio.get_running_loop().call_later(3600, print).cancel()
        await asyncio.Event().wait()

    with pytest.raises(loop.Deadlock, match="no timer"):
        loop.run(main())


def test_a_call_that_raises_is_told_and_the_others_go_on() -> None:
    """As any loop does it."""

    async def main() -> tuple[list[str], list[str]]:
        here, told, called = asyncio.get_running_loop(), list[str](), list[str]()
        here.set_exception_handler(lambda _, context: told.append(str(context["exception"])))
        here.call_soon(int, "no number")
        here.call_later(1, called.append, "next")
        await asyncio.sleep(2)
        return told, called

    told, called = loop.run(main())
    assert ["no number" in words for words in told] == [True]
    assert called == ["next"]


def test_a_deadline_passes_in_virtual_time() -> None:
    """asyncio.timeout cuts off what takes longer, at the exact moment."""

    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(90):
                await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert loop.run(main()) == 90.0


def test_waiting_for_nothing_is_named() -> None:
    """A loop that nothing can wake says so instead of hanging."""

    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(loop.Deadlock, match="no timer"):
        loop.run(main())


def _ignore(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Nobody calls."""


@pytest.mark.parametrize(
    "outside",
    [
        lambda: asyncio.to_thread(time.monotonic),
        lambda: asyncio.open_connection("127.0.0.1", 9),
        lambda: asyncio.start_server(_ignore, "127.0.0.1", 0),
        lambda: asyncio.create_subprocess_exec("true"),
    ],
    ids=["a thread", "a connection", "a server", "a process"],
)
def test_the_outside_is_refused_with_the_way_out(
    outside: Callable[[], Coroutine[Any, Any, object]],
) -> None:
    """What would answer in real time, and so make two runs differ, is named at once."""

    async def main() -> None:
        await outside()

    with pytest.raises(loop.Outside, match="run the work inline"):
        loop.run(main())


def test_the_collector_has_its_usual_pace_again_afterwards() -> None:
    """Whoever runs something in virtual time finds the process as it was."""

    async def main() -> tuple[int, int, int]:
        return gc.get_threshold()

    usual = gc.get_threshold()

    assert loop.run(main()) > usual
    assert gc.get_threshold() == usual
