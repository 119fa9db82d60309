"""
A BMC, asked by fleetd itself: does it answer, does it take the password, what is behind it.

No metal provider tells in time: metal-operator does not poll and shows Ready with a wrong password,
Ironic notices a dead BMC after minutes, and both serve one machine twice if it is entered twice.
`ask` blocks and is to be called inside `Network.blocking`; it only looks. Certificates are verified
as the session does; a BMC with one that nobody trusts counts as unreachable, and says so. The one
rule: the password goes to the address of the documents and nowhere else, whatever a BMC answers;
and no answer or message holds it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any, cast
from urllib.parse import urlsplit
from uuid import UUID

import requests

from fleetd import plainyaml
from fleetd.secrets import Secret, SecretError
from topology.resource import Facts, Ref, Topology

TIMEOUT = (3.0, 5.0)
"""Seconds to connect and to answer. A healthy BMC takes one; who takes more blocks others."""
ANSWERS, REFUSED, UNREACHABLE = "answers", "refused", "unreachable"
SYSTEMS = "/redfish/v1/Systems"
PORTS = {"https": 443, "http": 80}
_NOBODYS = {0, 2**128 - 1, UUID("03000200-0400-0500-0006-000700080009").int}
"""What a board says that nobody gave a UUID: many machines have it."""


@dataclass(frozen=True, slots=True)
class Login:
    user: str
    password: Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    state: str
    """answers, refused or unreachable."""
    hangs: bool = False
    """Took the connection and said nothing."""
    said: str = ""
    systems: int = 0
    """How many machines are behind it; 0 if it was not asked."""
    uuid: str = ""
    """Of the first of them; empty if it has none of its own."""

    def told(self, expected: object) -> dict[str, Any]:
        """As the catalogue's rules for servers read it. `expected`: the UUID that the machine
        should have, as far as that is known."""
        found: dict[str, Any] = {"bmc": self.state}
        if self.uuid and expected and self.uuid != same_uuid(expected):
            found["otherMachine"] = self.uuid
        if self.said:
            found["said"] = self.said
        if self.systems > 1:
            found["systems"] = self.systems
        return found


def address(spec: Facts) -> str:
    """Where the BMC of a server is. Raises ValueError if that is not an IP address."""
    ip, where = str(spec["bmc"]), spec["redfish"]
    host = f"[{ip}]" if isinstance(ip_address(ip), IPv6Address) else ip
    return f"{where['scheme']}://{host}:{where['port']}"


def host(text: str) -> str:
    """Of an address of a BMC that somebody wrote, however it is spelled: with or without scheme,
    port and path, in capitals, with a dot at its end, IPv4 inside of IPv6. What this is the same
    of leads to one BMC."""
    plain = text.strip().strip("[]")
    try:
        found = ip_address(plain)
    except ValueError:
        try:
            named = urlsplit(text.strip() if "//" in text else f"//{text.strip()}").hostname or ""
            found = ip_address(named)
        except ValueError:
            return _name(text)
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return str(mapped or found).partition("%")[0]


def _name(text: str) -> str:
    try:
        found = urlsplit(text.strip() if "//" in text else f"//{text.strip()}").hostname
    except ValueError:
        found = None
    return (found or text.strip()).rstrip(".").lower()


def endpoint(text: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of such an address. Without a scheme it is https, as for Ironic."""
    try:
        parts = urlsplit(text.strip() if "//" in text else f"https://{text.strip()}")
        return parts.scheme.lower(), host(text), parts.port or PORTS.get(parts.scheme.lower())
    except ValueError:
        return "", host(text), None


def same_uuid(text: object) -> str:
    """In one spelling; empty if it says nothing about which machine it is."""
    try:
        found = UUID(str(text))
    except ValueError:
        return ""
    return "" if found.int in _NOBODYS else str(found)


def login(text: Secret, owner: str) -> Login:
    """From what the pool's access names: a mapping with username and password."""
    try:
        found: Any = plainyaml.load(text.reveal())
    except plainyaml.Error:
        found = None
    given = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if not given.get("username") or not given.get("password"):
        raise SecretError(
            f"the access of {owner} has no username and password; write "
            "{username: ..., password: ...}"
        )
    return Login(str(given["username"]), Secret(str(given["password"])))


def ask(session: requests.Session, base: str, who: Login) -> Answer:
    """An authenticated look at the systems, and at the first of them: the service root is open to
    everybody and proves nothing."""

    def get(path: str) -> requests.Response:
        # A redirect would be followed to another host, or to the same one without TLS.
        return session.get(
            f"{base}{path}",
            auth=(who.user, who.password.reveal()),
            timeout=TIMEOUT,
            allow_redirects=False,
        )

    try:
        listed = get(SYSTEMS)
        if listed.status_code in (401, 403):
            return Answer(state=REFUSED, said=f"it answers {listed.status_code} to the password")
        if listed.status_code != 200:
            return Answer(state=UNREACHABLE, said=f"it answers {listed.status_code}")
        paths = _members(listed)
        if paths is None:
            return Answer(state=UNREACHABLE, said="what it answers is no list of systems")
        if not paths:
            return Answer(state=ANSWERS)
        first = get(paths[0])
    except requests.Timeout:
        return Answer(state=UNREACHABLE, hangs=True, said="it takes connections and says nothing")
    except requests.exceptions.SSLError:
        return Answer(state=UNREACHABLE, said="its certificate is not trusted here")
    except requests.RequestException as cause:
        return Answer(state=UNREACHABLE, said=f"no connection: {type(cause).__name__}")
    uuid = same_uuid(_object(first).get("UUID")) if first.status_code == 200 else ""
    return Answer(state=ANSWERS, systems=len(paths), uuid=uuid)


def _members(listed: requests.Response) -> list[str] | None:
    """The paths of its systems; None if this is no answer of a BMC, or leads away from it: what
    does not begin as a path could be read as another host."""
    found = _object(listed).get("Members")
    if not isinstance(found, list):
        return None
    paths: list[str] = []
    for one in cast("list[Any]", found):
        path = cast("Mapping[str, Any]", one).get("@odata.id") if isinstance(one, Mapping) else ""
        if not str(path).startswith("/redfish/") or ".." in str(path):
            return None
        paths.append(str(path))
    return paths


def _object(response: requests.Response) -> Mapping[str, Any]:
    try:
        found: Any = response.json()
    except (requests.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", found) if isinstance(found, dict) else {}


class Machines:
    """Which machine each server's BMC leads to, as the BMCs said: of two entries for one machine
    neither has an object yet that would tell, and both would be enrolled at the same time."""

    def __init__(self) -> None:
        self._uuids: dict[str, str] = {}
        self._names: dict[str, set[str]] = {}

    def note(self, server: str, uuid: str) -> None:
        """What its BMC said last; an empty uuid is no answer, and changes nothing."""
        old = self._uuids.get(server, "")
        if uuid and uuid != old:
            self._names.get(old, set()).discard(server)
            self._uuids[server] = uuid
            self._names.setdefault(uuid, set()).add(server)

    def twin(self, server: str, topology: Topology) -> str:
        """Another server of the documents that is the same machine; empty if there is none."""
        same = self._names.get(self._uuids.get(server, ""), set())
        others = (name for name in sorted(same) if name != server)
        return next((name for name in others if Ref("server", name) in topology.resources), "")
