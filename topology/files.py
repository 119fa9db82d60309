"""
Which files a path stands for: itself, or everything below it.

Used to read documents and to notice that they changed, so that both see the same files. The rule
to know: nothing here raises for what the disk holds. A place that cannot be looked into is told to
whoever asks, and each folder is entered once, whatever links lead back to it.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

SUFFIX = ".yaml"
SUFFIXES = frozenset({".yml", SUFFIX})
"""In lower case, what people call a YAML file."""


def below(folder: Path, refused: Callable[[Path, OSError], None]) -> Iterator[Path]:
    """All YAML files below a directory. Hidden names are left out: they are Git's, an editor's, or
    the versions behind a mounted ConfigMap."""
    entered: set[str] = set()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        real = os.path.realpath(here)
        if real in entered:
            continue
        entered.add(real)
        try:
            entries = [entry for entry in here.iterdir() if not entry.name.startswith(".")]
        except OSError as cause:
            refused(here, cause)
            continue
        for entry in entries:
            if is_folder(entry):
                waiting.append(entry)
            elif entry.suffix.lower() in SUFFIXES:
                yield entry


def is_folder(path: Path) -> bool:
    """Whether it is a directory, as far as one may know: in a folder whose names may be read but
    not entered, nobody can tell."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def real(path: Path) -> str:
    """The one name of a file that has several."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return str(path)
