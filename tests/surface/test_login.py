"""Logging in with a browser: what begins a session, what ends it, and what must never."""

import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from fleetd import errors
from fleetd.clock import SystemClock
from fleetd.daemon.access import sessions
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.daemon.access.rules import Browser as Limits
from fleetd.daemon.access.sessions import Sessions
from fleetd.settings import Address, LogFormat
from fleetd.surface import http, problems
from tests.real.process import free_ports
from tests.secrets import sinks
from tests.surface import issuers, panels
from tests.surface.browsers import Browser
from tests.surface.desks import FakeDesk
from tests.surface.issuers import Issuer
from tests.surface.test_access import NOBODY, Moving, entry, file
from tests.surface.test_matrix import GUESSES, Waiting

GRANTS = '[[oidc.grants]]\ngroup = "ops"\nrole = "operator"\n'
PAUSE = {"scope": "cluster/hv", "reason": "x"}


@dataclass
class Place:
    url: str
    folder: Path
    issuer: Issuer
    door: GuardedDoor
    clock: Waiting
    session: aiohttp.ClientSession

    def browser(self) -> Browser:
        return Browser(self.session)

    async def rules(self, text: str) -> None:
        file(self.folder, text)
        await self.door.look()


def rules(issuer: str, url: str, more: str = "", grants: str = GRANTS) -> str:
    return (
        f'[oidc]\nissuer = "{issuer}"\naudience = "fleetd"\n[oidc.browser]\n'
        f'client_id = "{issuers.CLIENT}"\nclient_secret_file = "client"\nurl = "{url}"\n'
        f"{more}{grants}"
    )


@contextlib.asynccontextmanager
async def place(folder: Path, scheme: str = "http") -> AsyncGenerator[Place]:
    (port,) = free_ports(1)
    (folder / "client").write_text(issuers.SECRET)
    (folder / "client").chmod(0o600)
    clock = Waiting()
    async with issuers.running() as issuer, aiohttp.ClientSession() as session:
        path = file(folder, rules(issuer.url, f"{scheme}://127.0.0.1:{port}"))
        door = GuardedDoor(path, NOBODY, clock)
        async with http.serving(
            panels.small(), Address("127.0.0.1", port), desk=FakeDesk(), door=door, rate=GUESSES
        ) as server:
            yield Place(server.url, folder, issuer, door, clock, session)


async def test_a_person_logs_in(tmp_path: Path) -> None:
    """By the issuer, with PKCE; then the browser is somebody, with the role of the groups."""
    async with place(tmp_path) as here:
        browser = here.browser()
        assert await browser.log_in(here.url, "/%23/region/eu-1") == "/#/region/eu-1"
        _, _, body = await browser.ask("GET", f"{here.url}/api/v1/whoami")
        told = json.loads(body)
        assert (told["name"], told["role"], told["how"]) == ("ada", "operator", "session")
        assert told["csrf"]
        assert len(here.issuer.forms[0]["code_verifier"]) >= 43
        assert list(browser.cookies) == ["fleetd"]


async def test_each_login_has_secrets_of_its_own(tmp_path: Path) -> None:
    """State, nonce and challenge are never the same twice, and no secret is in an address."""
    async with place(tmp_path) as here:
        asked = [await here.browser().ask("GET", f"{here.url}/login") for _ in range(2)]
        sent = [parse_qs(urlsplit(str(headers["Location"])).query) for _, headers, _ in asked]
        for name in ("state", "nonce", "code_challenge"):
            assert sent[0][name] != sent[1][name]
            assert len(sent[0][name][0]) >= 43
        assert sent[0]["code_challenge_method"] == ["S256"]
        assert "client_secret" not in sent[0]


@pytest.mark.parametrize(("scheme", "name"), [("http", "fleetd"), ("https", "__Host-fleetd")])
async def test_cookies(tmp_path: Path, scheme: str, name: str) -> None:
    """No script reads them, no other site sends them; over https no other host can set them."""
    async with place(tmp_path, scheme) as here:
        browser = here.browser()
        back = (await browser.leave(here.url)).replace("https://", "http://")
        before = dict(browser.set)
        await browser.ask("GET", back)
        for line, site in ((browser.set[name], "Strict"), (before[f"{name}-login"], "Lax")):
            words = set(line.split("; ")[1:]) - {f"Max-Age={sessions.LEAVE}"}
            secure = {"Secure"} if scheme == "https" else set[str]()
            assert words == {"HttpOnly", "Path=/", f"SameSite={site}", *secure}
        assert list(browser.cookies) == [name]
        assert (await browser.ask("GET", f"{here.url}/api/v1/whoami"))[0] == 200
        browser.cookies = {"fleetd" if scheme == "https" else "other": browser.cookies[name]}
        assert (await browser.ask("GET", f"{here.url}/api/v1/whoami"))[0] == 401


