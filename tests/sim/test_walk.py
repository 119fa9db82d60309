"""The walk of the demo: one incident for each failure, and none when it is mended."""

from typing import Any

import pytest

from fleetd import clock
from fleetd.sim import demo, serve, walk
from fleetd.sim.walk import Failure, Walk
from topology import read

STEPS = [Failure("one", "bmc a unreachable", "server a"), Failure("two", "rack r dark", "server a")]


class Far:
    """A daemon and a world in which each fault is as many incidents as told."""

    def __init__(self, *, each: int = 1, stays: bool = False) -> None:
        self.each, self.stays = each, stays
        self.told: list[str] = []
        self.said: list[str] = []
        self.answers: list[bool] = []

    def ask(self, path: str) -> Any:
        if path.startswith("/api/v1/resources"):
            return {"why": {"paragraph": "because"}}
        broken = bool(self.told) and (self.told[-1] != serve.MEND or self.stays)
        one = {"cause": {"ref": "rack/r", "reason": "Dark", "message": "no power"}}
        return {"items": [one | {"affectedTotal": 3}] * (self.each if broken else 0)}

    def walk(self, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setattr(walk, "SETTLE", 0.0)
        monkeypatch.setattr(walk, "PATIENCE", 0.0)

        def further(_deed: str) -> bool:
            return self.answers.pop(0) if self.answers else True

        way = Walk(
            say=self.said.append,
            ask=self.ask,
            tell=self.told.append,
            next=further,
            time=clock.SystemClock(),
            minutes=lambda: 0.0,
            url="http://here",
        )
        return walk.walk(STEPS, way)


def test_each_failure_is_broken_shown_and_mended(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this order, with its cause, the page and the command."""
    far = Far()
    assert far.walk(monkeypatch) == ""
    assert far.told == ["bmc a unreachable", serve.MEND, "rack r dark", serve.MEND]
    assert "one incident: rack/r Dark, no power (affects 3 other things)" in "\n".join(far.said)
    assert any("why server a" in line for line in far.said)


@pytest.mark.parametrize(
    ("each", "stays", "wrong"),
    [(0, False, "no incident"), (2, False, "2 incidents instead"), (1, True, "are left")],
)
def test_what_goes_otherwise_is_told(
    monkeypatch: pytest.MonkeyPatch, each: int, *, stays: bool, wrong: str
) -> None:
    """Nothing, too much, or what does not go away: each ends the walk with a sentence."""
    assert wrong in Far(each=each, stays=stays).walk(monkeypatch)


def test_who_goes_on_alone_leaves_nothing_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `q` after something was broken still mends it."""
    far = Far()
    far.answers = [True, False]
    assert far.walk(monkeypatch) == ""
    assert far.told == ["bmc a unreachable", serve.MEND]


def test_the_walk_of_the_example_has_three_failures() -> None:
    """A dead BMC, a dark rack, a bad image; each asks about something that exists."""
    topology = read.read([demo.EXAMPLE]).topology
    assert topology is not None
    found = demo.failures(topology, "eu-1")
    known = {f"{ref.kind} {ref.name}" for ref in topology.resources}
    assert [one.fault.split()[0] for one in found] == ["bmc", "rack", "image"]
    assert {one.why for one in found} <= known
