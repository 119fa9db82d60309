"""The demo with a real Prometheus beside it."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fleetd import clock
from fleetd.sim import demo
from tests.real import lab
from tests.tidy import alerts

pytestmark = pytest.mark.real


def test_prometheus_watches_the_demo_and_ends_with_it(tmp_path: Path) -> None:
    """It is named with its address, has all rules, sees the daemon, and is gone afterwards."""
    program = str(lab.program("prometheus"))
    process = subprocess.Popen(
        [sys.executable, "-m", "fleetd.sim.demo", "--prometheus", program],
        cwd=demo.ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    timer = threading.Timer(600, process.kill)
    timer.start()
    try:
        process.stdout.readline()
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found is not None, line
        up: list[Any] = []
        for _ in range(100):
            with suppress(OSError):  # it listens before it answers
                up = _asked(found[0], "query?query=up%7Bjob%3D%22fleetd%22%7D%3D%3D1")["result"]
            if up:
                break
            clock.block(clock.seconds(0.3))
        groups = _asked(found[0], "rules")["groups"]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        timer.cancel()

    assert program in line
    assert sum(len(group["rules"]) for group in groups) == len(alerts.rules())
    assert len(up) == 1
    with pytest.raises(OSError, match="refused"):
        _asked(found[0], "rules")
    assert not list(tmp_path.glob("fleetd-demo-*"))


def _asked(url: str, path: str) -> Any:
    with urllib.request.urlopen(f"{url}/api/v1/{path}", timeout=10) as answer:
        return json.load(answer)["data"]
