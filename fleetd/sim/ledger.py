"""
Every request that changed the world, in order: who asked, for what, and for which step.

The ledger is kept at the faces, where requests come in, so it sees what a real server would see
and nothing more. A login changes nothing and is not in it. The step comes with the call that is
under way (the engine binds it for its log lines), so that each write can be held against the
journal: exactly one intent before it, which says how many writes it is for, one ending after it.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from fleetd.sim.recent import Recent

_READS = re.compile(
    r"/shoots/[^/]+/(adminkubeconfig|viewerkubeconfig)$|/serviceaccounts/[^/]+/token$"
    r"|/(tokenreviews|selfsubjectaccessreviews|subjectaccessreviews|selfsubjectreviews)$"
    r"|/auth/[^?]*/login$|/auth/tokens$|/sys/(internal|capabilities)|/lookup-self$|/sessions$"
    r"|/auth/token/(renew-self|lookup)|/sys/tools/random"
)
"""What is sent by POST or PUT and changes nothing that lasts."""


class Deed(NamedTuple):
    at: float
    where: str
    """The cluster or service."""
    method: str
    path: str
    status: int
    step: str
    """Empty: nobody announced it."""

    def __str__(self) -> str:
        return (
            f"{self.at:.1f} {self.where} {self.method} {self.path} -> {self.status} [{self.step}]"
        )


@dataclass
class Ledger:
    deeds: Recent[Deed] = field(default_factory=Recent[Deed])
    requests: Counter[str] = field(default_factory=Counter[str])
    """All requests, reads too, by where they went."""
    judge: Callable[[Deed], None] | None = None
    """Told of each deed as soon as it is done."""

    def note(self, at: float, where: str, method: str, path: str, status: int) -> None:
        self.requests[where] += 1
        if changes(method, path) and status < 400:
            deed = Deed(at, where, method, path, status, current_step())
            self.deeds.append(deed)
            if self.judge is not None:
                self.judge(deed)

    def since(self, count: int) -> list[Deed]:
        return self.deeds[count:]

    def unannounced(self) -> list[Deed]:
        """Writes without a step: somebody acted without an intent."""
        return [deed for deed in self.deeds if not deed.step]

    def summary(self) -> Counter[tuple[str, str, str]]:
        """How often each place was changed in which way."""
        return Counter((deed.where, deed.method, deed.path) for deed in self.deeds)


def changes(method: str, path: str) -> bool:
    return method not in ("GET", "HEAD", "OPTIONS", "LIST") and _READS.search(path) is None


def current_step() -> str:
    return str(structlog.contextvars.get_contextvars().get("step", ""))
