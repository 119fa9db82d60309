"""
Bad input to a real daemon: each gets its 4xx, its code and a sentence, and nothing moves.

What bodies, origins, headers and roles of one route get is in test_writes, test_http, test_watch
and test_matrix; here is what only a whole daemon can show: that nothing is half applied.
"""

import gzip
import hashlib
import io
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from fleetd.app import Daemon
from fleetd.clock import SystemClock
from fleetd.daemon import audit
from fleetd.daemon.access import tokens
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.engine import records
from fleetd.net import RealNetwork
from fleetd.settings import Address
from fleetd.surface import bodies, http, problems
from tests.surface import test_desk

V1 = "/api/v1"
JSON = {"Content-Type": "application/json"}
PAUSE = {"scope": "all", "reason": "moving"}
PLAN = {"documents": [{"file": "a.yaml", "folder": "/x", "text": test_desk.POOL}]}
SPARE: dict[str, Any] = {
    "apiVersion": "fleet.c5c3.io/v1alpha1",
    "kind": "ServerPool",
    "metadata": {"name": "spare"},
    "spec": {
        "region": "eu-1",
        "class": "std-64c",
        "servers": [{"name": "x1", "bmc": "192.0.2.211", "zone": "a", "rack": "r1"}],
        "access": {"file": "/bmc.creds"},
    },
}


@dataclass(frozen=True)
class Bad:
    name: str
    method: str
    path: str
    status: int
    code: str
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict[str, str])


def _put(name: str, status: int, code: str, body: Any, **headers: str) -> Bad:
    sent = {key.replace("_", "-"): value for key, value in headers.items()}
    return Bad(name, "PUT", f"{V1}/documents/serverpool/spare", status, code, body, sent)


def _post(name: str, status: int, code: str, path: str, body: Any, **headers: str) -> Bad:
    sent = {key.replace("_", "-"): value for key, value in headers.items()}
    return Bad(name, "POST", V1 + path, status, code, body, sent)


def _watch(name: str, status: int, code: str, given: str) -> Bad:
    return Bad(name, "GET", f"{V1}/watch", status, code, None, {"Last-Event-ID": given})


