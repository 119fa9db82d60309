"""The transport over HTTP, against small servers on loopback: good ones and bad ones."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fleetd.kube import config, errors, http
from fleetd.kube.transport import Request
from tests.kube import wire

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
GET = Request(method="GET", path="/api/v1/pods")


@contextlib.asynccontextmanager
async def to(
    server: str,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    connections: int = 4,
) -> AsyncGenerator[http.HttpTransport]:
    read = config.read(wire.kubeconfig(server, cluster, user))
    transport = http.HttpTransport(read, connections=connections)
    try:
        yield transport
    finally:
        await transport.close()


async def _mirror(request: web.Request) -> web.StreamResponse:
    """Answers with what was asked."""
    asked = {
        "method": request.method,
        "path": request.raw_path,
        "type": request.headers.get("Content-Type", ""),
        "accept": request.headers["Accept"],
        "who": request.headers.get("Authorization", ""),
        "body": await request.text(),
    }
    return web.json_response(asked, headers={"X-Some": "header"})


async def _ok(_request: web.Request) -> web.StreamResponse:
    return web.Response(text="{}")


async def _all(transport: http.HttpTransport) -> list[bytes]:
    return [line async for some in transport.lines(GET) for line in some]


def _chunk(content: bytes) -> bytes:
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


async def test_a_request_arrives_as_it_was_made() -> None:
    """Below the server's own path, encoded once, with the token and the body's type."""
    request = Request(
        method="PATCH",
        path="/api/v1/nodes/system%3Ax%2Fy",
        query={"labelSelector": "a=b,c in (d)", "fieldManager": "fleetd"},
        body=b'{"a":1}',
        content_type="application/merge-patch+json",
    )
    async with wire.serving(_mirror) as server, to(f"{server}/k8s/hv/") as transport:
        response = await transport.send(request)

    path = "/k8s/hv/api/v1/nodes/system%3Ax%2Fy"
    query = "labelSelector=a%3Db%2Cc%20in%20%28d%29&fieldManager=fleetd"
    assert response.status == 200
    assert response.headers["x-some"] == "header"
    assert response.body.decode() == web.json_response({
        "method": "PATCH",
        "path": f"{path}?{query}",
        "type": "application/merge-patch+json",
        "accept": "application/json",
        "who": f"Bearer {wire.TOKEN}",
        "body": '{"a":1}',
    }).text  # fmt: skip


@pytest.mark.parametrize("status", [201, 302, 401, 404, 500])
async def test_any_status_is_an_answer(status: int) -> None:
    """Errors are given back, and no redirect is followed with our token."""

    async def handler(_request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="word", headers={"Location": "/elsewhere"})

    async with wire.serving(handler) as server, to(server) as transport:
        response = await transport.send(GET)

    assert (response.status, response.body) == (status, b"word")


async def test_nobody_at_home_is_unreachable() -> None:
    """The words name the address and the cause."""
    async with wire.serving(_ok) as server:
        pass
    async with to(server) as transport:
        with pytest.raises(errors.Unreachable, match=r"^127\.0\.0\.1:\d+: .*refused"):
            await transport.send(GET)
        with pytest.raises(errors.Unreachable, match="refused"):
            await _all(transport)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        HEAD + b"Content-Length: 100\r\n\r\n{}",
        CHUNKED + b"zz\r\n{}",
        CHUNKED + b"64\r\n{}",
    ],
    ids=["nothing", "another protocol", "too short", "bad chunk", "cut chunk"],
)
async def test_garbage_is_unreachable(answer: bytes) -> None:
    """Whatever comes instead of an answer raises the one error that callers know."""
    async with wire.saying(answer) as server, to(server) as transport:
        with pytest.raises(errors.Unreachable):
            await transport.send(GET)
        with pytest.raises(errors.Unreachable):
            await _all(transport)


async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded, whatever a server sends."""
    monkeypatch.setattr(http, "BODY_MAX", 100_000)

    async with (
        wire.saying(CHUNKED, *[_chunk(b"x" * 50_000)] * 3, hold=True) as server,
        to(server) as transport,
    ):
        with pytest.raises(errors.Unreachable, match="more than 100000 bytes"):
            await transport.send(GET)


async def test_a_slow_server_is_left_when_the_caller_says() -> None:
    """The caller's time is up: nothing hangs, and the transport is good for the next request."""
    slow = True

    async def handler(_request: web.Request) -> web.StreamResponse:
        if slow:
            await asyncio.Event().wait()
        return web.Response(text="{}")

    async with wire.serving(handler) as server, to(server, connections=1) as transport:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await transport.send(GET)
        slow = False
        response = await transport.send(GET)

    assert response.status == 200


