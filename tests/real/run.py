"""
Runs the tests marked `real`, and says so plainly while there are none.

pytest ends with 5 when nothing was collected; a suite that has no real part yet is not a failure,
but a suite that lost its tests is: the count is compared with what the source holds.
"""

import subprocess
import sys

from tests.tidy import files

NOTHING_COLLECTED = 5


def main() -> int:
    marked = [
        str(path)
        for path in files.tracked(".py")
        if path.name.startswith("test_") and "pytest.mark.real" in files.text(path)
    ]
    status = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "real"], check=False
    ).returncode
    if status == NOTHING_COLLECTED and not marked:
        print("test-real: no test needs a real server yet")
        return 0
    return status


if __name__ == "__main__":
    sys.exit(main())
