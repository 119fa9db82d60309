"""
Finds a Chromium for the tests of the page, or has the system's packages install one.

It is the one real part that is not built from source: that would take a day. Where it is missing
and cannot be installed, the tests of the page are skipped by name.
"""

import os
import shutil
import subprocess
import sys
from typing import IO

import pytest

from tests.real import lab

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LONG = 600
HOW = "install Debian's package chromium, or put a chromium on the PATH"


def path() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def install(say: IO[str]) -> str | None:
    """Where it is in the end; as root on a Debian, it is installed if it is missing."""
    apt = shutil.which("apt-get")
    if path() is None and apt is not None and os.geteuid() == 0:
        print("chromium: installing the system's package", file=say, flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
            done = subprocess.run(
                [apt, "-q", *command],
                env=environment,
                timeout=LONG,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                print(f"chromium: apt-get {command[0]} failed: {done.stderr[-500:]}", file=say)
                break
    return path()


def need() -> str:
    """Its path; the test is skipped, or fails where real parts are required."""
    found = path()
    if found is None:
        said = f"chromium is not there: {HOW}"
        if os.environ.get(lab.REQUIRED) == "1":
            pytest.fail(said, pytrace=False)
        pytest.skip(said)
    return found


if __name__ == "__main__":
    sys.exit(0 if install(sys.stdout) else HOW)
