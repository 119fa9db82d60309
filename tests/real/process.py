"""
Programs that a lab runs: started with a log of their own, ended by their process id.

It knows nothing of what they serve. The rule: nothing that was started here outlives whoever
started it, however that one ends; on Linux the kernel sees to it.
"""

import ctypes
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PORTS = range(20000, 32000)
"""Below those that systems give to outgoing connections, which would take them from us."""
GRACE = 2.0
"""Seconds between asking a program to end and ending it."""
TAIL = 15
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


class NotUp(Exception):
    """A server did not come up. Says which, and the end of its log."""


class Running:
    def __init__(self, name: str, program: Path, arguments: Sequence[str], folder: Path) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [program, *arguments],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
                start_new_session=True,  # Ctrl-C is for the lab, which ends its servers in order
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def until(self, ready: Callable[[], bool], within: float) -> None:
        """Waits until it is ready; raises NotUp when it ends or takes too long."""
        end = time.monotonic() + within
        while not ready():
            code = self._process.poll()
            if code is not None:
                raise NotUp(f"{self.name} ended with {code}:\n{self.tail()}")
            if time.monotonic() > end:
                raise NotUp(f"{self.name} is not ready after {within:.0f} s:\n{self.tail()}")
            time.sleep(0.05)

    def tail(self) -> str:
        return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-TAIL:])

    def ask_to_end(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        self.ask_to_end()
        try:
            self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            # An API server waits for the end of its watches, which may be minutes.
            self._process.kill()
            self._process.wait()


def free_ports(count: int) -> list[int]:
    """Ports on loopback that nobody listens on. All are held until all are found."""
    held: list[socket.socket] = []
    try:
        for port in random.sample(PORTS, len(PORTS)):
            if len(held) == count:
                break
            one = socket.socket()
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                one.close()
                continue
            held.append(one)
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def _die_with_parent() -> None:
    if _libc is not None:
        _libc.prctl(_DEATH_SIGNAL, signal.SIGKILL)
