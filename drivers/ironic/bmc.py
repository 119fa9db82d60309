"""
A BMC, asked by fleetd itself: does it answer, and does it take the password.

Neither Ironic nor anybody else tells in time: it notices a dead BMC after minutes, and a password
that is wrong only when it needs it. Blocking, to be called inside `Network.blocking`; only looks.
No answer holds the password.
"""

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any, cast

import requests

from fleetd import plainyaml
from fleetd.secrets import Secret, SecretError

TIMEOUT = (3.0, 5.0)
"""Seconds to connect and to answer. A healthy BMC takes one."""
ANSWERS, REFUSED, UNREACHABLE = "answers", "refused", "unreachable"


@dataclass(frozen=True, slots=True)
class Login:
    user: str
    password: Secret


@dataclass(frozen=True, slots=True)
class Answer:
    state: str
    """answers, refused or unreachable."""
    said: str = ""
    uuid: str = ""
    """Of the machine behind it."""


def address(ip: str, port: int, scheme: str) -> str:
    host = f"[{ip}]" if isinstance(ip_address(ip), IPv6Address) else ip
    return f"{scheme}://{host}:{port}"


def login(text: Secret, owner: str) -> Login:
    """From what the pool's access names."""
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
    """An authenticated look: the service root is open to everybody and proves nothing."""
    auth = (who.user, who.password.reveal())
    try:
        listed = session.get(f"{base}/redfish/v1/Systems", auth=auth, timeout=TIMEOUT)
        if listed.status_code in (401, 403):
            return Answer(REFUSED, f"it answers {listed.status_code} to the password")
        if listed.status_code != 200:
            return Answer(UNREACHABLE, f"it answers {listed.status_code}")
        members: list[Any] = _object(listed).get("Members") or []
        if not members:
            return Answer(ANSWERS)
        first = str(members[0].get("@odata.id", ""))
        system = session.get(f"{base}{first}", auth=auth, timeout=TIMEOUT)
    except requests.exceptions.SSLError:
        return Answer(UNREACHABLE, "its certificate is not trusted here")
    except requests.RequestException as cause:
        return Answer(UNREACHABLE, f"no connection: {type(cause).__name__}")
    uuid = str(_object(system).get("UUID") or "").lower() if system.status_code == 200 else ""
    return Answer(ANSWERS, uuid=uuid)


def _object(response: requests.Response) -> dict[str, Any]:
    try:
        found: Any = response.json()
    except requests.JSONDecodeError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