@pytest.mark.parametrize(
    "then",
    [
        *("https://evil.example", "//evil.example", "/%5Cevil.example", "/%09/evil.example"),
        *("evil", "/%2Fevil.example", "", "%20/x", "/a%0Ab", "javascript:x", "/" + "x" * 1001),
    ],
)
async def test_nobody_is_led_elsewhere(tmp_path: Path, then: str) -> None:
    """After logging in a browser goes to a place on this server; others are refused before."""
    async with place(tmp_path) as here:
        status, _, body = await here.browser().ask("GET", f"{here.url}/login?next={then}")
        assert (status, json.loads(body)["code"]) == (400, "bad-parameter")


async def refused(here: Place, browser: Browser, back: str) -> tuple[int, str]:
    status, _, body = await browser.ask("GET", back)
    assert "fleetd" not in browser.cookies
    return status, json.loads(body)["code"]


async def test_another_browser_cannot_finish(tmp_path: Path) -> None:
    """Whose address somebody else opens does not log in as them: the state is of one browser."""
    async with place(tmp_path) as here:
        mine, other = here.browser(), here.browser()
        back = await mine.leave(here.url)
        assert await refused(here, here.browser(), back) == (400, "login-refused")
        await other.leave(here.url)
        assert await refused(here, other, back) == (400, "login-refused")
        assert here.issuer.forms == []


async def test_answers_that_are_not_to_the_question(tmp_path: Path) -> None:
    """State, code, issuer and the issuer's own no are looked at; a code opens once."""
    async with place(tmp_path) as here:
        browser = here.browser()
        back = await browser.leave(here.url)
        kept = dict(browser.cookies)
        bare = back.split("?")[0]
        for bad in (f"{back}x&state=y", f"{back}&iss=http://127.0.0.1:1", f"{back}&error=x", bare):
            browser.cookies = dict(kept)
            assert await refused(here, browser, bad) == (400, "login-refused")
        browser.cookies = dict(kept)
        assert (await browser.ask("GET", back))[0] == 303
        browser.cookies = dict(kept)
        assert await refused(here, browser, back) == (400, "login-refused")


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"nonce": "another"}, "login-refused"),
        ({"nonce": None}, "login-refused"),
        ({"aud": "fleetd"}, "unauthorized"),
        ({"aud": [issuers.CLIENT, "x"], "azp": "x"}, "login-refused"),
        ({"iss": "http://127.0.0.1:1"}, "unauthorized"),
        ({"exp": 1}, "unauthorized"),
        ({"sub": ""}, "unauthorized"),
        ({"groups": ["guests"]}, "forbidden"),
    ],
)
async def test_tokens_that_begin_no_session(
    tmp_path: Path, claims: dict[str, Any], code: str
) -> None:
    """A token of another login, client, issuer or time, or of somebody without a role."""
    async with place(tmp_path) as here:
        here.issuer.claims = claims
        browser = here.browser()
        _, found = await refused(here, browser, await browser.leave(here.url))
        assert found == code
        assert len(here.door._sessions) == 0  # pyright: ignore[reportPrivateUsage]


async def test_who_takes_too_long_begins_again(tmp_path: Path) -> None:
    """What was sealed ten minutes ago opens nothing."""
    made = Moving()
    kept = Sessions(made)
    sealed = kept.seal(b"x")
    assert kept.unseal(sealed) == b"x"
    assert Sessions(made).unseal(sealed) is None
    made.ahead += timedelta(seconds=sessions.LEAVE + 2)
    assert kept.unseal(sealed) is None


