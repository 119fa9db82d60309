"""Who may do what: every route of the live table, asked by every kind of caller."""

import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from fleetd.clock import SystemClock
from fleetd.daemon.access import tokens
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.settings import Address
from fleetd.surface import http, table
from fleetd.surface.identity import Role, Scope
from fleetd.surface.routes import Route
from tests.real.process import free_ports
from tests.surface import issuers, panels
from tests.surface.browsers import Browser
from tests.surface.desks import FakeDesk
from tests.surface.requests import BODIES, PATHS
from topology.resource import Ref

GUESSES = http.Rate(1e6, 10**6)
STRANGERS = ("none", "garbage", "expired", "wrong audience", "revoked")
KNOWN = {"viewer": Role.VIEWER, "operator": Role.OPERATOR, "admin": Role.ADMIN}
ELSEWHERE = "other region"
CALLERS = (*STRANGERS, ELSEWHERE, *KNOWN)
SESSIONS = {f"session {name}": role for name, role in KNOWN.items()}
ENDED, FAR, UNMARKED = "expired session", "session elsewhere", "session without mark"
ANSWERS = {"login": 303, "loginCallback": 400, "asset": 404, "assetInFolder": 404}
"""Of routes that are open; of all others 200."""


ROUTES = sorted(table.ROUTES, key=lambda one: one.name == "logout")
"""Who has a session ends it last."""


class Waiting(SystemClock):
    """Sessions grow older than they are."""

    ahead = timedelta()

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead.total_seconds()


@dataclass
class Town:
    url: str
    session: aiohttp.ClientSession
    desk: FakeDesk
    proofs: Mapping[str, Mapping[str, str]]
    """The headers that each caller sends."""

    async def ask(self, route: Route, caller: str) -> tuple[int, bytes]:
        sent = {"json": BODIES[route.name]} if route.name in BODIES else {}
        path = PATHS.get(route.name, route.path)
        assert "{" not in path, f"{route.name} needs a row in tests/surface/requests.py"
        async with self.session.request(
            route.method,
            f"{self.url}{path}",
            headers=self.proofs[caller],
            allow_redirects=False,
            **sent,
        ) as answer:
            whole = route.name != "watch" or answer.status != 200
            return answer.status, await answer.read() if whole else b""


def rules(issuer: issuers.Issuer, made: Mapping[str, str], url: str) -> str:
    entries = [
        f'[[tokens]]\nname = "{name}"\nsha256 = "{tokens.digest(made[name])}"\nrole = "{name}"\n'
        for name in KNOWN
    ]
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    entries.append(
        f'[[tokens]]\nname = "old"\nsha256 = "{tokens.digest(made["expired"])}"\n'
        f'role = "admin"\nexpires = {past}\n'
    )
    entries.append(
        f'[[tokens]]\nname = "far"\nsha256 = "{tokens.digest(made[ELSEWHERE])}"\n'
        'role = "admin"\nregions = ["eu-9"]\n'
    )
    entries.append(
        f'[oidc]\nissuer = "{issuer.url}"\naudience = "fleetd"\n'
        '[[oidc.grants]]\ngroup = "ops"\nrole = "admin"\n'
        '[[oidc.grants]]\ngroup = "far"\nrole = "admin"\nregions = ["eu-9"]\n'
    )
    entries += [f'[[oidc.grants]]\ngroup = "{one}"\nrole = "{one}"\n' for one in KNOWN]
    entries.append(
        f'[oidc.browser]\nclient_id = "{issuers.CLIENT}"\nurl = "{url}"\n'
        'client_secret_file = "client"\n'
    )
    return "".join(entries)


async def logged_in(url: str, issuer: issuers.Issuer, clock: Waiting) -> dict[str, Any]:
    """The headers that browsers send whose people logged in."""
    found: dict[str, Any] = {}
    groups = {ENDED: "admin", **{f"session {name}": name for name in KNOWN}, FAR: "far"}
    async with aiohttp.ClientSession() as session:
        for caller, group in groups.items():
            issuer.person = (caller.replace(" ", "-"), (group,))
            browser = Browser(session)
            await browser.log_in(url)
            cookie = {"Cookie": f"fleetd={browser.cookies['fleetd']}"}
            found[caller] = cookie | {"X-CSRF-Token": await browser.mark(url)}
            if caller == ENDED:
                clock.ahead += timedelta(hours=1)
    marked = found["session admin"]
    return {**found, UNMARKED: {"Cookie": marked["Cookie"]}}


