"""
What a `requests` session sends through, with an end: so many seconds for a call, and so many bytes
for an answer, whatever the far side does.

A thread cannot be cancelled: its sockets end it. Limits of libraries are for the time between two
pieces, so a server that drips would hold its thread for as long as it likes. The one rule: the time
is that on the wall, whatever time the daemon lives in.
"""

import functools
import io
import socket
import zlib
from collections.abc import Iterator
from typing import Any, cast

import requests
from requests.adapters import HTTPAdapter
from urllib3 import connection, exceptions

from fleetd.clock import SystemClock

ANSWER_MAX = 64 * 1024 * 1024
"""Bytes, unpacked. The servers of a cloud with 10,000 of them are half of that."""
BESIDE = 8 * 1024 * 1024
"""Bytes of headers and chunks beside the body; `http.client` takes 100 headers of 64 KiB."""
_PIECE = 64 * 1024
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


class Until:
    """The end of a call."""

    def __init__(self, seconds: float) -> None:
        self._clock = SystemClock()
        self._at = self._clock.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds; raises `TimeoutError` if there are none."""
        left = self._at - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError("the time for this call is over")
        return left


class _Raw(socket.SocketIO):
    """An answer from a socket, until the call is over, and no more than an answer may have."""

    def __init__(self, sock: socket.socket, until: Until) -> None:
        super().__init__(sock, "r")
        self._of, self._until, self._left = sock, until, ANSWER_MAX + BESIDE

    def readinto(self, b: Any) -> int | None:  # noqa: ANN401 -- a buffer
        self._of.settimeout(self._until.left)
        count = super().readinto(b)
        self._left -= count or 0
        if self._left < 0:
            raise OSError(_too_much())
        return count


class _Socket:
    """A socket whose answers are read through `_Raw`; in all else it is the socket."""

    def __init__(self, sock: socket.socket, until: Until) -> None:
        self._sock, self._until = sock, until

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever a socket has
        return getattr(self._sock, name)

    def makefile(self, *_given: object, **_named: object) -> io.BufferedReader:
        # As `socket.makefile` does: it is open until both have ended.
        cast("Any", self._sock)._io_refs += 1  # noqa: SLF001
        return io.BufferedReader(_Raw(self._sock, self._until))


class _Plain(connection.HTTPConnection):
    def __init__(self, until: Until, *given: Any, **named: Any) -> None:  # noqa: ANN401 -- urllib3's
        super().__init__(*given, **named)
        self._until = until

    def connect(self) -> None:
        super().connect()
        self.sock = cast("Any", _Socket(self.sock, self._until))


class _Secure(connection.HTTPSConnection):
    def __init__(self, until: Until, *given: Any, **named: Any) -> None:  # noqa: ANN401 -- urllib3's
        super().__init__(*given, **named)  # pyright: ignore[reportUnknownMemberType]
        self._until = until

    def connect(self) -> None:
        super().connect()
        self.sock = cast("Any", _Socket(self.sock, self._until))


class Patient(HTTPAdapter):
    def __init__(self, within: float) -> None:
        """For one call, which may take so many seconds with all its requests."""
        super().__init__()
        self._until = Until(within)

    def get_connection_with_tls_context(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 -- as requests has it
        pool: Any = super().get_connection_with_tls_context(*given, **named)
        made = _Secure if pool.scheme == "https" else _Plain
        pool.ConnectionCls = functools.partial(made, self._until)
        return pool

    def send(  # noqa: PLR0917 -- as requests has it
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
        timeout: Any = None,  # noqa: ANN401
        verify: Any = True,  # noqa: ANN401, FBT002
        cert: Any = None,  # noqa: ANN401
        proxies: Any = None,  # noqa: ANN401
    ) -> requests.Response:
        try:
            limits = _at_most(timeout, self._until.left)
        except TimeoutError as over:
            raise requests.Timeout(str(over)) from None
        answer = super().send(
            request, stream=stream, timeout=limits, verify=verify, cert=cert, proxies=proxies
        )
        if not stream:
            try:
                cast("Any", answer)._content = _body(answer)  # noqa: SLF001 -- its only way in
            except BaseException:
                answer.close()
                raise
        return answer


def _at_most(given: Any, left: float) -> tuple[float, float]:  # noqa: ANN401 -- as requests has it
    """Seconds to connect, and between two pieces of the answer."""
    both = cast("tuple[Any, Any]", given if isinstance(given, tuple) else (given, given))
    connect, read = (min(float(one), left) if one else left for one in both)
    return connect, read


def _body(answer: requests.Response) -> bytes:
    """All of it, unpacked: a few bytes may unfold to gigabytes."""
    coding = (answer.headers.get("content-encoding") or "identity").strip().lower()
    body, size = list[bytes](), 0
    pieces = _read(answer.raw)
    try:
        for piece in pieces if coding == "identity" else _unpacked(pieces, coding):
            size += len(piece)
            if size > ANSWER_MAX:
                raise requests.ConnectionError(_too_much())
            body.append(piece)
    except exceptions.ReadTimeoutError:
        raise requests.ReadTimeout("the time for this call is over") from None
    except (exceptions.HTTPError, zlib.error) as cause:
        raise requests.ConnectionError(f"the answer broke off: {type(cause).__name__}") from None
    return b"".join(body)


def _read(raw: Any) -> Iterator[bytes]:  # noqa: ANN401 -- urllib3's, without a type in requests
    while piece := raw.read(_PIECE, decode_content=False):
        yield piece


def _unpacked(pieces: Iterator[bytes], coding: str) -> Iterator[bytes]:
    if coding not in {"gzip", "x-gzip", "deflate"}:
        raise requests.ConnectionError(
            f"the answer is packed in a way that is not known: {coding!a}"
        )
    packer = zlib.decompressobj(_GZIP_OR_ZLIB)
    for piece in pieces:
        packed = piece
        while packed:
            yield packer.decompress(packed, _PIECE)
            packed = packer.unconsumed_tail
            if packer.eof:
                packed = packer.unused_data
                packer = zlib.decompressobj(_GZIP_OR_ZLIB)
    yield packer.flush(_PIECE)


def _too_much() -> str:
    return f"it sends more than {ANSWER_MAX} bytes"
