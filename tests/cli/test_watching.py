"""`-w` and `--wait` over a restart of the daemon: they go on, and say so."""

import http.server
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from fleetd.cli import watching
from fleetd.cli.client import Refusal
from fleetd.cli.ending import Exit, Stop
from tests.cli import programs
from tests.surface import panels


class Front(http.server.BaseHTTPRequestHandler):
    """What stands before a daemon: it may be away, and then each request is cut off."""

    behind = ""
    away = threading.Event()
    missed = threading.Event()

    def do_GET(self) -> None:
        if self.away.is_set():
            self.missed.set()
            self.close_connection = True
            return
        with urllib.request.urlopen(self.behind + self.path, timeout=120) as answer:
            body = answer.read()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's
        pass


@contextmanager
def front(url: str) -> Generator[type[Front]]:
    given = {"behind": url, "away": threading.Event(), "missed": threading.Event()}
    handler = type("Handler", (Front,), given)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        handler.behind, handler.address = url, f"http://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        yield handler
        server.shutdown()
        thread.join(120)


@pytest.mark.parametrize("args", [("events", "-w"), ("get", "cluster", "-w"), ("tree", "--watch")])
def test_a_watch_goes_on_over_a_restart(args: tuple[str, ...]) -> None:
    """While nobody answers stderr says so, once; then what is new is told, nothing twice."""
    panel = panels.small()
    with programs.daemon(panel) as url, front(url) as door:
        process = subprocess.Popen(
            [sys.executable, "-m", "fleetd.cli.main", "--server", door.address, *args],  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType]
            cwd=programs.ROOT,
            env=programs.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        before = process.stdout.readline()
        door.away.set()
        assert door.missed.wait(60)
        told = process.stderr.readline()
        newest = panel.history[-1]
        event = replace(newest.event, message="news of the day")
        panel.history.append(replace(newest, seq=newest.seq + 1, event=event))
        for ref, judged in panel.judged.items():
            panel.judged[ref] = replace(judged, reason="NewsOfTheDay", message="news of the day")
        door.away.clear()
        lines: list[str] = []
        while not any("ews of the day" in line or "NewsOfTheDay" in line for line in lines):
            lines.append(process.stdout.readline())
            assert lines[-1], f"it ended: {process.stderr.read()}"
        back = process.stderr.readline()
        process.terminate()
        process.communicate(timeout=120)
    assert before
    assert told.endswith("; trying again\n")
    assert back == "the daemon answers again\n"
    assert before not in lines


def refusal(status: int, code: str) -> Refusal:
    return Refusal(Exit.BAD, code, {"status": status, "code": code})


def fail(stop: Stop) -> None:
    raise stop


@pytest.mark.parametrize(
    "stop",
    [
        Stop(Exit.UNREACHABLE, "nobody"),
        refusal(503, "not-ready"),
        refusal(404, "not-found"),
        refusal(503, "too-many-watchers"),
    ],
)
def test_what_passes(stop: Stop) -> None:
    """Nobody there, not ready, not known yet: looked at again; but not at the first look."""
    patience = watching.Patience()
    with pytest.raises(Stop):
        patience.look(lambda: fail(stop))
    assert patience.look(lambda: 1) == 1
    assert patience.look(lambda: fail(stop)) is None
    assert patience.was_away
    assert patience.look(lambda: 2) == 2
    assert not patience.was_away


@pytest.mark.parametrize(
    "stop", [Stop(Exit.FORBIDDEN, "no"), refusal(401, "unauthorized"), Stop(Exit.BAD, "no region")]
)
def test_what_does_not_pass(stop: Stop) -> None:
    """A right that was taken away is for a person, and so is what is wrong while the daemon is
    there."""
    patience = watching.Patience(good=True)
    with pytest.raises(Stop):
        patience.look(lambda: fail(stop))