async def test_a_request_that_is_not_answered_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that began while another was under way, each at its own time; the next one is not
    kept from its answer."""
    monkeypatch.setattr(http, "REQUEST_LIMIT", 0.3)
    silent, response = True, None

    async def handler(_request: web.Request) -> web.StreamResponse:
        if silent:
            await asyncio.Event().wait()
        return web.Response(text="{}")

    loop = asyncio.get_running_loop()
    async with wire.serving(handler) as server, to(server) as transport:

        async def given_up() -> float:
            began = loop.time()
            with pytest.raises(errors.Unreachable, match="no answer in time"):
                await transport.send(GET)
            return loop.time() - began

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            first = group.create_task(given_up())
            await asyncio.sleep(0.15)
            second = group.create_task(given_up())
        silent = False
        for _ in range(20):  # the first that gets its answer in time; a busy machine takes long
            with contextlib.suppress(errors.Unreachable):
                response = await transport.send(GET)
                break

    assert first.result() >= 0.29
    assert second.result() >= 0.29
    assert response is not None
    assert response.status == 200


async def test_who_waits_too_long_for_a_connection_gives_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However long the one takes that has it: here one that waits for TLS."""
    monkeypatch.setattr(http, "REQUEST_LIMIT", 0.1)

    async with (
        wire.saying(hold=True) as server,
        to(server.replace("http:", "https:"), connections=1) as transport,
        asyncio.timeout(60),
    ):
        first = asyncio.ensure_future(transport.send(GET))
        with pytest.raises(errors.Unreachable, match="no connection was free in time"):
            await asyncio.gather(asyncio.sleep(0.1), transport.send(GET))
        first.cancel()
        await asyncio.wait([first])


async def test_a_watch_that_does_not_open_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers that do not come are no watch."""
    monkeypatch.setattr(http, "OPEN_LIMIT", 0.05)

    async with wire.saying(hold=True) as server, to(server) as transport:
        with pytest.raises(errors.Unreachable, match="no answer in time"):
            await _all(transport)


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b'{"a":1}\n{"b":2}\n'], [b'{"a":1}', b'{"b":2}']),
        ([b'{"a":', b"1", b'}\n{"b"', b":2}\n"], [b'{"a":1}', b'{"b":2}']),
        ([b"\n\n", b'{"a":1}\n', b"\n"], [b'{"a":1}']),
        ([], []),
    ],
    ids=["two in one", "cut anywhere", "empty ones", "none"],
)
async def test_lines_come_whole_however_they_were_cut(
    chunks: list[bytes], lines: list[bytes]
) -> None:
    """Chunks of the body have nothing to do with lines."""
    sent = [CHUNKED, *[_chunk(chunk) for chunk in chunks], b"0\r\n\r\n"]

    async with wire.saying(*sent) as server, to(server) as transport:
        assert await _all(transport) == lines


@pytest.mark.parametrize(
    "end", [b"0\r\n\r\n", b"", b"10\r\nab"], ids=["good", "none", "in a chunk"]
)
async def test_half_a_line_is_not_a_line(end: bytes) -> None:
    """What came whole is given; the rest is a broken connection."""
    sent = [CHUNKED, _chunk(b'{"a":1}\n{"b'), end]

    async with wire.saying(*sent) as server, to(server) as transport:
        lines = transport.lines(GET)
        assert await anext(lines) == [b'{"a":1}']
        with pytest.raises(errors.Unreachable):
            await anext(lines)


async def test_a_line_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line longer than any object is an error, long before memory is short."""
    monkeypatch.setattr(http, "LINE_MAX", 100_000)
    sent = [CHUNKED, _chunk(b'{"a":1}\n'), *[_chunk(b"x" * 50_000)] * 3]

    async with wire.saying(*sent, hold=True) as server, to(server) as transport:
        lines = transport.lines(GET)
        assert await anext(lines) == [b'{"a":1}']
        with pytest.raises(errors.Unreachable, match="more than 100000 bytes"):
            await anext(lines)


async def test_a_watch_that_is_refused_says_why() -> None:
    """The server's own words, as the error they stand for."""

    async def handler(_request: web.Request) -> web.StreamResponse:
        gone = {"kind": "Status", "reason": "Expired", "message": "too old", "code": 410}
        return web.json_response(gone, status=410)

    async with wire.serving(handler) as server, to(server) as transport:
        with pytest.raises(errors.Gone, match="too old"):
            await _all(transport)


