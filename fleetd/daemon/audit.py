"""
The audit log: who told the daemon what, when, and what came of it. Append-only, each line chained
to the one before it by a digest, on disk before the deed.

`FOLDER/audit.jsonl` is the newest file; full ones are named after their first line and stay. The
file `head` has the number and digest of the last line, so that lines missing at the end are found
too. Whoever can write both files can forge all of it: keep a digest elsewhere (each stands in the
daemon's log) and give it to `fleetctl audit verify --head`. No secret is ever written.
"""

import asyncio
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import structlog

from fleetd import errors, secrets
from fleetd.clock import Clock
from fleetd.surface.answering import Said
from fleetd.surface.door import Buckets, Rate

_log = structlog.stdlib.get_logger("fleetd.audit")

FOLDER = "audit"
NEWEST = "audit.jsonl"
HEAD = "head"
FULL = 16 * 1024 * 1024
"""Bytes after which a new file is begun."""
START = "0" * 64
OF_ONE, OF_ALL = Rate(1 / 60, 10), Rate(1 / 10, 100)
"""Refusals that are kept: of one caller, and of all together some 4 MB a day."""
PATH_MAX = 300
_encode = msgspec.json.Encoder(order="sorted", enc_hook=str).encode


class Bad(errors.FleetError):
    """The log is not as it was written; says where."""


class Head(NamedTuple):
    """The last line of a chain."""

    number: int
    digest: str


def line(before: Head, content: Mapping[str, Any]) -> tuple[Head, bytes]:
    """The next line of a chain."""
    body = {**content, "n": before.number + 1, "prev": before.digest}
    digest = hashlib.sha256(_encode(body)).hexdigest()
    return Head(before.number + 1, digest), _encode({**body, "hash": digest}) + b"\n"


def files(folder: Path) -> list[Path]:
    """Of a log, in their order; or the one file that is named."""
    if folder.is_file():
        return [folder]
    full = sorted(folder.glob("audit-*.jsonl"))
    return [*full, *(path for path in (folder / NEWEST,) if path.exists())]


def lines(path: Path) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as file:
        for number, text in enumerate(file, 1):
            yield f"{path}:{number}", text


def verify(place: Path, *, expected: str = "") -> Head:
    """Read all of it; the last line. Raises Bad. `expected`: a digest that must stand in it. One
    file by itself may begin in the middle."""
    at: Head | None = None if place.is_file() else Head(0, START)
    head = _head(place) if place.is_dir() else None
    found = not expected
    for where, text in (pair for path in files(place) for pair in lines(path)):
        at = check(at, text, where)
        found = found or at.digest == expected
        if head is not None and at.number == head.number and at.digest != head.digest:
            raise Bad(f"{where}: the last line that was written is another one (see {HEAD})")
    at = at or Head(0, START)
    if head is not None and at.number < head.number:
        raise Bad(f"{place}: ends with line {at.number}, and {head.number} were written")
    if place.is_dir() and head is None and at.number:
        raise Bad(f"{place / HEAD}: is missing, so nobody knows how many lines there should be")
    if not found:
        raise Bad(f"{place}: no line has the digest {expected[:64]}")
    return at


def check(before: Head | None, text: bytes, where: str) -> Head:
    """That a line follows on the one before it."""
    try:
        content = msgspec.json.decode(text, type=dict[str, Any])
        number, digest = int(content["n"]), str(content.pop("hash"))
    except (msgspec.MsgspecError, KeyError, TypeError, ValueError, UnicodeDecodeError):
        raise Bad(f"{where}: is no line of an audit log") from None
    if text != _encode({**content, "hash": digest}) + b"\n":
        raise Bad(f"{where}: is not written as it was")
    if hashlib.sha256(_encode(content)).hexdigest() != digest:
        raise Bad(f"{where}: was changed: its digest is of something else")
    if before is not None and (number, content.get("prev")) != (before.number + 1, before.digest):
        raise Bad(f"{where}: does not follow on line {before.number}: lines are missing or moved")
    return Head(number, digest)


