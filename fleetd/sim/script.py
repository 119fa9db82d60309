"""
Faults in words: `at 12m: bmc r1-s03 unreachable for 20m`.

A line says when, what happens to which thing, and for how long; without `for` it lasts until
somebody mends it. Reading gives a `Line`, or a complaint that shows what can be written. What a
line does to the world is `fleetd.sim.mishaps`.
"""

import difflib
import re
from dataclasses import dataclass
from datetime import timedelta

from fleetd import errors
from topology.documents import base

_LINE = re.compile(
    r"\s*at\s+(?P<at>\S+?)\s*:\s*(?P<what>\S+)\s+(?P<whom>\S+)\s+(?P<how>\S+)"
    r"(?:\s+for\s+(?P<span>\S+))?\s*"
)


class ScriptError(errors.FleetError):
    """A line that cannot be read; says what can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    at: timedelta
    what: str
    """bmc, rack, cluster, garden, openbao ..."""
    whom: str
    how: str
    """unreachable, dark, sealed ..."""
    span: timedelta | None = None

    def __str__(self) -> str:
        lasts = f" for {base.show_duration(self.span)}" if self.span is not None else ""
        return f"at {base.show_duration(self.at)}: {self.what} {self.whom} {self.how}{lasts}"


VOCABULARY: dict[str, tuple[str, ...]] = {
    "bmc": ("unreachable", "refuses", "hangs", "lies"),
    "rack": ("dark",),
    "server": ("dark",),
    "cluster": ("unreachable", "frozen", "failing", "busy", "slow"),
    "garden": ("unreachable", "frozen", "failing", "busy", "slow"),
    "metal": ("unreachable", "frozen", "failing", "busy", "slow"),
    "watch": ("dropped", "stalled", "expired"),
    "shoot": ("stuck", "hibernated", "flapping"),
    "openbao": ("sealed", "unreachable", "standby", "audit-blocked"),
    "eso": ("lagging",),
    "image": ("bad",),
    "openstack": ("unreachable",),
    "ceph": ("degraded",),
    "ironic": ("locked", "conductor-lost"),
    "partition": ("full", "one-way"),
    "token": ("expired",),
    "objects": ("recreated", "meddled"),
    "clock": ("ahead", "behind"),
}
"""What can be named, and what can happen to it."""


def read(text: str) -> Line:
    """One line. Raises ScriptError."""
    found = _LINE.fullmatch(text)
    if found is None:
        raise ScriptError(
            f"{text!r} is not a fault; write e.g. 'at 12m: bmc r1-s03 unreachable for 20m'"
        )
    what, how = found["what"], found["how"]
    if what not in VOCABULARY:
        raise ScriptError(f"{text!r}: nothing is called {what}; {_near(what, tuple(VOCABULARY))}")
    if how not in VOCABULARY[what]:
        raise ScriptError(f"{text!r}: a {what} cannot be {how}; {_near(how, VOCABULARY[what])}")
    return Line(
        at=_duration(text, found["at"]),
        what=what,
        whom=found["whom"],
        how=how,
        span=_duration(text, found["span"]) if found["span"] else None,
    )


def _duration(text: str, given: str) -> timedelta:
    span = base.parse_duration(given) if given != "0" else timedelta(0)
    if span is None:
        raise ScriptError(f"{text!r}: {given} is not a duration; write e.g. 90s, 12m or 1h30m")
    return span


def _near(word: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
