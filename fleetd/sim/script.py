"""
Faults in words: `at 12m: bmc r1-s03 unreachable for 20m`.

A line says when, what happens to which thing, and for how long; without `for` it lasts until
somebody mends it. Reading gives a `Line`, or a complaint that shows what can be written. What a
line does to the world is `fleetd.sim.mishaps`.
"""

import difflib
import re
from dataclasses import dataclass, field
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
    said: str = field(default="", compare=False)
    """As it was written."""

    def __str__(self) -> str:
        lasts = f" for {base.show_duration(self.span)}" if self.span is not None else ""
        return f"at {base.show_duration(self.at)}: {self.what} {self.whom} {self.how}{lasts}"


_API = {
    "unreachable": "connections are refused",
    "frozen": "takes requests and never answers",
    "failing": "answers 500",
    "busy": "answers 429 with Retry-After",
    "slow": "answers after seconds",
}
VOCABULARY: dict[str, dict[str, str]] = {
    "bmc": {
        "unreachable": "no packet comes back",
        "refuses": "answers 401: the password was changed",
        "hangs": "takes requests and never answers",
        "lies": "says that it did as told, and did not",
    },
    "rack": {"dark": "power is gone: all machines of the rack and their BMCs"},
    "server": {"dark": "power is gone: the machine and its BMC"},
    "cluster": _API,
    "garden": _API,
    "metal": _API,
    "watch": {
        "dropped": "every watch of the cluster is cut",
        "stalled": "open watches stay open and say nothing",
        "expired": "every watch is cut, and going on is answered with 410",
        "ended": "a watch ends after its next line",
        "torn": "the next line of a watch breaks off in the middle",
        "silent": "a watch says nothing more from its next line on, and stays open",
        "gone": "instead of its next line a watch says 410 and ends",
        "doubled": "the next line of a watch comes twice",
        "swapped": "the next two lines of a watch come in the other order",
        "missing": "the next line of a watch never comes",
    },
    "requests": {
        "429": "the next one is answered with 429 and Retry-After",
        "5xx": "the next one is answered with 500, by a service with 502",
        "503": "the next one is answered with 503 in plain text",
        "401": "the next one is told that its token has expired",
        "409": "the next write is told that the object was modified",
        "reset": "the connection of the next one is reset",
        "lost-before": "the next write is not done, and no answer comes",
        "lost-after": "the next write is done, and no answer comes",
        "twice": "the next write is delivered twice",
        "stale": "the next read that was asked before is answered as it was then",
        "bad-token": "OpenBao does not know the token of the next one",
        "audit-blocked": "OpenBao cannot write the next one to its audit log, and refuses it",
        "cas-mismatch": "OpenBao has another version of what the next one writes",
        "locked": "Ironic's next write finds its node locked",
    },
    "shoot": {
        "stuck": "its operation makes no progress",
        "hibernated": "somebody put it to sleep",
        "flapping": "its conditions come and go",
    },
    "openbao": {
        "sealed": "all members are sealed",
        "unreachable": "connections are refused",
        "standby": "no member is active",
        "audit-blocked": "no audit device can write, so nothing is answered",
    },
    "eso": {"lagging": "External Secrets is late with everything"},
    "image": {"bad": "a component's image cannot be pulled; named cluster/component"},
    "openstack": {"unreachable": "no service of the cloud answers"},
    "ceph": {"degraded": "the storage cluster is not healthy"},
    "ironic": {
        "locked": "nodes are reserved by a conductor",
        "conductor-lost": "a conductor died with its nodes",
    },
    "partition": {
        "full": "fleetd alone cannot reach it",
        "one-way": "fleetd's requests arrive, the answers do not",
    },
    "token": {
        "expired": "fleetd's token for the cluster is not good any more",
        "revoked": "what was handed out for the cluster is not good any more",
    },
    "objects": {
        "recreated": "a stranger deletes an object and makes it anew",
        "meddled": "a stranger changes an object again and again",
    },
    "clock": {
        "ahead": "the daemon's clock is an hour ahead; named daemon",
        "behind": "the daemon's clock is an hour behind; named daemon",
    },
}
"""What can be named, what can happen to it, and what that means."""
AIMED = frozenset(
    (
        *(("requests", how) for how in VOCABULARY["requests"]),
        *(
            ("watch", how)
            for how in ("ended", "torn", "silent", "gone", "doubled", "swapped", "missing")
        ),
    )
)
"""Those that meet the next request or line that they fit, and with a span every one in it."""
NOTE = (
    "Of requests and single watches the next one that it fits meets it; with `for SPAN` every one\n"
    "in that time does. Everything else lasts for its SPAN, or without one until it is mended."
)


def read(text: str) -> Line:
    """One line. Raises ScriptError."""
    found = _LINE.fullmatch(text)
    if found is None:
        raise ScriptError(
            f"{text!r} is not a fault; write e.g. 'at 12m: bmc r1-s03 unreachable for 20m' "
            "(--list-faults shows all)"
        )
    what, how = found["what"], found["how"]
    if what not in VOCABULARY:
        raise ScriptError(f"{text!r}: nothing is called {what}; {_near(what, tuple(VOCABULARY))}")
    if how not in VOCABULARY[what]:
        raise ScriptError(
            f"{text!r}: {_one(what)} cannot be {how}; {_near(how, tuple(VOCABULARY[what]))}"
        )
    return Line(
        at=_duration(text, found["at"]),
        what=what,
        whom=found["whom"],
        how=how,
        span=_duration(text, found["span"]) if found["span"] else None,
        said=" ".join(text.split()),
    )


def _one(what: str) -> str:
    return what if what.endswith("s") else f"a {what}"


def _duration(text: str, given: str) -> timedelta:
    span = base.parse_duration(given) if given != "0" else timedelta(0)
    if span is None:
        raise ScriptError(f"{text!r}: {given} is not a duration; write e.g. 90s, 12m or 1h30m")
    return span


def _near(word: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{hint}known: {', '.join(known)}"
