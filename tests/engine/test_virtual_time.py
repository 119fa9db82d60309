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
