"""
When disruptive work may start: maintenance windows and freezes, in their own time zones. Pure.

A window is open on `[from, to)` of the wall clock; a freeze closes everything, whatever the windows
say; without any window it is always open. The wall clock jumps, so two rules settle what it means:
a time that the clock skips (spring) is the first moment after the jump, and a time that it shows
twice (autumn) is the first of the two. A window therefore never opens twice in one night, and one
that lies wholly in the skipped hour does not open at all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from topology.documents import region

_DAYS = {day: number for number, day in enumerate(region.Day)}
_DAY = timedelta(days=1)
_HORIZON = timedelta(days=400)
"""How far ahead a change is looked for: more than a year, so that yearly freezes are seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    days: frozenset[int]
    """Weekdays on which it opens; Monday is 0."""
    start: timedelta
    """After local midnight."""
    end: timedelta
    """After the same midnight; more than a day when it closes on the next one."""
    zone: ZoneInfo

    @classmethod
    def of(cls, document: region.Window) -> "Window":
        start, end = _time(document.from_), _time(document.to)
        return cls(
            days=frozenset(_DAYS[day] for day in document.days),
            start=start,
            end=end if end > start else end + _DAY,
            zone=ZoneInfo(document.zone),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    start: datetime
    end: datetime
    reason: str

    @classmethod
    def of(cls, document: region.Freeze) -> "Freeze":
        zone = ZoneInfo(document.zone)
        return cls(
            start=_moment(document.from_, zone, whole_day=False),
            end=_moment(document.to, zone, whole_day=True),
            reason=document.reason,
        )


def is_open(windows: Sequence[Window], freezes: Sequence[Freeze], now: datetime) -> bool:
    """Whether disruptive work may start now."""
    if frozen(freezes, now) is not None:
        return False
    return not windows or any(_closing(window, now) is not None for window in windows)


def frozen(freezes: Sequence[Freeze], now: datetime) -> Freeze | None:
    """The freeze that holds now; of several the one that ends last."""
    holding = [freeze for freeze in freezes if freeze.start <= now < freeze.end]
    return max(holding, key=lambda freeze: (freeze.end, freeze.reason), default=None)


def next_change(
    windows: Sequence[Window], freezes: Sequence[Freeze], now: datetime
) -> datetime | None:
    """The next moment at which `is_open` gives another answer; None if not within 400 days."""
    was_open = is_open(windows, freezes, now)
    at = now
    while at <= now + _HORIZON:
        found = _leave(windows, freezes, at) if was_open else _enter(windows, freezes, at)
        if found is None:
            return None
        at = found
        if is_open(windows, freezes, at) is not was_open:
            return at
    return None


def _leave(windows: Sequence[Window], freezes: Sequence[Freeze], at: datetime) -> datetime | None:
    """From an open moment: the earliest later one that may be closed."""
    closings = [closing for window in windows if (closing := _closing(window, at)) is not None]
    starts = [freeze.start for freeze in freezes if freeze.start > at]
    # Until the last of the windows open now has closed, only a freeze can close them.
    candidates = ([max(closings)] if closings else []) + starts
    return min(candidates, default=None)


def _enter(windows: Sequence[Window], freezes: Sequence[Freeze], at: datetime) -> datetime | None:
    """From a closed moment: the earliest later one that may be open."""
    freeze = frozen(freezes, at)
    if freeze is not None:
        return freeze.end
    openings = [opening for window in windows if (opening := _opening(window, at)) is not None]
    return min(openings, default=None)


def _closing(window: Window, now: datetime) -> datetime | None:
    """When the window that is open now closes; None if it is not open."""
    today = now.astimezone(window.zone).date()
    # A window may begin at 24:00 and last a day, so one that is open now began at most two days
    # before.
    spans = _spans(window, today - 2 * _DAY, 3)
    return max((end for start, end in spans if start <= now < end), default=None)


def _opening(window: Window, now: datetime) -> datetime | None:
    """When it opens next. Two weeks are searched, as one opening may fall into a skipped hour."""
    today = now.astimezone(window.zone).date()
    return next((start for start, _ in _spans(window, today - 2 * _DAY, 18) if start > now), None)


def _spans(window: Window, first: date, count: int) -> Iterator[tuple[datetime, datetime]]:
    """Opening and closing for each of `count` days, in order; empty ones are left out."""
    for number in range(count):
        day = first + number * _DAY
        if day.weekday() not in window.days:
            continue
        midnight = datetime(day.year, day.month, day.day)  # noqa: DTZ001 - wall clock on purpose
        start = _absolute(midnight + window.start, window.zone)
        end = _absolute(midnight + window.end, window.zone)
        if start < end:
            yield start, end


def _absolute(wall: datetime, zone: ZoneInfo) -> datetime:
    """The moment a wall clock first shows this time, or jumps over it."""
    moment = wall.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None) == wall:
        return moment
    # The clock skips it. With the offset that holds after the jump the same wall time lies before
    # the jump; between the two the offset changes once.
    low = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    high = moment
    before = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def _time(text: str) -> timedelta:
    hours, minutes = text.split(":")
    return timedelta(hours=int(hours), minutes=int(minutes))


def _moment(text: str, zone: ZoneInfo, *, whole_day: bool) -> datetime:
    """`2026-12-20` or `2026-12-20T18:00`, in the zone unless it names its own offset."""
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is not None:
        return parsed.astimezone(UTC)
    bare = len(text.strip()) <= len("2026-12-20")
    return _absolute(parsed + _DAY if bare and whole_day else parsed, zone)