@pytest_asyncio.fixture
async def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Town]:
    monkeypatch.setattr(http, "STRANGERS", GUESSES)
    made = {name: tokens.new() for name in CALLERS}
    made["garbage"] = "ä; DROP .. %00"
    path, clock = tmp_path / "access.toml", Waiting()
    (tmp_path / "client").write_text(issuers.SECRET)
    (tmp_path / "client").chmod(0o600)
    desk = FakeDesk(waiting={"s1": [Ref("cluster", "hv")]}, orphans=[Ref("cluster", "old")])
    await desk.pause("region:eu-1", who="ada", why="x")
    (port,) = free_ports(1)
    async with issuers.running() as issuer:
        made["wrong audience"] = issuer.token("ops", aud="others")
        text = rules(issuer, made, f"http://127.0.0.1:{port}")
        gone = f'[[tokens]]\nname = "gone"\nsha256 = "{tokens.digest(made["revoked"])}"\n'
        path.write_text(f'{gone}role = "admin"\n{text}')
        path.chmod(0o600)
        door = GuardedDoor(path, None, clock)  # pyright: ignore[reportArgumentType]
        path.write_text(text)
        await door.look()
        proofs: dict[str, Any] = {
            name: {"Authorization": f"Bearer {token}"} for name, token in made.items()
        }
        async with (
            http.serving(
                panels.small(),
                Address("127.0.0.1", port),
                desk=desk,
                door=door,
                rate=GUESSES,
            ) as server,
            aiohttp.ClientSession() as session,
        ):
            proofs |= {"none": {}, **await logged_in(server.url, issuer, clock)}
            yield Town(server.url, session, desk, proofs)


def test_every_route_has_a_row() -> None:
    """A route that nobody asks for here is a route nobody knows the rights of."""
    for route in table.ROUTES:
        assert "{" not in PATHS.get(route.name, route.path), route.name
        assert (route.body is not None) == (route.name in BODIES), route.name


@pytest.mark.parametrize("caller", [*STRANGERS, ENDED, *KNOWN, *SESSIONS, UNMARKED])
async def test_roles(town: Town, caller: str) -> None:
    """Who proves nothing gets what is open; who proves something, what the role allows; and a
    session without its mark only reads."""
    role = {**KNOWN, **SESSIONS, UNMARKED: Role.ADMIN}.get(caller)
    for route in ROUTES:
        before = repr(town.desk)
        status, body = await town.ask(route, caller)
        told = (route.name, status, body)
        if route.role is Role.OPEN:
            assert status == ANSWERS.get(route.name, 200), told
        elif role is None:
            assert (status, json.loads(body)["code"]) == (401, "unauthorized"), told
            assert repr(town.desk) == before, told
        elif role < route.role:
            assert (status, json.loads(body)["code"]) == (403, "forbidden"), told
            assert repr(town.desk) == before, told
        elif caller == UNMARKED and route.writes:
            assert (status, json.loads(body)["code"]) == (403, "csrf"), told
            assert repr(town.desk) == before, told
        else:
            assert status == 200, told


@pytest.mark.parametrize("caller", [ELSEWHERE, FAR])
async def test_another_region(town: Town, caller: str) -> None:
    """An administrator of another region finds nothing here, and changes nothing here."""
    for route in ROUTES:
        before = repr(town.desk)
        status, body = await town.ask(route, caller)
        told = (route.name, status, body)
        if route.name in DESK_DECIDES:
            assert town.desk.within == frozenset({"eu-9"}), told
            continue
        if route.scope is Scope.FLEET:
            assert (status, json.loads(body)["code"]) == (403, "forbidden"), told
        elif route.scope is Scope.CHECKED:
            assert (status, json.loads(body)["code"]) == (403, "other-region"), told
        elif route.scope is Scope.FILTERED and "{" in route.path:
            assert (status, json.loads(body)["code"]) == (404, "not-found"), told
        elif route.scope is Scope.FILTERED:
            assert status == 200, told
            assert not any(name in body for name in (b"eu-1", b'"hv"', b"/hv", b"compute")), told
        assert repr(town.desk) == before, told


DESK_DECIDES = {"makePlan", "applyPlan", "putDocument", "deleteDocument"}
"""Only documents tell which region they are about: see tests/surface/test_desk.py."""


async def test_the_name_in_history_is_the_one_that_was_proven(town: Town) -> None:
    """What a body says of who it is counts only where nobody proves anything."""
    sent = {"scope": "cluster/hv", "reason": "x", "who": "somebody-else"}
    headers = town.proofs["operator"]
    answer = await town.session.post(f"{town.url}/api/v1/pause", json=sent, headers=headers)
    assert (await answer.json())["pause"]["who"] == "token:operator"


async def test_who_am_i(town: Town) -> None:
    """A caller learns name, role and regions."""
    route = next(one for one in table.ROUTES if one.name == "whoami")
    told: Any = json.loads((await town.ask(route, ELSEWHERE))[1])
    assert (told["name"], told["role"], told["regions"]) == ("token:far", "admin", ["eu-9"])
