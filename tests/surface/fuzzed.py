"""
A real daemon without drivers, served on loopback, and schemathesis, which asks it everything.

`python -m tests.surface.fuzzed REQUESTS` is the same by hand, or by `make sweep`, with the report
on the terminal.
"""

import asyncio
import contextlib
import logging
import math
import re
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import structlog

from fleetd.clock import SystemClock
from fleetd.daemon.access import tokens
from fleetd.daemon.access.guard import GuardedDoor
from fleetd.daemon.audit import Log
from fleetd.net import RealNetwork
from fleetd.settings import Address
from fleetd.surface import http
from fleetd.surface.http import Server
from tests.surface import test_desk

FAST = http.Rate(1e6, 10**6)
SEED = 1
EACH = 0.03
"""Examples for a request: each is tried on every route, and some routes have fewer to try."""
REFUSALS = ("400", "401", "403", "404", "405", "409", "413", "415", "422", "429")
"""What bad data may be answered with. Of its own schemathesis does not know that a body may be too
large, and takes any fault for a refusal."""
ENDLESS = "/api/v1/watch"
"""A stream has no end to compare with a schema; see test_watch.py."""


@contextlib.asynccontextmanager
async def serving(folder: Path, token: str) -> AsyncGenerator[Server]:
    access = folder / "access.toml"
    access.write_text(
        f'[[tokens]]\nname = "x"\nsha256 = "{tokens.digest(token)}"\nrole = "admin"\n'
    )
    access.chmod(0o600)
    daemon = await test_desk.start(test_desk.settings(folder))
    try:
        async with http.serving(
            daemon.window,
            Address("127.0.0.1", 0),
            desk=daemon.desk,
            door=GuardedDoor(access, RealNetwork(), SystemClock()),
            rate=FAST,
            audit=Log(folder / "audit", SystemClock()),
        ) as server:
            yield server
    finally:
        await daemon.store.close()


async def asked(folder: Path, examples: int) -> tuple[int, str]:
    """The exit code of schemathesis, and its report."""
    token = tokens.new()
    config = folder / "schemathesis.toml"
    config.write_text(f"[checks]\nnegative_data_rejection.expected-statuses = {[*REFUSALS]}\n")
    async with serving(folder, token) as server:
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)),
            *("run", f"{server.url}/openapi.json"),
            *("--exclude-path", ENDLESS, "--header", f"Authorization: Bearer {token}"),
            *("--phases", "coverage,fuzzing,stateful", "--max-examples", str(examples)),
            # Few good requests are good for a daemon as it is: ids and names must be known.
            *("--exclude-checks", "positive_data_acceptance", "--continue-on-failure"),
            *("--seed", str(SEED), "--generation-database", "none", "--warnings", "off"),
            "--no-color",
            cwd=folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        report, _ = await program.communicate()
    return program.returncode or 0, report.decode(errors="replace")


def count(report: str) -> int:
    """Requests that were made up; some are sent more than once."""
    found = re.search(r"(\d+) generated", report)
    return int(found[1]) if found else 0


def main(requests: int) -> int:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    http.STRANGERS = FAST
    with tempfile.TemporaryDirectory() as place:
        code, told = asyncio.run(asked(Path(place), math.ceil(requests * EACH)))
    print(told)
    if count(told) < requests:
        print(f"only {count(told)} requests of {requests} were made up; EACH is too small")
        return 1
    return code


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1])))
