"""Maintenance windows and freezes: time zones, midnight, daylight saving, to the second."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleetd.plan import windows
from fleetd.plan.windows import Freeze, Window
from topology.documents import region


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def window(days: str, start: str, end: str, zone: str = "UTC") -> Window:
    document = {"days": days.split(), "from": start, "to": end, "zone": zone}
    return Window.of(region.Window.model_validate(document))


def freeze(start: str, end: str, zone: str = "UTC") -> Freeze:
    document = {"from": start, "to": end, "zone": zone, "reason": "fair"}
    return Freeze.of(region.Freeze.model_validate(document))


EVERY = "Mon Tue Wed Thu Fri Sat Sun"
NIGHT = window("Tue Wed", "22:00", "04:00", "Europe/Berlin")
# In 2026 Berlin's clocks jump from 02:00 to 03:00 on 29 March (01:00 UTC) and back from 03:00 to
# 02:00 on 25 October (01:00 UTC); both are Sundays.


@pytest.mark.parametrize(
    ("given", "now", "is_open", "change"),
    [
        # Berlin is at +1 in winter: Tuesday 22:00 is 21:00 UTC. 3 March is a Tuesday.
        (NIGHT, "2026-03-03T20:59:59", False, "2026-03-03T21:00"),
        (NIGHT, "2026-03-03T21:00", True, "2026-03-04T03:00"),
        (NIGHT, "2026-03-04T02:59:59", True, "2026-03-04T03:00"),
        (NIGHT, "2026-03-04T03:00", False, "2026-03-04T21:00"),
        (NIGHT, "2026-03-05T02:00", True, "2026-03-05T03:00"),
        (NIGHT, "2026-03-05T03:00", False, "2026-03-10T21:00"),
        # ... and at +2 in summer.
        (NIGHT, "2026-07-07T20:00", True, "2026-07-08T02:00"),
        # `to` equal to `from` is a whole day; 24:00 is the end of the day.
        (window("Sun", "06:00", "06:00"), "2026-03-02T05:59", True, "2026-03-02T06:00"),
        (window("Sun", "06:00", "24:00"), "2026-03-01T23:59:59", True, "2026-03-02T00:00"),
        (window("Sun", "24:00", "23:00"), "2026-03-02T22:00", True, "2026-03-02T23:00"),
        # Opens in the skipped hour: with the jump.
        (
            window("Sun", "02:30", "04:00", "Europe/Berlin"),
            "2026-03-29T00:59:59",
            False,
            "2026-03-29T01:00",
        ),
        (
            window("Sun", "02:30", "04:00", "Europe/Berlin"),
            "2026-03-29T01:00",
            True,
            "2026-03-29T02:00",
        ),
        # Closes in the skipped hour: with the jump.
        (
            window("Sun", "01:00", "02:30", "Europe/Berlin"),
            "2026-03-29T00:59",
            True,
            "2026-03-29T01:00",
        ),
        # Wholly in the skipped hour: not that night, but a week later.
        (
            window("Sun", "02:10", "02:50", "Europe/Berlin"),
            "2026-03-29T00:00",
            False,
            "2026-04-05T00:10",
        ),
        # A time shown twice is the first of the two: open once, 02:00 to 02:45 summer time.
        (
            window("Sun", "02:00", "02:45", "Europe/Berlin"),
            "2026-10-25T00:00",
            True,
            "2026-10-25T00:45",
        ),
        (
            window("Sun", "02:00", "02:45", "Europe/Berlin"),
            "2026-10-25T01:15",
            False,
            "2026-11-01T01:00",
        ),
        (
            window("Sat", "22:00", "02:30", "Europe/Berlin"),
            "2026-10-25T00:29",
            True,
            "2026-10-25T00:30",
        ),
        # In Santiago it is midnight that is skipped in September, and 23:00 that comes twice in
        # April.
        (
            window("Sun", "00:00", "02:00", "America/Santiago"),
            "2026-09-06T03:59:59",
            False,
            "2026-09-06T04:00",
        ),
        (
            window("Sun", "00:00", "02:00", "America/Santiago"),
            "2026-09-06T04:00",
            True,
            "2026-09-06T05:00",
        ),
        (
            window("Sat", "23:00", "24:00", "America/Santiago"),
            "2026-04-05T02:00",
            True,
            "2026-04-05T04:00",
        ),
        # Thirteen hours and three quarters ahead: Monday morning there is Sunday here.
        (
            window("Mon", "10:00", "12:00", "Pacific/Chatham"),
            "2026-03-01T20:14:59",
            False,
            "2026-03-01T20:15",
        ),
        (
            window("Mon", "10:00", "12:00", "Pacific/Chatham"),
            "2026-03-01T22:14:59",
            True,
            "2026-03-01T22:15",
        ),
        # A zone with half an hour, and one that jumps by half an hour.
        (
            window("Mon", "00:00", "01:00", "Asia/Kolkata"),
            "2026-03-01T18:30",
            True,
            "2026-03-01T19:30",
        ),
        (
            window("Sun", "02:10", "03:00", "Australia/Lord_Howe"),
            "2026-10-03T15:29",
            False,
            "2026-10-03T15:30",
        ),
    ],
)
def test_one_window(given: Window, now: str, is_open: bool, change: str) -> None:  # noqa: FBT001
    """Open or not, and the exact moment at which that changes."""
    assert windows.is_open([given], [], at(now)) is is_open
    assert windows.next_change([given], [], at(now)) == at(change)


def test_without_windows_it_is_open() -> None:
    """No window, no freeze: always, and nothing ever changes."""
    assert windows.is_open([], [], at("2026-03-01"))
    assert windows.next_change([], [], at("2026-03-01")) is None


def test_a_freeze_wins() -> None:
    """In a freeze nothing is open; a bare last day is included whole, in the freeze's zone."""
    frozen = [freeze("2026-12-20", "2027-01-06", "Europe/Berlin")]

    assert windows.next_change([], frozen, at("2026-12-01")) == at("2026-12-19T23:00")
    assert not windows.is_open([], frozen, at("2026-12-19T23:00"))
    assert not windows.is_open([], frozen, at("2027-01-06T22:59:59"))
    assert windows.next_change([], frozen, at("2026-12-24")) == at("2027-01-06T23:00")


