"""Which files the house rules are about: those that git knows, or would."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked(*endings: str) -> list[Path]:
    """Files of the project, as paths from its root; new ones that are not ignored included."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = sorted(set(filter(None, listed.stdout.decode().split("\0"))))
    paths = [Path(name) for name in names if not endings or name.endswith(endings)]
    return [path for path in paths if (ROOT / path).is_file()]


def text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")
