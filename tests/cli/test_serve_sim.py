"""`fleetd serve --sim`: a whole region comes up on a simulated world, in one process."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli import programs
from tests.cli.programs import MINIMAL, ROOT, environment, fleetctl

ENOUGH = 600.0
"""Seconds on the wall, against a hang; a quiet machine needs about 15."""


@pytest.mark.slow
def test_a_simulated_region_comes_up(tmp_path: Path) -> None:
    """The region becomes Ready at 240 times the pace of life, and SIGTERM ends it with 0."""
    command = [sys.executable, "-m", "fleetd", "serve", "--sim", "7", "--pace", "240"]
    command += ["--documents", MINIMAL, "--store", "memory", "--listen", "127.0.0.1:0"]
    command += ["--state", str(tmp_path / "state"), "--log-format", "json"]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, encoding="utf-8"
    )
    assert process.stderr is not None
    reader: threading.Thread | None = None
    too_late = threading.Event()
    limit = threading.Timer(ENOUGH, too_late.set)
    limit.start()
    try:
        lines = (json.loads(line) for line in process.stderr)
        url = next(line["address"] for line in lines if line["event"] == "serving")
        # Nobody may be held up by a pipe that is full.
        reader = threading.Thread(target=process.stderr.read)
        reader.start()
        ready = ""
        # Each question is a process of its own, which is pause enough.
        while ready != "True" and not too_late.is_set():
            ran = fleetctl("--server", url, "get", "region", "eu-1", "-o", "json")
            ready = _ready(ran) if ran.code == 0 else ""
        assert ready == "True", fleetctl("--server", url, "tree").out
    finally:
        limit.cancel()
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
        if reader is not None:
            reader.join(60)
        process.stderr.close()
    assert code == 0


def _ready(ran: programs.Ran) -> str:
    ready: dict[str, str] | None = ran.json.get("ready")
    return ready["status"] if ready else ""


@pytest.mark.parametrize("text", ["kind: Region\n", ""], ids=["bad", "empty"])
def test_a_world_cannot_be_made_of_bad_documents(tmp_path: Path, text: str) -> None:
    """The daemon ends with a sentence that names the way to find out more, not with a trace."""
    (tmp_path / "fleet.yaml").write_text(text, "utf-8")
    ran = programs.fleetd(
        *("serve", "--sim", "7", "--documents", str(tmp_path), "--store", "memory"),
        *("--listen", "127.0.0.1:0", "--log-format", "json"),
    )
    assert ran.code == 1
    told = [json.loads(line) for line in ran.err.splitlines()]
    assert [line["event"] for line in told] == ["cannot go on"]
    assert "fleetctl validate" in told[0]["why"]
