"""Runs the two programs as a user would: in a process of their own, with both streams apart."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fleetd.settings import Address
from fleetd.surface import http
from fleetd.surface.desk import Desk
from tests.surface.panels import FakePanel

ROOT = Path(__file__).parents[2]
MINIMAL = "topology/examples/minimal"


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment() -> dict[str, str]:
    """Ours, without what a shell may have set for the programs or for colours."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FLEETD_", "FLEETCTL_", "COLUMNS", "FORCE_COLOR", "NO_COLOR"))
    }


def run(module: str, *args: str, env: dict[str, str] | None = None) -> Ran:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", module, *args],
        cwd=ROOT,
        env=environment() | (env or {}),
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    return Ran(done.returncode, done.stdout, without_progress(done.stderr))


def without_progress(told: str) -> str:
    """What went to stderr, without the line that work shows of itself on a busy machine."""
    return re.sub(r"^(reading documents|planning) \.\.\.\n", "", told, flags=re.MULTILINE)


def fleetctl(*args: str, env: dict[str, str] | None = None) -> Ran:
    return run("fleetd.cli.main", *args, env=env)


def fleetd(*args: str, env: dict[str, str] | None = None) -> Ran:
    return run("fleetd", *args, env=env)


@contextlib.contextmanager
def daemon(panel: FakePanel, desk: Desk | None = None) -> Generator[str]:
    """The HTTP interface over a panel and a desk, in a thread; gives its address."""
    url: list[str] = []
    started = threading.Event()
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with http.serving(panel, Address("127.0.0.1", 0), desk=desk) as server:
            url.append(server.url)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert started.wait(120)
    try:
        yield url[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(120)
        loop.close()


def golden(name: str, text: str) -> None:
    """Compare with a file. REWRITE_GOLDEN=1 writes it instead; read the diff before you keep it."""
    path = Path(__file__).parent / "golden" / name
    if os.environ.get("REWRITE_GOLDEN") == "1":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")
