"""`fleetctl tree | plan | events | get | diff` against a daemon's HTTP interface."""

import contextlib
import http.server
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from fleetd.vocabulary import Hold, HoldReason, Observation, Truth
from tests.cli import programs
from tests.cli.programs import MINIMAL, ROOT, fleetctl
from tests.surface import panels
from topology import catalogue_load
from topology.resource import Ref


@pytest.fixture(scope="module")
def url() -> Generator[str]:
    with programs.daemon(panels.small()) as url:
        yield url


def test_tree(url: str) -> None:
    """A tree with state and reason; held things say what they come after."""
    ran = fleetctl("--server", url, "tree")
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith("region/eu-1")
    assert lines[1].startswith("├─ serverpool/compute") and "● Ready" in lines[1]  # noqa: PT018
    assert "◐ Progressing" in lines[2]
    assert lines[3].startswith("   └─ flux/hv")
    assert lines[3].endswith("after cluster/hv")
    assert lines[-1] == "1 of 4 resources Ready, 1 being worked on, 1 at work, 1 held"


def test_tree_says_what_is_wrong_before_what_to_do() -> None:
    """An overdue thing shows its message and the advice; its age stands before them already."""
    panel = panels.small()
    message = "Stuck since yesterday, longer than 1h; Call somebody."
    held = Hold(ref=Ref("cluster", "hv"), reason=HoldReason.OVERDUE, message=message)
    plan = replace(panel.plans["eu-1"], steps=(), waits=(), holds=(held,))
    panel.plans["eu-1"] = plan
    judged = panel.judged[held.ref]
    panel.judged[held.ref] = replace(judged, message="the disk is full")
    with programs.daemon(panel) as url:
        ran = fleetctl("--server", url, "tree")
    line = next(line for line in ran.out.splitlines() if "cluster/hv" in line)
    assert line.endswith("  Overdue: the disk is full; Call somebody.")


def test_a_terminal_without_unicode_is_answered(url: str) -> None:
    """Signs it does not know become `?` in text and escapes in JSON, never a traceback."""
    env = {"PYTHONIOENCODING": "ascii"}
    ran = fleetctl("--server", url, "tree", env=env)
    assert (ran.code, ran.err) == (0, "")
    assert "? Ready" in ran.out
    assert fleetctl("--server", url, "tree", "-o", "json", env=env).json["regions"]


def test_tree_of_one_region(url: str) -> None:
    """A region by name; one that is not there is a bad answer."""
    assert fleetctl("--server", url, "tree", "eu-1").code == 0
    ran = fleetctl("--server", url, "tree", "eu-9")
    assert (ran.code, ran.out, ran.err) == (1, "", "fleetctl: there is no region eu-9\n")


def test_many_servers_are_one_line() -> None:
    """Servers of a pool are counted; those that are not Ready are named, the worst first."""
    pool = Ref("serverpool", "compute")
    servers = [panels.resource("server", f"s{n:02}", owner=pool) for n in range(50)]
    panel = panels.FakePanel(
        want=panels.topology(panels.resource("serverpool", "compute"), *servers),
        judged={one.ref: panels.ready(Truth.TRUE) for one in servers}
        | {servers[7].ref: panels.ready(Truth.FALSE, "BmcTimedOut", "no answer")},
    )
    with programs.daemon(panel) as url:
        lines = fleetctl("--server", url, "tree").out.splitlines()
    assert "50 servers" in lines[2]
    assert "49 of 50" in lines[2]
    assert "server/s07" in lines[3]
    assert "✗ BmcTimedOut" in lines[3]
    assert len(lines) == 5


def test_plan(url: str) -> None:
    """The daemon's plan, with what it disrupts, what is held and why."""
    ran = fleetctl("--server", url, "plan")
    assert (ran.code, ran.err) == (0, "")
    assert "plan plan-1 for eu-1: 1 step, 1 held, 1 waiting" in ran.out
    assert "disrupts server/a, server/b" in ran.out
    assert "! DependencyNotReady flux hv" in ran.out
    assert fleetctl("--server", url, "plan", "--exit-code").code == 3
    assert fleetctl("--server", url, "plan", "-o", "json").json["plans"][0]["id"] == "plan-1"


def test_a_catalogue_is_the_daemons_own(url: str) -> None:
    """A plan by the daemon takes no catalogue and no region."""
    for more in (("--catalogue", "."), ("--region", "eu-1")):
        ran = fleetctl("--server", url, "plan", MINIMAL, *more)
        assert (ran.code, ran.out) == (2, "")


