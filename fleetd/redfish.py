"""
A BMC, asked by fleetd itself: does it answer, does it take the password, what is behind it.

No metal provider tells in time: metal-operator does not poll and shows Ready with a wrong password,
Ironic notices a dead BMC after minutes, and both serve one machine twice if it is entered twice.
`ask` blocks and is to be called inside `Network.blocking`; it only looks. Certificates are verified
as the session does; a BMC with one that nobody trusts counts as unreachable, and says so. The one
rule: no answer or message holds the password.
"""

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any, cast

import requests

from fleetd import plainyaml
from fleetd.secrets import Secret, SecretError
from topology.resource import Facts, Ref, Topology

TIMEOUT = (3.0, 5.0)
"""Seconds to connect and to answer. A healthy BMC takes one; who takes more blocks others."""
ANSWERS, REFUSED, UNREACHABLE = "answers", "refused", "unreachable"


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
    """Of the first of them."""

    @property
    def facts(self) -> dict[str, Any]:
        """As the catalogue's rules for servers read it."""
        found: dict[str, Any] = {"bmc": self.state}
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
    auth = (who.user, who.password.reveal())
    try:
        listed = session.get(f"{base}/redfish/v1/Systems", auth=auth, timeout=TIMEOUT)
        if listed.status_code in (401, 403):
            return Answer(state=REFUSED, said=f"it answers {listed.status_code} to the password")
        if listed.status_code != 200:
            return Answer(state=UNREACHABLE, said=f"it answers {listed.status_code}")
        members: list[Any] = _object(listed).get("Members") or []
        paths = [str(cast("dict[str, Any]", one).get("@odata.id", "")) for one in members]
        if not paths:
            return Answer(state=ANSWERS)
        first = session.get(f"{base}{paths[0]}", auth=auth, timeout=TIMEOUT)
    except requests.Timeout:
        return Answer(state=UNREACHABLE, hangs=True, said="it takes connections and says nothing")
    except requests.exceptions.SSLError:
        return Answer(state=UNREACHABLE, said="its certificate is not trusted here")
    except requests.RequestException as cause:
        return Answer(state=UNREACHABLE, said=f"no connection: {type(cause).__name__}")
    uuid = str(_object(first).get("UUID") or "").lower() if first.status_code == 200 else ""
    return Answer(state=ANSWERS, systems=len(paths), uuid=uuid)


def _object(response: requests.Response) -> dict[str, Any]:
    try:
        found: Any = response.json()
    except requests.JSONDecodeError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


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
