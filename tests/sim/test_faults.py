"""The weather: each way to fail does what its name says, and the world shows which it was."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests

from fleetd.kube import errors
from fleetd.kube.transport import Request, Response
from fleetd.sim import build, loop
from fleetd.sim.faces.inprocess import InProcess
from fleetd.sim.faults import NEVER, Cell, Climate, Plight
from fleetd.sim.kube.server import Server
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.world import HttpRequest, HttpResponse, World

MAP = ("", "ConfigMap")
PATH = "/api/v1/namespaces/default/configmaps"
TRIES = 400
"""More than enough for each of eight cells."""


@dataclass
class Counter:
    """A service that counts what reaches it."""

    reached: int = 0

    def handle(self, request: HttpRequest) -> HttpResponse:
        del request
        self.reached += 1
        return HttpResponse(status=200, body=str(self.reached).encode())


@dataclass
class Place:
    """One cluster, one service, and the way to them."""

    seed: int = 1
    ledger: Ledger = field(default_factory=Ledger)
    counter: Counter = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.world = World(self.seed, build.START)
        self.cluster = self.world.add_cluster("hv")
        self.world.services["counter"] = self.counter
        self.climate = Climate(self.world, self.ledger)
        self.wire = InProcess(
            Server(self.cluster),
            token=self.cluster.admin_token(),
            backend="hv",
            weather=self.climate,
        )
        self.session = requests.Session()
        self.session.mount("https://", SimNetwork(self.world, self.climate).adapter(1))

    def there(self, name: str) -> bool:
        return self.cluster.get(MAP, name, "default") is not None

    def put(self, name: str, **data: str) -> None:
        self.cluster.apply(_map(name, data), manager="test")

    async def meet(self, cell: Cell, make: Callable[[str], Request]) -> tuple[str, Any]:
        """Requests, each about a thing of its own, until one met the cell: its name and what
        became of it, an answer or what was raised. Nobody waits for longer than a minute."""
        self.climate.chance = 1.0
        for number in range(TRIES):
            name, before = f"m{number}", self.climate.hits[cell]
            came = await self.ask(make(name))
            if self.climate.hits[cell] > before:
                self.climate.chance = 0.0
                return name, came
        raise AssertionError(f"{cell} was never met")

    async def ask(self, request: Request) -> Response | Exception:
        try:
            async with asyncio.timeout(60):
                return await self.wire.send(request)
        except (TimeoutError, errors.KubeError) as fault:
            return fault

    def call(self) -> str | Exception:
        try:
            got = self.session.post("https://counter.sim/things", timeout=5)
        except requests.RequestException as fault:
            return fault
        return f"{got.status_code} {got.text.strip()}"


def _map(name: str, data: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def creation(name: str) -> Request:
    return Request(method="POST", path=PATH, body=json.dumps(_map(name, {})).encode())


def reading(name: str) -> Request:
    return Request(method="GET", path=f"{PATH}/{name}")


def played(story: Callable[[Place], Awaitable[None]], seed: int = 1) -> None:
    async def run() -> None:
        await story(Place(seed))

    loop.run(run())


def reason(response: Any) -> str:
    assert isinstance(response, Response)
    return str(json.loads(response.body)["reason"])


# Requests to an API server.


@pytest.mark.parametrize(
    ("cell", "status", "said"),
    [
        (Cell.TOO_MANY, 429, "TooManyRequests"),
        (Cell.SERVER_ERROR, 500, "InternalError"),
        (Cell.CONFLICT, 409, "Conflict"),
    ],
)
def test_a_refusal_comes_instead_of_the_write(cell: Cell, status: int, said: str) -> None:
    """The server has not seen what was refused on the way, and the ledger has no deed of it."""

    async def story(place: Place) -> None:
        name, came = await place.meet(cell, creation)
        assert (came.status, reason(came)) == (status, said)
        assert not place.there(name)
        assert place.climate.hits[cell] == 1

    played(story)


def test_too_many_says_when_to_come_back() -> None:
    """A 429 has Retry-After, and the client's error carries it."""

    async def story(place: Place) -> None:
        _, came = await place.meet(Cell.TOO_MANY, creation)
        told = errors.of(came.status, came.body, came.headers)
        assert isinstance(told, errors.TooMany)
        assert told.retry_after == 3

    played(story)


