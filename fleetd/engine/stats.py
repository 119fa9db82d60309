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


@dataclass
class Stats:
    looks: dict[str, Durations] = field(default_factory=dict[str, Durations])
    """By kind of backend: garden, metal, cluster ..."""
    steps: dict[str, Durations] = field(default_factory=dict[str, Durations])
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By driver and ending, counted after the ending is on disk."""
    looked_at: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By driver and result: seen or blind."""
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

    def looked(self, backend: str, seconds: float) -> None:
        self.looks.setdefault(Backend.of(backend).kind, Durations()).add(seconds)

    def applied(self, backend: str, seconds: float) -> None:
        self.steps.setdefault(Backend.of(backend).kind, Durations()).add(seconds)
