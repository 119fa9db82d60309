"""One request to OpenBao, taken apart: what is asked of which backend, and by whom."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from fleetd.sim.services.openbao import answers
from fleetd.sim.services.openbao.data import Token
from fleetd.sim.world import HttpRequest

_OPERATIONS = {
    "GET": "read",
    "HEAD": "read",
    "LIST": "list",
    "POST": "update",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    operation: str
    """read, list, update (also what creates), patch, delete."""
    path: str
    """Below the backend's mount."""
    query: Mapping[str, str]
    body: Mapping[str, Any]
    token: Token | None
    now: datetime


def operation(request: HttpRequest) -> str:
    found = _OPERATIONS.get(request.method)
    if found is None:
        raise answers.Refused(405)
    if found == "read" and request.query.get("list") == "true":
        return "list"
    return found


def body(request: HttpRequest) -> Mapping[str, Any]:
    if not request.body:
        return {}
    try:
        return msgspec.json.decode(request.body, type=dict[str, Any])
    except msgspec.MsgspecError:
        raise answers.Refused(400, "failed to parse JSON input: invalid character") from None


def words(value: object) -> list[str]:
    """A list, or text with commas: OpenBao takes both everywhere."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [str(one) for one in value] if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def seconds(value: object, default: int) -> int:
    """`1h`, `90m`, `30s`, a number or nothing."""
    if isinstance(value, int) and value:
        return value
    text = str(value or "")
    if not text:
        return default
    if text.isdigit():
        return int(text) or default
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    total, number = 0, ""
    for character in text:
        if character.isdigit():
            number += character
        elif character in units and number:
            total, number = total + int(number) * units[character], ""
        else:
            raise answers.Refused(400, f"error converting input {text!r}: invalid duration")
    return total