_TEXT = json.dumps(PAUSE)
_PACKED = gzip.compress(_TEXT.encode())
_MANY = [{"name": f"x{n}", "bmc": "192.0.2.1", "zone": "a"} for n in range(3)]
BAD = (
    # Bodies, their types, sizes and depths.
    _post("a number for a text", 400, "bad-body", "/pause", {**PAUSE, "reason": 7}),
    _post("a list for a text", 400, "bad-body", "/pause", {**PAUSE, "scope": ["all"]}),
    _post("null for a text", 400, "bad-body", "/resume", {"scope": None}),
    _post(
        "a text for a truth", 400, "bad-body", "/retire", {"kind": "a", "name": "b", "dryRun": "no"}
    ),
    _post("an object for a list", 400, "bad-body", "/plans", {"documents": {}}),
    _post(
        "a folder that is none",
        400,
        "bad-body",
        "/plans",
        {"documents": [{"file": "a", "folder": "x", "text": ""}]},
    ),
    _post("no documents", 400, "bad-body", "/plans", {"documents": []}),
    _post("two values", 400, "bad-body", "/pause", (_TEXT + _TEXT).encode()),
    _post("half a value", 400, "bad-body", "/pause", _TEXT[:-1].encode()),
    _post("no number", 400, "bad-body", "/pause", b'{"scope": NaN, "reason": "x"}'),
    _post("a decision that is none", 400, "bad-body", "/approvals/x", {"decision": "perhaps"}),
    _post(
        "documents too deep",
        400,
        "too-deep",
        "/plans",
        b'{"documents": ' + b"[" * 64 + b"]" * 64 + b"}",
    ),
    _post("a body too large", 413, "body-too-large", "/plans", b" " * (bodies.MOST + 1)),
    # Encodings.
    _post(
        "bytes that are no text",
        400,
        "bad-body",
        "/pause",
        _TEXT.encode().replace(b"moving", b"\xc3\x28"),
    ),
    _post("UTF-16", 400, "bad-body", "/pause", _TEXT.encode("utf-16")),
    _post("a mark of the byte order", 400, "bad-body", "/pause", b"\xef\xbb\xbf" + _TEXT.encode()),
    _post("half a sign", 400, "bad-body", "/pause", b'{"scope": "all", "reason": "\\ud800"}'),
    _post("UTF-32", 400, "bad-body", "/pause", _TEXT.encode("utf-32-le")),
    *(
        _post(
            f"said to be {charset}",
            415,
            "not-json",
            "/pause",
            _TEXT.encode(charset),
            Content_Type=f"application/json; charset={charset}",
        )
        for charset in ("utf-16", "iso-8859-1")
    ),
    _post("nothing at all", 400, "bad-body", "/pause", b" "),
    _post(
        "one name twice",
        400,
        "bad-body",
        "/pause",
        b'{"scope": "x", "scope": "all", "reason": "x"}',
    ),
    _post(
        "one name twice, written otherwise",
        400,
        "bad-body",
        "/pause",
        b'{"scope": "x", "sc\\u006fpe": "all", "reason": "x"}',
    ),
    Bad(
        "one name twice, deep inside",
        "PUT",
        f"{V1}/documents/serverpool/spare",
        400,
        "bad-body",
        json.dumps(SPARE).replace('"zone": "a"', '"zone": "a", "zone": "b"').encode(),
    ),
    _post("packed, and cut", 400, "bad-body", "/pause", _PACKED[:-4], Content_Encoding="gzip"),
    _post("packed, and more", 400, "bad-body", "/pause", _PACKED + b"x", Content_Encoding="gzip"),
    _post("packed twice", 415, "bad-encoding", "/pause", _PACKED, Content_Encoding="gzip, gzip"),
    _post("packed as nobody can", 415, "bad-encoding", "/pause", b"x", Content_Encoding="br"),
    _post("packed as nobody knows", 415, "bad-encoding", "/pause", PAUSE, Content_Encoding="rot"),
    _post("another type", 415, "not-json", "/pause", PAUSE, Content_Type="application/yaml"),
    _post("packed, and is not", 400, "bad-body", "/pause", PAUSE, Content_Encoding="gzip"),
    _post(
        "packed and too large",
        413,
        "body-too-large",
        "/pause",
        gzip.compress(b" " * (4 * bodies.MOST)),
        Content_Encoding="gzip",
    ),
    # Documents that are wrong in themselves.
    _put("another name", 400, "bad-body", {**SPARE, "metadata": {"name": "other"}}),
    _put("no mapping", 400, "bad-body", [SPARE]),
    _put(
        "a field that nobody knows",
        422,
        "documents-bad",
        {**SPARE, "spec": {**SPARE["spec"], "colour": 1}},
    ),
    _put(
        "a region that nobody knows",
        422,
        "documents-bad",
        {**SPARE, "spec": {**SPARE["spec"], "region": "eu-9"}},
    ),
    _put(
        "one address three times",
        422,
        "documents-bad",
        {**SPARE, "spec": {**SPARE["spec"], "servers": _MANY}},
    ),
    _post(
        "one good, one bad",
        422,
        "documents-bad",
        "/plans",
        {
            "documents": [
                *PLAN["documents"],
                {"file": "b.yaml", "folder": "/x", "text": "kind: Cluster\n"},
            ]
        },
    ),
    _post(
        "YAML that is none",
        422,
        "documents-bad",
        "/plans",
        {"documents": [{"file": "a.yaml", "folder": "/x", "text": "a: [\n"}]},
    ),
    _post("a plan that nobody made", 404, "plan-unknown", "/plans/0123456789abcdef/apply", {}),
    # ETags.
    _put("If-Match without signs", 400, "bad-etag", SPARE, If_Match="abc"),
    _put("If-Match half in signs", 400, "bad-etag", SPARE, If_Match='"abc'),
    _put(
        "If-Match of another", 412, "document-changed", SPARE, If_Match='"0123456789abcdef01234567"'
    ),
    _put(
        "If-Match of anything, and there is nothing", 412, "document-changed", SPARE, If_Match="*"
    ),
    _put("If-Match of nothing", 400, "bad-etag", SPARE, If_Match=","),
    _put("If-Match of anything and more", 400, "bad-etag", SPARE, If_Match='"a", *'),
    _put("If-Match of others, one with a comma", 412, "document-changed", SPARE, If_Match='"a,b",'),
    Bad(
        "reading what should be another",
        "GET",
        f"{V1}/documents/serverpool/metal",
        412,
        "document-changed",
        None,
        {"If-Match": '"a", "b"'},
    ),
    Bad(
        "a mark that is none for a page", "GET", "/", 400, "bad-etag", None, {"If-None-Match": "x"}
    ),
    _put("If-None-Match without signs", 400, "bad-etag", SPARE, If_None_Match="abc"),
    Bad(
        "If-None-Match *, and there is one",
        "PUT",
        f"{V1}/documents/serverpool/metal",
        412,
        "document-changed",
        {**SPARE, "metadata": {"name": "metal"}},
        {"If-None-Match": "*"},
    ),
    Bad(
        "deleting another than thought",
        "DELETE",
        f"{V1}/documents/serverpool/metal",
        412,
        "document-changed",
        None,
        {"If-Match": '"x"'},
    ),
    Bad("deleting nothing", "DELETE", f"{V1}/documents/serverpool/none", 404, "not-found"),
    Bad(
        "deleting what is in a file",
        "DELETE",
        f"{V1}/documents/serverpool/metal",
        409,
        "document-owned",
    ),
    # Methods and addresses.
    Bad(
        "a method that is not for it",
        "PATCH",
        f"{V1}/documents/serverpool/metal",
        405,
        "method-not-allowed",
    ),
    Bad("a method of others", "PROPFIND", f"{V1}/pause", 405, "method-not-allowed"),
    Bad("reading what is told", "GET", f"{V1}/pause", 405, "method-not-allowed"),
    Bad("an address that nobody knows", "POST", f"{V1}/pauses", 404, "not-found", PAUSE),
    Bad(
        "a parameter of another route",
        "PUT",
        f"{V1}/documents/serverpool/spare?limit=1",
        400,
        "unknown-parameter",
        SPARE,
    ),
    Bad("null for a number", "GET", f"{V1}/events?continue=null", 400, "bad-parameter"),
    *(
        Bad(f"limit={text}", "GET", f"{V1}/resources?limit={text}", 400, "bad-parameter")
        for text in ("1e1", "1.0", "%2B1", "1_0", "%D9%A1", "", "9" * 400)
    ),
    Bad("bytes for a text", "GET", f"{V1}/resources?kind=%ff%fe", 400, "bad-parameter"),
    Bad("a number that is none", "GET", f"{V1}/resources?limit=many", 400, "bad-parameter"),
    # Tokens.
    Bad("nobody", "POST", f"{V1}/pause", 401, "unauthorized", PAUSE, {"Authorization": ""}),
    Bad(
        "a token that nobody made",
        "POST",
        f"{V1}/pause",
        401,
        "unauthorized",
        PAUSE,
        {"Authorization": f"Bearer {tokens.new()}"},
    ),
    Bad(
        "another scheme",
        "POST",
        f"{V1}/pause",
        401,
        "unauthorized",
        PAUSE,
        {"Authorization": "Basic eDp5"},
    ),
    Bad(
        "a token in the address",
        "GET",
        f"{V1}/regions?access_token=x",
        401,
        "unauthorized",
        None,
        {"Authorization": ""},
    ),
    # Last-Event-IDs.
    _watch("a word", 400, "bad-event-id", "newest"),
    _watch("less than nothing", 400, "bad-event-id", "-1"),
    _watch("a broken number", 400, "bad-event-id", "1.5"),
    _watch("digits of others", 400, "bad-event-id", "\u0661"),
    _watch("more than there can be", 400, "bad-event-id", "9" * 20),
    _watch("of another history", 410, "history-gone", "999999999"),
)


