"""When work may happen: windows that never open, time zones that do not exist, freezes without
an end, budgets of nothing."""

import re
import zoneinfo
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from functools import cache

from topology import complaints
from topology.checks import index as indexes
from topology.checks.index import Finding, Index, Path
from topology.documents.base import Document
from topology.documents.region import Freeze, Region

FREEZE_MAX = timedelta(days=366)
"""After a year without disruptive work every certificate, image and Kubernetes version in the
region has expired. Nobody means that."""

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?")


def open_(fleet: Index) -> Iterator[Finding]:
    """Windows have a length, and a time zone that exists."""
    for region in fleet.every(Region):
        for number, window in enumerate(region.spec.windows):
            at: Path = ("spec", "windows", number)
            if window.from_ == window.to:
                yield fleet.complain(
                    region,
                    (*at, "to"),
                    code="window-empty",
                    message=f"the window opens and closes at {window.to}, so it never opens",
                    hint='for the whole day write from: "00:00", to: "24:00"',
                )
            elif window.from_ == "24:00":
                yield fleet.complain(
                    region,
                    (*at, "from"),
                    code="window-empty",
                    message="no window can open at 24:00, the end of the day",
                    hint='write "00:00" and the following day',
                )
            yield from zone(fleet, region, (*at, "zone"), window.zone)


def freezes(fleet: Index) -> Iterator[Finding]:
    """Freezes begin before they end, and they end."""
    for region in fleet.every(Region):
        spans: list[tuple[datetime, datetime, int]] = []
        for number, freeze in enumerate(region.spec.freezes):
            at: Path = ("spec", "freezes", number)
            yield from zone(fleet, region, (*at, "zone"), freeze.zone)
            first, last = moment(freeze.from_), moment(freeze.to, end=True)
            for field, text, found in (("from", freeze.from_, first), ("to", freeze.to, last)):
                if found is None:
                    yield _not_a_moment(fleet, region, (*at, field), text)
            if first is None or last is None:
                continue
            if last <= first:
                when = "before" if last < first else "the moment"
                yield fleet.complain(
                    region,
                    (*at, "to"),
                    code="freeze-reversed",
                    message=f"the freeze ends at {freeze.to}, {when} it begins"
                    + (f" at {freeze.from_}" if last < first else ""),
                    hint="swap from and to, or correct the year",
                )
            else:
                spans.append((first, last, number))
        yield from _endless(fleet, region, spans)


def budgets(fleet: Index) -> Iterator[Finding]:
    """At least one may be down at a time, or no host is ever updated again."""
    for region in fleet.every(Region):
        given = region.spec.budgets
        for name in ("rack", "zone", "pool", "clusters"):
            if getattr(given, name) == 0:
                yield fleet.complain(
                    region,
                    ("spec", "budgets", name),
                    code="budget-of-nothing",
                    message="with a budget of 0 nothing disruptive could ever start",
                    hint="write 1 or more; to stop a region until further notice, pause it",
                )


def moment(text: str, *, end: bool = False) -> datetime | None:
    """A day or a moment on the wall clock; None if it is none. As an end, a bare day is included
    whole."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        if len(text) > 10:
            return datetime.fromisoformat(text)
        return datetime.combine(date.fromisoformat(text), time.max if end else time.min)
    except ValueError:
        return None


def _not_a_moment(fleet: Index, region: Region, path: Path, text: str) -> Finding:
    return fleet.complain(
        region,
        path,
        code="moment-invalid",
        message=f"{complaints.show(text)} is neither a day nor a moment",
        hint="write 2026-12-20 or 2026-12-20T18:00, without an offset; the time zone goes into "
        "zone",
    )


def _endless(
    fleet: Index, region: Region, spans: list[tuple[datetime, datetime, int]]
) -> Iterator[Finding]:
    """Freezes that touch each other count as one."""
    if not spans:
        return
    begin = reach = min(spans)[0]
    for first, last, number in sorted(spans):
        if first - reach > timedelta(minutes=1):
            begin = reach = first
        if last > reach and last - begin > FREEZE_MAX:
            freeze: Freeze = region.spec.freezes[number]
            days = (last - begin).days + 1
            yield fleet.complain(
                region,
                ("spec", "freezes", number, "to"),
                code="freeze-endless",
                message=f"with this freeze until {freeze.to} nothing disruptive may start for "
                f"{indexes.count(days, 'day')}, more than {FREEZE_MAX.days}: no window would open "
                "in that time",
                hint="end it within a year; to stop a region until further notice, pause it",
            )
        reach = max(reach, last)


def zone(fleet: Index, document: Document, path: Path, name: str) -> Iterator[Finding]:
    if known(name):
        return
    yield fleet.complain(
        document,
        path,
        code="unknown-time-zone",
        message=f"there is no time zone {complaints.show(name)}",
        hint=_hint(fleet, name),
    )


def _hint(fleet: Index, name: str) -> str:
    """`Berlin` means Europe/Berlin, but `CEST` does not mean EST: a guess among abbreviations is
    an hour or six beside the truth."""
    otherwise = "write an IANA name such as Europe/Berlin or UTC"
    if "/" in name:
        return fleet.speller.hint(name, _names(), otherwise)
    place = name.strip().lower().replace(" ", "_")
    found = sorted(zone for zone in _names() if place == zone.lower().rpartition("/")[2])
    return f"did you mean {found[0]!r}? If not, {otherwise}" if found else otherwise


@cache
def _names() -> frozenset[str]:
    """All there are; found by reading directories, so once."""
    return frozenset(zoneinfo.available_timezones())


def known(name: str) -> bool:
    """Whether the IANA database has the zone. `localtime` is whatever this machine thinks."""
    if name in {"localtime", "posixrules", "Factory"} or not name.isascii():
        return False
    try:
        zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True