def test_a_plain_503_is_no_status_object() -> None:
    """An aggregated API that is away answers in plain text."""

    async def story(place: Place) -> None:
        name, came = await place.meet(Cell.PLAIN_503, creation)
        assert (came.status, came.body) == (503, b"service unavailable\n")
        assert not place.there(name)

    played(story)


def test_a_reset_is_unreachable_and_nothing_was_done() -> None:
    """The connection breaks before the server has the request."""

    async def story(place: Place) -> None:
        name, came = await place.meet(Cell.RESET, creation)
        assert isinstance(came, errors.Unreachable)
        assert not place.there(name)

    played(story)


def test_lost_before_apply_leaves_nothing_not_even_later() -> None:
    """The client's time runs out and the object is not there; no late arrival makes it."""

    async def story(place: Place) -> None:
        name, came = await place.meet(Cell.LOST_BEFORE, creation)
        assert isinstance(came, TimeoutError)
        await asyncio.sleep(2 * NEVER)
        assert not place.there(name)

    played(story)


def test_lost_before_apply_reaches_no_server_when_nobody_gives_up() -> None:
    """A client without a deadline is told in the end that there was no answer."""

    async def story(place: Place) -> None:
        place.climate.plights["hv"] = Plight.FROZEN
        with pytest.raises(errors.Unreachable, match="no answer came"):
            await place.wire.send(creation("late"))
        assert place.world.elapsed() >= NEVER
        assert not place.there("late")

    played(story)


def test_lost_after_apply_leaves_the_object() -> None:
    """The client's time runs out all the same, but the object is there and in the ledger."""

    async def story(place: Place) -> None:
        name, came = await place.meet(Cell.LOST_AFTER, creation)
        assert isinstance(came, TimeoutError)
        assert place.there(name)
        assert place.ledger.deeds[-1].method == "POST"

    played(story)


def test_delivered_twice_is_done_twice() -> None:
    """A creation that arrives twice makes the object and then answers that it exists."""

    async def story(place: Place) -> None:
        name, came = await place.meet(Cell.TWICE, creation)
        assert (came.status, reason(came)) == (409, "AlreadyExists")
        assert place.there(name)

    played(story)


def test_a_stale_read_gives_what_was_read_before() -> None:
    """The old content comes once more, though the world has moved on; never an old refusal."""

    async def story(place: Place) -> None:
        place.put("one", value="0")
        place.climate.chance = 1.0
        seen: list[int] = []
        for number in range(1, TRIES):
            place.put("one", value=str(number))
            stale = place.climate.hits[Cell.STALE_READ]
            came = await place.ask(reading("one"))
            if place.climate.hits[Cell.STALE_READ] > stale:
                assert isinstance(came, Response)
                assert came.status == 200
                seen.append(number - int(json.loads(came.body)["data"]["value"]))
        assert seen[0] == 0, "nothing older was read yet"
        assert all(age > 0 for age in seen[1:])
        assert len(seen) > 2

    played(story)


def test_a_request_that_was_given_up_leaves_its_fate_to_nobody() -> None:
    """In fair weather nothing happens to requests, whatever happened to those before them."""

    async def story(place: Place) -> None:
        place.climate.chance = 1.0
        for number in range(200):
            try:
                async with asyncio.timeout(0.001):
                    await place.wire.send(creation(f"short{number}"))
            except (TimeoutError, errors.KubeError):
                pass
        place.climate.chance = 0.0
        for number in range(200):
            came = await place.ask(creation(f"fair{number}"))
            assert isinstance(came, Response)
            assert came.status == 201

    played(story)


