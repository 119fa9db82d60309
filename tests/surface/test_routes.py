"""One table of routes: what is served, described, checked and documented is the same."""

import gzip
import json
from collections.abc import AsyncGenerator
from typing import Any, cast

import aiohttp
import jsonschema
import openapi_spec_validator
import pytest
import pytest_asyncio

from fleetd.settings import Address
from fleetd.surface import answering, etags, http, openapi, problems, table
from fleetd.surface.identity import Role, Scope
from tests.surface import panels
from tests.surface.desks import FakeDesk
from tests.surface.panels import FakePanel
from tests.surface.requests import BODIES, PLACES
from topology.resource import Ref


@pytest.fixture
def panel() -> FakePanel:
    return panels.small()


@pytest_asyncio.fixture
async def ask(panel: FakePanel) -> AsyncGenerator[Any]:
    """Ask the server: `status, body, headers = await ask(method, path)`; the body is bytes."""
    desk = FakeDesk(waiting={"s1": [Ref("cluster", "hv")]}, orphans=[Ref("cluster", "old")])
    await desk.pause("region:eu-1", who="ada", why="x")
    async with (
        http.serving(panel, Address("127.0.0.1", 0), desk=desk) as server,
        aiohttp.ClientSession(auto_decompress=False) as session,
    ):

        async def ask(method: str, path: str, **more: Any) -> Any:
            async with session.request(method, f"{server.url}{path}", **more) as answer:
                return answer.status, await answer.read(), answer.headers

        yield ask


def closed(schema: Any) -> Any:
    """The same schema, in which nothing may be that is not named."""
    match schema:
        case list():
            return [closed(one) for one in cast("list[Any]", schema)]
        case dict():
            made = {key: closed(one) for key, one in cast("dict[str, Any]", schema).items()}
            return {"additionalProperties": False, **made} if "properties" in made else made
        case _:
            return schema


def test_the_description_is_openapi() -> None:
    """/openapi.json is valid against the official schema of OpenAPI 3.1."""
    faults = openapi_spec_validator.OpenAPIV31SpecValidator(openapi.document()).iter_errors()
    assert [fault.message for fault in faults] == []


def test_the_reference_is_current() -> None:
    """docs/http.md is what the table says."""
    assert openapi.main(["--check"]) == 0


def test_names_and_columns() -> None:
    """Names are used once; what is open says nothing of regions; what writes is never open, and
    what tells the daemon something is not for viewers."""
    names = [route.name for route in table.ROUTES]
    assert len(names) == len(set(names))
    for route in table.ROUTES:
        assert (route.role is Role.OPEN) <= (route.scope is Scope.NONE), route.name
        assert route.writes <= (route.role > Role.OPEN), route.name
        assert route.writes <= (route.role >= Role.OPERATOR or route.name == "logout"), route.name
        assert set(route.codes) <= problems.TITLES.keys(), route.name


@pytest.mark.parametrize(
    "name", [one.name for one in table.ROUTES if one.media == "application/json"]
)
async def test_answers_are_as_described(ask: Any, name: str) -> None:
    """Each answer has all the fields of its schema and no other."""
    route = next(one for one in table.ROUTES if one.name == name)
    described = openapi.document()
    schema = described["paths"][route.path][route.method.lower()]["responses"]["200"]
    sent = {"json": BODIES[name]} if name in BODIES else {}
    if name == "deleteDocument":
        await ask("PUT", PLACES[name], json=BODIES["putDocument"])
    status, body, headers = await ask(
        route.method, PLACES.get(name, route.path), headers={"Accept-Encoding": "identity"}, **sent
    )
    assert (status, headers["Content-Type"]) == (200, "application/json; charset=utf-8"), body
    whole = closed(schema["content"]["application/json"]["schema"])
    whole["components"] = closed(described["components"])
    faults = jsonschema.Draft202012Validator(whole).iter_errors(json.loads(body))  # pyright: ignore[reportUnknownMemberType]
    assert [fault.message for fault in faults] == []


async def test_etags(ask: Any, panel: FakePanel) -> None:
    """Who has an answer gets 304 until something changes; time alone changes nothing."""
    _, body, headers = await ask("GET", "/api/v1/regions")
    tag = headers["ETag"]
    for given in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        status, empty, _ = await ask("GET", "/api/v1/regions", headers={"If-None-Match": given})
        assert (status, empty) == (304, b"")
    panel.judged.pop(panels.POOL)
    status, fresh, headers = await ask("GET", "/api/v1/regions", headers={"If-None-Match": tag})
    assert status == 200
    assert fresh != body
    assert headers["ETag"] != tag


