"""
Asks the tests that failed in the run before once more, one after the other and beside nothing.

For CI, whose two cores also carry real daemons and servers: what fails there and passes alone was
moved by load or by its neighbours, which is a defect of the test, or of the product, that wants
mending, but is not what the change under test did. It is not a way to make tests green: more than
a handful of failures are not asked again, a failure that stays is a failure, and what passed the
second time is told by name at the end. `make test` at a desk never does this.
"""

import json
import subprocess
import sys
from pathlib import Path

MOST = 5
FAILED = Path(".pytest_cache/v/cache/lastfailed")


def failed(at: Path = FAILED) -> list[str]:
    """What pytest wrote down of the last run. A file that it could not read at all is one name."""
    try:
        return sorted(json.loads(at.read_bytes()))
    except FileNotFoundError:
        return []


def main(arguments: list[str]) -> int:
    """The first word is the module that runs pytest; the rest goes to it."""
    names = failed()
    if not 0 < len(names) <= MOST:
        print(f"again: {len(names)} tests failed; only 1 to {MOST} are asked once more")
        return 1
    print(f"\nagain: asking {len(names)} once more, alone:", *names, sep="\n  ", flush=True)
    module, *rest = arguments
    command = [sys.executable, "-m", module, "-q", *rest, "-n", "0"]
    command += ["--last-failed", "--last-failed-no-failures", "none"]
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        print("\nagain: THESE FAILED BESIDE OTHERS AND PASSED ALONE; mend them:", end="")
        print("", *names, sep="\n  ", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
