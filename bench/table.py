"""
What a benchmark answers, and how it is shown: one row per figure, its peers and its goal beside it.

A row without a goal is there to be compared, not to be judged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.measure import Timings


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a figure should be; an end that is None is open."""

    least: float | None = None
    most: float | None = None

    def reached(self, value: float) -> bool:
        above = self.least is None or value >= self.least
        return above and (self.most is None or value <= self.most)

    def show(self, unit: str) -> str:
        if self.least is not None and self.most is not None:
            return f"{_number(self.least)} to {_number(self.most)} {unit}"
        if self.most is not None:
            return f"≤ {_number(self.most)} {unit}"
        return f"≥ {_number(self.least or 0.0)} {unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Something else that was measured in the same rounds."""

    name: str
    ratio: float
    """Ours divided by theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    what: str
    value: float
    unit: str
    goal: Goal | None = None
    peers: tuple[Peer, ...] = ()
    note: str = ""
    raw: Timings = field(default_factory=Timings)
    """The single measurements."""

    @property
    def reached(self) -> bool | None:
        return None if self.goal is None else self.goal.reached(self.value)


def lines(name: str, rows: Sequence[Row]) -> Iterator[str]:
    """The table of one benchmark, for people."""
    yield name
    for row in rows:
        peers = [f"{_ratio(peer.ratio)} × {peer.name}" for peer in row.peers] or [""]
        goal = row.goal.show(row.unit) if row.goal else ""
        verdict = {None: "", True: "yes", False: "NO"}[row.reached]
        measured = f"{_number(row.value)} {row.unit}"
        yield _line(row.what, measured, goal, verdict, peers[0])
        for peer in peers[1:]:
            yield _line("", "", "", "", peer)
        if row.note:
            yield f"      {row.note}"


def head() -> str:
    return _line("what", "measured", "goal", "met", "ratio to a peer in the same run")


def _line(what: str, measured: str, goal: str, verdict: str, peer: str) -> str:
    return f"  {what:<50} {measured:>9}  {goal:<12} {verdict:<3}  {peer}".rstrip()


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """How many goals were reached, and which were not."""
    judged = [row for row in rows if row.goal is not None]
    missed = [row for row in judged if not row.reached]
    yield f"{len(judged) - len(missed)} of {len(judged)} goals reached"
    for row in missed:
        goal = row.goal.show(row.unit) if row.goal else ""
        yield f"  not reached: {row.what}: {_number(row.value)} {row.unit}, goal {goal}"


def _ratio(value: float) -> str:
    return f"1/{1 / value:,.0f}" if 0 < value < 0.01 else _number(value)


def _number(value: float) -> str:
    """Three digits that count."""
    if value >= 1000:
        return f"{value:,.0f}"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}".removesuffix(".0")
    return f"{value:.2f}".rstrip("0").rstrip(".") if value >= 0.1 else f"{value:.3g}"
