"""
From a request to an answer: who asks, whether they may, what they ask for, and in which form.

One function serves every route of the table. The order is fixed: who, may they, how often, is it
well-formed, do it. Nothing is done before all of that is known. Every answer passes
`secrets.scrub`.
"""

import asyncio
import contextlib
import gzip
import hmac
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from aiohttp import hdrs, web

from fleetd import errors, secrets
from fleetd.surface import accept, asking, bodies, etags, problems
from fleetd.surface.desk import Desk
from fleetd.surface.door import LOGIN, Buckets, Door, Knock, Logins
from fleetd.surface.identity import NOBODY, Identity, Role, Scope
from fleetd.surface.kept import Kept
from fleetd.surface.reach import Views
from fleetd.surface.routes import EVENT_STREAM, JSON, Asked, Handler, Route

T = TypeVar("T")
Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]
NAME: web.RequestKey[str] = web.RequestKey("name", str)
CALLER: web.RequestKey[Identity] = web.RequestKey("caller", Identity)

COMPRESSED_FROM = 1024
"""Bytes; below, the header costs more than is saved."""
LARGE = 64 * 1024
"""Bytes; more takes milliseconds to compress or to read, which the loop has not."""
_ORIGINS = {"none", "same-origin"}
_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{4}|.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What somebody tells the daemon, for the audit log."""

    who: str
    how: str
    what: str
    """The name of the route."""
    path: str
    told: Mapping[str, Any]
    request: str


class Audit(Protocol):
    @property
    def broken(self) -> str:
        """Why nothing can be audited any more; empty while all is well."""
        ...

    async def begin(self, said: Said) -> int:
        """On disk when it returns; raises FleetError if it cannot be."""
        ...

    async def end(self, number: int, result: str, plan: str) -> None: ...

    async def refused(self, said: Said, code: str) -> None:
        """Somebody known wanted more than they may. Not every one of a flood is kept."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class House:
    """What all routes share."""

    views: Views
    kept: Kept
    door: Door
    buckets: Buckets
    strangers: Buckets
    """For those who fail to prove who they are, by address."""
    arrivals: Buckets
    """For browsers that come to log in, by address, which they may share."""
    desk: Desk | None
    audit: Audit | None = None


def respond(route: Route, house: House) -> Respond:
    async def answer(request: web.Request) -> web.StreamResponse:
        caller = await admit(route, house, request)
        asked = await _asked(route, house, request, caller)
        assert route.handler is not None  # noqa: S101 -- the server answers the others itself
        if route.writes and house.audit is not None:
            said = _said(route, request, caller, asked.who, asking.gist(asked.given))
            shape = await _audited(route.handler, asked, house.audit, said)
        else:
            shape = await route.handler(asked)
        return await as_json(request, shape)

    return answer


async def _audited(handler: Handler, asked: Asked, log: Audit, said: Said) -> Any:  # noqa: ANN401
    """On disk before it is done. What came of it is written whatever that was."""
    try:
        number = await log.begin(said)
    except errors.FleetError as broken:
        raise problems.Refused("audit-broken", f"the audit log: {broken}") from None
    result, plan = "internal", ""
    try:
        shape = await handler(asked)
        result, plan = "done", str(shape.get("plan") or "")
    except problems.Refused as refused:
        result = refused.code
        raise
    finally:
        # It was done or not by now; that the second line is missing is told by the log itself.
        with contextlib.suppress(errors.FleetError):
            await log.end(number, result, plan)
    return shape


def _said(
    route: Route, request: web.Request, caller: Identity, who: str, told: Mapping[str, Any]
) -> Said:
    return Said(
        who=who,
        how=caller.how,
        what=route.name,
        path=request.path,
        told=told,
        request=request.get(NAME, ""),
    )


async def admit(route: Route, house: House, request: web.Request) -> Identity:
    """Who asks, if they may. Raises Refused."""
    if route.role is Role.OPEN:
        return NOBODY
    address = request.remote or ""
    try:
        caller = await house.door.identify(knock(request, house.door, route))
    except problems.Refused as refused:
        if refused.code == "unauthorized":
            limit(house.strangers, address)
            if house.door.logins is not None:
                refused.more["login"] = LOGIN
        raise
    request[CALLER] = caller
    limit(house.buckets, f"{caller.how}:{caller.name}")
    try:
        _check_rights(route, house.door, request, caller)
    except problems.Refused as refused:
        if house.audit is not None:
            said = _said(route, request, caller, caller.name, {})
            with contextlib.suppress(errors.FleetError):
                await house.audit.refused(said, refused.code)
        raise
    return caller


async def readmit(route: Route, house: House, request: web.Request) -> Identity:
    """Who is being answered already, as they are known now: an answer that goes on for hours does
    not outlive a right. Raises Refused."""
    caller = await house.door.identify(knock(request, house.door, route))
    _check_rights(route, house.door, request, caller)
    return caller


def _check_rights(route: Route, door: Door, request: web.Request, caller: Identity) -> None:
    if caller.role < route.role:
        raise problems.Refused(
            "forbidden", f"this needs the role {route.role.word}, and you are {caller.role.word}"
        )
    if route.scope is Scope.FLEET and caller.regions is not None:
        raise problems.Refused("forbidden", "this is for callers that are not limited to regions")
    if route.writes:
        _check_origin(request, door, caller)


def knock(request: web.Request, door: Door, route: Route) -> Knock:
    logins = door.logins
    scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
    transport = request.transport
    return Knock(
        path=request.path,
        host=request.headers.get(hdrs.HOST, ""),
        address=request.remote or "",
        bearer=given.strip() if scheme.lower() == "bearer" else "",
        forwarded=hdrs.FORWARDED in request.headers or hdrs.X_FORWARDED_FOR in request.headers,
        session=request.cookies.get(cookie(logins), "") if logins is not None else "",
        passive=route.media == EVENT_STREAM,
        certificate=transport.get_extra_info("peercert") if transport is not None else None,
    )


