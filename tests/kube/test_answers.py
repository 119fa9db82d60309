"""Answers of a server, put together from the bytes of a connection."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetd.kube import answers, errors
from fleetd.kube.answers import Answer

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
WHOLE = {
    "length": OK + b"Content-Length: 5\r\n\r\nhello",
    "chunks": CHUNKED + b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: t\r\n\r\n",
    "continued": b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"content-length:5\r\n\r\nhello",
    "a reason with anything": b"HTTP/1.1 200 \xc3\xa4 b\r\nContent-Length: 5\r\n\r\nhello",
}
LINES = CHUNKED + b"3\r\n{}\n\r\n7\r\n\n[1]\n[2\r\n3\r\n,3]\r\n1\r\n\n\r\n0\r\n\r\n"


def _fed(data: bytes, cuts: list[int], answer: Answer) -> list[bytes]:
    lines: list[bytes] = []
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(places):
        if start < end:
            answer.feed(data[start:end])
            lines += answer.take()
    return lines


@pytest.mark.parametrize("name", WHOLE)
@given(cuts=st.lists(st.integers(0, 200), max_size=12))
def test_an_answer_is_the_same_however_it_was_cut(name: str, cuts: list[int]) -> None:
    """With a length or in chunks, after a 100 Continue, with trailers: one body, one end."""
    answer = Answer(body_max=100)
    _fed(WHOLE[name], cuts, answer)

    assert (answer.status, answer.body(), answer.ended, answer.reusable) == (
        200,
        b"hello",
        True,
        True,
    )


@given(cuts=st.lists(st.integers(0, 200), max_size=12))
def test_lines_are_the_same_however_they_were_cut(cuts: list[int]) -> None:
    """Neither chunks nor packets have anything to do with lines."""
    answer = Answer(body_max=100, line_max=100)

    assert _fed(LINES, cuts, answer) == [b"{}", b"[1]", b"[2,3]"]
    assert answer.ended


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b"Folded: a\r\n b\r\n\r\n",
        OK + b"Blank : a\r\n\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: 0x5\r\n\r\n",
        OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
        OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"0x5\r\nhello\r\n",
        CHUNKED + b"+5\r\nhello\r\n",
        CHUNKED + b"1_0\r\n",
        CHUNKED + b"-5\r\nhello\r\n",
        CHUNKED + b"123456789\r\n",
        CHUNKED + b"5\r\nhello!!",
        CHUNKED + b"5" + b" " * answers.CHUNK_LINE_MAX,
        OK + b"X: " + b"y" * answers.HEAD_MAX,
        CHUNKED + b"0\r\n" + b"y" * answers.HEAD_MAX,
        OK + b"Content-Length: 101\r\n\r\n",
        CHUNKED + b"65\r\n" + b"y" * 101,
    ],
    ids=lambda data: str(data[-30:]),
)
def test_what_is_no_plain_answer_is_refused_at_once(data: bytes) -> None:
    """Without waiting for more of it."""
    with pytest.raises(errors.Unreachable):
        Answer(body_max=100).feed(data)


@pytest.mark.parametrize("size", [b"0x4", b"+4", b" 4", b"0_4", b"", b"000000004"])
def test_a_line_in_a_chunk_without_a_plain_size_is_refused(size: bytes) -> None:
    """What a number may look like elsewhere is no size of a chunk."""
    with pytest.raises(errors.Unreachable):
        Answer(body_max=100, line_max=100).feed(CHUNKED + size + b"\r\n{ }\n\r\n")


@pytest.mark.parametrize(
    ("data", "good"),
    [
        (b"", False),
        (OK, False),
        (OK + b"Content-Length: 5\r\n\r\nhell", False),
        (CHUNKED + b"5\r\nhello\r\n", False),
        (CHUNKED + b"5\r\nhello\r\n0\r\n", False),
        (OK + b"\r\nhello", True),
        (OK + b"Content-Length: 5\r\n\r\nhello", True),
    ],
    ids=["nothing", "half a head", "half a body", "no last chunk", "half an end", "open", "whole"],
)
def test_the_end_of_a_connection_is_an_end_only_where_nothing_is_missing(
    data: bytes,
    good: bool,  # noqa: FBT001 -- pytest's form
) -> None:
    """An answer without a length ends there; any other that has not ended is broken off."""
    answer = Answer(body_max=100)
    if data:
        answer.feed(data)
    if good:
        answer.eof()
        assert (answer.body(), answer.ended) == (b"hello", True)
    else:
        with pytest.raises(errors.Unreachable):
            answer.eof()


@pytest.mark.parametrize(
    ("head", "again"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: Close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n", False),
    ],
    ids=["kept", "no content", "close", "old", "more", "a second answer"],
)
def test_a_connection_is_used_again_only_after_a_clean_end(head: bytes, again: bool) -> None:  # noqa: FBT001
    """Nothing that was not asked for is ever taken for the next answer."""
    answer = Answer(body_max=100)
    answer.feed(head)

    assert (answer.ended, answer.reusable) == (True, again)


def test_headers_are_in_lower_case_and_joined() -> None:
    """As callers expect them; what came twice is a list."""
    answer = Answer(body_max=100)
    answer.feed(OK + b"Retry-After:  7 \r\nWarning: a\r\nWARNING: b\r\nContent-Length: 0\r\n\r\n")

    assert answer.headers == {"retry-after": "7", "warning": "a, b", "content-length": "0"}
