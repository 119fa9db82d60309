"""Counts of what the engine did, for the metrics. Nothing decides from the numbers."""

from collections import Counter
from dataclasses import dataclass, field

from fleetd.engine.calls import Strays
from topology.resource import Backend

BUCKETS = (0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)


@dataclass(slots=True)
class Durations:
    """A histogram with fixed upper bounds, as Prometheus wants it."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        self.total += seconds
        for place, bound in enumerate(BUCKETS):
            if seconds <= bound:
                self.counts[place] += 1
                return
        self.counts[-1] += 1


By = tuple[str, str]
"""The driver, and the kind of backend: garden, metal, cluster ..."""


@dataclass
class Stats:
    looks: dict[By, Durations] = field(default_factory=dict[By, Durations])
    """However they ended."""
    steps: dict[By, Durations] = field(default_factory=dict[By, Durations])
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By driver and ending, counted after the ending is on disk."""
    looked_at: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By driver and result: seen or blind."""
    waits: Durations = field(default_factory=Durations)
    """Of what was due for a worker."""
    writes: Durations = field(default_factory=Durations)
    """Until an intent was on disk."""
    lag: Durations = field(default_factory=Durations)
    """How late the event loop woke up a timer."""
    plans: Durations = field(default_factory=Durations)
    plans_refused: int = 0

    strays: dict[str, Strays] = field(default_factory=dict[str, Strays])
    """By backend: calls that were given up and have not ended."""

    def strays_of(self, backend: str) -> Strays:
        return self.strays.setdefault(backend, set())

    @property
    def abandoned(self) -> int:
        return sum(map(len, self.strays.values()))

    def looked(self, driver: str, backend: str, seconds: float) -> None:
        self.looks.setdefault((driver, Backend.of(backend).kind), Durations()).add(seconds)

    def applied(self, driver: str, backend: str, seconds: float) -> None:
        self.steps.setdefault((driver, Backend.of(backend).kind), Durations()).add(seconds)
