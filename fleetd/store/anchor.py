"""
A few bytes beside the database that say how far it had come.

A damaged write-ahead log is not an error to SQLite: it drops the damaged transaction and all that
follow, which is right after a power cut and wrong after a flipped bit. An old copy of the database
put back in place looks healthy too. The anchor holds the number of the last commit, so a database
that has not come that far is known to have lost something.

The rule: the anchor is written *after* the commit is on disk, and not synced. It may therefore be
older than the database (a crash in between, a power cut), never newer. Two slots are written in
turn, each with its own checksum, so a torn write costs one slot and the other still speaks.
"""

import hashlib
import os
from pathlib import Path

from fleetd import errors

_SLOT = 512
_NUMBER = 8
_CHECK = 16


class Anchor:
    """The open file. `read` before the first `write`."""

    def __init__(self, path: Path, *, create: bool) -> None:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if create else 0)
        self._fd = os.open(path, flags, 0o600)
        try:
            os.fchmod(self._fd, 0o600)
            if create:
                # Both slots are written and synced before the first commit, so later writes change
                # bytes in place and no power cut can leave the file short.
                os.pwrite(self._fd, _slot(0).ljust(_SLOT, b"\0") + _slot(0).ljust(_SLOT, b"\0"), 0)
                os.fsync(self._fd)
        except OSError:
            os.close(self._fd)
            raise
        self._slot = 0

    def read(self) -> int:
        """The highest commit number that can be trusted."""
        data = os.pread(self._fd, 2 * _SLOT, 0)
        found = [(_number(data[at : at + _NUMBER + _CHECK]), at) for at in (0, _SLOT)]
        trusted = [(number, at) for number, at in found if number is not None]
        if not trusted:
            raise errors.StoreCorrupt("the anchor file does not match its checksum")
        newest, self._slot = max(trusted)
        return newest

    def write(self, commit: int) -> None:
        data = _slot(commit)
        self._slot = _SLOT - self._slot
        if os.pwrite(self._fd, data, self._slot) != len(data):
            raise OSError("the anchor file could not be written")

    def sync(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def _slot(commit: int) -> bytes:
    number = commit.to_bytes(_NUMBER, "big")
    return number + hashlib.blake2b(number, digest_size=_CHECK).digest()


def _number(slot: bytes) -> int | None:
    if len(slot) < _NUMBER + _CHECK:
        return None
    number = int.from_bytes(slot[:_NUMBER], "big")
    return number if _slot(number) == slot else None
