"""`fleetd serve` as a process: it comes up, answers, and goes when it is told to."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.cli.programs import MINIMAL, ROOT, environment, fleetctl


def test_a_life(tmp_path: Path) -> None:
    """The daemon says where it listens, serves what fleetctl asks, and ends with 0 on SIGTERM."""
    env = {**environment(), "FLEETD_REQUIRE_REAL": "1"}  # CI has it set; it is not a setting
    command = [sys.executable, "-m", "fleetd", "serve", "--documents", MINIMAL]
    command += ["--state", str(tmp_path / "state"), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, cwd=ROOT, env=env, stderr=subprocess.PIPE, encoding="utf-8")
    assert process.stderr is not None
    try:
        lines = (json.loads(line) for line in process.stderr)
        url = next(line["address"] for line in lines if line["event"] == "serving")
        assert next(line for line in lines if line["event"] == "documents taken")["resources"] > 100
        for path in ("/healthz", "/metrics"):
            with urllib.request.urlopen(f"{url}{path}", timeout=60) as answer:
                assert answer.status == 200
        tree = fleetctl("--server", url, "tree")
        assert (tree.code, tree.err) == (0, "")
        assert tree.out.startswith("region/eu-1 ")
        assert fleetctl("--server", url, "diff", MINIMAL).out == "No difference.\n"
    finally:
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
        process.stderr.close()
        assert process.wait(120) == 0


def test_a_reload_that_comes_too_early_ends_nothing() -> None:
    """From its first moment the program does not die of SIGHUP."""
    code = (
        "import os, signal, sys; from fleetd import __main__;"
        "sys.modules['fleetd.cli.daemon'] = type(sys)('early');"
        "sys.modules['fleetd.cli.daemon'].main = lambda: os.kill(os.getpid(), signal.SIGHUP);"
        "__main__.main(); print('alive')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "alive\n"), ran.stderr
