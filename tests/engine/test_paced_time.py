"""Paced time: it passes faster than life, keeps nobody waiting, and makes nobody late."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from fleetd.sim import pace
from fleetd.sim.pace import PacedLoop, Shared

T = TypeVar("T")
PACE = 600.0
LONG = 1.0
"""Seconds for which somebody is held up; the rest of a machine may add to it."""


def run(main: Coroutine[Any, Any, T], course: pace.Course | None = None) -> T:
    with asyncio.Runner(loop_factory=lambda: PacedLoop(PACE, course)) as runner:
        return runner.run(main)


def test_it_passes_so_much_faster_and_no_faster() -> None:
    """An hour at pace 600 is six seconds of a clock that stands on the wall, never less."""

    async def main() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(600)
        return loop.time() - began

    before = time.monotonic()
    passed = run(main())

    assert 600 <= passed < 600 + (pace.SLICE + 2 * pace.ROUNDED) * PACE
    assert time.monotonic() - before > 600 / PACE - 2 * pace.ROUNDED


def test_a_process_that_gets_no_core_misses_no_deadline() -> None:
    """What holds the process up without being its work takes no time: a deadline that is near
    is as near afterwards."""

    async def main() -> float:
        before = asyncio.get_running_loop().time()
        async with asyncio.timeout(LONG * PACE / 4):
            time.sleep(LONG)  # noqa: ASYNC251 - as somebody who is stopped
            await asyncio.sleep(0)
            await asyncio.sleep(1)
        return asyncio.get_running_loop().time() - before

    assert run(main()) < LONG * PACE / 4


def test_work_takes_its_time() -> None:
    """A loop that works all the time is not one that rests: its time goes on with the core."""

    async def main() -> tuple[float, float]:
        before, core = asyncio.get_running_loop().time(), time.thread_time()
        while time.thread_time() - core < 0.2:  # noqa: ASYNC110 - what is tried is a busy loop
            await asyncio.sleep(0)
        return asyncio.get_running_loop().time() - before, (time.thread_time() - core) * PACE

    passed, worked = run(main())
    assert passed == pytest.approx(worked, rel=0.2)


def test_sockets_work_as_ever() -> None:
    """Unlike virtual time, paced time has an outside: a connection over loopback works."""

    async def main() -> bytes:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readline())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello\n")
            answer = await reader.readline()
            writer.close()
            return answer

    assert run(main()) == b"hello\n"


def test_nobody_is_further_ahead_than_a_moment(tmp_path: Path) -> None:
    """Of two who share a time, the quicker one waits; both are told the time of the slower one, and
    neither that it went back."""
    quick, slow = shared(tmp_path), shared(tmp_path)
    told = [quick.go(10.0), slow.go(1.0), quick.go(10.0), slow.go(10.0), quick.go(0.0)]

    assert told == pytest.approx([times * pace.AHEAD for times in (0, 1, 2, 3, 3)])
    assert quick.began == slow.began
    quick.leave()
    slow.leave()


def test_who_comes_later_finds_the_time_of_the_others(tmp_path: Path) -> None:
    """It begins where they are, and one who has gone holds up nobody."""
    first = shared(tmp_path)
    first.go(7.0)
    second = shared(tmp_path)
    assert second.passed() == first.passed() == 7.0
    first.leave()
    assert second.go(2.0) == 9.0
    second.leave()


def test_one_who_was_killed_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place is free once it is seen that nobody holds it; one who is only slow keeps his."""
    monkeypatch.setattr(pace, "SILENT", 0.0)
    here, slow, dead = (shared(tmp_path) for _ in range(3))
    fcntl.flock(dead._held.fileno(), fcntl.LOCK_UN) if dead._held else None
    slow.go(1.0)
    assert [here.go(10.0) for _ in range(3)] == pytest.approx([0.0, pace.AHEAD, pace.AHEAD])
    for one in (here, slow, dead):
        one.leave()


STOPPED = """
import asyncio, sys
from pathlib import Path
from fleetd.sim import pace
async def main():
    while True:
        print(flush=True)
        await asyncio.sleep(60)
course = pace.Shared(Path(sys.argv[1]))
with asyncio.Runner(loop_factory=lambda: pace.PacedLoop(600, course)) as runner:
    runner.run(main())
"""


def test_all_wait_for_a_program_that_is_stopped(tmp_path: Path) -> None:
    """A real one: while it does not run, the time of the other stands as well."""
    other = subprocess.Popen(
        [sys.executable, "-c", STOPPED, str(tmp_path / "time")], stdout=subprocess.PIPE
    )
    course = Shared(tmp_path / "time")

    async def main() -> float:
        assert other.stdout is not None
        await asyncio.to_thread(other.stdout.readline)
        loop = asyncio.get_running_loop()
        await asyncio.sleep(60)
        other.send_signal(signal.SIGSTOP)
        await asyncio.to_thread(os.waitid, os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
        before = loop.time()
        await asyncio.to_thread(time.sleep, LONG)
        passed = loop.time() - before
        other.send_signal(signal.SIGCONT)
        await asyncio.sleep(LONG * PACE)
        return passed

    try:
        assert run(main(), course) <= 3 * pace.AHEAD * PACE < LONG * PACE
    finally:
        other.kill()
        other.communicate()


def shared(folder: Path) -> Shared:
    course = Shared(folder / "time")
    course.join()
    return course
