"""
Runs the tests marked `real`: builds what is missing, starts the servers once, runs, ends them.

What cannot be built is said by name, and its tests are skipped; with FLEETD_REQUIRE_REAL=1 it is a
failure. Arguments are handed to pytest.
"""

import os
import subprocess
import sys
import time
from contextlib import ExitStack

from tests.real import build, chromium, lab
from tests.tidy import files

WORKERS = "4"
"""More than cores: most of the time a test waits for a server to notice something."""


def marked() -> list[str]:
    """Where tests are that need real servers; to collect all others would cost a minute. The files
    here come first: some of them take the longest."""
    found = [
        path
        for path in files.tracked(".py")
        if path.name.startswith(("test_", "conftest")) and "pytest.mark.real" in files.text(path)
    ]
    found.sort(key=lambda path: not path.is_relative_to("tests/real"))
    return [str(path.parent if path.name == "conftest.py" else path) for path in found]


def main() -> int:
    failed = build.build_all(lab.PROGRAMS, sys.stdout)
    if chromium.install(sys.stdout) is None:
        failed["chromium"] = chromium.HOW
    required = os.environ.get(lab.REQUIRED) == "1"
    if failed and required:
        print(f"test-real: {', '.join(failed)} cannot be built, and {lab.REQUIRED} is set")
        return 1
    names = [name for name in lab.TESTED if not lab.missing(name)]
    with ExitStack() as stack:
        environment = dict(os.environ)
        if names:
            began = time.monotonic()
            environment[lab.PLACE] = str(stack.enter_context(lab.started(names)))
            took = time.monotonic() - began
            print(f"test-real: {', '.join(names)} up in {took:.1f} s", flush=True)
        command = [sys.executable, "-m", "pytest", "-m", "real", "-n", WORKERS]
        command += ["--dist", "loadfile", "--no-loadscope-reorder", *marked(), *sys.argv[1:]]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
