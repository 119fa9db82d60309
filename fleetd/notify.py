"""
Tells the service manager how the daemon is doing: started, reloading, stopping, alive.

The protocol of `sd_notify(3)`: a datagram to the socket that NOTIFY_SOCKET names. Without one,
nothing is told and nothing fails: most daemons do not run under a manager. The rule: a sign of
life comes only from the event loop itself, so that a loop that stands still is seen.
"""

import contextlib
import os
import socket
from collections.abc import Mapping


class Manager:
    def __init__(self, environ: Mapping[str, str]) -> None:
        where = environ.get("NOTIFY_SOCKET", "")
        # A name that begins with @ is one of Linux's abstract sockets.
        self._address = "\0" + where[1:] if where.startswith("@") else where
        self._limit = _limit(environ)

    @property
    def watch(self) -> float | None:
        """Seconds between two signs of life: half of what the manager waits. None if it does not
        watch this process."""
        return self._limit / 2 if self._limit and self._address else None

    def ready(self, words: str) -> None:
        self._tell("READY=1", f"STATUS={words}")

    def alive(self, words: str) -> None:
        self._tell("WATCHDOG=1", f"STATUS={words}")

    def stopping(self) -> None:
        self._tell("STOPPING=1", "STATUS=waits for steps in flight")

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        # A manager that does not listen is no reason to stop running a cloud.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, _KIND) as door:
            door.setblocking(False)
            door.sendto("\n".join(lines).encode(), self._address)


_KIND = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC


def _limit(environ: Mapping[str, str]) -> float | None:
    """How long the manager waits for a sign of life, if it is us that it watches."""
    told, whose = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not told.isdigit() or (whose and whose != str(os.getpid())):
        return None
    return int(told) / 1_000_000 or None
