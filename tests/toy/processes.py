"""The toy world and a real daemon as processes of their own, ended by their ids."""

import contextlib
import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO, Any

from tests.cli import programs
from tests.toy.forked import Forked, fleetd

ROOT = Path(__file__).parents[2]
Process = subprocess.Popen[str] | Forked


@contextlib.contextmanager
def world(pace: float) -> Generator[int]:
    """The port of a toy world."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.toy.server", "--pace", str(pace)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        end(process)


def daemon(
    documents: Path,
    state: Path,
    port: int,
    *,
    pace: float,
    log: IO[str] | int,
    drivers: str = "tests.toy.remote",
    **environ: str,
) -> "subprocess.Popen[str]":
    """A `fleetd serve` on that world. It prints where it listens into its log."""
    return subprocess.Popen(
        [sys.executable, "-m", "fleetd", *_arguments(documents, state, pace, drivers)],
        cwd=ROOT,
        env=_environment(port, pace) | environ,
        stdout=log,
        stderr=log,
        text=True,
        # Ctrl-C is for the one who started it; it then ends this one by its id.
        start_new_session=True,
    )


def forked(
    documents: Path,
    state: Path,
    port: int,
    *,
    pace: float,
    log: Path,
    program: Callable[..., None] = fleetd,
) -> Forked:
    """The same, for tests that start hundreds."""
    words = _arguments(documents, state, pace, "tests.toy.remote")
    return Forked(program, *words, out=log, environ=_environment(port, pace))


def _arguments(documents: Path, state: Path, pace: float, drivers: str) -> list[str]:
    return [
        *("serve", "--documents", str(documents), "--state", str(state)),
        *("--listen", "127.0.0.1:0", "--drivers", drivers, "--log-format", "json"),
        *("--observe-moving", f"{max(5000 / pace, 100):.0f}ms", "--observe-interval", "2s"),
        *("--execute-rate", "500", "--execute-burst", "500"),
    ]


def _environment(port: int, pace: float) -> dict[str, str]:
    here = {"TOY_WORLD": str(port), "TOY_PACE": str(pace), "PYTHONPATH": str(ROOT)}
    return programs.environment() | here


def address(log: Path, process: Process, within: float = 60.0) -> str:
    """Where the daemon listens, once it does."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        for line in log.read_text().splitlines():
            with contextlib.suppress(ValueError):
                entry: dict[str, Any] = json.loads(line)
                if entry.get("event") == "serving":
                    return str(entry["address"])
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise RuntimeError(f"the daemon did not start:\n{log.read_text()[-2000:]}")


def wait_for(log: Path, words: str, within: float = 60.0) -> None:
    deadline = time.monotonic() + within
    while words not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.05)


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def end(process: Process, number: int = signal.SIGTERM, within: float = 60.0) -> int:
    """End it by its id, with force if it does not listen."""
    if process.stdin is not None:
        process.stdin.close()
    if process.poll() is None:
        process.send_signal(number)
    try:
        status = process.wait(within)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    if process.stdout is not None:
        process.stdout.close()
    return status
