"""Faults of single requests and lines by script: in the same words by hand and by seed."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import requests

from fleetd.kube import errors
from fleetd.kube.transport import Request, Response
from fleetd.sim import build, loop, mishaps, script
from fleetd.sim.faces.inprocess import InProcess
from fleetd.sim.faults import Cell, Climate
from fleetd.sim.kube.server import Server
from fleetd.sim.ledger import Ledger
from fleetd.sim.mishaps import Mishaps
from fleetd.sim.script import ScriptError
from fleetd.sim.serve import Faults
from fleetd.sim.world import HttpRequest, HttpResponse, World
from tests.conformance.kube.api import config_map

PATH = "/api/v1/namespaces/default/configmaps"
MINE = {"openbao-eu-1", "openbao-eu-1-0", "ironic-eu-1", "nova-prod"}


class Service:
    def __init__(self) -> None:
        self.reached = 0

    def handle(self, request: HttpRequest) -> HttpResponse:
        del request
        self.reached += 1
        return HttpResponse(status=204)


class Place:
    """One cluster and four services in fair weather."""

    def __init__(self) -> None:
        self.world = World(1, build.START)
        self.cluster = self.world.add_cluster("cp")
        for name in sorted(MINE):
            self.world.services[name] = Service()
        self.climate = Climate(self.world, Ledger())
        self.mishaps = Mishaps(self.world, self.climate, ["cp"])
        token = self.cluster.admin_token()
        self.way = InProcess(Server(self.cluster), token=token, backend="cp", weather=self.climate)

    def begin(self, *lines: str) -> None:
        for line in mishaps.read_all([f"at 0: {line}" for line in lines]):
            self.mishaps.begin(line)

    async def read(self) -> Response:
        return await self.way.send(Request(method="GET", path=PATH))

    async def write(self, name: str) -> Response:
        body = b'{"metadata":{"name":"%s"}}' % name.encode()
        return await self.way.send(Request(method="POST", path=PATH, body=body))

    def has(self, name: str) -> bool:
        return self.cluster.get(("", "ConfigMap"), name, "default") is not None

    def call(self, service: str, method: str = "GET", path: str = "/v1/kv/data/a") -> int:
        asked = HttpRequest(method=method, path=path, query={}, headers={}, body=b"")
        there = self.world.services[service]
        return self.climate.over(service, asked, there).status


def played(story: Callable[[Place], Awaitable[None]]) -> None:
    async def run() -> None:
        place = Place()
        await story(place)
        assert place.world.failures == []

    loop.run(run())


@pytest.mark.parametrize(
    ("how", "status"), [("429", 429), ("5xx", 500), ("503", 503), ("401", 401), ("409", 409)]
)
def test_one_request_is_refused(how: str, status: int) -> None:
    """The next one that it fits, and only that; nothing was done."""

    async def story(place: Place) -> None:
        place.begin(f"requests cp {how}")
        first, second = await place.write("a"), await place.write("b")
        assert (first.status, second.status) == (status, 201)
        assert (place.has("a"), place.has("b")) == (False, True)
        assert place.climate.hits == {Cell(f"requests {how}"): 1}

    played(story)


@pytest.mark.parametrize(("how", "done"), [("reset", False), ("lost-before", False)])
def test_one_request_is_lost(how: str, done: bool) -> None:  # noqa: FBT001
    """Whoever waits for the answer learns only that there is none."""

    async def story(place: Place) -> None:
        place.begin(f"requests cp {how}")
        with pytest.raises(errors.Unreachable):
            await place.write("a")
        assert place.has("a") is done
        assert (await place.write("b")).status == 201

    played(story)


def test_an_answer_is_lost() -> None:
    """What was asked has been done."""

    async def story(place: Place) -> None:
        place.begin("requests cp lost-after")
        with pytest.raises(errors.Unreachable):
            await place.write("a")
        assert place.has("a")

    played(story)


def test_a_write_is_delivered_twice() -> None:
    """The second time it is there already; a read before it is left alone."""

    async def story(place: Place) -> None:
        place.begin("requests cp twice")
        assert (await place.read()).status == 200
        assert (await place.write("a")).status == 409
        assert place.has("a")

    played(story)


def test_a_read_is_stale() -> None:
    """The first that was asked before is answered as then; the next one is fresh again."""

    async def story(place: Place) -> None:
        place.begin("requests cp stale")
        empty = await place.read()
        await place.write("a")
        old, new = await place.read(), await place.read()
        assert old.body == empty.body
        assert b'"name":"a"' in new.body

    played(story)


def test_a_span_meets_every_one() -> None:
    """And none after it."""

    async def story(place: Place) -> None:
        place.begin("requests cp 503 for 2m")
        during = [(await place.read()).status for _ in range(3)]
        await asyncio.sleep(121)
        assert during == [503, 503, 503]
        assert (await place.read()).status == 200
        assert [one.met for one in place.mishaps.begun] == [3]

    played(story)


LINES: dict[str, tuple[list[str], bool]] = {
    "ended": (["a"], True),
    "torn": ([], True),
    "gone": (["410"], True),
    "doubled": (["a", "a", "b", "c"], False),
    "swapped": (["b", "a", "c"], False),
    "missing": (["b", "c"], False),
    "silent": ([], False),
}
"""How: names that come of a, b and c, and whether the watch ends."""


@pytest.mark.parametrize("how", list(LINES))
def test_a_line_of_a_watch(how: str) -> None:
    """One line of the next watch that says something."""

    async def story(place: Place) -> None:
        query = {"watch": "1", "resourceVersion": str(place.cluster.store.version)}
        request = Request(method="GET", path=PATH, query=query)
        came: list[str] = []
        ended: list[bool] = []

        async def follow() -> None:
            try:
                async for lines in place.way.lines(request):
                    came.extend(
                        "410" if "410" in told else told.split('"name":"')[1][0]
                        for told in map(bytes.decode, lines)
                    )
            except errors.Unreachable:
                pass
            ended.append(True)

        task = asyncio.create_task(follow(), name="follower")
        await asyncio.sleep(1)
        place.begin(f"watch cp {how}")
        for name in "abc":
            place.cluster.create(config_map(name, namespace="default"), manager="m")
        await asyncio.sleep(60)
        wanted, over = LINES[how]
        assert came == wanted
        assert bool(ended) is over
        assert [one.met for one in place.mishaps.begun] == [1]
        task.cancel()

    played(story)


def test_a_service_meets_its_own() -> None:
    """OpenBao's on a write of a value, Ironic's on a change, those of every service on any."""

    async def story(place: Place) -> None:
        place.begin(
            "requests openbao-eu-1 cas-mismatch",
            "requests openbao-eu-1 bad-token",
            "requests ironic-eu-1 locked",
            "requests nova-prod 5xx",
        )
        read = place.call("openbao-eu-1-0")
        write = place.call("openbao-eu-1", "POST")
        assert (read, write, place.call("openbao-eu-1", "POST")) == (403, 400, 204)
        node = "/v1/nodes/x"
        assert [place.call("ironic-eu-1", one, node) for one in ("GET", "PATCH")] == [204, 409]
        assert [place.call("nova-prod"), place.call("nova-prod")] == [502, 204]
        place.begin("requests nova-prod lost-after")
        with pytest.raises(requests.ReadTimeout):
            place.call("nova-prod")

    played(story)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("requests cp locked", "cp never meets locked; it can meet 429, 5xx, 503"),
        ("requests nova-prod stale", "nova-prod never meets stale; it can meet 5xx, reset"),
        ("requests ironic-eu-1 bad-token", "ironic-eu-1 never meets bad-token; it can meet"),
        ("requests zz 429", "there is no requests zz; there are"),
        ("watch zz torn", "there is no watch zz; there are cp"),
    ],
)
def test_what_it_never_meets_is_refused(line: str, said: str) -> None:
    """Before the run, with what can be written instead."""

    async def story(place: Place) -> None:
        with pytest.raises(ScriptError, match=said):
            place.begin(line)

    played(story)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "at 1m: requests cp 418",
            "requests cannot be 418; did you mean 401? known: 429, 5xx, 503",
        ),
        ("at 1m: requests cp stael", "did you mean stale?"),
        ("at 1m: request cp 429", "nothing is called request; did you mean requests?"),
        ("at 1m: watch cp tron", "did you mean torn?"),
        ("at 1m: requests cp 429 for ever", "ever is not a duration"),
        ("at 1m: requests cp 429 for -2m", "-2m is not a duration"),
        ("at -1m: requests cp 429", "-1m is not a duration"),
        ("requests cp 429", "is not a fault; write e.g."),
        ("at 1m: requests cp", "is not a fault; write e.g."),
    ],
)
def test_a_misspelt_one_says_what_is_allowed(text: str, said: str) -> None:
    """By script; by hand it is the same reading."""
    with pytest.raises(ScriptError) as caught:
        script.read(text)

    assert said in str(caught.value)


def test_by_hand_in_the_same_words() -> None:
    """POST /faults begins it now; what was met once waits for no mending."""

    async def story(place: Place) -> None:
        face = Faults(place.mishaps)

        def post(text: str) -> tuple[int, str]:
            answer = face.handle(Request(method="POST", path="/faults", body=text.encode()), {})
            assert isinstance(answer, Response)
            return answer.status, answer.body.decode()

        assert post("requests cp 429") == (200, "it begins\n")
        status, said = post("requests cp fine")
        assert (status, "requests cannot be fine" in said) == (400, True)
        post("requests cp 503")
        assert [(await place.read()).status for _ in range(2)] == [429, 503]
        assert post("mend")[1].startswith("nothing is broken")
        post("requests cp 409")
        assert "requests cp 409" in post("mend")[1]
        assert (await place.write("a")).status == 201

    played(story)


def test_every_cell_can_be_written() -> None:
    """The weather's words are those of the script, each explained."""
    words = {one.value for one in Cell}

    assert words == {f"{what} {how}" for what, how in script.AIMED}
    assert all(script.VOCABULARY[what][how] for what, how in script.AIMED)