TABLES = (
    *(records.ACCEPTED, records.APPROVALS, records.CONDITIONS, records.ORPHANS),
    *(records.PAUSES, records.REGIONS, records.RETIRED),
)


@dataclass
class House:
    url: str
    daemon: Daemon
    folder: Path
    token: str

    async def digest(self) -> str:
        """Of all that somebody could have changed: memory, store and disk. The audit log is not
        of it: it is there to tell what was tried."""
        state = self.daemon.state
        told = hashlib.sha256()
        kept = {name: await self.daemon.store.load(name) for name in TABLES}
        events = await self.daemon.store.events(limit=1000)
        journal = await self.daemon.store.journal(limit=1000)
        seen = (state.declared.digest, state.policy, state.retired, kept, events, journal)
        told.update(repr(seen).encode())
        for path in sorted((self.folder / "state").rglob("documents/**/*")):
            told.update(str(path).encode() + (path.read_bytes() if path.is_file() else b""))
        told.update(repr(self.daemon.documents.accepted).encode())
        return told.hexdigest()


@pytest_asyncio.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[House]:
    monkeypatch.setattr(http, "STRANGERS", http.Rate(1e6, 10**6))
    token = tokens.new()
    access = tmp_path / "access.toml"
    access.write_text(
        f'[[tokens]]\nname = "x"\nsha256 = "{tokens.digest(token)}"\nrole = "admin"\n'
    )
    access.chmod(0o600)
    daemon = await test_desk.start(test_desk.settings(tmp_path))
    async with http.serving(
        daemon.window,
        Address("127.0.0.1", 0),
        desk=daemon.desk,
        door=GuardedDoor(access, RealNetwork(), SystemClock()),
        audit=audit.Log(tmp_path / "audit", SystemClock()),
    ) as server:
        yield House(server.url, daemon, tmp_path, token)
    await daemon.store.close()


