"""
An answer over HTTP/1.1, from the bytes of a connection: a head, then a body or a watch's lines.

It does no I/O and trusts nobody: whatever is not a plain answer, or is larger than one can be, is
`Unreachable`. The one rule: an answer that has `ended` badly, or has bytes after its end, says so
(`reusable`), and its connection is used no more.
"""

import functools
import re
from typing import Final

from fleetd.kube import errors
from fleetd.kube.room import Part, Room

HEAD_MAX = 64 * 1024
"""Bytes of a status line and all headers. API servers send less than one KiB."""
HEADERS_MAX = 256
"""Of an answer; the same name twice counts twice."""
BEFORE_MAX = 16
"""Answers 1xx before the answer."""
CHUNK_LINE_MAX = 256
STEP = 1024 * 1024
"""Bytes of a body between two looks at whether there is room for more."""
PIECES_MAX = 100_000
"""Of a line."""
PIECE = 64
"""Bytes that a piece of a body costs beside what is in it: a server may send them one by one."""

_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")
_HEX = b"0123456789abcdefABCDEF"
_DIGITS_MAX = 8
"""Of a chunk's size."""
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: [^\r\n]*)?\r\n")
_HEADERS = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n\0]*\r\n)*")


class _At:
    """Where in an answer we are."""

    HEAD, LENGTH, CHUNK, IN_CHUNK, AFTER_CHUNK, TRAILER, TO_THE_END, END = range(8)