def test_a_freeze_may_name_moments() -> None:
    """With a time of day the end is that moment."""
    frozen = [freeze("2026-12-20T18:00", "2026-12-21T06:00")]

    assert windows.is_open([], frozen, at("2026-12-20T17:59:59"))
    assert not windows.is_open([], frozen, at("2026-12-20T18:00"))
    assert windows.is_open([], frozen, at("2026-12-21T06:00"))


def test_after_a_freeze_the_next_window_counts() -> None:
    """A freeze that ends between two windows opens nothing."""
    frozen = [freeze("2026-03-03T12:00", "2026-03-05T12:00")]

    assert windows.next_change([NIGHT], frozen, at("2026-03-03T13:00")) == at("2026-03-10T21:00")


def test_windows_that_touch_are_one() -> None:
    """Two windows back to back do not close in between; neither do freezes that overlap."""
    pair = [window("Mon", "10:00", "12:00"), window("Mon", "12:00", "14:00")]
    frozen = [
        freeze("2026-03-02T08:00", "2026-03-02T11:00"),
        freeze("2026-03-02T10:00", "2026-03-02T13:00"),
    ]

    assert windows.next_change(pair, [], at("2026-03-02T10:30")) == at("2026-03-02T14:00")
    assert windows.next_change(pair, frozen, at("2026-03-02T09:00")) == at("2026-03-02T13:00")


def test_a_window_that_is_always_open_changes_only_by_a_freeze() -> None:
    """Every day the whole day is no change at all."""
    always = [window(EVERY, "00:00", "24:00", "Europe/Berlin")]

    assert windows.next_change(always, [], at("2026-03-01")) is None
    frozen = [freeze("2026-12-24", "2026-12-26")]
    assert windows.next_change(always, frozen, at("2026-03-01")) == at("2026-12-24")


TIMES = st.sampled_from(["00:00", "01:30", "02:00", "02:30", "03:00", "12:00", "22:00", "24:00"])
WINDOWS = st.builds(
    window,
    st.lists(st.sampled_from(EVERY.split()), min_size=1, max_size=3).map(" ".join),
    TIMES,
    TIMES,
    st.sampled_from(
        [
            "UTC",
            "Europe/Berlin",
            "America/New_York",
            "America/Santiago",
            "Australia/Lord_Howe",
            "Pacific/Chatham",
        ]
    ),
)
STARTS = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 1)).map(  # noqa: DTZ001
    lambda moment: moment.replace(tzinfo=UTC)
)


@settings(max_examples=150, deadline=None)
@given(WINDOWS, STARTS)
def test_on_ordinary_days_the_wall_clock_decides(given_window: Window, now: datetime) -> None:
    """Said once more with nothing but the local clock, where no clock jumps nearby."""
    zone = given_window.zone
    around = {(now + timedelta(days=days)).astimezone(zone).utcoffset() for days in range(-3, 4)}
    local = now.astimezone(zone).replace(tzinfo=None)
    midnights = [
        datetime(local.year, local.month, local.day) - timedelta(days=days)  # noqa: DTZ001
        for days in range(3)
    ]
    expected = any(
        midnight.weekday() in given_window.days
        and midnight + given_window.start <= local < midnight + given_window.end
        for midnight in midnights
    )

    if len(around) == 1:
        assert windows.is_open([given_window], [], now) is expected


@settings(max_examples=150, deadline=None)
@given(st.lists(WINDOWS, max_size=3), STARTS, st.integers(0, 200), st.floats(0, 1))
def test_the_answer_holds_until_it_changes(
    given_windows: list[Window], now: datetime, hours: int, share: float
) -> None:
    """Between now and next_change the answer is the same; at that moment it is the other."""
    frozen = [
        Freeze(start=now + timedelta(hours=hours), end=now + timedelta(hours=2 * hours), reason="x")
    ]
    answer = windows.is_open(given_windows, frozen, now)
    change = windows.next_change(given_windows, frozen, now)
    end = change or now + timedelta(days=60)

    assert windows.is_open(given_windows, frozen, now + (end - now) * share * 0.999) is answer
    if change is not None:
        assert change > now
        assert windows.is_open(given_windows, frozen, change) is not answer
        assert windows.is_open(given_windows, frozen, change - timedelta(microseconds=1)) is answer
