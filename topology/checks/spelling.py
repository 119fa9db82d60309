"""
"Did you mean": the nearest known name for an unknown one.

Comparing is slow against thousands of names, and a set with one wrong name in a template has
thousands of unknown ones; so each run of the checks has a budget of comparisons. Past it the
hints go on without a guess: the first ones have told the reader what is wrong.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

COMPARISONS_MAX = 20_000
"""A comparison takes up to 20 µs: 0.4 s in the worst case."""


@dataclass(slots=True)
class Speller:
    left: int = COMPARISONS_MAX

    def nearest(self, name: str, known: Iterable[str]) -> str | None:
        """The known name that is most like this one, if any is like it."""
        if self.left <= 0:
            return None
        candidates = sorted(set(known))
        self.left -= len(candidates)
        lower = {candidate.lower(): candidate for candidate in reversed(candidates)}
        found = difflib.get_close_matches(name.lower()[:100], lower, n=1, cutoff=0.7)
        return lower[found[0]] if found else None

    def hint(self, name: str, known: Iterable[str], otherwise: str) -> str:
        """What to do about an unknown name: the nearest one, or all if they are few."""
        if self.left <= 0:
            return otherwise
        names = sorted(set(known))
        guess = self.nearest(name, names)
        if guess is not None:
            return f"did you mean {guess!r}? If not, {otherwise}"
        if len(names) == 1:
            return f"use {names[0]!r}, or {otherwise}"
        if names and len(names) <= 8:
            return f"use one of {', '.join(names)}, or {otherwise}"
        return otherwise