# Watches.


async def met_on_line(place: Place, cell: Cell) -> tuple[list[dict[str, Any]], Exception | None]:
    """Watches, until one meets the cell on its first line: what came, and how it ended."""
    for number in range(TRIES):
        place.climate.chance = 0.0
        before = place.climate.hits[cell]
        query = {"watch": "true", "resourceVersion": str(place.cluster.store.version)}
        lines = place.wire.lines(Request(method="GET", path=PATH, query=query))
        got: list[dict[str, Any]] = []
        ended: Exception | None = None

        def change(name: str = f"w{number}") -> None:
            # A tenth of the chance is for lines.
            place.climate.chance = 10.0
            place.put(name)

        place.world.after(1, change)
        try:
            async with asyncio.timeout(60):
                async for some in lines:
                    got += [json.loads(line) for line in some]
        except (TimeoutError, errors.KubeError) as fault:
            ended = fault
        if place.climate.hits[cell] > before:
            return got, ended
    raise AssertionError(f"{cell} was never met")


def test_a_dropped_watch_ends_after_a_line() -> None:
    """As if the server had ended it: the line came, then it is over."""

    async def story(place: Place) -> None:
        got, ended = await met_on_line(place, Cell.WATCH_DROPPED)
        assert [line["type"] for line in got] == ["ADDED"]
        assert ended is None

    played(story)


def test_half_a_line_is_a_broken_connection() -> None:
    """Nothing of it is delivered."""

    async def story(place: Place) -> None:
        got, ended = await met_on_line(place, Cell.HALF_LINE)
        assert got == []
        assert isinstance(ended, errors.Unreachable)

    played(story)


def test_a_stalled_watch_says_nothing() -> None:
    """No line, no end: only the client's own time tells."""

    async def story(place: Place) -> None:
        got, ended = await met_on_line(place, Cell.STALLED)
        assert got == []
        assert isinstance(ended, TimeoutError)

    played(story)


def test_gone_is_an_error_line() -> None:
    """410 comes as an ERROR line with a Status, as a real watch says it."""

    async def story(place: Place) -> None:
        got, ended = await met_on_line(place, Cell.GONE)
        assert [(line["type"], line["object"]["code"]) for line in got] == [("ERROR", 410)]
        assert isinstance(errors.of_status(got[0]["object"]), errors.Gone)
        assert ended is None

    played(story)


def test_an_event_that_comes_twice_is_the_same_line() -> None:
    """Word for word."""

    async def story(place: Place) -> None:
        got, _ = await met_on_line(place, Cell.DUPLICATED)
        assert [line["type"] for line in got[:2]] == ["ADDED", "ADDED"]
        assert got[0] == got[1]

    played(story)


def test_an_event_that_is_missed_never_comes() -> None:
    """The watch goes on as if nothing had happened."""

    async def story(place: Place) -> None:
        got, ended = await met_on_line(place, Cell.MISSED)
        assert got == []
        assert isinstance(ended, TimeoutError)

    played(story)


def _line(kind: str, name: str, number: int) -> bytes:
    metadata = {"name": name, "namespace": "default", "resourceVersion": str(number)}
    return json.dumps({"type": kind, "object": {"metadata": metadata}}).encode() + b"\n"


