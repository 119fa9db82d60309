"""Blocking calls end when their time is over, and take no more than an answer may have."""

import asyncio
import contextlib
import gzip
import ssl
import threading
import zlib
from collections.abc import AsyncGenerator, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from fleetd import net, patient
from fleetd.clock import SystemClock
from fleetd.gate import Gates
from tests import defaults
from tests.kube import wire

LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%b\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\n"


async def _get(address: str, within: float = 20.0, verify: str = "") -> requests.Response:
    gates = Gates(defaults.LIMITS, SystemClock())
    passage = net.Passage(authorities=Path(verify) if verify else None)
    ways = net.Ways(net.RealNetwork(passage), gates, SystemClock())
    async with asyncio.timeout(60):
        return await ways.blocking("metal:a", lambda session: session.get(address), within=within)


@contextlib.asynccontextmanager
async def dripping(first: bytes, drop: bytes) -> AsyncGenerator[str]:
    """A server that says the same few bytes for as long as somebody listens."""
    left = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(first)
            while not reader.at_eof():
                writer.write(drop)
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await left.wait()
    finally:
        server.close()
        await asyncio.sleep(0)


DRIPS = {
    "nothing of an answer": (b"", b"H"),
    "announcements": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a header": (HEAD + b"A: ", b"b"),
    "a body with a length": (LENGTH % (1000000, b""), b"b"),
    "a body until the end": (HEAD + b"\r\n", b"b"),
    "chunks": (CHUNKED, b"1\r\nb\r\n"),
    "trailers": (CHUNKED + b"0\r\n", b"A: b\r\n"),
}


@pytest.mark.parametrize("which", DRIPS)
async def test_a_server_that_drips_is_left_when_the_time_is_over(which: str) -> None:
    """Wherever in the answer: between two drops there is always something to read."""
    async with dripping(*DRIPS[which]) as address:
        async with asyncio.timeout(30):
            with pytest.raises((requests.Timeout, requests.ConnectionError)):
                await _get(address, within=0.4)


ENDLESS = {
    "a length": (LENGTH % (10**12, b""), b"b" * 65536),
    "no length": (HEAD + b"\r\n", b"b" * 65536),
    "chunks": (CHUNKED, b"10000\r\n" + b"b" * 65536 + b"\r\n"),
}


@pytest.mark.parametrize("which", ENDLESS)
async def test_an_answer_without_end_is_given_up(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As soon as it is larger than any answer can be, and long before its time is over."""
    monkeypatch.setattr(patient, "ANSWER_MAX", 300_000)
    first, again = ENDLESS[which]
    async with wire.saying(first, *[again] * 20, hold=True) as address:
        with pytest.raises(requests.ConnectionError, match="more than 300000 bytes") as caught:
            await _get(address)
    assert not isinstance(caught.value, requests.Timeout)


async def test_what_is_beside_a_body_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Announcements as fast as the wire takes them."""
    monkeypatch.setattr(patient, "ANSWER_MAX", 10_000)
    monkeypatch.setattr(patient, "BESIDE", 10_000)
    said = wire.saying(*[b"HTTP/1.1 100 Continue\r\n\r\n" * 1000] * 20, hold=True)
    async with said as address:
        with pytest.raises(requests.ConnectionError, match="more than 10000 bytes"):
            await _get(address)


def _packed(coding: bytes, body: bytes) -> bytes:
    return LENGTH % (len(body), b"Content-Encoding: " + coding + b"\r\n") + body


PACKED = {
    "gzip": _packed(b"gzip", gzip.compress(b"well" * 1000)),
    "two members": _packed(b"GZIP", gzip.compress(b"well" * 500) * 2),
    "deflate": _packed(b"deflate", zlib.compress(b"well" * 1000)),
    "plain": LENGTH % (4000, b"") + b"well" * 1000,
}


@pytest.mark.parametrize("which", PACKED)
async def test_a_packed_answer_is_unpacked(which: str) -> None:
    """As `requests` does it."""
    async with wire.saying(PACKED[which]) as address:
        found = await _get(address)
    assert found.content == b"well" * 1000
    assert found.text[:4] == "well"


async def test_a_bomb_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kilobyte that unfolds to a megabyte, and one that is packed twice."""
    monkeypatch.setattr(patient, "ANSWER_MAX", 300_000)
    bomb = gzip.compress(b"\0" * 1_000_000)
    async with wire.saying(_packed(b"gzip", bomb)) as address:
        with pytest.raises(requests.ConnectionError, match="more than 300000 bytes"):
            await _get(address)
    async with wire.saying(_packed(b"gzip, gzip", gzip.compress(bomb))) as address:
        with pytest.raises(requests.ConnectionError, match="packed in a way that is not known"):
            await _get(address)


async def test_what_is_packed_badly_is_no_answer() -> None:
    """One error that readers expect, without a word of what came."""
    async with wire.saying(_packed(b"gzip", b"canary that is no gzip")) as address:
        with pytest.raises(requests.ConnectionError) as caught:
            await _get(address)
    assert "canary" not in str(caught.value)


async def test_over_tls_as_well(tmp_path: Path) -> None:
    """Read whole where it ends, and left where it does not."""
    ours = wire.Authority()
    (tmp_path / "ca.pem").write_bytes(ours.pem)
    tls = wire.server_tls(ours.sign("127.0.0.1"), tmp_path)

    with _answering(tls) as address:
        found = await _get(address, verify=str(tmp_path / "ca.pem"))
        assert found.text == "well"
        with pytest.raises((requests.Timeout, requests.ConnectionError)):
            await _get(f"{address}/drip", within=0.4, verify=str(tmp_path / "ca.pem"))


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        if self.path == "/":
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"well")
            return
        self.end_headers()
        with contextlib.suppress(OSError):
            while not _OVER.wait(0.02):
                self.wfile.write(b"b")

    def log_request(self, code: object = "-", size: object = "-") -> None: ...


_OVER = threading.Event()


@contextlib.contextmanager
def _answering(tls: ssl.SSLContext) -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        _OVER.set()
        server.shutdown()
        thread.join()
        server.server_close()
