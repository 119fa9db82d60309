"""
Logging in and out with a browser, as HTTP: cookies, redirects, and refusals that people can read.

What proves who somebody is stands in `daemon.access.login`. The rule: a code or a state is read
from an address once and never written anywhere, and a browser is sent on to the issuer or to a
place on this server, nowhere else.
"""

import html
from collections.abc import Mapping
from typing import TypedDict

from aiohttp import hdrs, web

from fleetd import secrets
from fleetd.surface import answering, asking, page, problems
from fleetd.surface.answering import House, Respond
from fleetd.surface.door import LOGIN, Logins
from fleetd.surface.routes import Route

WITHIN = 600
"""Seconds for which a browser remembers that it left to log in."""


class Left(TypedDict):
    """A session has ended. `next`: where a browser goes then."""

    next: str


def respond(house: House, logout: Route) -> Mapping[str, Respond]:
    """The three routes, by their names."""

    async def begin(request: web.Request) -> web.Response:
        given = answering.parameters(request, asking.Login)
        logins = _logins(house)
        # Everybody may ask, and each time the issuer may have to be asked.
        answering.limit(house.arrivals, request.remote or "")
        url, sealed = await logins.begin(given.next)
        answer = _redirect(url)
        _set(answer, logins, answering.leaving(logins), sealed, lax=True)
        return answer

    async def finish(request: web.Request) -> web.Response:
        logins = _logins(house)
        answering.limit(house.arrivals, request.remote or "")
        known = asking.Callback.__struct_fields__
        told = {name: value for name, value in request.query.items() if name in known}
        sealed = request.cookies.get(answering.leaving(logins), "")
        before = request.cookies.get(answering.cookie(logins), "")
        session, then = await logins.finish(sealed, told, before)
        answer = _redirect(then)
        _set(answer, logins, answering.cookie(logins), session)
        _drop(answer, logins, answering.leaving(logins))
        return answer

    async def end(request: web.Request) -> web.Response:
        await answering.admit(logout, house, request)
        logins = house.door.logins
        if logins is None:
            return await answering.as_json(request, {"next": "/"})
        name = answering.cookie(logins)
        url = await logins.end(request.cookies.get(name, ""))
        answer = await answering.as_json(request, {"next": url})
        _drop(answer, logins, name)
        return answer

    return {"login": _for_people(begin), "loginCallback": _for_people(finish), "logout": end}


def _logins(house: House) -> Logins:
    if house.door.logins is None:
        raise problems.Refused(
            "not-found", "nobody logs in with a browser here; see docs/access.md"
        )
    return house.door.logins


def _redirect(where: str) -> web.Response:
    return web.Response(status=303, headers={hdrs.LOCATION: where})


def _set(answer: web.Response, logins: Logins, name: str, value: str, *, lax: bool = False) -> None:
    answer.set_cookie(
        name,
        value,
        secure=logins.secure,
        httponly=True,
        # Coming back from the issuer is a way from another site; all others begin on our page.
        samesite="Lax" if lax else "Strict",
        max_age=WITHIN if lax else None,
    )


def _drop(answer: web.Response, logins: Logins, name: str) -> None:
    answer.del_cookie(name, secure=logins.secure, httponly=True, samesite="Strict")


def _for_people(handler: Respond) -> Respond:
    """A browser that is refused shows a sentence and a way on, not a document for programs."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except problems.Refused as refused:
            if "text/html" not in request.headers.get(hdrs.ACCEPT, ""):
                raise
            status, title = problems.TITLES[refused.code]
            text = PAGE.format(
                title=html.escape(title),
                detail=html.escape(secrets.scrub(refused.detail)),
                login=LOGIN,
            )
            headers = {**refused.headers, "Content-Security-Policy": page.POLICY}
            return web.Response(status=status, text=text, content_type="text/html", headers=headers)

    return answer


PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>fleetd</title>
<link rel="stylesheet" href="/assets/style.css"></head>
<body><main class="entrance"><h1>{title}</h1><p>{detail}</p>
<p><a href="{login}">Log in</a></p></main></body></html>
"""