async def test_writes_need_the_mark(tmp_path: Path) -> None:
    """A cookie alone reads; to write, the page's own mark is needed, and our own page."""
    async with place(tmp_path) as here:
        browser, other = here.browser(), here.browser()
        await browser.log_in(here.url)
        await other.log_in(here.url)
        mark, url = await browser.mark(here.url), f"{here.url}/api/v1/pause"
        for sent, code in (
            ({}, "csrf"),
            ({"X-CSRF-Token": ""}, "csrf"),
            ({"X-CSRF-Token": await other.mark(here.url)}, "csrf"),
            ({"X-CSRF-Token": mark, "Origin": "https://evil.example"}, "foreign-origin"),
            ({"X-CSRF-Token": mark, "Sec-Fetch-Site": "cross-site"}, "foreign-origin"),
            ({"X-CSRF-Token": mark, "Sec-Fetch-Site": "same-site"}, "foreign-origin"),
        ):
            status, _, body = await browser.ask("POST", url, sent, json=PAUSE)
            assert (status, json.loads(body)["code"]) == (403, code), sent
        good = {"X-CSRF-Token": mark, "Origin": here.url, "Sec-Fetch-Site": "same-origin"}
        status, _, body = await browser.ask("POST", url, good, json=PAUSE)
        assert (status, json.loads(body)["pause"]["who"]) == (200, "ada")


async def test_logging_out(tmp_path: Path) -> None:
    """Ends the session on the server, drops the cookie, and leads to where the issuer ends its
    own; without the mark nobody is logged out."""
    async with place(tmp_path) as here:
        browser = here.browser()
        await browser.log_in(here.url)
        kept = dict(browser.cookies)
        mark = await browser.mark(here.url)
        assert (await browser.ask("POST", f"{here.url}/logout"))[0] == 403
        status, _, body = await browser.ask("POST", f"{here.url}/logout", {"X-CSRF-Token": mark})
        where = urlsplit(str(json.loads(body)["next"]))
        assert (status, f"{where.scheme}://{where.netloc}{where.path}") == (
            200,
            f"{here.issuer.url}/end",
        )
        assert parse_qs(where.query)["post_logout_redirect_uri"] == [f"{here.url}/"]
        assert browser.cookies == {}
        browser.cookies = kept
        assert (await browser.ask("GET", f"{here.url}/api/v1/whoami"))[0] == 401


async def test_a_new_login_ends_the_session_before(tmp_path: Path) -> None:
    """A cookie that somebody planted is worth nothing after the owner logged in."""
    async with place(tmp_path) as here:
        browser = here.browser()
        await browser.log_in(here.url)
        before = dict(browser.cookies)
        await browser.log_in(here.url)
        assert browser.cookies != before
        browser.cookies = before
        assert (await browser.ask("GET", f"{here.url}/api/v1/whoami"))[0] == 401


@pytest.mark.parametrize("path", ["/api/v1/kinds", "/api/v1/watch"])
async def test_a_session_ends(tmp_path: Path, path: str) -> None:
    """After an hour without use, for which a stream that stays open does not count; and after
    twelve hours in any case."""
    async with place(tmp_path) as here:
        browser = here.browser()
        await browser.log_in(here.url)
        here.clock.ahead += timedelta(minutes=59)
        headers = {"Cookie": f"fleetd={browser.cookies['fleetd']}"}
        async with here.session.get(f"{here.url}{path}", headers=headers) as answer:
            assert answer.status == 200
        here.clock.ahead += timedelta(minutes=59)
        status, _, body = await browser.ask("GET", f"{here.url}/api/v1/kinds")
        assert status == (401 if path.endswith("watch") else 200)
        if status == 401:
            assert json.loads(body)["login"] == "/login"
            return
        for _ in range(11):
            here.clock.ahead += timedelta(minutes=59)
            status, _, _ = await browser.ask("GET", f"{here.url}/api/v1/kinds")
        assert status == 401


