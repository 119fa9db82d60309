"""What the HTTP interface answers, asked over loopback."""

import asyncio
import io
import json
import re
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from fleetd import errors, secrets
from fleetd.settings import Address
from fleetd.surface import api, asking, http
from fleetd.surface.identity import NOBODY
from fleetd.surface.kept import Kept
from fleetd.surface.panel import Unready
from fleetd.surface.routes import Asked
from tests.surface import panels
from tests.surface.panels import FakePanel

LOCAL = Address("127.0.0.1", 0)


@pytest.fixture
def panel() -> FakePanel:
    return panels.small()


@pytest_asyncio.fixture
async def ask(panel: FakePanel) -> AsyncGenerator[Any]:
    """Ask the server: `status, body, headers = await ask(path)`."""
    async with http.serving(panel, LOCAL) as server, aiohttp.ClientSession() as session:

        async def ask(path: str, *, method: str = "GET", **more: Any) -> Any:
            async with session.request(method, f"{server.url}{path}", **more) as answer:
                text = await answer.text()
                body = json.loads(text) if "json" in answer.content_type else text
                return answer.status, body, answer.headers

        yield ask


async def test_health(ask: Any) -> None:
    """The process says that it is alive."""
    assert (await ask("/healthz"))[:2] == (200, "ok\n")


async def test_ready(ask: Any) -> None:
    """A daemon that misses nothing is ready."""
    assert (await ask("/readyz"))[:2] == (200, "ready\n")


async def test_not_ready_says_what_is_missing(ask: Any, panel: FakePanel) -> None:
    """What is not ready is named, with 503 and a stable code."""
    panel.missing = [Unready("documents", "none were accepted"), Unready("store", "disk full")]
    status, body, headers = await ask("/readyz")
    assert status == 503
    assert headers["Content-Type"] == "application/problem+json"
    assert body["code"] == "not-ready"
    assert body["detail"] == "documents: none were accepted; store: disk full"
    assert body["notReady"] == [
        {"name": "documents", "message": "none were accepted"},
        {"name": "store", "message": "disk full"},
    ]


async def test_regions(ask: Any) -> None:
    """A region has its counts, its plan, its holds and its conditions."""
    status, body, _ = await ask("/api/v1/regions")
    assert status == 200
    assert [item["name"] for item in body["items"]] == ["eu-1"]
    region = body["items"][0]
    assert region["resources"] == {"total": 4, "ready": 1, "notReady": 1, "unknown": 2}
    assert region["holds"] == {"DependencyNotReady": 1}
    assert (region["plan"], region["steps"], region["waits"]) == ("plan-1", 1, 1)
    assert region["conditions"][0]["type"] == "Ready"
    assert region["conditions"][0]["status"] == "Unknown"
    assert region["conditions"][0]["since"] == "2026-03-01T09:00:00.000Z"
    assert (await ask("/api/v1/regions/eu-1"))[1] == region


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["serverpool/compute", "cluster/hv", "flux/hv", "region/eu-1"]),
        ("?kind=cluster", ["cluster/hv"]),
        ("?kind=Cluster", ["cluster/hv"]),
        ("?ready=true", ["serverpool/compute"]),
        ("?ready=False", ["cluster/hv"]),
        ("?ready=unknown", ["flux/hv", "region/eu-1"]),
        ("?reason=NotJudged", ["flux/hv"]),
        ("?cluster=hv", ["cluster/hv", "flux/hv"]),
        ("?region=eu-2", []),
        ("?q=HV", ["cluster/hv", "flux/hv"]),
        ("?q=hv&kind=flux", ["flux/hv"]),
    ],
)
async def test_resources_are_filtered(ask: Any, query: str, names: list[str]) -> None:
    """Each filter keeps what it names."""
    _, body, _ = await ask(f"/api/v1/resources{query}")
    assert [f"{item['kind']}/{item['name']}" for item in body["items"]] == names
    assert body["continue"] is None


