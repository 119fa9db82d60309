"""
Real processes that need not import anything: forked from one that has.

For tests that kill hundreds: what they are about is the kill, and nine tenths of a daemon's start
are imports. Each is a process of its own with its own environment and output, and looks to a test
like one of `subprocess`. One rule: nothing of the test's own process is in it.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from multiprocessing import connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    ["fleetd.app", "fleetd.cli.daemon", "tests.toy.remote", "tests.toy.early", "tests.store.worker"]
)


class Forked:
    """`target` with text arguments; both streams go to `out`, a file or a pipe with a name."""

    def __init__(
        self, target: Callable[..., None], *args: str, out: Path, environ: Mapping[str, str]
    ) -> None:
        self._process = _context.Process(target=_begin, args=(target, args, out, dict(environ)))
        self._process.start()
        self.stdin = self.stdout = None

    @property
    def pid(self) -> int:
        pid = self._process.pid
        assert pid is not None
        return pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        # Only while it is not known to be gone: its number may be another's by then.
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        connection.wait([self._process.sentinel], timeout)
        self._process.join(0 if timeout is not None else None)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout or 0.0)
        return status


def _begin(
    target: Callable[..., Any], args: tuple[str, ...], out: Path, environ: dict[str, str]
) -> None:
    os.setsid()  # Ctrl-C is for the one who started it
    file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(ROOT)
    sys.argv = ["fleetd", *args]
    target(*args)


def fleetd(*_args: str) -> None:
    from fleetd.__main__ import main  # noqa: PLC0415 - it sets a signal when it begins

    main()
