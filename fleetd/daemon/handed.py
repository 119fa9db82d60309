"""
Documents that people handed over with `fleetctl apply`: a folder beside the store, one file each.

It is read like any folder of documents. The set changes as a whole: a new folder is written and
synced, then one link is turned to it; a crash leaves the old set or the new one, and what is left
over of the other is removed at the next change. Durable when `write` returns.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

LINK = "documents"
_HEAD = "# Handed over with `fleetctl apply`; change it in the same way.\n"


class Handed:
    def __init__(self, state: Path) -> None:
        self._state = state
        self.folder = state / LINK

    @property
    def there(self) -> bool:
        return self.folder.is_dir()

    def current(self) -> str:
        """Which set is in force, for `turn`; empty if there is none."""
        return str(self.folder.readlink()) if self.folder.is_symlink() else ""

    def write(self, documents: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
        """Put this set into force, by (kind, name). Blocks; raises OSError."""
        if not documents:
            self.turn("")
            return
        texts = {
            f"{kind}-{name}.yaml": _HEAD + yaml.safe_dump(dict(document), sort_keys=False)
            for (kind, name), document in sorted(documents.items())
        }
        digest = hashlib.blake2b(repr(texts).encode(), digest_size=8).hexdigest()
        folder = self._state / f".{LINK}-{digest}"
        folder.mkdir(mode=0o700, exist_ok=True)
        for name, text in texts.items():
            _write(folder / name, text)
        for stray in set(folder.iterdir()) - {folder / name for name in texts}:
            stray.unlink()
        _sync(folder)
        self.turn(folder.name)

    def turn(self, target: str) -> None:
        """Let the link lead to a set that was written before; empty for none."""
        if target:
            fresh = self._state / f".{LINK}.next"
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(target)
            fresh.replace(self.folder)
        else:
            self.folder.unlink(missing_ok=True)
        _sync(self._state)

    def tidy(self) -> None:
        """Remove the sets that are not in force."""
        for old in self._others():
            shutil.rmtree(old, ignore_errors=True)

    def _others(self) -> Iterator[Path]:
        current = self.current()
        for path in self._state.glob(f".{LINK}-*"):
            if path.name != current:
                yield path


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
