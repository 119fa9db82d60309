"""What is no request of HTTP gets a problem of ours, and nothing of it comes back or is logged."""

import asyncio
import json
import logging
import re
from typing import Any

import pytest

from fleetd.settings import Address, LogFormat
from fleetd.surface import http
from tests.secrets.sinks import logs
from tests.surface import desks, panels

SECRET = "fleetd_c4n4ry-0123456789abcdefghijklmnopqrstuv"
HEAD = "Host: 127.0.0.1\r\nConnection: close\r\n"
POST = f"POST /api/v1/pause HTTP/1.1\r\n{HEAD}Content-Type: application/json\r\n"
CHUNKED = f"{POST}Transfer-Encoding: chunked\r\n"
STRANGE = {
    "words": (400, f"hello {SECRET}\r\n\r\n"),
    "another method": (400, f"get /{SECRET} HTTP/1.1\r\n{HEAD}\r\n"),
    "TLS": (400, f"\x16\x03\x01\x02\x00\x01{SECRET}\r\n\r\n"),
    "another version": (400, f"GET /{SECRET} HTTP/9.9\r\n{HEAD}\r\n"),
    "an address of other signs": (400, f"GET /\xfc{SECRET} HTTP/1.1\r\n{HEAD}\r\n"),
    "a header without a colon": (
        400,
        f"GET / HTTP/1.1\r\n{HEAD}Authorization Bearer {SECRET}\r\n\r\n",
    ),
    "a header with NUL": (400, f"GET / HTTP/1.1\r\n{HEAD}Authorization: {SECRET}\0\r\n\r\n"),
    "no host": (400, f"GET / HTTP/1.1\r\nAuthorization: Bearer {SECRET}\r\n\r\n"),
    "two lengths": (400, f"{POST}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{SECRET}"),
    "a length and parts": (400, f"{CHUNKED}Content-Length: 3\r\n\r\n{SECRET}"),
    "a length below nothing": (400, f"{POST}Content-Length: -3\r\n\r\n{SECRET}"),
    "a length in words": (400, f"{POST}Content-Length: {SECRET}\r\n\r\n"),
    "a length past all": (400, f"{POST}Content-Length: {'9' * 40}\r\n\r\n{SECRET}"),
    "parts of no size": (400, f"{CHUNKED}\r\n{SECRET}\r\n"),
    "an address too long": (431, f"GET /{SECRET * 2000} HTTP/1.1\r\n{HEAD}\r\n"),
    "a long address": (431, f"GET /{'x' * 17_000} HTTP/1.1\r\n{HEAD}\r\n"),
    "a header too long": (431, f"GET / HTTP/1.1\r\n{HEAD}X: {SECRET * 2000}\r\n\r\n"),
    "too many headers": (
        400,
        f"GET / HTTP/1.1\r\n{HEAD}" + f"X: {SECRET}\r\n" * 300 + "\r\n",
    ),
    "two tokens": (
        400,
        f"GET / HTTP/1.1\r\n{HEAD}" + f"Authorization: Bearer {SECRET}\r\n" * 2 + "\r\n",
    ),
    "what nobody can promise": (417, f"{POST}Content-Length: 2\r\nExpect: {SECRET}\r\n\r\n{{}}"),
}


async def _say(address: Address, text: bytes, *, end: bool = False) -> bytes:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(text)
    if end:
        writer.write_eof()
    try:
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        writer.close()


def _problem(answer: bytes) -> tuple[int, dict[str, Any], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body), head


@pytest.mark.parametrize("name", STRANGE)
async def test_nothing_of_it_comes_back(name: str) -> None:
    """A problem with a code and a sentence, the headers of every answer, and not a word of it."""
    status, text = STRANGE[name]
    with logs(LogFormat.JSON) as told:
        async with http.serving(
            panels.small(), Address("127.0.0.1", 0), desk=desks.FakeDesk()
        ) as server:
            answer = await _say(server.address, text.encode("latin-1"))
    code, problem, head = _problem(answer)
    assert (code, problem["status"]) == (status, status)
    assert " " in problem["detail"]
    assert b"application/problem+json" in head
    assert b"X-Content-Type-Options: nosniff" in head
    assert b"aiohttp" not in head
    assert "c4n4ry" not in answer.decode("latin-1") + told.getvalue()


async def test_a_body_that_breaks_off_is_no_fault_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever goes away in the middle is neither answered with a 500 nor logged as a failure."""
    desk = desks.FakeDesk()
    body = '{"scope": "all", "reason": "x"}'
    with caplog.at_level(logging.INFO):
        async with http.serving(panels.small(), Address("127.0.0.1", 0), desk=desk) as server:
            for text in (
                f"{POST}Content-Length: {len(body) + 9}\r\n\r\n{body}",
                f"{CHUNKED}\r\n{len(body):x}\r\n{body}\r\n",
            ):
                await _say(server.address, text.encode(), end=True)
            metrics = await _say(server.address, f"GET /metrics HTTP/1.1\r\n{HEAD}\r\n".encode())
    assert desk.pauses == {}
    assert set(re.findall(r'code="500"[^}]*} (\S+)', metrics.decode())) == {"0.0"}
    assert "request failed" not in caplog.text
