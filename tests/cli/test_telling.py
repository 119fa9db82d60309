"""`fleetctl pause | resume | approve | reject | retire | apply` against a daemon."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli import programs
from tests.cli.programs import MINIMAL, fleetctl
from tests.surface import panels
from tests.surface.desks import FakeDesk
from topology.resource import Ref


@pytest.mark.parametrize(
    ("words", "scope"),
    [
        (("all",), "all"),
        (("region", "eu-1"), "region:eu-1"),
        (("region:eu-1",), "region:eu-1"),
        (("kind", "clusters"), "kind:cluster"),
        (("Cluster", "hv"), "cluster/hv"),
        (("cluster/hv",), "cluster/hv"),
    ],
)
def test_scopes(words: tuple[str, ...], scope: str) -> None:
    """What is paused can be named in words or as the daemon shows it."""
    desk = FakeDesk()
    with programs.daemon(panels.small(), desk) as url:
        ran = fleetctl("--server", url, "pause", *words, "--reason", "moving")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out.startswith(f"paused {scope}: moving\n")
        assert list(desk.pauses) == [scope]
        assert fleetctl("--server", url, "resume", scope).code == 0
    assert desk.pauses == {}


def test_what_is_not_paused_cannot_be_resumed() -> None:
    """The refusal is the daemon's sentence, on stderr, with exit code 1."""
    with programs.daemon(panels.small(), FakeDesk()) as url:
        ran = fleetctl("--server", url, "resume", "all", "-o", "json")
    assert (ran.code, ran.out, ran.err) == (1, "", "fleetctl: there is no pause on all\n")


def test_decisions() -> None:
    """Approving and rejecting say what they are about."""
    desk = FakeDesk(waiting={"s1": [Ref("cluster", "hv")]})
    with programs.daemon(panels.small(), desk) as url:
        assert fleetctl("--server", url, "approve", "s1").out == "approved s1: cluster/hv\n"
        ran = fleetctl("--server", url, "reject", "s1")
        assert ran.out == "rejected s1: cluster/hv is paused\n"
        assert fleetctl("--server", url, "approve", "../pause").code == 1


def test_retire_needs_a_yes() -> None:
    """Without a terminal nothing is retired unasked; with --yes it is."""
    desk = FakeDesk(orphans=[Ref("flux", "old"), Ref("cluster", "old")])
    with programs.daemon(panels.small(), desk) as url:
        assert fleetctl("--server", url, "retire", "cluster", "old").code == 2
        assert desk.retired == []
        ran = fleetctl("--server", url, "retire", "cluster/old", "--yes")
        assert (ran.code, ran.out.splitlines()[0]) == (0, "retired cluster/old: 2 things will go")
    assert desk.retired == desk.orphans


def test_apply() -> None:
    """Documents are sent with their folder; a plan that went stale is made again, not forced."""
    desk = FakeDesk(stale=2)
    with programs.daemon(panels.small(), desk) as url:
        ran = fleetctl("--server", url, "apply", MINIMAL, "--yes")
        assert (ran.code, ran.err) == (0, "")
        assert ran.out == "applied 1 document, plan d1: 0 resources concerned\n"
        desk.stale = 9
        assert fleetctl("--server", url, "apply", MINIMAL, "--yes").code == 1
        desk.stale = 1
        assert fleetctl("--server", url, "apply", "--plan", "d1", "--yes").code == 1
        fleetctl("--server", url, "apply", "--plan", "../x", "--yes")
    # An id is no path, whatever signs are in it: the daemon hears it as it was given.
    assert desk.applied == [("d1", ""), ("../x", "")]
    assert Path(desk.sent[0].folder) == programs.ROOT / MINIMAL


def test_documents_with_problems_are_not_sent(tmp_path: Path) -> None:
    """What is wrong in a document itself is told with its place, and the daemon hears nothing."""
    (tmp_path / "a.yaml").write_text(
        "apiVersion: fleet.c5c3.io/v1alpha1\nkind: Clusterr\nmetadata: {name: x}\nspec: {}\n"
    )
    desk = FakeDesk()
    with programs.daemon(panels.small(), desk) as url:
        ran = fleetctl("--server", url, "apply", str(tmp_path), "--yes")
    assert (ran.code, ran.out, desk.sent) == (1, "", [])
    assert "a.yaml:2:7:" in ran.err


def test_what_is_asked_about_is_no_part_of_the_answer() -> None:
    """At a terminal, `apply -o json` shows the plan on stderr: stdout is one JSON document."""
    leader, follower = pty.openpty()
    with programs.daemon(panels.small(), FakeDesk()) as url:
        os.write(leader, b"y\n")
        done = subprocess.run(
            [sys.executable, "-m", "fleetd.cli.main", "--server", url, "apply", MINIMAL, "-ojson"],
            cwd=programs.ROOT,
            env=programs.environment(),
            stdin=follower,
            capture_output=True,
            timeout=60,
            check=False,
        )
    os.close(leader)
    os.close(follower)
    assert done.returncode == 0
    assert json.loads(done.stdout)["plan"] == "d1"
    assert b"+ cluster/hv" in done.stderr