def test_events(url: str) -> None:
    """History oldest first, for one thing if asked."""
    ran = fleetctl("--server", url, "events", "--for", "flux/hv")
    assert (ran.code, ran.err) == (0, "")
    assert len(ran.out.splitlines()) == 3
    assert ran.out.splitlines()[1].startswith("03-01 12:00:02  Done")
    assert fleetctl("--server", url, "events", "--for", "Fluxes/hv").out == "No events.\n"
    assert fleetctl("--server", url, "events", "--for", "Clusters/hv").out == (
        fleetctl("--server", url, "events", "--for", "cluster/hv").out
    )
    found = fleetctl("events", "-o", "json", "--server", url).json
    assert [one["seq"] for one in found["items"]] == [1, 2, 3, 4, 5]


def test_events_since(url: str) -> None:
    """Old events are left out; a wrong span is wrong usage."""
    ran = fleetctl("--server", url, "events", "--since", "1m")
    assert (ran.code, len(ran.out.splitlines())) == (0, 6)
    far = panels.small()
    far.history = [replace(one, event=replace(one.event, at=panels.NOW)) for one in far.history]
    far.history[:4] = [
        replace(one, event=replace(one.event, at=panels.NOW - timedelta(hours=1)))
        for one in far.history[:4]
    ]
    with programs.daemon(far) as other:
        found = fleetctl("--server", other, "events", "--since", "1m", "-o", "json").json
        assert [one["seq"] for one in found["items"]] == [5]
    assert fleetctl("--server", url, "events", "--since", "soon").code == 2


def test_get(url: str) -> None:
    """Things of a kind, or one, or none."""
    ran = fleetctl("--server", url, "get", "Cluster")
    assert ran.out.splitlines()[1].split()[:2] == ["hv", "Progressing"]
    assert fleetctl("--server", url, "get", "cluster", "hv", "-o", "json").json["kind"] == "cluster"
    ran = fleetctl("--server", url, "get", "cluster", "none")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "fleetctl: no document leads to cluster/none\n"
    assert fleetctl("--server", url, "get", "rocket").code == 1


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("get", "clusters"), 0, ""),
        (("get", "cluster/hv"), 0, ""),
        (("get", "cluster/hv", "hv"), 2, "not both"),
        (("get", "cluster/"), 2, "cluster/ lacks a name"),
        (("get", "clustr"), 1, "there is no kind clustr; did you mean cluster?"),
        (("why", "cluster", "hw"), 1, ""),
        (("why", "serverpool", "computer"), 1, "did you mean serverpool/compute?"),
        (("describe", "cluster"), 2, "which cluster?"),
        (("why", "floux/hv"), 1, "did you mean flux?"),
    ],
)
def test_names_as_people_write_them(url: str, args: tuple[str, ...], code: int, said: str) -> None:
    """Plural, KIND/NAME, and a guess at what was meant."""
    ran = fleetctl("--server", url, *args)
    assert (ran.code, bool(ran.out)) == (code, code == 0)
    assert said in ran.err


@pytest.mark.parametrize("name", ["why", "describe"])
def test_one_thing(url: str, name: str) -> None:
    """The paragraph and the page of one thing, as they stand in the golden files."""
    ran = fleetctl("--server", url, name, "flux", "hv")
    assert (ran.code, ran.err) == (0, "")
    programs.golden(f"{name}.txt", ran.out)
    found = fleetctl("--server", url, name, "flux/hv", "-o", "json").json
    assert (found if name == "why" else found["why"])["cause"] == "cluster/hv"


def test_orphans() -> None:
    """What no document names is listed with what removes it, and retired ones with their state."""
    panel = panels.small()
    for name in ("old", "older"):
        left = panels.resource("cluster", name)
        panel.left[left.ref] = left
    panel.going = frozenset({Ref("cluster", "older")})
    with programs.daemon(panel) as url:
        lines = fleetctl("--server", url, "get", "orphans").out.splitlines()
        assert fleetctl("--server", url, "why", "cluster/old").out.startswith(
            "cluster/old is an orphan: no document names it any more"
        )
    assert lines[1].split()[:2] == ["cluster/old", "Orphaned"]
    assert lines[1].endswith("fleetctl retire cluster old")
    assert lines[2].split()[:2] == ["cluster/older", "Retiring"]
    with programs.daemon(panels.small()) as url:
        assert fleetctl("--server", url, "get", "orphans").out.startswith("No orphans")


