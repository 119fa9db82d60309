"""Logging in, and tokens, at a real OpenID issuer."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from fleetd.daemon.access.guard import GuardedDoor
from fleetd.settings import Address
from fleetd.surface import http
from tests.real import issuer
from tests.real.issuer import Issuer
from tests.real.process import free_ports
from tests.surface import panels
from tests.surface.browsers import Browser
from tests.surface.desks import FakeDesk

pytestmark = pytest.mark.real
GRANTS = '[[oidc.grants]]\ngroup = "ops"\nrole = "operator"\n'


class Ahead:
    """A clock that a test moves."""

    by = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.by

    def monotonic(self) -> float:
        return self.by.total_seconds()


@dataclass
class Place:
    url: str
    issuer: Issuer
    clock: Ahead
    session: aiohttp.ClientSession
    at_issuer: aiohttp.ClientSession
    """With the cookies that the issuer gave to somebody's browser."""

    async def who(self, bearer: str) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {bearer}"}
        async with self.session.get(f"{self.url}/api/v1/whoami", headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def log_in(self, browser: Browser, name: str) -> tuple[int, Any, bytes]:
        """The answer when the issuer sent the browser back."""
        status, headers, body = await browser.ask("GET", f"{self.url}/login?next=/%23/plan")
        assert status == 303, body
        back = await issuer.person(self.at_issuer, headers["Location"], name)
        return await browser.ask("GET", back)


def rules(folder: Path, at: str, page: str) -> Path:
    """The access file of a daemon whose page is at `page`."""
    secret, path = folder / "client", folder / "access.toml"
    secret.write_text(issuer.SECRET)
    path.write_text(
        f'[oidc]\nissuer = "{at}"\naudience = "fleetd"\n{GRANTS}[oidc.browser]\n'
        f'client_id = "page"\nurl = "{page}"\nclient_secret_file = "client"\n'
    )
    for one in (secret, path):
        one.chmod(0o600)
    return path


@contextlib.asynccontextmanager
async def place(folder: Path) -> AsyncGenerator[Place]:
    (port,) = free_ports(1)
    page, clock = f"http://127.0.0.1:{port}", Ahead()
    with issuer.running(folder, page) as real:
        door = GuardedDoor(rules(folder, real.url, page), None, clock)  # pyright: ignore[reportArgumentType]
        async with (
            http.serving(
                panels.small(), Address("127.0.0.1", port), desk=FakeDesk(), door=door
            ) as server,
            aiohttp.ClientSession() as session,
            # Cookies of an address are not taken, unless one says so.
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as at_issuer,
        ):
            yield Place(server.url, real, clock, session, at_issuer)


async def test_a_person_logs_in_and_out(tmp_path: Path) -> None:
    """Code, PKCE, state and nonce are to the issuer's liking; the session writes with its mark,
    and logging out leads to the issuer, which knows where to send one back to."""
    async with place(tmp_path) as here:
        browser = Browser(here.session)
        status, headers, body = await here.log_in(browser, "ada")
        assert (status, headers["Location"]) == (303, "/#/plan"), body
        mark = {"X-CSRF-Token": await browser.mark(here.url)}
        sent = {"scope": "cluster/hv", "reason": "x"}
        status, _, body = await browser.ask("POST", f"{here.url}/api/v1/pause", mark, json=sent)
        assert (status, json.loads(body)["pause"]["who"]) == (200, "ada")
        _, _, body = await browser.ask("POST", f"{here.url}/logout", mark)
        async with here.at_issuer.get(json.loads(body)["next"]) as answer:
            assert answer.status == 200
            assert "Log out?" in await answer.text()
        assert (await browser.ask("GET", f"{here.url}/api/v1/whoami"))[0] == 401


async def test_the_issuer_insists_on_the_verifier(tmp_path: Path) -> None:
    """A code that somebody else overheard is worth nothing in another browser: it is the issuer
    who refuses it, because the verifier is another one."""
    async with place(tmp_path) as here:
        mine, other = Browser(here.session), Browser(here.session)
        _, headers, _ = await mine.ask("GET", f"{here.url}/login")
        back = await issuer.person(here.at_issuer, headers["Location"], "ada")
        code = parse_qs(urlsplit(back).query)["code"][0]
        _, headers, _ = await other.ask("GET", f"{here.url}/login")
        state = parse_qs(urlsplit(str(headers["Location"])).query)["state"][0]
        stolen = f"{here.url}/login/callback?code={code}&state={state}"
        status, _, body = await other.ask("GET", stolen)
        assert (status, json.loads(body)["code"]) == (400, "login-refused")


async def test_somebody_without_a_role(tmp_path: Path) -> None:
    """Whoever the issuer knows and we do not is told so, and has no session."""
    async with place(tmp_path) as here:
        browser = Browser(here.session)
        status, _, body = await here.log_in(browser, "eve")
        assert (status, json.loads(body)["code"]) == (403, "forbidden")
        assert "fleetd" not in browser.cookies


async def test_tokens_of_programs(tmp_path: Path) -> None:
    """For us they open, for somebody else they do not, nor after their time, nor those of an
    issuer that is another one at another address."""
    other = tmp_path / "other"
    other.mkdir()
    async with place(tmp_path) as here:
        good = await issuer.token(here.issuer)
        status, told = await here.who(good)
        assert (status, told["name"], told["role"]) == (200, "program", "operator")
        status, told = await here.who(await issuer.token(here.issuer, "others"))
        assert (status, told["detail"]) == (401, "the token is for somebody else")
        with issuer.running(other, here.url) as stranger:
            status, told = await here.who(await issuer.token(stranger))
            assert (status, told["detail"]) == (401, "this token is not known here")
        here.clock.by += timedelta(seconds=299)
        assert (await here.who(good))[0] == 200
        here.clock.by += timedelta(seconds=62)
        status, told = await here.who(good)
        assert (status, told["detail"]) == (401, "the token has expired")


async def test_keys_are_rotated(tmp_path: Path) -> None:
    """After the issuer has new keys, its new tokens open, and those of before do not."""
    async with place(tmp_path) as here:
        old = await issuer.token(here.issuer)
        assert (await here.who(old))[0] == 200
        await asyncio.to_thread(here.issuer.stop)
        await asyncio.to_thread(here.issuer.start, "second")
        here.clock.by += timedelta(seconds=31)
        assert (await here.who(await issuer.token(here.issuer)))[0] == 200
        status, told = await here.who(old)
        assert (status, told["detail"]) == (401, "the token is signed with a key nobody knows")


async def test_an_issuer_that_is_away(tmp_path: Path) -> None:
    """Tokens are checked with the keys that we have, sessions go on, and whoever wants to log in
    reads why that is not possible."""
    async with place(tmp_path) as here:
        browser, good = Browser(here.session), await issuer.token(here.issuer)
        assert (await here.log_in(browser, "ada"))[0] == 303
        assert (await here.who(good))[0] == 200
        await asyncio.to_thread(here.issuer.stop)
        here.clock.by += timedelta(seconds=31)
        assert (await here.who(good))[0] == 200
        assert (await browser.ask("GET", f"{here.url}/api/v1/whoami"))[0] == 200
        status, _, body = await browser.ask(
            "GET", f"{here.url}/login", {"Accept": "text/html,application/xhtml+xml"}
        )
        assert status == 503
        assert f"{here.issuer.url} does not answer; try again" in body.decode()
