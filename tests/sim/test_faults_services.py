"""The weather before services that are no API servers: reached or not, in their own words."""

import pytest
import requests

from fleetd.sim.faults import Cell, Plight
from fleetd.sim.world import HttpRequest, HttpResponse
from tests.sim.test_faults import TRIES, Place, played


@pytest.mark.parametrize(
    ("cell", "seen", "reached"),
    [
        (Cell.SERVER_ERROR, "502 bad gateway", False),
        (Cell.RESET, "ConnectionError", False),
        (Cell.LOST_BEFORE, "ConnectionError", False),
        (Cell.LOST_AFTER, "ReadTimeout", True),
    ],
)
def test_a_service_is_reached_or_not(cell: Cell, seen: str, reached: bool) -> None:  # noqa: FBT001
    """What the session of `requests` sees, and whether the service had the request."""

    async def story(place: Place) -> None:
        place.climate.chance = 1.0
        for _ in range(TRIES):
            before, count = place.climate.hits[cell], place.counter.reached
            came = place.call()
            if place.climate.hits[cell] > before:
                assert (came if isinstance(came, str) else type(came).__name__) == seen
                assert (place.counter.reached > count) is reached
                return
        raise AssertionError(f"{cell} was never met")

    played(story)


@pytest.mark.parametrize(
    ("plight", "seen"),
    [
        (Plight.UNREACHABLE, "ConnectTimeout"),
        (Plight.FROZEN, "ConnectTimeout"),
        (Plight.FAILING, "503 service unavailable"),
        (Plight.BUSY, "503 service unavailable"),
    ],
)
def test_a_service_in_a_plight_is_not_reached(plight: Plight, seen: str) -> None:
    """Until it is lifted."""

    async def story(place: Place) -> None:
        place.climate.plights["counter"] = plight
        came = place.call()
        assert (came if isinstance(came, str) else type(came).__name__) == seen
        assert place.counter.reached == 0
        del place.climate.plights["counter"]
        assert place.call() == "200 1"
        assert [deed.where for deed in place.ledger.deeds] == ["counter"]

    played(story)


def test_answers_of_a_service_can_be_lost_one_way() -> None:
    """It was asked, and did it; the client hears nothing."""

    async def story(place: Place) -> None:
        place.climate.plights["counter"] = Plight.ONE_WAY
        assert isinstance(place.call(), requests.ReadTimeout)
        assert place.counter.reached == 1

    played(story)


def _at(place: Place, name: str, path: str, method: str = "POST") -> HttpResponse:
    request = HttpRequest(method=method, path=path, query={}, headers={}, body=b"")
    return place.climate.over(name, request, place.counter)


@pytest.mark.parametrize(
    ("name", "path", "plight", "status", "said"),
    [
        ("openbao-x", "/v1/kv/data/a", Plight.STANDBY, 500, b"active cluster node not found"),
        ("openbao-x", "/v1/kv/data/a", Plight.AUDIT_BLOCKED, 500, b"no audit backend succeeded"),
        ("ironic-x", "/v1/nodes", Plight.LOCKED, 409, b"is locked by host"),
    ],
)
def test_services_suffer_in_their_own_words(
    name: str, path: str, plight: Plight, status: int, said: bytes
) -> None:
    """And what is asked about their own state is answered all the same."""

    async def story(place: Place) -> None:
        place.climate.plights[name] = plight
        refused = _at(place, name, path)
        assert refused.status == status
        assert said in refused.body
        assert place.counter.reached == 0
        assert _at(place, name, "/v1/sys/health", "GET").status == 200

    played(story)


@pytest.mark.parametrize(
    ("cell", "name", "path", "status"),
    [
        (Cell.BAD_TOKEN, "openbao-x", "/v1/kv/metadata/a", 403),
        (Cell.AUDIT_BLOCKED, "openbao-x", "/v1/kv/metadata/a", 500),
        (Cell.CAS_MISMATCH, "openbao-x", "/v1/kv/data/a", 400),
        (Cell.LOCKED, "ironic-x", "/v1/nodes", 409),
    ],
)
def test_services_refuse_by_chance(cell: Cell, name: str, path: str, status: int) -> None:
    """What was refused did not reach them."""

    async def story(place: Place) -> None:
        place.climate.chance = 1.0
        for _ in range(TRIES):
            before, reached = place.climate.hits[cell], place.counter.reached
            try:
                came = _at(place, name, path)
            except requests.RequestException:
                continue
            if place.climate.hits[cell] > before:
                assert (came.status, place.counter.reached) == (status, reached)
                return
        raise AssertionError(f"{cell} was never met")

    played(story)


def test_a_name_that_nobody_has_is_a_connection_error() -> None:
    """As an unknown host is."""

    async def story(place: Place) -> None:
        with pytest.raises(requests.ConnectionError, match=r"nobody\.sim: no such host"):
            place.session.get("https://nobody.sim/", timeout=5)

    played(story)