@pytest.mark.parametrize(
    ("kind", "name", "order"),
    [
        ("MODIFIED", "other", [2, 1]),
        ("MODIFIED", "one", [1, 2]),
        ("BOOKMARK", "", [1, 2]),
    ],
)
def test_events_are_swapped_across_objects_only(kind: str, name: str, order: list[int]) -> None:
    """What is held back comes after the next line of another object; those of one object keep
    their order, and nothing comes after the bookmark that has counted it."""

    async def story(place: Place) -> None:
        request = Request(method="GET", path=PATH)
        first, second = _line("MODIFIED", "one", 1), _line(kind, name, 2)
        for _ in range(TRIES):
            place.climate.chance = 10.0
            before = place.climate.hits[Cell.REORDERED]
            held = place.climate.line("hv", request, first)
            place.climate.chance = 0.0
            if place.climate.hits[Cell.REORDERED] > before:
                assert held.lines == ()
                passed = place.climate.line("hv", request, second).lines
                numbers = [json.loads(one)["object"]["metadata"] for one in passed]
                assert [int(one["resourceVersion"]) for one in numbers] == order
                return
            place.climate.before("hv", request)
        raise AssertionError("never met")

    played(story)


def test_a_watch_is_never_read_from_the_past() -> None:
    """A watch opened again at the same version is opened, or refused by a fault that says so."""

    async def story(place: Place) -> None:
        query = {"watch": "true", "resourceVersion": str(place.cluster.store.version)}
        place.climate.chance = 1.0
        told: list[Exception] = []
        for _ in range(100):
            try:
                async with asyncio.timeout(10):
                    async for _ in place.wire.lines(Request(method="GET", path=PATH, query=query)):
                        pass
            except (TimeoutError, errors.KubeError) as fault:
                told.append(fault)
        assert place.climate.hits[Cell.STALE_READ] > 5
        refused = [one for one in told if isinstance(one, errors.KubeError)]
        assert {one.status for one in refused} == {0, 401, 429, 500, 503}

    played(story)


# Plights.


@pytest.mark.parametrize(
    ("plight", "seen"),
    [
        (Plight.UNREACHABLE, "Unreachable"),
        (Plight.FROZEN, "TimeoutError"),
        (Plight.FAILING, "500"),
        (Plight.BUSY, "429"),
        (Plight.SLOW, "201"),
        (Plight.EXPIRED, "401"),
        (Plight.ONE_WAY, "TimeoutError"),
    ],
)
def test_a_plight_meets_every_request_until_it_is_lifted(plight: Plight, seen: str) -> None:
    """Only requests to this backend, only while it lasts; only a slow one, and one whose
    answers are lost, does what was asked."""

    async def story(place: Place) -> None:
        place.climate.plights["hv"] = plight
        for name in ("a", "b"):
            before = place.world.elapsed()
            came = await place.ask(creation(name))
            shown = str(came.status) if isinstance(came, Response) else type(came).__name__
            assert shown == seen
            assert place.there(name) is (plight in (Plight.SLOW, Plight.ONE_WAY))
            assert plight is not Plight.SLOW or 3 <= place.world.elapsed() - before <= 8
        assert place.climate.suffered[plight] == 2
        assert place.call() == "200 1"
        del place.climate.plights["hv"]
        came = await place.ask(creation("c"))
        assert isinstance(came, Response)
        assert came.status == 201

    played(story)


# Chance.


def weather(seed: int, chance: float) -> list[str]:
    """What a hundred writes and calls met."""
    met: list[str] = []

    async def story(place: Place) -> None:
        place.climate.chance = chance
        for number in range(100):
            for came in (await place.ask(creation(f"m{number}")), place.call()):
                known = came.status if isinstance(came, Response) else came
                met.append(str(known) if isinstance(known, int | str) else type(known).__name__)
        met.append(str(sorted(place.climate.hits.items())))

    played(story, seed)
    return met


def test_without_chance_there_is_never_a_fault() -> None:
    """Chance 0: everything succeeds, nothing is counted."""
    assert weather(1, 0.0) == [
        word for number in range(1, 101) for word in ("201", f"200 {number}")
    ] + ["[]"]


def test_the_same_seed_draws_the_same_faults() -> None:
    """And another seed others."""
    assert weather(1, 0.3) == weather(1, 0.3)
    assert weather(1, 0.3) != weather(2, 0.3)
