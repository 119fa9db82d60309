"""
The HTTP interface: health, metrics, what the daemon knows, and what people tell it.

It asks nobody who they are, so it is served on loopback only, and answers only to the names of the
local machine: a web page elsewhere must not be able to use it through somebody's browser. A write
must be JSON for the same reason (a form cannot send that unasked), and no other site's page may
send it. Every answer passes `secrets.scrub`.
"""

import contextlib
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

import msgspec
import structlog
from aiohttp import hdrs, web

from fleetd import errors, secrets
from fleetd.settings import Address
from fleetd.surface import api, metrics, problems, shapes, writes
from fleetd.surface.desk import Desk
from fleetd.surface.panel import Panel

_log = structlog.stdlib.get_logger("fleetd.http")

HEADERS_MAX = 16 * 1024
BODY_MAX = 1024 * 1024
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LOCAL = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs. `address` has the real port where 0 was asked for."""

    address: Address

    @property
    def url(self) -> str:
        return f"http://{self.address}"


@contextlib.asynccontextmanager
async def serving(
    panel: Panel,
    address: Address,
    *,
    desk: Desk | None = None,
    metrics_token: secrets.Secret | None = None,
) -> AsyncGenerator[Server]:
    """Serve while inside; without a desk for reading only. Raises SettingsError if the address is
    not loopback or is taken."""
    if not address.loopback:
        raise errors.SettingsError(
            f"{address} can be reached from other machines, and there is no authentication yet; "
            "listen on 127.0.0.1"
        )
    runner = web.AppRunner(
        application(panel, desk=desk, metrics_token=metrics_token),
        access_log=None,
        handle_signals=False,
        # Four times what is allowed, so that our own answer comes before the parser's.
        max_line_size=4 * HEADERS_MAX,
        max_field_size=4 * HEADERS_MAX,
        # Nothing is read or written for long here; a slow reader must not hold up the end.
        shutdown_timeout=1.0,
    )
    await runner.setup()
    try:
        await _start(runner, address)
        host, port = runner.addresses[0][:2]
        yield Server(Address(host, port))
    finally:
        await runner.cleanup()


async def _start(runner: web.AppRunner, address: Address) -> None:
    try:
        await web.TCPSite(runner, address.host, address.port).start()
    except OSError as cause:
        raise errors.SettingsError(
            f"cannot listen on {address}: {cause.strerror}; stop what uses it or choose another"
        ) from cause


def application(
    panel: Panel, *, desk: Desk | None = None, metrics_token: secrets.Secret | None
) -> web.Application:
    app = web.Application(middlewares=[_problems, _limits, _local], client_max_size=BODY_MAX)
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/readyz", _readyz(panel))
    app.router.add_get("/metrics", _metrics(metrics.Metrics(panel), metrics_token))
    reader = api.Api(panel)
    for path, handler in reader.routes():
        app.router.add_get(f"/api/v1{path}", _json(handler))
    for path, writer in writes.Writes(desk).routes() if desk is not None else ():
        app.router.add_post(f"/api/v1{path}", _write(writer))
    return app


@web.middleware
async def _problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except problems.Refused as refused:
        more = {
            name: secrets.scrub_deep(value) if secrets.REGISTRY else value
            for name, value in refused.more.items()
        }
        return problems.answer(refused.code, secrets.scrub(refused.detail), **more)
    except web.HTTPException as refused:
        return problems.of_http(refused)
    except Exception as cause:  # noqa: BLE001 -- one of three places: a request ends here
        _log.error("request failed", method=request.method, path=request.path, exc_info=cause)
        return problems.answer("internal")


@web.middleware
async def _limits(request: web.Request, handler: Handler) -> web.StreamResponse:
    size = sum(len(name) + len(value) + 4 for name, value in request.raw_headers)
    if size > HEADERS_MAX:
        raise problems.Refused("headers-too-large")
    if (request.content_length or 0) > BODY_MAX:
        raise problems.Refused("body-too-large")
    response = await handler(request)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    return response


@web.middleware
async def _local(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path.startswith("/api/") and not _LOCAL.fullmatch(
        request.headers.get(hdrs.HOST, "")
    ):
        raise problems.Refused("host-not-local", "use http://127.0.0.1 or a tunnel to it")
    return await handler(request)


async def _healthz(_request: web.Request) -> web.Response:
    """Says only that the process answers: a restart helps nobody whose backend is away."""
    return web.Response(text="ok\n")


def _readyz(panel: Panel) -> Handler:
    async def readyz(_request: web.Request) -> web.Response:
        missing = panel.unready()
        if not missing:
            return web.Response(text="ready\n")
        return problems.answer(
            "not-ready",
            "; ".join(secrets.scrub(f"{one.name}: {one.message}") for one in missing),
            notReady=[{"name": one.name, "message": secrets.scrub(one.message)} for one in missing],
        )

    return readyz


def _metrics(source: metrics.Metrics, token: secrets.Secret | None) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        if token is not None:
            scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
            if scheme.lower() != "bearer" or not token.matches(given.strip()):
                raise problems.Refused("unauthorized", "send Authorization: Bearer TOKEN")
        text = secrets.scrub(source.render().decode())
        return web.Response(body=text.encode(), headers={hdrs.CONTENT_TYPE: metrics.CONTENT_TYPE})

    return answer


def _json(handler: api.Reader) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        return _answer(await handler(request.match_info, request.query))

    return answer


def _write(handler: writes.Writer) -> Handler:
    async def answer(request: web.Request) -> web.Response:
        _same_site(request)
        if request.content_type != "application/json":
            raise problems.Refused("not-json", "send Content-Type: application/json")
        return _answer(await handler(request.match_info, await request.read()))

    return answer


def _same_site(request: web.Request) -> None:
    """A browser says from which page a request comes; other programs say nothing."""
    origin = request.headers.get(hdrs.ORIGIN)
    site = request.headers.get("Sec-Fetch-Site", "none")
    own = origin is None or origin == f"http://{request.headers.get(hdrs.HOST, '')}"
    if not own or site not in {"none", "same-origin"}:
        raise problems.Refused("foreign-origin", "only pages of this server may write")


def _answer(shape: shapes.Shape) -> web.Response:
    plain = secrets.scrub_deep(shape) if secrets.REGISTRY else shape
    text = msgspec.json.encode(plain, enc_hook=str).decode()
    return web.Response(
        body=secrets.scrub(text).encode(), content_type="application/json", charset="utf-8"
    )