class Answer:
    """`feed` it until it has `ended`; `eof` says that nothing more comes."""

    # There is one for each watch, for as long as it is open.
    __slots__ = (
        "_before",
        "_begun",
        "_bodiless",
        "_body",
        "_body_max",
        "_half",
        "_half_size",
        "_keep",
        "_left",
        "_line_max",
        "_part_of",
        "_rest",
        "_room",
        "_step",
        "_where",
        "headers",
        "lines",
        "size",
        "status",
        "streams",
    )

    def __init__(
        self,
        *,
        body_max: int,
        line_max: int = 0,
        bodiless: bool = False,
        room: Room | None = None,
    ) -> None:
        """`line_max`: give the lines of the body as they come, if the status is 200. `bodiless`:
        the answer to HEAD. `room`: for all bodies of this server; `leave` it."""
        self.status: int = 0
        """0: the head has not come yet."""
        self.headers: dict[str, str] = {}
        self.lines: list[bytes] = []
        """Those that are there. Whoever takes them leaves an empty list."""
        self.streams = False
        """Whether it is given as lines."""
        self.size = 0
        """Bytes of the body, or of the lines that were not taken."""
        self._body: list[bytes] = []
        self._half: list[bytes] = []
        self._half_size = 0
        self._body_max: Final = body_max
        self._line_max: Final = line_max
        self._bodiless = bodiless
        self._room = room
        self._part_of: Part | None = None
        self._step = min(STEP, body_max)
        self._before = 0
        self._where = _At.HEAD
        self._rest: bytes = b""
        self._left = 0
        self._begun = False
        self._keep = False

    @property
    def ended(self) -> bool:
        return self._where == _At.END

    @property
    def reusable(self) -> bool:
        """Whether the connection is good for another request."""
        return self._where == _At.END and self._keep and not self._rest

    def body(self) -> bytes:
        return self._body[0] if len(self._body) == 1 else b"".join(self._body)

    def take(self) -> list[bytes]:
        """The lines since the last time."""
        taken, self.lines = self.lines, []
        self.size = 0
        return taken

    def feed(self, data: bytes) -> None:
        """Raises `Unreachable` for what is no answer."""
        self._begun = True
        if self._rest:
            data = self._rest + data
            self._rest = b""
        at = 0
        while 0 <= at < len(data):
            at = self._part(data, at)

    def _part(self, data: bytes, at: int) -> int:
        """Gives where the next part begins, or -1: more has to come."""
        match self._where:
            case _At.CHUNK:
                return self._chunks(data, at)
            case _At.HEAD:
                return self._head(data, at)
            case _At.LENGTH | _At.IN_CHUNK:
                return self._counted(data, at)
            case _At.AFTER_CHUNK:
                return self._line_end(data, at)
            case _At.TRAILER:
                return self._trailer(data, at)
            case _At.TO_THE_END:
                self._take(data, at, len(data))
                return -1
            case _:
                self._rest = data[at:]  # said without having been asked
                return -1

    def eof(self) -> None:
        """Raises `Unreachable` if that is no end."""
        if self._where == _At.TO_THE_END:
            self._where = _At.END
        if self._where != _At.END:
            raise errors.Unreachable(
                "the connection broke off in the middle of an answer"
                if self._begun
                else "the server closed the connection without an answer"
            )

    def check_whole(self) -> None:
        """Of lines: raises `Unreachable` if the last one did not come whole."""
        if self._half_size:
            raise errors.Unreachable("the watch ended in the middle of a line")

    # The parts of an answer.

    def _head(self, data: bytes, at: int) -> int:
        end = data.find(b"\r\n\r\n", at, at + HEAD_MAX)
        if end < 0:
            if len(data) - at >= HEAD_MAX:
                raise errors.Garbled(f"the head of the answer has more than {HEAD_MAX} bytes")
            if not b"HTTP/1.".startswith(data[at : at + 7]):
                raise _garbled()
            self._rest = data[at:]
            return -1
        found = _STATUS.match(data, at, end + 2)
        if found is None:
            raise _garbled()
        status = int(found[2])
        headers = _headers(data[found.end() : end + 2])
        if 100 <= status < 200:
            if status == 101:
                raise errors.Garbled("the server wants to speak another protocol")
            self._before += 1
            if self._before > BEFORE_MAX:
                raise errors.not_an_api_server("it announces an answer that never comes")
            return end + 4  # 100 Continue and the like: the answer is still to come
        self.status, self.headers = status, headers
        self.streams = self._line_max > 0 and status == 200
        words = headers.get("connection", "").lower()
        self._keep = found[1] == b"1" and "close" not in words
        self._framed(status, headers)
        return end + 4

    def _framed(self, status: int, headers: dict[str, str]) -> None:
        coding, length = headers.get("transfer-encoding"), headers.get("content-length")
        if status in (204, 304) or self._bodiless:
            self._where = _At.END
        elif coding is not None:
            if coding.lower() != "chunked" or length is not None:
                raise errors.Garbled("the server frames its answer in a way that is not known")
            self._where = _At.CHUNK
        elif length is not None:
            if not (length.isascii() and length.isdigit()) or len(length) > 18:
                raise _garbled()
            self._left = int(length)
            if self._left > self._body_max and not self.streams:
                raise _too_much(self._body_max)
            self._where = _At.LENGTH if self._left else _At.END
        else:
            self._where, self._keep = _At.TO_THE_END, False

    def _counted(self, data: bytes, at: int) -> int:
        end = min(at + self._left, len(data))
        self._take(data, at, end)
        self._left -= end - at
        if not self._left:
            self._where = _At.END if self._where == _At.LENGTH else _At.AFTER_CHUNK
        return end

    def _chunks(self, data: bytes, at: int) -> int:
        """As many as are there whole."""
        take = self._split if self.streams else self._add
        while True:
            if self.streams and not self._half:
                at = self._whole_lines(data, at)
                if at == len(data):
                    return at
            found = _CHUNK.match(data, at, at + CHUNK_LINE_MAX)
            if found is None:
                if len(data) - at >= CHUNK_LINE_MAX or data.find(b"\n", at) >= 0:
                    raise _garbled()
                self._rest = data[at:]
                return -1
            size, at = int(found[1], 16), found.end()
            if not size:
                self._where, self._left = _At.TRAILER, 0
                return at
            end = at + size
            if data[end : end + 2] != b"\r\n":
                # It goes on in the next piece, or is no chunk: both show further on.
                self._left, self._where = size, _At.IN_CHUNK
                return at
            take(data, at, end)
            at = end + 2
            if at == len(data):
                return at

    def _whole_lines(self, data: bytes, at: int) -> int:
        """Chunks that are a line each, as API servers send them, quickly. Gives where the first one
        begins that is anything else: then there is more to look at."""
        find, add, began = data.find, self.lines.append, at
        while (stop := find(b"\r\n", at, at + _DIGITS_MAX + 2)) > 0:
            newline = stop + 1 + _size(data[at:stop])
            # A chunk of two lines, of none, or of half of one is looked at more closely.
            if data[newline : newline + 3] != b"\n\r\n" or find(b"\n", stop + 2) != newline:
                break
            add(data[stop + 2 : newline])
            at = newline + 3
        self.size += at - began
        return at

    def _line_end(self, data: bytes, at: int) -> int:
        two = data[at : at + 2]
        if two == b"\r\n":
            self._where = _At.CHUNK
            return at + 2
        if two != b"\r":
            raise _garbled()
        self._rest = two
        return -1

    def _trailer(self, data: bytes, at: int) -> int:
        end = data.find(b"\r\n", at, at + HEAD_MAX)
        if end < 0:
            if len(data) - at >= HEAD_MAX:
                raise _garbled()
            self._rest = data[at:]
            return -1
        if end == at:
            self._where = _At.END
            return end + 2
        self._left += end + 2 - at  # of chunks there are none any more
        if self._left > HEAD_MAX:
            raise _garbled()
        return end + 2

    def _take(self, data: bytes, at: int, end: int) -> None:
        (self._split if self.streams else self._add)(data, at, end)

    def _add(self, data: bytes, at: int, end: int) -> None:
        self.size += end - at
        if self.size > self._step:
            self._grow()
        self._body.append(data[at:end])

    def _grow(self) -> None:
        if self.size > self._body_max:
            raise _too_much(self._body_max)
        self._step = min(self.size + STEP, self._body_max)
        if self._room is not None:
            self._part_of = self._part_of or self._room.part()
            if not self._part_of.hold(self._step + PIECE * len(self._body)):
                raise _too_much(self._room.most)

    def leave(self) -> None:
        """Its body is somebody else's now."""
        if self._part_of is not None:
            self._part_of.leave()
            self._part_of = None

    def _split(self, data: bytes, at: int, end: int) -> None:
        self.size += end - at
        newline = data.find(b"\n", at, end)
        if newline == end - 1 and not self._half:
            if newline > at:
                self.lines.append(data[at:newline])
            return
        if newline < 0:
            self._half.append(data[at:end])
            self._half_size += end - at
        else:
            first, *lines = data[at:end].split(b"\n")
            lines.insert(0, b"".join((*self._half, first)))
            half = lines.pop()
            self.lines += [line for line in lines if line]
            self._half, self._half_size = [half] if half else [], len(half)
        if self._half_size > self._line_max or len(self._half) > PIECES_MAX:
            raise errors.Garbled(f"a line of the watch has more than {self._line_max} bytes")


@functools.lru_cache(4096)
def _size(digits: bytes) -> int:
    """Of a chunk; 0 for what is none, or holds no more than the end of a line."""
    if not digits or digits.strip(_HEX):
        return 0  # `int` also takes signs, blanks, underscores and 0x
    size = int(digits, 16)
    return size if size > 1 else 0


def _headers(block: bytes) -> dict[str, str]:
    if not _HEADERS.fullmatch(block):
        raise _garbled()
    found: dict[str, str] = {}
    lines = block.decode("latin-1").split("\r\n")[:-1]
    if len(lines) > HEADERS_MAX:
        raise _garbled()
    for line in lines:
        raw, _, value = line.partition(":")
        name, text = raw.lower(), value.strip(" \t")
        if name in found:
            if name == "content-length" and text != found[name]:
                raise _garbled()
            text = text if name == "content-length" else f"{found[name]}, {text}"
        found[name] = text
    return found


def _garbled() -> errors.Garbled:
    return errors.Garbled(
        "what answers there does not speak HTTP as an API server does; "
        "is the address of the kubeconfig right?"
    )


def _too_much(most: int) -> errors.Garbled:
    return errors.Garbled(f"what it answers has more than {most} bytes; is it an API server?")
