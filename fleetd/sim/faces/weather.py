"""
What can happen to a request on its way: the seam where faults come in.

A face asks the weather before a request reaches the server, after the server has answered, and
for every line of a stream, and then does what it was told. So faults are decisions, made in one
place from a seed, and both faces carry them out alike. `Calm` never does anything.
"""

from dataclasses import dataclass
from typing import Protocol

from fleetd.kube.transport import Request, Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What happens to one request, or to its answer. In this order: wait, then be lost, or be
    answered by somebody else."""

    wait: float = 0.0
    """Seconds."""
    lost: str = ""
    """Why the connection broke; empty: it did not."""
    answer: Response | None = None
    """Comes instead."""
    times: int = 1
    """How often the server gets the request; only before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What becomes of one line of a stream. In this order: wait, deliver, be lost or end."""

    lines: tuple[bytes, ...]
    wait: float = 0.0
    lost: str = ""
    end: bool = False
    """The stream ends as if the server had ended it."""


FAIR = Fate()


class Weather(Protocol):
    def before(self, backend: str, request: Request) -> Fate:
        """The server has not seen the request yet."""
        ...

    def after(self, backend: str, request: Request, response: Response) -> Fate:
        """The server has done what was asked."""
        ...

    def line(self, backend: str, request: Request, line: bytes) -> Passage:
        """One line of a stream, with its end of line."""
        ...


class Calm:
    def before(self, backend: str, request: Request) -> Fate:  # noqa: ARG002
        return FAIR

    def after(self, backend: str, request: Request, response: Response) -> Fate:  # noqa: ARG002
        return FAIR

    def line(self, backend: str, request: Request, line: bytes) -> Passage:  # noqa: ARG002
        return Passage(lines=(line,))


CALM = Calm()