def test_credentials() -> None:
    """The ledger says what, where, version, age and users; never more of a fact than that."""
    catalogue, _ = catalogue_load.load(())
    facts = {
        "observed": {
            "credentials": {
                "ceph-admin": {
                    "version": 3,
                    "madeAt": "2026-02-27T12:00:00Z",
                    "value": "canary-of-the-ledger",
                }
            }
        }
    }
    maker = panels.resource("cephcluster", "st", backend="cluster:st")
    panel = panels.FakePanel(
        want=panels.topology(maker),
        catalogue=catalogue,
        looked={maker.ref: Observation(ref=maker.ref, at=panels.NOW, facts=facts)},
    )
    with programs.daemon(panel) as url:
        text = fleetctl("--server", url, "credentials", "-o", "wide").out
        found = fleetctl("--server", url, "credentials", "-o", "json")
        nowhere = fleetctl("--server", url, "credentials", "--region", "nope")
    assert text.splitlines()[1].split()[:9] == [
        *("ceph-admin", "Good", "3", "2d", "-", "never", "0"),
        *("cephcluster/st", "secret:rook-ceph/rook-ceph-mon"),
    ]
    assert found.json["items"][0]["ageSeconds"] == 2 * 86400
    assert "canary" not in text + found.out
    assert (nowhere.code, nowhere.out) == (1, "")
    assert "no document names a region nope" in nowhere.err


@pytest.mark.parametrize("args", [("get", "clusters"), ("tree",), ("events",)])
def test_watch_writes_what_is_new(url: str, args: tuple[str, ...]) -> None:
    """Off a terminal, --watch writes each line once and goes on until it is interrupted."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fleetd.cli.main", "--server", url, *args, "--watch"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert err.strip() == "fleetctl: interrupted"
    assert len(out.splitlines()) == len(set(out.splitlines()))


def test_diff_against_the_daemon(tmp_path: Path) -> None:
    """Documents are compared with those the daemon has."""
    text = (ROOT / MINIMAL / "region.yaml").read_text("utf-8")
    panel = panels.FakePanel(accepted=list(yaml.safe_load_all(text)))
    newer = tmp_path / "region.yaml"
    newer.write_text(text.replace('release: "2025.2"', 'release: "2026.1"'), "utf-8")
    with programs.daemon(panel) as url:
        same = fleetctl("--server", url, "diff", MINIMAL)
        other = fleetctl("--server", url, "diff", str(newer))
    assert (same.code, same.out) == (0, "No difference.\n")
    assert "~ cloud/prod: release 2025.2 -> 2026.1" in other.out


def test_diff_against_an_empty_daemon() -> None:
    """Before the daemon has documents, everything is to be added."""
    with programs.daemon(panels.FakePanel()) as url:
        ran = fleetctl("--server", url, "diff", MINIMAL, "-o", "json")
    assert (ran.code, ran.json["changed"], ran.json["removed"]) == (0, [], [])
    assert "region/eu-1" in ran.json["added"]


@pytest.mark.parametrize("command", [("tree",), ("plan",), ("events",), ("get", "cluster")])
def test_nobody_there(command: tuple[str, ...]) -> None:
    """An unreachable daemon is exit code 4, with words, for a program too."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{taken.getsockname()[1]}"
        ran = fleetctl(*command, "-o", "json", "--server", server)
    assert (ran.code, ran.json["error"]["code"]) == (4, "unreachable")
    assert f"cannot reach the daemon at {server}: Connection refused" in ran.err
    assert "fleetd serve" in ran.err


def test_the_address_from_the_environment() -> None:
    """FLEETCTL_SERVER names the daemon; a flag is stronger."""
    ran = fleetctl("tree", env={"FLEETCTL_SERVER": "http://127.0.0.1:1"})
    assert ran.code == 4
    assert "http://127.0.0.1:1" in ran.err
    ran = fleetctl("--server", "nonsense", "tree", env={"FLEETCTL_SERVER": "http://127.0.0.1:1"})
    assert ran.code == 2


class Other(http.server.BaseHTTPRequestHandler):
    """Something else that answers HTTP."""

    status = 200
    body = b"<html>"

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's
        pass


@contextlib.contextmanager
def another(status: int, body: bytes) -> Generator[str]:
    handler = type("Handler", (Other,), {"status": status, "body": body})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(120)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (200, b"<html>", 4),
        (404, b"<html>", 4),
        (502, b"", 4),
        (401, json.dumps({"code": "unauthorized", "title": "A token is needed"}).encode(), 5),
        (403, json.dumps({"code": "forbidden", "title": "Not for you"}).encode(), 5),
        (500, json.dumps({"code": "internal", "title": "Something"}).encode(), 1),
    ],
)
def test_what_else_may_answer(status: int, body: bytes, code: int) -> None:
    """Something that is not a fleetd is as good as nobody; a refusal is its own code."""
    with another(status, body) as url:
        ran = fleetctl("--server", url, "tree")
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("fleetctl: ")