@pytest.mark.parametrize("given", ["x", '"', '"a" "b"', "W/", ",,", '"a", x', '"a" , *'])
async def test_bad_etags(ask: Any, given: str) -> None:
    """What is no ETag is refused, not taken for another version."""
    status, body, _ = await ask("GET", "/api/v1/regions", headers={"If-None-Match": given})
    assert (status, json.loads(body)["code"]) == (400, "bad-etag")


@pytest.mark.parametrize(
    ("accepted", "compressed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
        ("br", False),
        ("", False),
    ],
)
async def test_compression(ask: Any, accepted: str, compressed: object) -> None:
    """An answer is compressed for who takes gzip, says the same, and its tag is as good."""
    headers = {"Accept-Encoding": accepted}
    status, body, told = await ask("GET", "/api/v1/resources", headers=headers)
    assert status == 200
    assert ("Content-Encoding" in told) is compressed
    assert told["Vary"].startswith("Accept-Encoding")
    plain = json.loads(gzip.decompress(body) if compressed else body)
    assert [one["name"] for one in plain["items"]][:2] == ["compute", "hv"]
    again = {**headers, "If-None-Match": told["ETag"]}
    assert (await ask("GET", "/api/v1/resources", headers=again))[0] == 304


async def test_large_answers_are_compressed_elsewhere(
    ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes long to compress says the same, too."""
    monkeypatch.setattr(answering, "LARGE", 1)
    _, body, _ = await ask("GET", "/api/v1/resources", headers={"Accept-Encoding": "gzip"})
    assert len(json.loads(gzip.decompress(body))["items"]) == 4


async def test_request_ids(ask: Any) -> None:
    """A sane id comes back; another is replaced; refusals have one too."""
    told = {"X-Request-Id": "abc-1.2_3"}
    assert (await ask("GET", "/healthz", headers=told))[2]["X-Request-Id"] == "abc-1.2_3"
    bad = ("a b", "x" * 65, "ä", "")
    seen = set(bad)
    for given in bad:
        for path in ("/healthz", "/nothing"):
            made = (await ask("GET", path, headers={"X-Request-Id": given}))[2]["X-Request-Id"]
            assert made not in seen
            seen.add(made)


async def test_head_and_options(ask: Any) -> None:
    """HEAD is GET without the body; OPTIONS says what is possible."""
    status, body, headers = await ask("HEAD", "/api/v1/resources")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 100
    status, body, headers = await ask("OPTIONS", "/api/v1/documents/cluster/hv")
    assert (status, body, headers["Allow"]) == (204, b"", "DELETE,GET,HEAD,OPTIONS,PUT")


async def test_a_parameter_given_twice(ask: Any) -> None:
    """Of two values none is the right one."""
    status, body, _ = await ask("GET", "/api/v1/resources?kind=a&kind=b")
    assert (status, json.loads(body)["code"]) == (400, "bad-parameter")


async def test_documents_are_put_if_they_are_as_expected(ask: Any) -> None:
    """If-Match and If-None-Match guard a write; a mismatch is 412 and writes nothing."""
    path = "/api/v1/documents/cluster/hv"
    sent = BODIES["putDocument"]
    tag = etag(sent)
    for headers, status in (
        ({"If-Match": "*"}, 412),
        ({"If-Match": tag}, 412),
        ({"If-None-Match": "*"}, 200),
        ({"If-None-Match": "*"}, 412),
        ({"If-Match": '"other"'}, 412),
        ({"If-Match": "other"}, 400),
        ({"If-Match": f'"other", {tag}'}, 200),
        ({"If-Match": "*"}, 200),
    ):
        assert (await ask("PUT", path, json=sent, headers=headers))[0] == status, headers
    assert (await ask("DELETE", path, headers={"If-Match": '"other"'}))[0] == 412
    assert (await ask("DELETE", path, headers={"If-Match": tag}))[0] == 200
    assert (await ask("DELETE", path))[0] == 404


def etag(document: Any) -> str:
    return etags.header(etags.of_document(document))


async def test_a_document_is_put_where_it_says(ask: Any) -> None:
    """A document of another name or kind is refused, and so is what is no document."""
    good = BODIES["putDocument"]
    cases: list[Any] = [
        {**good, "kind": "Region"},
        {**good, "metadata": {"name": "other"}},
        {"kind": "Cluster"},
        [],
    ]
    for sent in cases:
        status, body, _ = await ask("PUT", "/api/v1/documents/cluster/hv", json=sent)
        assert (status, json.loads(body)["code"]) == (400, "bad-body")