def _head(folder: Path) -> Head | None:
    try:
        number, digest = (folder / HEAD).read_text("ascii").split()
        return Head(int(number), digest)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise Bad(f"{folder / HEAD}: is not a number and a digest") from None


class Log:
    """The log of a running daemon. Implements `surface.answering.Audit`."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        """Verifies what is there. A log that is not as it was written does not keep the daemon
        from running; it keeps it from being told anything (`broken`). Blocks."""
        self._folder = folder
        self._clock = clock
        self._writing = asyncio.Lock()
        self._chained = threading.Lock()
        self._at = Head(0, START)
        self._broken = ""
        self._of_one, self._of_all = Buckets(OF_ONE, clock), Buckets(OF_ALL, clock)
        self._left = 0
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._mend()
            self._at = verify(folder)
        except (Bad, OSError) as wrong:
            self._break(wrong)

    def _mend(self) -> None:
        """Cut off a line that was not written to its end: nobody was told that it was."""
        path = self._folder / NEWEST
        content = path.read_bytes() if path.exists() else b""
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with path.open("r+b") as file:
                file.truncate(whole)
                os.fsync(file.fileno())

    def _break(self, wrong: Exception) -> None:
        self._broken = str(wrong)
        _log.error("audit log is broken", why=self._broken)

    @property
    def broken(self) -> str:
        return self._broken

    async def begin(self, said: Said) -> int:
        """On disk when it returns: the number of the line. Raises Bad."""
        return await self._append(
            {
                "kind": "asked",
                "who": said.who,
                "how": said.how,
                "what": said.what,
                "path": secrets.scrub(said.path),
                "told": secrets.scrub_deep(said.told),
                "request": said.request,
            }
        )

    async def end(self, number: int, result: str, plan: str) -> None:
        """How it came out: `done`, or the code of a problem."""
        await self._append({"kind": "result", "of": number, "result": result, "plan": plan})

    async def refused(self, said: Said, code: str) -> None:
        """That somebody wanted more than they may, and how many such lines were left out before
        it: whoever is refused must not be able to fill the disk. Raises Bad."""
        if self._of_one.take(f"{said.how}:{said.who}") or self._of_all.take(""):
            self._left += 1
            return
        left, self._left = self._left, 0
        await self._append(
            {
                "kind": "refused",
                "who": said.who,
                "how": said.how,
                "what": said.what,
                "path": secrets.scrub(said.path)[:PATH_MAX],
                "code": code,
                "left": left,
                "request": said.request,
            }
        )

    async def _append(self, content: Mapping[str, Any]) -> int:
        async with self._writing:
            at: datetime = self._clock.now()
            moved = await asyncio.to_thread(self._follow, {**content, "at": at.isoformat()})
            _log.info("audited", number=moved.number, digest=moved.digest)
            return moved.number

    def _follow(self, content: Mapping[str, Any]) -> Head:
        """Write the next line. In a thread, which goes on when nobody waits for it any more: a
        request that is cut off has let go of `_writing` before its line is on disk."""
        with self._chained:
            if self._broken:
                raise Bad(self._broken)
            moved, text = line(self._at, content)
            try:
                self._write(moved, text)
            except OSError as wrong:
                self._break(wrong)
                raise Bad(self._broken) from None
            self._at = moved
            return moved

    def _write(self, moved: Head, text: bytes) -> None:
        path = self._folder / NEWEST
        if path.exists() and path.stat().st_size >= FULL:
            first = msgspec.json.decode(next(lines(path))[1])["n"]
            path.rename(self._folder / f"audit-{first:012}.jsonl")
        _put(path, text, os.O_APPEND)
        # The lines first: a head that is behind is mended by reading, one that is ahead is damage.
        _put(self._folder / HEAD, f"{moved.number:>15} {moved.digest}\n".encode(), 0)


def _put(path: Path, content: bytes, how: int) -> None:
    fresh = not path.exists()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how, 0o600)
    try:
        if os.write(handle, content) != len(content):
            raise OSError("the disk took half of it")
        os.fsync(handle)
    finally:
        os.close(handle)
    if fresh:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
