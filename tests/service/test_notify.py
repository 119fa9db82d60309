"""The service manager is told when the daemon is up, alive and ending."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from fleetd.notify import Manager

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


@pytest.fixture
def door(tmp_path: Path) -> Generator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(PATIENCE)
        yield listening


def heard(door: socket.socket) -> list[str]:
    return door.recv(4096).decode().splitlines()


def test_what_is_told(door: socket.socket) -> None:
    """Each message is the manager's own word, with a line for people."""
    manager = Manager({"NOTIFY_SOCKET": door.getsockname()})
    manager.ready("serves")
    manager.alive("looks after 3 things")
    manager.stopping()
    assert heard(door) == ["READY=1", "STATUS=serves"]
    assert heard(door) == ["WATCHDOG=1", "STATUS=looks after 3 things"]
    assert heard(door)[0] == "STOPPING=1"


def test_an_abstract_socket_is_found() -> None:
    """A name that begins with @ has no file."""
    name = f"fleetd-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{name}")
        listening.settimeout(PATIENCE)
        Manager({"NOTIFY_SOCKET": f"@{name}"}).ready("serves")
        assert heard(listening)[0] == "READY=1"


@pytest.mark.parametrize("where", ["", "/nowhere/at/all"])
def test_without_a_manager_nothing_fails(where: str) -> None:
    """No socket, or one that is gone, is no reason to stop."""
    manager = Manager({"NOTIFY_SOCKET": where})
    manager.ready("serves")
    assert manager.watch is None


@pytest.mark.parametrize(
    ("told", "watch"),
    [
        ({"WATCHDOG_USEC": "60000000"}, 30.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({}, None),
    ],
)
def test_signs_of_life_come_twice_as_often_as_they_must(
    told: dict[str, str], watch: float | None
) -> None:
    """And only from the process that is watched."""
    assert Manager({"NOTIFY_SOCKET": "/x", **told}).watch == watch


def test_a_daemon_tells_its_whole_life(door: socket.socket, tmp_path: Path) -> None:
    """Up when it serves, alive by its own loop, and stopping when it is told to."""
    environment = {name: text for name, text in os.environ.items() if "FLEETD" not in name}
    environment |= {"NOTIFY_SOCKET": door.getsockname(), "WATCHDOG_USEC": "400000"}
    command = [sys.executable, "-m", "fleetd", "serve", "--documents", "topology/examples/minimal"]
    command += ["--state", str(tmp_path / "state"), "--listen", "127.0.0.1:0", "--sim", "1"]
    with (tmp_path / "log").open("w") as log:
        daemon = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    try:
        first = heard(door)
        assert first[0] == "READY=1"
        assert first[1].startswith("STATUS=serves http://127.0.0.1:")
        assert {heard(door)[0] for _ in range(3)} == {"WATCHDOG=1"}
        daemon.send_signal(signal.SIGTERM)
        while (word := heard(door)[0]) == "WATCHDOG=1":
            pass
        assert word == "STOPPING=1"
        assert daemon.wait(PATIENCE) == 0
    finally:
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()
