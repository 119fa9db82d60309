"""
The Redfish wire of one BMC: does it answer, does it take the password, what is behind it.

Blocking, to be called inside `Network.blocking`. Only looks. Certificates are verified as the
session does; a BMC with a certificate that nobody trusts counts as unreachable, and says so. No
answer or message holds the password.
"""

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Any, cast

import requests

from fleetd.secrets import Secret

TIMEOUT = (3.0, 5.0)
"""Seconds to connect and to answer. A healthy BMC takes one; who takes more blocks others."""
ANSWERS, REFUSED, UNREACHABLE = "answers", "refused", "unreachable"


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


def address(ip: str, port: int, scheme: str) -> str:
    host = f"[{ip}]" if isinstance(ip_address(ip), IPv6Address) else ip
    return f"{scheme}://{host}:{port}"


def ask(session: requests.Session, base: str, user: str, password: Secret) -> Answer:
    """An authenticated look at the systems, and at the first of them: the service root is open to
    everybody and proves nothing."""
    login = (user, password.reveal())
    try:
        listed = session.get(f"{base}/redfish/v1/Systems", auth=login, timeout=TIMEOUT)
        if listed.status_code in (401, 403):
            return Answer(state=REFUSED, said=f"it answers {listed.status_code} to the password")
        if listed.status_code != 200:
            return Answer(state=UNREACHABLE, said=f"it answers {listed.status_code}")
        members: list[Any] = _object(listed).get("Members") or []
        paths = [str(cast("dict[str, Any]", one).get("@odata.id", "")) for one in members]
        if not paths:
            return Answer(state=ANSWERS)
        first = session.get(f"{base}{paths[0]}", auth=login, timeout=TIMEOUT)
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
