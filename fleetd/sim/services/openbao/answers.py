"""How OpenBao answers: JSON with `data` or `auth`, or a code and a list of errors."""

from collections.abc import Mapping
from typing import Any

import msgspec

from fleetd.sim.world import HttpResponse

JSON = {"content-type": "application/json"}


class Refused(Exception):
    """An answer other than what was asked for, in OpenBao's own words."""

    def __init__(self, status: int, *errors: str) -> None:
        super().__init__("; ".join(errors))
        self.status = status
        self.errors = errors

    def response(self) -> HttpResponse:
        return plain(self.status, {"errors": list(self.errors)})


def plain(status: int, body: Mapping[str, Any]) -> HttpResponse:
    return HttpResponse(status=status, body=msgspec.json.encode(body), headers=JSON)


def data(found: Mapping[str, Any], *, lease: str = "", seconds: int = 0) -> HttpResponse:
    return plain(200, _envelope(found, None, lease, seconds))


def auth(granted: Mapping[str, Any]) -> HttpResponse:
    return plain(200, _envelope(None, granted, "", 0))


def nothing() -> HttpResponse:
    return HttpResponse(status=204)


def keys(found: list[str]) -> HttpResponse:
    """A list; an empty one is a 404, which surprises everybody once."""
    if not found:
        raise Refused(404)
    return data({"keys": found})


def _envelope(
    found: Mapping[str, Any] | None, granted: Mapping[str, Any] | None, lease: str, seconds: int
) -> dict[str, Any]:
    return {
        "request_id": "",
        "lease_id": lease,
        "renewable": bool(lease),
        "lease_duration": seconds,
        "data": found,
        "wrap_info": None,
        "warnings": None,
        "auth": granted,
    }


def denied() -> Refused:
    return Refused(403, "permission denied")


def sealed() -> Refused:
    return Refused(503, "Vault is sealed")
