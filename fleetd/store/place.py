"""
The state directory: whose it is, who may read it, and which process holds it.

One fleetd per directory. The lock is a `flock` on an open file, so the kernel gives it back when
the holder dies, however it dies; the pid in the file is only for the message.
"""

import fcntl
import os
import stat
from pathlib import Path

from fleetd import errors

DATABASE = "fleetd.db"
ANCHOR = "fleetd.anchor"
LOCK = "lock"


class Place:
    """A state directory that this process holds, from `take` to `leave`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.database = directory / DATABASE
        self.anchor = directory / ANCHOR
        self._lock: int | None = None

    def take(self) -> None:
        """Make the directory if it is missing, check it, lock it."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            mode = stat.S_IMODE(self.directory.stat().st_mode)
            if mode & 0o077:
                raise errors.StoreError(
                    f"{self.directory} can be read by others (mode {mode:04o}): run "
                    f"`chmod 700 {self.directory}`, or name a directory below it, which fleetd "
                    f"will make"
                )
            self._lock = self._locked()
        except OSError as cause:
            raise errors.StoreBroken(
                f"cannot use the state directory {self.directory}: {cause}"
            ) from cause

    def leave(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def sync(self) -> None:
        """Make the names of new files durable."""
        fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def _locked(self) -> int:
        fd = os.open(self.directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(fd, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(fd)
            raise errors.StoreLocked(
                f"{self.directory} is held by another fleetd, process {holder}: stop it first, or "
                f"give this one its own --state"
            ) from None
        except OSError:
            os.close(fd)
            raise
        return fd
