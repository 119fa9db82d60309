"""Pages of `docs/` that are made by a program: written anew, or checked to be current."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def main(argv: list[str], *, module: str, name: str, page: Callable[[], str]) -> int:
    """For `python -m MODULE --write | --check`. Returns the exit code."""
    parser = argparse.ArgumentParser(description=f"Makes or checks docs/{name}.")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", action="store_true", help="write the page")
    group.add_argument("--check", action="store_true", help="fail if the page is not current")
    chosen = parser.parse_args(argv)
    target = Path(__file__).parents[2] / "docs" / name
    if chosen.write:
        target.write_text(page(), "utf-8")
        return 0
    if not target.exists() or target.read_text("utf-8") != page():
        sys.stderr.write(f"docs/{name} is not current; run python -m {module} --write\n")
        return 1
    return 0
