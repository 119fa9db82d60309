"""What the HTTP interface takes, and from whom."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from fleetd.settings import Address
from fleetd.surface import http
from tests.surface import panels
from tests.surface.desks import DRAFT, FakeDesk
from topology.resource import Ref

PAUSE = {"who": "ada", "scope": "cluster/hv", "reason": "moving"}


@pytest.fixture
def desk() -> FakeDesk:
    return FakeDesk(
        waiting={"s1": [Ref("cluster", "hv")]}, orphans=[Ref("flux", "old"), Ref("cluster", "old")]
    )


@pytest_asyncio.fixture
async def tell(desk: FakeDesk) -> AsyncGenerator[Any]:
    """Tell the server: `status, body = await tell(path, body)`."""
    address = Address("127.0.0.1", 0)
    async with (
        http.serving(panels.small(), address, desk=desk) as server,
        aiohttp.ClientSession() as session,
    ):

        async def tell(path: str, body: Any, **headers: str) -> Any:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            told = {"Content-Type": "application/json", **headers}
            async with session.post(f"{server.url}{path}", data=data, headers=told) as answer:
                return answer.status, json.loads(await answer.text())

        yield tell


async def test_pause_and_resume(tell: Any, desk: FakeDesk) -> None:
    """A pause names who and why; what is not paused cannot be resumed."""
    status, body = await tell("/api/v1/pause", PAUSE)
    assert (status, body["pause"]["who"], body["pause"]["reason"]) == (200, "ada", "moving")
    assert list(desk.pauses) == ["cluster/hv"]
    given = {"who": "ada", "scope": "cluster/hv"}
    assert await tell("/api/v1/resume", given) == (200, {"resumed": "cluster/hv"})
    status, body = await tell("/api/v1/resume", given)
    assert (status, body["code"]) == (409, "refused")
    assert "no pause on cluster/hv" in body["detail"]


@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_decisions(tell: Any, desk: FakeDesk, decision: str) -> None:
    """A decision says what it was about; one that nobody waits for is refused."""
    given = {"who": "ada", "decision": decision}
    status, body = await tell("/api/v1/approvals/s1", given)
    assert (status, body["about"]) == (200, ["cluster/hv"])
    assert desk.decided == {"s1": f"{decision} ada"}
    assert (await tell("/api/v1/approvals/s2", given))[0] == 409


async def test_retire(tell: Any, desk: FakeDesk) -> None:
    """A dry run shows the order and retires nothing."""
    given = {"who": "ada", "kind": "cluster", "name": "old"}
    status, body = await tell("/api/v1/retire", {**given, "dryRun": True})
    assert (status, body["going"], desk.retired) == (200, ["flux/old", "cluster/old"], [])
    assert (await tell("/api/v1/retire", given))[0] == 200
    assert desk.retired == desk.orphans


async def test_plans(tell: Any, desk: FakeDesk) -> None:
    """Documents are planned, and a plan is applied, unless the world moved."""
    sent = {"file": "a.yaml", "folder": "/x", "text": "kind: Cluster"}
    status, body = await tell("/api/v1/plans", {"who": "ada", "documents": [sent]})
    assert (status, body) == (200, DRAFT)
    assert desk.sent[0].text == "kind: Cluster"
    desk.stale = 1
    status, body = await tell("/api/v1/plans/d1/apply", {"who": "ada"})
    assert (status, body["code"]) == (409, "plan-stale")
    assert (await tell("/api/v1/plans/d1/apply", {"who": "ada", "consent": "c"}))[0] == 200
    assert desk.applied == [("d1", "c")]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad-body"),
        (b"[1]", "bad-body"),
        (b"\xff", "bad-body"),
        ({"who": "ada", "scope": "all"}, "bad-body"),
        ({**PAUSE, "dryrun": True}, "bad-body"),
        ({**PAUSE, "who": ""}, "bad-body"),
        ({**PAUSE, "who": "a b"}, "bad-body"),
        ({**PAUSE, "who": "ada\n"}, "bad-body"),
        ({**PAUSE, "who": "ädä"}, "bad-body"),
        ({**PAUSE, "reason": "x" * 301}, "bad-body"),
        (b"[" * 65 + b"]" * 65, "too-deep"),
        # Of a text that never ends each quote could be taken for a new beginning.
        pytest.param(b'"' + b'\\"' * 500_000, "bad-body", id="no end"),
        (b'{"who": "ada", "scope": "' + b"[" * 65 + b'", "reason": "x"}', ""),
    ],
)
async def test_bad_bodies(tell: Any, desk: FakeDesk, body: Any, code: str) -> None:
    """What is not exactly what is expected changes nothing; brackets in a text are no depth."""
    status, answer = await tell("/api/v1/pause", body)
    assert (status, answer.get("code", "")) == (400 if code else 200, code)
    assert bool(desk.pauses) is (not code)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Content-Type": "text/plain"}, 415, "not-json"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415, "not-json"),
        ({"Origin": "https://evil.example"}, 403, "foreign-origin"),
        ({"Origin": "null"}, 403, "foreign-origin"),
        ({"Origin": "http://127.0.0.1:1"}, 403, "foreign-origin"),
        ({"Sec-Fetch-Site": "cross-site"}, 403, "foreign-origin"),
        ({"Host": "evil.example"}, 421, "host-not-local"),
    ],
)
async def test_other_sites_cannot_write(
    tell: Any, desk: FakeDesk, headers: dict[str, str], status: int, code: str
) -> None:
    """A page of another site cannot use somebody's browser to change something."""
    answered, body = await tell("/api/v1/pause", PAUSE, **headers)
    assert (answered, body["code"]) == (status, code)
    assert desk.pauses == {}
