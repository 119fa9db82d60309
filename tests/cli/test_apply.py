"""`fleetctl apply --wait` on a daemon and a world in processes of their own, over the wire."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from fleetd import clock
from fleetd.cli import applying
from fleetd.sim.demo import Demo
from tests.cli import programs
from tests.cli.programs import fleetctl

PACE = 60.0
"""Slower than the demo: what is tried here is that it ends, on a busy machine too."""
REGION, POOL, *_ = Path(programs.MINIMAL, "region.yaml").read_text("utf-8").split("\n---\n")


@pytest.fixture
def world(tmp_path: Path) -> Generator[tuple[str, Path]]:
    """The daemon's address, and a document that the world has servers for and the daemon does not
    know."""
    documents = tmp_path / "given"
    documents.mkdir()
    (documents / "region.yaml").write_text(REGION)
    (documents / "pool.yaml").write_text(POOL)
    demo = Demo(tmp_path, documents, 7, PACE)
    try:
        told = demo._start_world()
        written = Path(told["documents"])
        told["documents"] = str(written / "region.yaml")
        yield demo._start_daemon(told), written / "pool.yaml"
    finally:
        demo.end()


@pytest.mark.slow
def test_waiting_ends_when_what_was_applied_is_there(world: tuple[str, Path]) -> None:
    """Servers are enrolled from nothing, then changed; each time the end says what was done, and
    all of it is Ready by then."""
    url, pool = world

    made = fleetctl("--server", url, "apply", "--yes", "--wait", str(pool))
    servers = fleetctl("--server", url, "get", "server", "-o", "json")

    assert made.code == 0, made.err
    assert "applied 1 document" in made.out
    assert " of 16 Ready" in made.err
    assert [one["ready"]["status"] for one in servers.json["items"]] == ["True"] * 14

    pool.write_text(pool.read_text().replace("class: std-64c", "class: std-64c\n  labels: {a: b}"))
    changed = fleetctl("--server", url, "apply", "--yes", "--wait", str(pool))
    left = fleetctl("--server", url, "plan", "--exit-code")

    assert changed.code == 0, changed.err
    assert left.code == 0, left.out


class Daemon:
    """One server that is Ready all the time; about which there is something to do at first."""

    def __init__(self, *said: str) -> None:
        self.said = list(said)

    def get(self, path: str) -> dict[str, Any]:
        if path == "/regions":
            return {"items": [{"name": "eu-1"}]}
        now = self.said.pop(0)
        plan = {"state": now, "reason": "apply"} if now else None
        ready = {"status": "True"}
        return {"nodes": [{"id": "server/a", "current": True, "ready": ready, "plan": plan}]}


def test_what_is_ready_in_its_old_form_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until nothing is left to do about it, and that was seen twice: plans follow looks."""
    monkeypatch.setattr(clock, "block", str)  # does nothing that lasts
    daemon: Any = Daemon("", "step", "waiting", "", "", "step")

    applying._wait(daemon, {"server/a"})

    assert daemon.said == ["step"]
