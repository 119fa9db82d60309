"""
Who has read what of a cache, and is woken once when it changes.

The one rule: whoever is woken is forgotten, until he reads again.
"""

from collections.abc import Callable

from fleetd.kube.slim import Key
from topology.resource import Ref


class Readers:
    __slots__ = ("_of", "_of_all", "_wake")

    def __init__(self, wake: Callable[[Ref], None]) -> None:
        self._wake = wake
        self._of: dict[Key, dict[Ref, None]] = {}
        self._of_all: dict[Ref, None] = {}

    def one(self, key: Key, by: Ref) -> None:
        """Has read this one, or looked for it in vain."""
        self._of.setdefault(key, {})[by] = None

    def all(self, by: Ref) -> None:
        """Has read whatever there was."""
        self._of_all[by] = None

    def changed(self, key: Key) -> None:
        if not self._of and not self._of_all:
            return  # as while a list is taken for the first time
        readers = self._of.pop(key, {})
        if self._of_all:
            readers.update(self._of_all)
            self._of_all = {}
        for ref in readers:
            self._wake(ref)

    def told_all(self) -> None:
        """Whatever any of them read."""
        readers = {ref: None for read in self._of.values() for ref in read}
        readers.update(self._of_all)
        self._of, self._of_all = {}, {}
        for ref in readers:
            self._wake(ref)
