"""How a state looks in a terminal: a sign, a colour, a word, an age."""

from datetime import UTC, datetime, timedelta
from typing import Any

from rich.text import Text

from fleetd import vocabulary

SIGNS = {"True": ("●", "green"), "False": ("✗", "bold red"), "Unknown": ("○", "yellow")}
BUSY = ("◐", "cyan")
"""Something is being done about it."""
ABSENT = ("·", "dim")
"""Not there yet is not broken: while a region comes up, most of it looks like this."""


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def age(then: str | None, now: datetime) -> str:
    """`5s`, `12m`, `3h`, `2d`: one unit, because a glance is all it gets."""
    if then is None:
        return "-"
    passed = max(now - moment(then), timedelta(0)).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if passed >= size * (2 if unit != "d" else 1):
            return f"{int(passed // size)}{unit}"
    return f"{int(passed)}s"


def pause(told: dict[str, Any], now: datetime) -> str:
    """Who said so, why, since when, and how it ends; a person reads it and knows enough."""
    since = age(told["since"], now)
    return f"paused by {told['who']}, {since} ago: {told['reason']} (pause on {told['scope']})"


def sign(ready: dict[str, Any], *, busy: bool = False) -> Text:
    mark, style = _look(ready, busy=busy)
    return Text(mark, style=style)


def word(ready: dict[str, Any], *, busy: bool = False) -> Text:
    """`Ready`, or why not."""
    _, style = _look(ready, busy=busy)
    return Text("Ready" if ready["status"] == "True" else ready["reason"], style=style)


def _look(ready: dict[str, Any], *, busy: bool) -> tuple[str, str]:
    if ready["status"] != "True" and busy:
        return BUSY
    absent = ready["status"] == "False" and ready["reason"] == vocabulary.ABSENT
    return ABSENT if absent else SIGNS[ready["status"]]