async def _ask(house: House, session: aiohttp.ClientSession, bad: Bad) -> tuple[int, str, Any]:
    data = bad.body if bad.body is None or isinstance(bad.body, bytes) else json.dumps(bad.body)
    headers = {"Authorization": f"Bearer {house.token}", **(JSON if data else {}), **bad.headers}
    async with session.request(
        bad.method,
        f"{house.url}{bad.path}",
        data=io.BytesIO(data) if isinstance(data, bytes) else data,
        headers=headers,
    ) as answer:
        return answer.status, answer.content_type, await answer.json(content_type=None)


async def test_bad_input_is_refused_and_changes_nothing(house: House) -> None:
    """Each bad request: the right status, its code and a sentence in problem+json; the state of
    the daemon, in memory and on disk, is to the byte what it was."""
    before = await house.digest()
    wrong: dict[str, Any] = {}
    async with aiohttp.ClientSession() as session:
        for bad in BAD:
            status, kind, told = await _ask(house, session, bad)
            moved = await house.digest() != before
            sentence = told.get("detail") or told.get("title") or ""
            right = (status, kind, told.get("code")) == (
                bad.status,
                problems.CONTENT_TYPE,
                bad.code,
            )
            if not right or moved or " " not in sentence or told["status"] != status:
                wrong[bad.name] = (status, kind, told, "moved" if moved else "")
    assert wrong == {}
    assert audit.verify(house.folder / "audit").number > 0


async def test_what_is_good_moves_the_digest(house: House) -> None:
    """The test of the test: the same requests without what is wrong with them change the state."""
    good = (
        _post("", 200, "", "/pause", PAUSE),
        _put("", 200, "", SPARE, If_None_Match="*"),
        Bad("", "DELETE", f"{V1}/documents/serverpool/spare", 200, ""),
    )
    async with aiohttp.ClientSession() as session:
        for one in good:
            before = await house.digest()
            assert (await _ask(house, session, one))[0] == 200, one
            assert await house.digest() != before, one


def test_every_bad_input_has_a_name_of_its_own() -> None:
    """A table in which one row hides another claims less than it says."""
    assert len({one.name for one in BAD}) == len(BAD)