async def test_watches_do_not_take_connections_from_requests() -> None:
    """With one connection for requests and five watches open, a request still gets through."""

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path != "/watch":
            return web.Response(text="{}")
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"{}\n")
        await asyncio.Event().wait()
        return response

    async with wire.serving(handler) as server, to(server, connections=1) as transport:
        watches = [transport.lines(Request(method="GET", path="/watch")) for _ in range(5)]
        for watch in watches:
            await anext(watch)
        async with asyncio.timeout(60):
            response = await transport.send(GET)
        for watch in watches:
            await watch.aclose()

    assert response.status == 200


async def test_who_stops_reading_hangs_up() -> None:
    """The server sees the end of the connection as soon as a watch is closed."""
    gone = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"{}\n")
                await asyncio.sleep(0.005)
        finally:
            gone.set()

    async with wire.serving(handler) as server, to(server) as transport:
        lines = transport.lines(GET)
        await anext(lines)
        await lines.aclose()
        async with asyncio.timeout(60):
            await gone.wait()

    assert gone.is_set()


async def test_a_closed_transport_stays_closed() -> None:
    """It does not open again by itself."""
    async with wire.serving(_ok) as server, to(server) as transport:
        await transport.send(GET)
        await transport.close()
        with pytest.raises(errors.Unreachable, match="was closed"):
            await transport.send(GET)


async def test_a_trusted_certificate_is_trusted(tmp_path: Path) -> None:
    """The authority in the kubeconfig is the one that counts."""
    authority = wire.Authority()
    tls = wire.server_tls(authority.sign("127.0.0.1"), tmp_path)

    async with (
        wire.serving(_ok, tls) as server,
        to(server, {"certificate-authority-data": wire.b64(authority.pem)}) as transport,
    ):
        response = await transport.send(GET)

    assert response.status == 200


@pytest.mark.parametrize("wrong", ["authority", "system", "name"])
async def test_a_certificate_that_proves_nothing_is_refused(wrong: str, tmp_path: Path) -> None:
    """Another authority, none of ours, or another host's name: no request is sent."""
    authority = wire.Authority()
    host = "elsewhere.example" if wrong == "name" else "127.0.0.1"
    tls = wire.server_tls(authority.sign(host), tmp_path)
    trusted = wire.Authority("another one") if wrong == "authority" else authority
    cluster = {} if wrong == "system" else {"certificate-authority-data": wire.b64(trusted.pem)}
    asked: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response()

    async with wire.serving(handler, tls) as server, to(server, cluster) as transport:
        with pytest.raises(errors.Unreachable, match="its certificate is not trusted"):
            await transport.send(GET)
        with pytest.raises(errors.Unreachable, match="its certificate is not trusted"):
            await _all(transport)

    assert asked == []


async def test_the_certificate_may_have_the_name_the_kubeconfig_says(tmp_path: Path) -> None:
    """tls-server-name is the name that is checked, e.g. behind a tunnel."""
    authority = wire.Authority()
    tls = wire.server_tls(authority.sign("api.example"), tmp_path)
    cluster = {
        "certificate-authority-data": wire.b64(authority.pem),
        "tls-server-name": "api.example",
    }

    async with wire.serving(_ok, tls) as server, to(server, cluster) as transport:
        assert (await transport.send(GET)).status == 200


async def test_a_client_certificate_is_shown_and_never_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gets to see who we are; no file holds our key, then or later."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    authority = wire.Authority()
    tls = wire.server_tls(authority.sign("127.0.0.1"), tmp_path, clients=authority.pem)
    cluster = {"certificate-authority-data": wire.b64(authority.pem)}
    me = authority.sign("fleetd")
    user = {
        "client-certificate-data": wire.b64(me.certificate),
        "client-key-data": wire.b64(me.key),
    }
    seen: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        peer: Any = request.transport.get_extra_info("peercert")
        seen.append(peer["subject"][0][0][1])
        return web.Response()

    async with wire.serving(handler, tls) as server:
        async with to(server, cluster, user) as transport:
            await transport.send(GET)
        async with to(server, cluster) as stranger:
            with pytest.raises(errors.Unreachable):
                await stranger.send(GET)

    assert seen == ["fleetd"]
    assert list(temporary.iterdir()) == []
