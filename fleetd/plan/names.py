"""
Many names in few words: `r1-s01 .. r1-s24, r2-s01`. Pure.

Names that differ only in their last number, and count up one by one, become a range.
"""

import re
from collections.abc import Iterable

_NUMBER = re.compile(r"^(.*?)(\d+)(\D*)$")


def compress(names: Iterable[str]) -> list[str]:
    """Ranges and single names, in natural order (s2 before s10)."""
    runs: list[list[str]] = []
    for name in sorted(set(names), key=natural):
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    parts: list[str] = []
    for run in runs:
        # Two names are shorter and clearer than a range of two.
        parts.extend([f"{run[0]} .. {run[-1]}"] if len(run) > 2 else run)
    return parts


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sorts digits by value, the rest as text."""
    parts = re.split(r"(\d+)", name)
    return [
        (1, int(part), part) if part.isascii() and part.isdigit() else (0, 0, part)
        for part in parts
    ]


def _follows(first: str, second: str) -> bool:
    one, two = _NUMBER.match(first), _NUMBER.match(second)
    if one is None or two is None:
        return False
    same = one.group(1) == two.group(1) and one.group(3) == two.group(3)
    return same and int(two.group(2)) == int(one.group(2)) + 1
