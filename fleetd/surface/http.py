"""
The HTTP server: the table of routes, served.

What it answers is elsewhere (`table`, `answering`, `watch`); here is what holds for every request:
limits, request ids, headers, and that a failure is a problem document and never a traceback.
"""

import contextlib
import itertools
import re
import ssl
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Middleware

from fleetd import clock, errors, secrets
from fleetd.settings import Address
from fleetd.surface import (
    answering,
    bodies,
    crowd,
    etags,
    login,
    metrics,
    openapi,
    page,
    problems,
    routes,
    strange,
    table,
    watch,
)
from fleetd.surface.answering import Audit, House, Respond
from fleetd.surface.desk import Desk
from fleetd.surface.door import Buckets, Door, LocalDoor, Rate
from fleetd.surface.identity import NOBODY, Role
from fleetd.surface.kept import Kept
from fleetd.surface.panel import Panel
from fleetd.surface.reach import Views
from fleetd.surface.routes import Route

_log = structlog.stdlib.get_logger("fleetd.http")

HEADERS_MAX = 16 * 1024
RATE = Rate(200.0, 400)
STRANGERS = Rate(5.0, 20)
"""Failures to prove anything, of one address."""
ARRIVALS = Rate(20.0, 200)
"""Browsers of one address that come to log in: behind a proxy those of a whole company have one."""
ONCE = (hdrs.AUTHORIZATION, hdrs.CONTENT_TYPE, hdrs.ORIGIN, "Last-Event-ID", "X-CSRF-Token")
"""Of these headers there is one, or nobody knows which counts."""
PATH_SHOWN = 300
"""Letters of an address in the log."""
GOODBYE = 1.0
"""Seconds in which answers that are under way may end with the daemon."""
REQUEST_ID = "X-Request-Id"
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs. `address` has the real port where 0 was asked for."""

    address: Address
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.address}"


@contextlib.asynccontextmanager
async def serving(
    panel: Panel,
    address: Address,
    *,
    desk: Desk | None = None,
    metrics_token: secrets.Secret | None = None,
    door: Door | None = None,
    rate: Rate = RATE,
    tls: ssl.SSLContext | None = None,
    audit: Audit | None = None,
) -> AsyncGenerator[Server]:
    """Serve while inside; without a desk for reading only, without a door for this machine only.
    Raises SettingsError if others could reach it unproven or unencrypted, or the address is
    taken."""
    if not address.loopback and (door is None or tls is None):
        raise errors.SettingsError(
            f"{address} can be reached from other machines, and there is no authentication or no "
            "encryption; listen on 127.0.0.1"
        )
    time = clock.SystemClock()
    house = House(
        views=Views(panel),
        kept=Kept(panel),
        door=door or LocalDoor(),
        buckets=Buckets(rate, time),
        strangers=Buckets(STRANGERS, time),
        arrivals=Buckets(ARRIVALS, time),
        desk=desk,
        audit=audit,
    )
    people = crowd.Crowd()
    runner = strange.Runner(
        application(house, people, metrics_token=metrics_token),
        access_log=None,
        auto_decompress=False,  # `bodies` does it, and sees whether all of it is there
        handle_signals=False,
        # Four times what is allowed, so that our own answer comes before the parser's.
        max_line_size=4 * HEADERS_MAX,
        max_field_size=4 * HEADERS_MAX,
        # Nothing is read or written for long here; a slow reader must not hold up the end.
        shutdown_timeout=GOODBYE,
        # That is also how long it waits for the head of the first one.
        keepalive_timeout=crowd.HEAD_WITHIN,
    )
    await runner.setup()
    people.server = runner.server
    try:
        await _start(runner, address, tls)
        host, port = runner.addresses[0][:2]
        yield Server(Address(host, port), "http" if tls is None else "https")
    finally:
        await runner.cleanup()


async def _start(runner: web.AppRunner, address: Address, tls: ssl.SSLContext | None) -> None:
    try:
        await web.TCPSite(runner, address.host, address.port, ssl_context=tls).start()
    except OSError as cause:
        raise errors.SettingsError(
            f"cannot listen on {address}: {cause.strerror}; stop what uses it or choose another"
        ) from cause


def application(
    house: House, people: crowd.Crowd, *, metrics_token: secrets.Secret | None
) -> web.Application:
    begun = int(house.views.panel.now().timestamp())
    ids = (f"{begun:x}-{number:x}" for number in itertools.count(1))
    figures = metrics.Metrics(house.views.panel)
    app = web.Application(
        middlewares=[
            people.around,
            _counted(figures.requests),
            _identified(ids),
            _problems,
            _limits,
        ],
        client_max_size=bodies.MOST,
    )
    shown = [one for one in table.ROUTES if house.desk is not None or one.tag != "told"]
    feed = watch.Feed(house.views.panel)
    app.cleanup_ctx.extend([feed.running, people.running])
    app.on_shutdown.append(feed.end)
    own = _own(house, feed, shown, figures, metrics_token)
    allowed: dict[str, list[str]] = {}
    for route in shown:
        handler = own.get(route.name) or answering.respond(route, house)
        both = route.method == "GET" and route.media != routes.EVENT_STREAM
        faults = {500, *(problems.TITLES[code][0] for code in route.problems)}
        for method in ("GET", "HEAD") if both else (route.method,):
            figures.requests.expect(route.path, method, (one for one in faults if one >= 500))
            app.router.add_route(method, route.path, handler)
            allowed.setdefault(route.path, []).append(method)
    for path, methods in allowed.items():
        app.router.add_route("OPTIONS", path, _options((*methods, "OPTIONS")))
    app.on_response_prepare.append(_safe)
    return app


def _own(
    house: House,
    feed: watch.Feed,
    shown: Iterable[Route],
    figures: metrics.Metrics,
    token: secrets.Secret | None,
) -> Mapping[str, Respond]:
    """What the server answers by itself, by the name of the route."""
    by_name = {route.name: route for route in shown}
    return {
        "health": _healthz,
        "ready": _readyz(house, by_name["ready"]),
        "metrics": _metrics(house, by_name["metrics"], figures, token),
        "openapi": _openapi(by_name.values()),
        **_page(),
        **login.respond(house, by_name["logout"]),
        "watch": watch.respond(by_name["watch"], house, feed),
    }


def _page() -> Mapping[str, Respond]:
    files = page.load()

    async def index(request: web.Request) -> web.Response:
        return page.answer(files, page.INDEX, request)

    async def asset(request: web.Request) -> web.Response:
        return page.answer(files, "/".join(request.match_info.values()), request)

    return {"page": index, "asset": asset, "assetInFolder": asset}


def _counted(requests: metrics.Requests) -> Middleware:
    ticking = clock.SystemClock()

    @web.middleware
    async def counted(request: web.Request, handler: Respond) -> web.StreamResponse:
        began = ticking.monotonic()
        response = await handler(request)
        if response.content_type == "text/event-stream":
            return response  # it lasts as long as its reader wants
        # The path as the table has it: a stranger's is no label.
        found = request.match_info.route.resource
        route = found.canonical if found is not None else "unknown"
        requests.request(route, request.method, response.status, ticking.monotonic() - began)
        return response

    return counted


def _identified(ids: Iterator[str]) -> Middleware:
    @web.middleware
    async def identified(request: web.Request, handler: Respond) -> web.StreamResponse:
        given = request.headers.get(REQUEST_ID, "")
        request[answering.NAME] = name = given if _ID.fullmatch(given) else next(ids)
        with structlog.contextvars.bound_contextvars(request=name):
            response = await handler(request)
            _tell(request, response)
        return response

    return identified


def _tell(request: web.Request, response: web.StreamResponse) -> None:
    caller = request.get(answering.CALLER, NOBODY)
    say = _log.info if request.method in {"POST", "PUT", "DELETE"} else _log.debug
    say(
        "answered",
        method=request.method,
        path=request.path[:PATH_SHOWN],
        status=response.status,
        who=caller.name,
    )


@web.middleware
async def _problems(request: web.Request, handler: Respond) -> web.StreamResponse:
    try:
        return await handler(request)
    except problems.Refused as refused:
        more: dict[str, Any] = {
            name: secrets.scrub_deep(value) if secrets.REGISTRY else value
            for name, value in refused.more.items()
        }
        detail = secrets.scrub(refused.detail)
        return problems.answer(refused.code, detail, headers=refused.headers, **more)
    except web.HTTPException as refused:
        return problems.of_http(refused)
    except Exception as cause:  # noqa: BLE001 -- one of three places: a request ends here
        path = request.path[:PATH_SHOWN]
        _log.error("request failed", method=request.method, path=path, exc_info=cause)
        return problems.answer("internal")


@web.middleware
async def _limits(request: web.Request, handler: Respond) -> web.StreamResponse:
    size = sum(len(name) + len(value) + 4 for name, value in request.raw_headers)
    if max(size, len(request.raw_path)) > HEADERS_MAX:
        raise problems.Refused(
            "headers-too-large", "send less; an address may not be longer either"
        )
    for name in ONCE:
        if len(request.headers.getall(name, ())) > 1:
            raise problems.Refused("bad-request", f"{name} is sent twice")
    if (request.content_length or 0) > bodies.MOST:
        raise problems.Refused("body-too-large")
    return await handler(request)


async def _safe(request: web.Request, response: web.StreamResponse) -> None:
    """On every answer, those of a stream and of refusals too."""
    if answering.NAME in request:
        response.headers[REQUEST_ID] = request[answering.NAME]
    for name, value in problems.SAFE.items():
        response.headers.setdefault(name, value)
    response.headers[hdrs.SERVER] = strange.SERVER


def _options(methods: tuple[str, ...]) -> Respond:
    async def options(_request: web.Request) -> web.Response:
        return web.Response(status=204, headers={hdrs.ALLOW: ",".join(sorted(methods))})

    return options


async def _healthz(_request: web.Request) -> web.Response:
    return web.Response(text="ok\n")


def _readyz(house: House, route: Route) -> Respond:
    async def readyz(request: web.Request) -> web.Response:
        missing = [(one.name, secrets.scrub(one.message)) for one in house.views.panel.unready()]
        if complaint := house.door.complaint():
            missing.append(("access", secrets.scrub(complaint)))
        if house.audit is not None and house.audit.broken:
            missing.append(("audit", secrets.scrub(house.audit.broken)))
        if not missing:
            return web.Response(text="ready\n")
        if not await _may_hear(house, route, request):
            missing = [(name, "say who you are to hear why") for name, _ in missing]
        return problems.answer(
            "not-ready",
            "; ".join(f"{name}: {message}" for name, message in missing),
            notReady=[{"name": name, "message": message} for name, message in missing],
        )

    return readyz


async def _may_hear(house: House, route: Route, request: web.Request) -> bool:
    """Whether a caller may hear of files and of any region. That something is not ready is said to
    everybody, or nobody could ask by machine."""
    try:
        caller = await house.door.identify(answering.knock(request, house.door, route))
    except problems.Refused:
        return False
    return caller.role >= Role.VIEWER and caller.regions is None


def _metrics(
    house: House, route: Route, source: metrics.Metrics, token: secrets.Secret | None
) -> Respond:
    async def answer(request: web.Request) -> web.StreamResponse:
        scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        known = scheme.lower() == "bearer" and token is not None and token.matches(given.strip())
        if not known:
            if token is not None and isinstance(house.door, LocalDoor):
                raise problems.Refused("unauthorized", "send Authorization: Bearer TOKEN")
            await answering.admit(route, house, request)
        accepts = (answering.whole(request, one) for one in (hdrs.ACCEPT, hdrs.ACCEPT_ENCODING))
        found = await source.answer(*accepts)
        return await metrics.send(request, found)

    return answer


def _openapi(shown: Iterable[Route]) -> Respond:
    body = msgspec.json.encode(openapi.document(shown))
    tag = etags.of_bytes(body)

    async def answer(request: web.Request) -> web.Response:
        return await answering.sent(request, body, tag)

    return answer
