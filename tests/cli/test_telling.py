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
    assert (ran.code, ran.json["error"]["message"], ran.err) == (
        1,
        "there is no pause on all",
        "fleetctl: there is no pause on all\n",
    )


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


def at_a_terminal(typed: bytes, *args: str) -> "subprocess.CompletedProcess[str]":
    """Somebody is there and answers what is asked."""
    leader, follower = pty.openpty()
    os.write(leader, typed)
    done = subprocess.run(
        [sys.executable, "-m", "fleetd.cli.main", *args],
        cwd=programs.ROOT,
        env=programs.environment(),
        stdin=follower,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(leader)
    os.close(follower)
    return done


def test_retire_asks_again_when_others_would_go() -> None:
    """What came after it was shown does not go unseen: it is shown, and asked for again."""
    old, late = Ref("cluster", "old"), Ref("cluster", "late")
    desk = FakeDesk(orphans=[old], late=[late])
    with programs.daemon(panels.small(), desk) as url:
        done = at_a_terminal(b"y\nn\n", "--server", url, "retire", "cluster/old")
        assert (done.returncode, desk.retired) == (1, [])
        assert done.stderr.count("for good?") == 2
        assert "1. cluster/old" in done.stderr.split("has changed since it was shown:")[0]
        assert "2. cluster/late" in done.stderr.split("has changed since it was shown:")[1]
        done = at_a_terminal(b"y\n", "--server", url, "retire", "cluster/old")
    assert (done.returncode, desk.retired) == (0, [old, late])


@pytest.mark.parametrize(("reason", "said"), [("x" * 301, "301 signs"), (" ", "is empty")])
def test_a_reason_is_one_line(reason: str, said: str) -> None:
    """A reason that is none, or too long for where it is shown, is refused with what to do."""
    ran = fleetctl("pause", "all", "--reason", reason)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


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
    with programs.daemon(panels.small(), FakeDesk()) as url:
        done = at_a_terminal(b"y\n", "--server", url, "apply", MINIMAL, "-ojson")
    assert done.returncode == 0
    assert json.loads(done.stdout)["plan"] == "d1"
    assert "+ cluster/hv" in done.stderr
