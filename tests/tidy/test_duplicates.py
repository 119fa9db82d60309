"""Code that stands in two places is one piece of code that was not named."""

import io
import tokenize
from collections import defaultdict
from pathlib import Path

from tests.tidy import files

LINES = 10
"""Shorter runs are idiom; ten equal lines are a function somebody copied."""


def _lines(path: Path) -> list[tuple[int, str]]:
    """Lines of code with their numbers: no comments, no blank lines, no imports, no brackets."""
    kept: dict[int, list[str]] = defaultdict(list)
    for token in tokenize.generate_tokens(io.StringIO(files.text(path)).readline):
        if token.type in {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}:
            kept[token.start[0]].append(token.string)
    return [
        (number, " ".join(words))
        for number, words in sorted(kept.items())
        if words[0] not in {"import", "from"} and any(word.isidentifier() for word in words)
    ]


def test_no_ten_lines_of_code_stand_twice() -> None:
    """The same ten lines never stand in two places of the project."""
    seen: dict[tuple[str, ...], str] = {}
    twice: list[str] = []
    for path in files.tracked(".py"):
        lines = _lines(path)
        for start in range(len(lines) - LINES + 1):
            window = lines[start : start + LINES]
            key = tuple(text for _, text in window)
            place = f"{path}:{window[0][0]}"
            if key in seen:
                twice.append(f"{place} = {seen[key]}")
            else:
                seen[key] = place

    assert twice == []
