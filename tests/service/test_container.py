"""The Containerfile names only what is here, and keeps its promises about root and pins."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINES = (
    (ROOT / "deploy/container/Containerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
)


def test_everything_that_is_copied_exists() -> None:
    """A build from a clean clone finds its sources."""
    for line in LINES:
        if line.startswith("COPY ") and "--from=" not in line:
            *sources, _target = line.split()[1:]
            assert [one for one in sources if not (ROOT / one).exists()] == []


def test_it_runs_without_root() -> None:
    """The last word about the user is a number that is not 0, so that Kubernetes can check it."""
    users = [line.split()[1] for line in LINES if line.startswith("USER ")]
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", users[-1])


def test_every_package_is_pinned_by_its_hash() -> None:
    """Nothing is installed that the lock file does not name; the project itself brings nothing."""
    for line in LINES:
        for command in re.findall(r"pip install ([^&]*)", line):
            assert "--require-hashes" in command or "--no-deps" in command
