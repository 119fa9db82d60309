"""A BMC is not believed: where the password goes, what counts as an answer, and what is one BMC."""

import json
from typing import Any

import pytest
import requests
from requests.adapters import BaseAdapter

from fleetd import redfish
from fleetd.secrets import Secret

BASE = "https://192.0.2.11:443"
WHO = redfish.Login("root", Secret("a-password"))
LISTED = {"Members": [{"@odata.id": "/redfish/v1/Systems/1"}]}
UUID = "38947555-7742-3448-3784-823347823834"


class Bmc(BaseAdapter):
    """Answers each path as told, and remembers who was asked, and with what."""

    def __init__(self, answers: dict[str, tuple[int, object]], **headers: str) -> None:
        super().__init__()
        self.answers = answers
        self.headers = headers
        self.asked: list[tuple[str, bool]] = []

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        self.asked.append((str(request.url), "Authorization" in request.headers))
        status, body = self.answers.get(str(request.path_url), (404, {}))
        made = requests.Response()
        made.status_code, made.url, made.request = status, str(request.url), request
        made.headers.update(self.headers)
        made._content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return made

    def close(self) -> None:
        return


def ask(bmc: Bmc) -> redfish.Answer:
    session = requests.Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, bmc)
    return redfish.ask(session, BASE, WHO)


@pytest.mark.parametrize(
    "path",
    [
        "@evil.example/redfish/v1/Systems/1",
        ".evil.example/redfish/v1/Systems/1",
        "https://evil.example/redfish/v1/Systems/1",
        ":8443/redfish/v1/Systems/1",
        "/redfish/../../elsewhere",
        "",
        7,
        None,
    ],
)
def test_a_path_that_leads_away_is_not_followed(path: object) -> None:
    """`https://192.0.2.11:443@evil.example/` is another host, and would be given the password."""
    bmc = Bmc({redfish.SYSTEMS: (200, {"Members": [{"@odata.id": path}]})})
    answer = ask(bmc)
    assert bmc.asked == [(f"{BASE}{redfish.SYSTEMS}", True)]
    assert (answer.state, answer.said) == (
        redfish.UNREACHABLE,
        "what it answers is no list of systems",
    )


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    """Neither to another host nor to itself without TLS; it is told as it is."""
    bmc = Bmc({redfish.SYSTEMS: (status, {})}, location="http://192.0.2.11/redfish/v1/Systems")
    answer = ask(bmc)
    assert len(bmc.asked) == 1
    assert (answer.state, answer.said) == (redfish.UNREACHABLE, f"it answers {status}")


@pytest.mark.parametrize(
    "body",
    [
        *(b"<html>welcome</html>", b"", b'{"Members": [', b"[]", b"[" * 100_000, b"\xff\xfe"),
        *({}, {"Members": None}, {"Members": {}}, {"Members": [None]}),
        {"Members": ["/redfish/v1/Systems/1"]},
    ],
)
def test_what_is_no_list_of_systems_is_no_answer(body: object) -> None:
    """A page that says 200 to everything is no BMC, and nothing is enrolled by its word."""
    answer = ask(Bmc({redfish.SYSTEMS: (200, body)}))
    assert answer.state == redfish.UNREACHABLE


def test_a_bmc_tells_how_many_machines_it_has_and_which_is_the_first() -> None:
    """The UUID in one spelling."""
    system = {"UUID": UUID.upper().replace("-", "")}
    answer = ask(Bmc({redfish.SYSTEMS: (200, LISTED), "/redfish/v1/Systems/1": (200, system)}))
    assert answer == redfish.Answer(state=redfish.ANSWERS, systems=1, uuid=UUID)


@pytest.mark.parametrize(
    "uuid",
    [
        "00000000-0000-0000-0000-000000000000",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
        "03000200-0400-0500-0006-000700080009",
        "to be filled by O.E.M.",
        "",
        None,
        [],
    ],
)
def test_a_uuid_that_many_machines_have_makes_no_twins(uuid: object) -> None:
    """Nor another machine of the one that is wanted."""
    system = {"UUID": uuid}
    answer = ask(Bmc({redfish.SYSTEMS: (200, LISTED), "/redfish/v1/Systems/1": (200, system)}))
    assert (answer.uuid, answer.told(UUID)) == ("", {"bmc": redfish.ANSWERS})


@pytest.mark.parametrize(
    "text",
    [
        *("192.0.2.11", "https://192.0.2.11", "HTTPS://192.0.2.11:443/", "192.0.2.11:8443"),
        *("http://192.0.2.11/redfish/v1", "::ffff:192.0.2.11", "https://[::FFFF:c000:20b]"),
        *(" 192.0.2.11 ", "https://192.0.2.11./"),
    ],
)
def test_every_spelling_of_an_address_is_the_same_bmc(text: str) -> None:
    """Scheme, port, path, capitals, a dot at the end, and IPv4 as IPv6."""
    assert redfish.host(text) == "192.0.2.11"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2001:DB8:0:0::1", "https://[2001:db8::1]:443/redfish"),
        ("[2001:db8::1]", "2001:db8:0:0:0:0:0:1"),
        ("https://BMC-1.Example./", "bmc-1.example"),
        ("bmc-1.example:443", "http://bmc-1.example"),
    ],
)
def test_two_spellings_are_one_host(one: str, other: str) -> None:
    """Of IPv6 and of names."""
    assert redfish.host(one) == redfish.host(other)


@pytest.mark.parametrize("text", ["", "https://", "https://[::1", "https://a:b:c", "///", "]["])
def test_nonsense_is_told_apart_and_raises_nothing(text: str) -> None:
    """Somebody else's node may hold anything; one such must not hide all others."""
    assert redfish.host(text) != "192.0.2.11"
    assert redfish.endpoint(text) != redfish.endpoint(BASE)


def test_another_port_or_scheme_is_another_way_in() -> None:
    """It is the same BMC, but the password is not given away over another one."""
    assert redfish.endpoint("192.0.2.11") == redfish.endpoint(BASE)
    for other in ("http://192.0.2.11", "https://192.0.2.11:8443", "https://192.0.2.12"):
        assert redfish.endpoint(other) != redfish.endpoint(BASE)
