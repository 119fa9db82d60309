"""The way to a simulated server: in virtual time, and in all weathers."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import msgspec
import pytest

from fleetd.kube import errors
from fleetd.kube.transport import Request, Response
from fleetd.sim import loop
from fleetd.sim.faces.handler import Stream
from fleetd.sim.faces.inprocess import InProcess
from fleetd.sim.faces.weather import FAIR, Calm, Fate, Passage
from fleetd.sim.kube.cluster import Cluster
from tests.sim.kube.stage import START, config_map, uid_of

MAPS = "/api/v1/namespaces/default/configmaps"


class LoopTime:
    """The time of the running loop."""

    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time())

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, call)


def _cluster() -> Cluster:
    return Cluster("faced", LoopTime(), uid_of=uid_of)


def _post(name: str) -> Request:
    return Request(method="POST", path=MAPS, body=msgspec.json.encode(config_map(name)))


WATCH = Request(method="GET", path=MAPS, query={"watch": "1", "timeoutSeconds": "3600"})


class Weather(Calm):
    """As the test wants it."""

    def __init__(
        self,
        *,
        before: Fate = FAIR,
        after: Fate = FAIR,
        passages: Mapping[int, Passage] | None = None,
    ) -> None:
        self._before = before
        self._after = after
        self._passages = dict(passages or {})
        self._lines = 0

    def before(self, backend: str, request: Request) -> Fate:
        return self._before if request.writes else FAIR

    def after(self, backend: str, request: Request, response: Response) -> Fate:
        return self._after if request.writes else FAIR

    def line(self, backend: str, request: Request, line: bytes) -> Passage:
        self._lines += 1
        return self._passages.get(self._lines, Passage(lines=(line,)))


async def _sent(weather: Weather) -> tuple[str, int, float]:
    """What the client sees of a create, how many objects there are then, and the time it took."""
    cluster = _cluster()
    transport = InProcess(cluster, token=cluster.admin_token(), weather=weather)
    began = asyncio.get_running_loop().time()
    try:
        said = str((await transport.send(_post("a"))).status)
    except errors.Unreachable as lost:
        said = str(lost)
    took = asyncio.get_running_loop().time() - began
    return said, len(cluster.list(("", "ConfigMap"))), took


@pytest.mark.parametrize(
    ("weather", "outcome"),
    [
        (Weather(), ("201", 1, 0.0)),
        (Weather(before=Fate(wait=7.0)), ("201", 1, 7.0)),
        (Weather(before=Fate(lost="reset")), ("reset", 0, 0.0)),
        (Weather(before=Fate(answer=Response(status=429))), ("429", 0, 0.0)),
        (Weather(before=Fate(times=2)), ("409", 1, 0.0)),
        (Weather(after=Fate(lost="timeout", wait=30.0)), ("timeout", 1, 30.0)),
        (Weather(after=Fate(answer=Response(status=500))), ("500", 1, 0.0)),
    ],
    ids=["calm", "slow", "lost before", "refused", "twice", "lost after", "lied to"],
)
def test_fates_of_a_request(weather: Weather, outcome: tuple[str, int, float]) -> None:
    """A request meets its fate, before the server or after it, in virtual time."""
    assert loop.run(_sent(weather)) == outcome


async def _watched(weather: Weather) -> tuple[list[str], str]:
    """The names a watch shows of three creations, and how it ended."""
    cluster = _cluster()
    transport = InProcess(cluster, token=cluster.admin_token(), weather=weather)
    for number, name in enumerate("abc", 1):
        asyncio.get_running_loop().call_later(
            number, lambda name=name: cluster.create(config_map(name), manager="m")
        )
    names: list[str] = []
    try:
        async for some in transport.lines(WATCH):
            events = [msgspec.json.decode(line) for line in some]
            names += [event["object"]["metadata"]["name"] for event in events]
    except errors.Unreachable as lost:
        ended = str(lost)
    else:
        ended = "ended"
    assert cluster.table(("", "ConfigMap")).watchers == []
    return names, ended


@pytest.mark.parametrize(
    ("passages", "outcome"),
    [
        ({}, (["a", "b", "c"], "ended")),
        ({2: Passage(lines=())}, (["a", "c"], "ended")),
        ({2: Passage(lines=(), lost="reset")}, (["a"], "reset")),
        ({2: Passage(lines=(), end=True)}, (["a"], "ended")),
        (
            {2: Passage(lines=(b'{"type":"ADD',), end=True)},
            (["a"], "the watch ended in the middle of a line"),
        ),
    ],
    ids=["calm", "line lost", "cut", "ended", "half a line"],
)
def test_passages_of_lines(passages: Mapping[int, Passage], outcome: tuple[list[str], str]) -> None:
    """A line meets its passage; a broken stream is closed at the server as well."""
    assert loop.run(_watched(Weather(passages=passages))) == outcome


async def _refused() -> int:
    cluster = _cluster()
    transport = InProcess(cluster, token="nobody's")
    try:
        await anext(transport.lines(WATCH))
    except errors.Unauthorized as refused:
        return refused.status
    return 0


def test_refused_watch_raises() -> None:
    """A watch that is not opened raises what the server said."""
    assert loop.run(_refused()) == 401


async def _left() -> tuple[int, int]:
    cluster = _cluster()
    transport = InProcess(cluster, token=cluster.admin_token())
    stream = transport.lines(WATCH)
    cluster.create(config_map("a"), manager="m")
    await anext(stream)
    during = len(cluster.table(("", "ConfigMap")).watchers)
    await stream.aclose()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    return during, len(cluster.table(("", "ConfigMap")).watchers)


def test_reader_that_leaves_closes_the_watch() -> None:
    """`aclose` ends the watch at the server."""
    assert loop.run(_left()) == (1, 0)


async def _closed() -> str:
    cluster = _cluster()
    transport = InProcess(cluster, token=cluster.admin_token())
    await transport.close()
    try:
        await transport.send(_post("a"))
    except errors.Unreachable as lost:
        return str(lost)
    return "sent"


def test_closed_transport_sends_nothing() -> None:
    """After `close` nothing goes out."""
    assert loop.run(_closed()) == "the transport is closed"


def test_watch_is_a_stream() -> None:
    """A watch fits the protocol that faces carry."""
    assert isinstance(loop.run(_opened()), Stream)


async def _opened() -> object:
    cluster = _cluster()
    headers = {"authorization": f"Bearer {cluster.admin_token()}"}
    return cluster.handle(WATCH, headers)