async def test_resources_are_paged(ask: Any) -> None:
    """Pages joined by `continue` give each resource once, in order."""
    names: list[str] = []
    token = ""
    for _ in range(3):
        _, body, _ = await ask(f"/api/v1/resources?limit=2{token}")
        names += [item["kind"] for item in body["items"]]
        if body["continue"] is None:
            break
        token = f"&continue={body['continue']}"
    assert names == ["serverpool", "cluster", "flux", "region"]


async def test_a_page_of_old_documents_expires(ask: Any, panel: FakePanel) -> None:
    """Going on with a list after new documents were accepted is refused, not wrong."""
    _, body, _ = await ask("/api/v1/resources?limit=1")
    panel.want = panels.topology(*panel.want.resources.values(), digest="f" * 20)
    status, problem, _ = await ask(f"/api/v1/resources?continue={body['continue']}")
    assert (status, problem["code"]) == (410, "continue-expired")


async def test_a_rare_filter_is_answered_in_parts(
    ask: Any, panel: FakePanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No request walks further than its bound; an empty page still leads on."""
    monkeypatch.setattr(api, "SCAN_MAX", 3)
    _, first, _ = await ask("/api/v1/resources?q=region")
    assert first["items"] == []
    _, second, _ = await ask(f"/api/v1/resources?q=region&continue={first['continue']}")
    assert [item["kind"] for item in second["items"]] == ["region"]
    assert second["continue"] is None


async def test_a_place_in_one_list_is_not_a_place_in_another(ask: Any) -> None:
    """Who changes the filters on the way is told to begin again, and skips nothing."""
    _, first, _ = await ask("/api/v1/resources?limit=1")
    asked = f"/api/v1/resources?kind=cluster&continue={first['continue']}"
    status, body, _ = await ask(asked)
    assert (status, body["code"]) == (410, "continue-expired")


async def test_what_belongs_to_a_document(ask: Any) -> None:
    """`owner` gives the parts of one document, whatever their kind."""
    _, body, _ = await ask("/api/v1/resources?owner=cluster/hv")
    assert [(item["kind"], item["state"]) for item in body["items"]] == [
        ("cluster", "moving"),
        ("flux", "waiting"),
    ]


async def test_one_resource(ask: Any) -> None:
    """One resource has desired, observed, conditions, plan, events and neighbours."""
    _, body, _ = await ask("/api/v1/resources/cluster/hv")
    assert body["desired"] == {"name": "hv"}
    assert body["observed"]["facts"]["status"] == "the shoot is being made"
    assert body["ready"]["reason"] == "Progressing"
    assert [step["verb"] for step in body["steps"]] == ["create"]
    assert body["steps"][0]["disrupts"] == ["server/a", "server/b"]
    assert [event["seq"] for event in body["events"]] == [1, 3, 5]
    assert body["needs"] == ["serverpool/compute"]
    assert body["neededBy"] == ["flux/hv"]


async def test_not_looked_is_not_empty(ask: Any) -> None:
    """What could not be seen has facts null and an error, never an empty world."""
    _, body, _ = await ask("/api/v1/resources/flux/hv")
    assert body["observed"]["facts"] is None
    assert body["observed"]["error"] == "the shoot is being made"
    assert body["holds"][0]["blocker"] == "cluster/hv"
    assert body["holds"][0]["until"] == "2026-03-01T13:00:00.000Z"


async def test_topology(ask: Any) -> None:
    """Nodes and edges of a region, for drawing."""
    _, body, _ = await ask("/api/v1/topology/eu-1")
    assert [node["id"] for node in body["nodes"]][:2] == ["serverpool/compute", "cluster/hv"]
    assert body["edges"][0] == {
        "source": "cluster/hv",
        "kind": "needs",
        "target": "serverpool/compute",
    }


async def test_plan(ask: Any) -> None:
    """The plan of each region, or of one."""
    _, body, _ = await ask("/api/v1/plan")
    assert [plan["id"] for plan in body["plans"]] == ["plan-1"]
    assert body["plans"][0]["holds"][0]["reason"] == "DependencyNotReady"
    assert (await ask("/api/v1/plan?region=eu-1"))[1] == body


async def test_events_are_paged(ask: Any) -> None:
    """Events come oldest first, by ref, after a number, in pages."""
    _, body, _ = await ask("/api/v1/events?limit=2")
    assert ([one["seq"] for one in body["items"]], body["continue"]) == ([1, 2], "2")
    _, body, _ = await ask("/api/v1/events?continue=2&limit=2")
    assert [one["seq"] for one in body["items"]] == [3, 4]
    _, body, _ = await ask("/api/v1/events?for=flux/hv&after=2")
    assert ([one["seq"] for one in body["items"]], body["continue"]) == ([4], None)


async def test_documents(ask: Any) -> None:
    """Documents as they were written, all or one."""
    _, body, _ = await ask("/api/v1/documents")
    assert [one["kind"] for one in body["items"]] == ["Cluster", "Region"]
    assert (await ask("/api/v1/documents/cluster/hv"))[1] == body["items"][0]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/nothing", 404, "not-found"),
        ("/api/v1/regions/eu-9", 404, "not-found"),
        ("/api/v1/resources/cluster/none", 404, "not-found"),
        ("/api/v1/topology/eu-9", 404, "not-found"),
        ("/api/v1/plan?region=eu-9", 404, "not-found"),
        ("/api/v1/documents/cluster/none", 404, "not-found"),
        ("/api/v1/resources?colour=red", 400, "unknown-parameter"),
        ("/api/v1/regions?kind=x", 400, "unknown-parameter"),
        ("/api/v1/resources?limit=0", 400, "bad-parameter"),
        ("/api/v1/resources?limit=1001", 400, "bad-parameter"),
        ("/api/v1/resources?limit=%C2%B2", 400, "bad-parameter"),
        ("/api/v1/resources?ready=perhaps", 400, "bad-parameter"),
        ("/api/v1/resources?continue=x", 400, "bad-parameter"),
        ("/api/v1/resources?continue=-1%0A", 400, "bad-parameter"),
        ("/api/v1/resources?ready=true%0A", 400, "bad-parameter"),
        ("/api/v1/events?for=cluster", 400, "bad-parameter"),
        ("/api/v1/events?after=-1", 400, "bad-parameter"),
    ],
)
async def test_refusals(ask: Any, path: str, status: int, code: str) -> None:
    """Each refusal is a problem document with its own code."""
    got, body, headers = await ask(path)
    assert (got, body["status"], body["code"]) == (status, status, code)
    assert headers["Content-Type"] == "application/problem+json"
    assert body["title"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
async def test_nothing_can_be_written(ask: Any, method: str) -> None:
    """Every other method is refused as a problem that says which are allowed."""
    status, body, headers = await ask("/api/v1/plan", method=method)
    assert (status, body["code"]) == (405, "method-not-allowed")
    assert "GET" in headers["Allow"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.x:80"])
async def test_only_local_names(ask: Any, host: str) -> None:
    """A browser that was led here under another name learns nothing."""
    status, body, _ = await ask("/api/v1/regions", headers={"Host": host})
    assert (status, body["code"]) == (421, "host-not-local")


async def test_large_headers(ask: Any) -> None:
    """Headers over 16 KiB are refused, in one or in many."""
    one = {"X-Large": "x" * 17_000}
    many = {f"X-{number}": "x" * 1000 for number in range(17)}
    for headers in (one, many):
        status, body, _ = await ask("/healthz", headers=headers)
        assert (status, body["code"]) == (431, "headers-too-large")
    assert (await ask("/healthz", headers={"X-Large": "x" * 15_000}))[0] == 200


async def test_very_large_headers(panel: FakePanel) -> None:
    """Headers that no parser should read are a 4xx as well."""
    async with http.serving(panel, LOCAL) as server:
        reader, writer = await asyncio.open_connection(*server.address)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000)
        writer.write(b"\r\n\r\n")
        line = await reader.readline()
        writer.close()
        assert line.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4"))


async def test_large_bodies(ask: Any) -> None:
    """A body over 1 MiB is refused before it is read."""
    status, body, _ = await ask("/healthz", data=io.BytesIO(b"x" * (1024 * 1024 + 1)))
    assert (status, body["code"]) == (413, "body-too-large")


async def test_a_fault_inside_tells_nothing(ask: Any, panel: FakePanel) -> None:
    """An error in a handler is a bare 500; what it was stays in the log."""
    panel.history = None  # pyright: ignore[reportAttributeAccessIssue]
    status, body, _ = await ask("/api/v1/events")
    assert (status, body["code"]) == (500, "internal")
    assert "NoneType" not in json.dumps(body)


async def test_failures_begin_at_zero(ask: Any, panel: FakePanel) -> None:
    """Of each route: the first one raises a count that was there, so an alert sees it."""

    async def failed() -> dict[str, str]:
        found = re.findall(
            r'http_requests_total{(.*),code="500"} (\S+)', (await ask("/metrics"))[1]
        )
        return dict(found)

    before = await failed()
    assert set(before.values()) == {"0.0"}
    assert 'route="/api/v1/regions/{name}",method="GET"' in before
    panel.history = None  # pyright: ignore[reportAttributeAccessIssue] -- a fault
    assert (await ask("/api/v1/events"))[0] == 500
    after = await failed()
    assert after.keys() == before.keys()
    assert {key for key in after if after[key] != before[key]} == {
        'route="/api/v1/events",method="GET"'
    }


async def test_answers_are_not_kept(ask: Any) -> None:
    """No cache keeps an answer, and no browser guesses its type."""
    _, _, headers = await ask("/api/v1/regions")
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (None, 401),
        ("Bearer wrong", 401),
        ("Basic canary-metrics", 401),
        ("Bearer canary-metrics", 200),
        ("bearer  canary-metrics", 200),
    ],
)
async def test_metrics_token(panel: FakePanel, given: str | None, status: int) -> None:
    """With a token set, /metrics answers only to it."""
    token = secrets.Secret("canary-metrics")
    async with (
        http.serving(panel, LOCAL, metrics_token=token) as server,
        aiohttp.ClientSession(headers={"Authorization": given} if given else {}) as session,
        session.get(f"{server.url}/metrics") as answer,
    ):
        assert answer.status == status
        if status == 401:
            assert answer.headers["WWW-Authenticate"] == 'Bearer realm="fleetd"'
            assert (await answer.json(content_type=None))["code"] == "unauthorized"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "fleetd.example"])
async def test_only_loopback(panel: FakePanel, host: str) -> None:
    """An address that others can reach is refused."""
    with pytest.raises(errors.SettingsError, match="no authentication"):
        async with http.serving(panel, Address(host, 0)):
            pass


async def test_an_address_in_use(panel: FakePanel) -> None:
    """A port that is taken is said in words."""
    async with http.serving(panel, LOCAL) as server:
        with pytest.raises(errors.SettingsError, match="cannot listen on"):
            async with http.serving(panel, server.address):
                pass


async def test_a_long_list_lets_others_have_their_turn() -> None:
    """A page of 1,000 is made in parts, and the loop does something else between them."""
    pool = [panels.resource("server", f"s{number}") for number in range(1000)]
    panel = panels.FakePanel(want=panels.topology(*pool))
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    asked = Asked(
        panel=panel,
        caller=NOBODY,
        kept=Kept(panel),
        who="",
        path={},
        given=asking.Resources(limit=1000),
    )
    async with asyncio.TaskGroup() as group:
        meanwhile = group.create_task(others())
        found = await api.resources(asked)
        meanwhile.cancel()
    assert len(found["items"]) == 1000
    assert turns >= 1000 // api.PART
