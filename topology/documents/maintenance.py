"""Maintenance: take a host, a rack or a zone down for a reason, safely."""

import re
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema, model_validator

from topology.documents.base import Document, Model, Name, complain, not_one

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d)", re.ASCII)


def parse_moment(value: str) -> datetime | None:
    """A moment with its offset, e.g. `2026-03-01T22:00+01:00`; None if it is none."""
    if not _MOMENT.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _moment(value: str) -> str:
    try:
        found = parse_moment(value)
        usable = found is not None and found.timestamp() >= 0
    except (OverflowError, ValueError):
        usable = False
    if not usable:
        raise complain(
            "moment-invalid",
            f"{value[:40]!r} is not a moment",
            "write day, time and offset, e.g. 2026-03-01T22:00+01:00 or 2026-03-01T21:00Z",
        )
    return value


Moment = Annotated[
    str,
    AfterValidator(_moment),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?"
            r"(Z|[+-][0-9]{2}:[0-9]{2})$",
        }
    ),
]


class MaintenanceSpec(Model):
    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": [part]} for part in ("host", "rack", "zone")]}
    )

    region: Name
    """Region it happens in."""
    host: Name | None = None
    """One server; or `rack`, or `zone`."""
    rack: Name | None = None
    """All servers of a rack."""
    zone: Name | None = None
    """All servers of a zone. Needs approval, and storage that survives it."""
    reason: str = Field(min_length=1, max_length=500)
    """Why; shown to everybody who asks."""
    from_: Moment | None = Field(default=None, alias="from")
    """When it may begin, with offset, e.g. 2026-03-01T22:00+01:00; at once if left out."""
    to: Moment | None = None
    """When it ends by itself, with offset; when the document is removed, if left out."""
    evacuate: bool = True
    """Move virtual machines away first. False: they go down with their host."""

    @model_validator(mode="after")
    def _makes_sense(self) -> "MaintenanceSpec":
        if said := not_one(self, "host", "rack", "zone"):
            raise complain(
                "maintenance-not-one",
                f"{said} given, but a maintenance is of exactly one of host, rack, zone",
                "keep one of them; make a document of each"
                if said.endswith("are")
                else "add host: <server>, rack: <rack> or zone: <zone>",
            )
        begin, end = (parse_moment(value) if value else None for value in (self.from_, self.to))
        if begin is not None and end is not None and end <= begin:
            raise complain(
                "maintenance-ends-early",
                "it ends before it begins",
                "move `to` behind `from`; mind the offsets",
                field="to",
            )
        return self


class Maintenance(Document):
    """Take this host, rack or zone down for a reason, safely."""

    kind: Literal["Maintenance"]
    """Always `Maintenance`."""
    spec: MaintenanceSpec
    """What goes down, why and when."""
