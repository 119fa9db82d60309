"""The lab itself: what it starts checks certificates and rights, and goes when it is told to."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.real import lab
from tests.real.kube import Kube

WITHIN = 30.0


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.real
def test_two_at_once_are_strangers_and_end(tmp_path: Path) -> None:
    """Two clusters run beside each other; neither trusts the other's people; both end."""
    lab.need(*lab.missing("crds"))
    with (
        Kube(tmp_path / "a", controllers=False) as one,
        Kube(tmp_path / "b", controllers=False) as two,
    ):
        pids = [each.pid for cluster in (one, two) for each in cluster.running]
        own = one.get("/api/v1/namespaces")[0]
        # The certificate of one's administrator, shown to the other.
        one.port, trusted = two.port, one.authority.certificate
        stranger = one.get("/api/v1/namespaces")[0]
        untrusted = ssl.create_default_context(cafile=str(trusted))
        with (
            socket.create_connection(("127.0.0.1", two.port)) as connection,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            untrusted.wrap_socket(connection, server_hostname="127.0.0.1")

    assert (own, stranger) == (200, 0)
    assert [pid for pid in pids if _alive(pid)] == []


@pytest.mark.real
@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_lab(tmp_path: Path, told: signal.Signals) -> None:
    """It ends its servers when it is told to, and they die with it when it is killed; the folder
    goes too, if anybody is left to delete it."""
    lab.need(*lab.missing("crds"))
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.real.lab", "up", "crds"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert running.stdout is not None
    with running.stdout:
        said = [running.stdout.readline() for _ in range(2)]
        (path,) = tmp_path.glob("*/pids.json")
        pids: list[int] = list(json.loads(path.read_text())["crds"].values())
        running.send_signal(told)
        last = running.stdout.read()
    code = running.wait()
    end = time.monotonic() + WITHIN
    while any(_alive(pid) for pid in pids) and time.monotonic() < end:
        time.sleep(0.05)

    assert said[0].startswith("lab: up in ")
    assert said[1].startswith("export KUBECONFIG=")
    assert len(pids) == 2
    assert [pid for pid in pids if _alive(pid)] == []
    killed = told == signal.SIGKILL
    assert (code, last) == ((-told, "") if killed else (0, "lab: down\n"))
    assert bool(list(tmp_path.iterdir())) is killed


def test_a_missing_part_is_a_skip_or_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name for a newcomer; a failure where real servers are required."""
    monkeypatch.setenv("FLEETD_PARTS", str(tmp_path))
    monkeypatch.delenv(lab.REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="etcd, kube-apiserver is not built"):
        lab.need(*lab.missing("crds"))
    monkeypatch.setenv(lab.REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="make parts"):
        lab.admin("kube")