def cookie(logins: Logins) -> str:
    """The name of a session's cookie. Where there is https, one that only this host can set."""
    return "__Host-fleetd" if logins.secure else "fleetd"


def leaving(logins: Logins) -> str:
    """The name of the cookie of a browser that went to log in."""
    return f"{cookie(logins)}-login"


def limit(buckets: Buckets, caller: str) -> None:
    wait = buckets.take(caller)
    if wait:
        after = str(math.ceil(wait))
        raise problems.Refused(
            "too-many-requests", f"try again in {after} s", headers={hdrs.RETRY_AFTER: after}
        )


def _check_origin(request: web.Request, door: Door, caller: Identity) -> None:
    """A browser says from which page a request comes; other programs say nothing."""
    origin = request.headers.get(hdrs.ORIGIN)
    site = request.headers.get("Sec-Fetch-Site", "none")
    own = {None, f"{request.scheme}://{request.headers.get(hdrs.HOST, '')}"}
    if door.logins is not None:
        own.add(door.logins.origin)  # before a proxy that has the certificate it is another one
    if origin not in own or site not in _ORIGINS:
        raise problems.Refused("foreign-origin", "only pages of this server may write")
    given = request.headers.get("X-CSRF-Token", "").encode("utf-8", "surrogateescape")
    if caller.csrf and not hmac.compare_digest(given, caller.csrf.encode()):
        raise problems.Refused("csrf", "send X-CSRF-Token as /api/v1/whoami tells it")


async def _asked(route: Route, house: House, request: web.Request, caller: Identity) -> Asked:
    query = parameters(request, route.query)
    given: Any = query
    if route.body is not None:
        data = await bodies.read(request)
        if len(data) < LARGE:
            given = asking.body(data, route.body)
        else:
            given = await asyncio.to_thread(asking.body, data, route.body)
    said = given.who if isinstance(given, asking.Body) else caller.name
    return Asked(
        panel=house.views.of(caller.regions),
        kept=house.kept,
        caller=caller,
        who=said if caller.how == "local" else caller.name,
        path=request.match_info,
        given=given,
        query=query,
        desk=house.desk,
        match=whole(request, hdrs.IF_MATCH) if hdrs.IF_MATCH in request.headers else None,
        none_match=(
            whole(request, hdrs.IF_NONE_MATCH) if hdrs.IF_NONE_MATCH in request.headers else None
        ),
    )


def whole(request: web.Request, name: str) -> str:
    """A header that is a list, however many lines it takes."""
    return ", ".join(request.headers.getall(name, ()))


def parameters(request: web.Request, kind: type[T]) -> T:
    """Raises Refused."""
    given = request.rel_url.raw_query_string
    if "%" in given:
        try:
            unquote_to_bytes(given).decode()
        except UnicodeDecodeError:
            raise problems.Refused("bad-parameter", "they are not in UTF-8") from None
    return asking.query(request.query.items(), kind)


async def as_json(request: web.Request, shape: Mapping[str, Any]) -> web.Response:
    """The answer, unless the caller has it already. `now` is no part of what it says."""
    told = dict(shape)
    now = told.pop("now", None)
    body = encoded(told)
    tag = etags.of_bytes(body)
    if now is not None:
        end = b"," if told else b""
        body = body[:-1] + end + b'"now":' + msgspec.json.encode(now) + b"}"
    return await sent(request, body, tag)


def encoded(shape: Mapping[str, Any]) -> bytes:
    """As JSON, without any secret."""
    body = msgspec.json.encode(shape, enc_hook=str)
    if not secrets.REGISTRY or not any(map(secrets.REGISTRY.holds, _readings(body))):
        return body
    # Text by text: what is cut out of JSON may leave half of an escape, or a number that is none.
    return msgspec.json.encode(secrets.scrub_deep(shape))


def _readings(body: bytes) -> Iterator[bytes]:
    """JSON as it is sent, and with its texts as they are: a value that was escaped twice before
    is in no list of spellings."""
    yield body
    if b"\\" in body:
        yield _ESCAPE.sub(_unescaped, body)


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes(msgspec.json.decode(b'"%b"' % found[0], type=str), "utf-8")


async def sent(request: web.Request, body: bytes, tag: str) -> web.Response:
    """Bytes of JSON that have a tag, in the form that the caller can read."""
    small = len(body) < COMPRESSED_FROM or not accept.gzip(whole(request, hdrs.ACCEPT_ENCODING))
    headers = {
        hdrs.ETAG: etags.header(tag, compressed=not small),
        hdrs.VARY: "Accept-Encoding, Authorization, Cookie",
    }
    if request.method in {"GET", "HEAD"}:
        one, other = whole(request, hdrs.IF_MATCH), whole(request, hdrs.IF_NONE_MATCH)
        there = request.headers.keys()
        if hdrs.IF_MATCH in there and not etags.names(one, tag, what=hdrs.IF_MATCH, strong=True):
            raise problems.Refused("document-changed", "what is here now has another ETag")
        if hdrs.IF_NONE_MATCH in there and etags.names(other, tag, what=hdrs.IF_NONE_MATCH):
            return web.Response(status=304, headers=headers)
    if not small:
        headers[hdrs.CONTENT_ENCODING] = "gzip"
        if len(body) < LARGE:
            body = _compressed(body)
        else:
            body = await asyncio.to_thread(_compressed, body)
    return web.Response(body=body, content_type=JSON, charset="utf-8", headers=headers)


def _compressed(body: bytes) -> bytes:
    return gzip.compress(body, compresslevel=4, mtime=0)