async def test_grants_count_as_they_are_now(tmp_path: Path) -> None:
    """A session is a name and groups: what these may do is read from the file, and another issuer,
    client or no way to log in ends it."""
    async with place(tmp_path) as here:
        browser, url = here.browser(), f"{here.url}/api/v1/whoami"
        await browser.log_in(here.url)
        more = GRANTS.replace("operator", "viewer")
        await here.rules(rules(here.issuer.url, here.url, grants=more))
        assert json.loads((await browser.ask("GET", url))[2])["role"] == "viewer"
        await here.rules(rules(here.issuer.url, here.url, grants=GRANTS.replace("ops", "x")))
        assert (await browser.ask("GET", url))[0] == 403
        await here.rules(entry())
        status, _, body = await browser.ask("GET", url)
        assert status == 401
        assert "login" not in json.loads(body)
        assert (await browser.ask("GET", f"{here.url}/login"))[0] == 404
        text = rules(here.issuer.url, here.url).replace(issuers.CLIENT, "another")
        await here.rules(text)
        assert (await browser.ask("GET", url))[0] == 401


def test_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One person has ten at most, the oldest goes; all together have a limit, too."""
    monkeypatch.setattr(sessions, "ALL", 25)
    kept, limits = Sessions(Moving()), Limits(client_id="x", url="https://x")

    def works(cookie: str) -> bool:
        try:
            kept.find(cookie, "at", limits, passive=True)
        except problems.Refused:
            return False
        return True

    bob = kept.open("bob", (), "at")
    ada = [kept.open("ada", (), "at") for _ in range(12)]
    assert [works(one) for one in ada] == [False] * 2 + [True] * 10
    assert works(bob)
    for number in range(30):
        kept.open(f"p{number}", (), "at")
    assert len(kept) == 25
    assert not works(bob)


async def test_an_issuer_that_is_away(tmp_path: Path) -> None:
    """Whoever wants to log in reads a sentence; whoever is logged in goes on, and can leave."""
    async with place(tmp_path) as here:
        browser = here.browser()
        await browser.log_in(here.url)
        back = await here.browser().leave(here.url)
        here.issuer.down = True
        here.clock.ahead += timedelta(seconds=31)
        for asked in (f"{here.url}/login", back):
            status, headers, body = await here.browser().ask(
                "GET", asked, {"Accept": "text/html,*/*"}
            )
            assert headers["Content-Type"].startswith("text/html")
            assert b"<script" not in body
            if asked.endswith("/login"):
                assert status == 503
                assert b"does not answer; try again" in body
        assert (await here.browser().ask("GET", f"{here.url}/login"))[0] == 503
        sent = {"X-CSRF-Token": await browser.mark(here.url)}
        status, _, body = await browser.ask("POST", f"{here.url}/logout", sent)
        assert (status, json.loads(body)["next"]) == (200, "/")


async def test_nothing_secret_is_written(tmp_path: Path) -> None:
    """Code, state, verifier, cookies, mark and the client's secret stand in no line of the log,
    whatever its level."""
    with sinks.logs(LogFormat.JSON) as stream:
        async with place(tmp_path) as here:
            browser = here.browser()
            back = await browser.leave(here.url)
            sealed = browser.cookies["fleetd-login"]
            await browser.ask("GET", back)
            await browser.ask("GET", back)  # which is refused
            mark = await browser.mark(here.url)
            told = parse_qs(urlsplit(back).query)
            canaries = [told["code"][0], told["state"][0], sealed, mark, issuers.SECRET]
            canaries += [browser.cookies["fleetd"], here.issuer.forms[0]["code_verifier"]]
        lines = stream.getvalue()
    assert "logged in" in lines
    assert "/login/callback" in lines
    assert not any(canary in lines for canary in canaries)


@pytest.mark.parametrize(
    ("was", "now", "wrong"),
    [
        ('url = "', 'url = "http://fleetd.example', "not an https address"),
        ('url = "', 'url = "https://x/fleetd?', "more than scheme, host and port"),
        ('"client"', '"nothing"', "does not exist"),
        ('url = "', 'scopes = ["email"]\nurl = "', "without openid"),
        ('url = "', 'hours = 1000\nurl = "', "hours"),
        ('client_id = "', 'colour = "', "colour"),
    ],
)
def test_bad_settings(tmp_path: Path, was: str, now: str, wrong: str) -> None:
    """Are told before anybody can log in."""
    (tmp_path / "client").write_text("x" * 20)
    (tmp_path / "client").chmod(0o600)
    text = rules("https://issuer.example", "https://fleetd.example").replace(was, now)
    with pytest.raises(errors.SettingsError, match=wrong):
        GuardedDoor(file(tmp_path, text), NOBODY, SystemClock())
