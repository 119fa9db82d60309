"""
How the planner writes moments, spans and names in its messages.

Moments are absolute on purpose: a message that says "4 minutes ago" changes by itself, and then a
plan in which nothing changed would look like a new one. Surfaces that draw an age have the moment.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from topology.resource import Facts, Ref, Resource

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


@lru_cache(maxsize=8192)
def moment(at: datetime) -> str:
    """`2026-03-01 22:00 UTC`; seconds only where there are any."""
    at = at.astimezone(UTC)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at.second else f"{at:%Y-%m-%d %H:%M} UTC"


def span(length: timedelta) -> str:
    """`1h30m`: the two largest units."""
    left = max(int(length.total_seconds()), 0)
    parts: list[str] = []
    for seconds, unit in _UNITS:
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return "".join(parts[:2]) or "0s"


def names(refs: Iterable[Ref], *, most: int = 3) -> str:
    """`server/a, server/b and 7 more`."""
    return listed(sorted(refs), most=most)


def listed(refs: Sequence[Ref], *, most: int = 3, total: int | None = None) -> str:
    """The same for refs in order; `total` where only the first of many are given."""
    count = len(refs) if total is None else total
    text = ", ".join(str(ref) for ref in refs[:most])
    return text if count <= most else f"{text} and {count - most} more"


def filled(action: str, want: Resource) -> str:
    """What the catalogue says to do, with the names of this thing: a person copies it."""
    workers: Sequence[Facts] = want.spec.get("workers") or ()
    pools = ", ".join(sorted({str(one["pool"]) for one in workers if one.get("pool")}))
    names = {
        "name": want.ref.name,
        "region": want.region,
        "cluster": want.spec.get("cluster") or want.ref.name,
        "pools": pools or "of its documents",
    }
    for word, name in names.items():
        action = action.replace(f"<{word}>", str(name))
    return action
