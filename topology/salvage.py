"""
What is left of a document when its bad parts are taken out.

A refused document is never used for a plan. But an operator who misspelt one field and named a
pool that does not exist wants to hear of both, so the rest is looked at as well. What can be left
out is taken out: a field with a default, an unknown field, a member of a list. A field that is only
misspelt is read as what was meant. For what a document cannot do without, something stands in that
leads nowhere, and nothing is said about it. Where that is not enough, nothing is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from topology.complaints import Complaint
from topology.documents import fields, stand_ins
from topology.documents.base import Document
from topology.yamlevents import Path

FAULTS_MAX = 20
"""A document with more of them is not worth a second look, and would cost as much again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A document with holes."""

    document: Document
    lost: frozenset[Path]
    """What was taken out, as it was written."""
    kept: dict[Path, list[int]]
    """For each list with a hole, the numbers of what stayed."""

    @classmethod
    def whole(cls, document: Document) -> "Rest":
        """Of a document with nothing wrong below its head."""
        return cls(document=document, lost=frozenset(), kept={})

    def lacks(self, names: frozenset[str]) -> bool:
        """Whether something was taken out, or made up, at or below a field of these names."""
        return any(not names.isdisjoint(hole) for hole in self.lost)

    def written(self, path: Path) -> Path | None:
        """The place in the file of a place in the rest; None if a hole is at, in or around it."""
        found: list[str | int] = []
        for part in path:
            numbers = self.kept.get(tuple(found)) if isinstance(part, int) else None
            found.append(numbers[part] if numbers is not None and isinstance(part, int) else part)
        whole = tuple(found)
        if any(hole[: len(whole)] == whole or whole[: len(hole)] == hole for hole in self.lost):
            return None
        return whole


def salvage(
    model: type[Document], value: dict[str, Any], faults: Sequence[Complaint]
) -> Rest | None:
    """The document without the places that are complained about; None if it cannot do without."""
    if len(faults) > FAULTS_MAX:
        return None
    paths = [fault.path for fault in faults]
    meant = {
        fault.path: fault.meant
        for fault in faults
        if fault.meant and not _is_there(value, (*fault.path[:-1], fault.meant))
    }
    # First without what is wrong. If that leaves too little, such as a cluster without nodes, then
    # with something in its place; and if a misspelt field was not meant at all, without it.
    holes = {path: _hole(model, path) for path in paths}
    places = {path: _place(model, path) for path in paths}
    unmeant: dict[Path, str] = {}
    for chosen, guessed in ((holes, meant), (places, meant), (holes, unmeant)):
        made_up = {path: stand_ins.of(model, path) for path, hole in chosen.items() if hole is None}
        lost = {hole if hole is not None else path for path, hole in chosen.items()}
        lost |= {(*path[:-1], name) for path, name in guessed.items()}
        work = _Work(lost=frozenset(lost), meant=guessed, made_up=made_up)
        try:
            document = model.model_validate(work.copy(value, ()))
        except ValidationError:
            continue
        if any(path[:1] == ("metadata",) for path in made_up):
            nameless = document.metadata.model_copy(update={"name": ""})
            document = document.model_copy(update={"metadata": nameless})
        return Rest(document=document, lost=work.lost, kept=work.kept)
    return None


def _is_there(value: object, path: Path) -> bool:
    """Whether the document has something at a place."""
    for part in path:
        if isinstance(value, dict) and part in value:
            value = cast("dict[str | int, object]", value)[part]
        elif isinstance(value, list) and isinstance(part, int):
            value = cast("list[object]", value)[part]
        else:
            return False
    return True


def _hole(model: type[BaseModel], fault: Path) -> Path | None:
    """The smallest thing around a fault that can be left out."""
    for end in range(len(fault), 0, -1):
        place = fault[:end]
        if _place(model, place) is not None:
            return place
    return None


def _place(model: type[BaseModel], fault: Path) -> Path | None:
    """The place of a fault itself, if it can be left out."""
    found = fields.at(model, fault)
    optional = not fault or isinstance(fault[-1], int) or found is None or not found.is_required()
    return fault if optional else None


@dataclass(slots=True)
class _Work:
    lost: frozenset[Path]
    meant: dict[Path, str]
    made_up: dict[Path, object]
    kept: dict[Path, list[int]] = field(default_factory=dict[Path, list[int]])

    def copy(self, value: object, here: Path) -> object:
        if not any(hole[: len(here)] == here for hole in self.lost):
            return value
        if isinstance(value, dict):
            return self._mapping(cast("dict[str, object]", value), here)
        if isinstance(value, list):
            return self._list(cast("list[object]", value), here)
        return value

    def _mapping(self, entries: dict[str, object], here: Path) -> dict[str, object]:
        made: dict[str, object] = {}
        for key, part in entries.items():
            name = self.meant.get((*here, key))
            if name is not None and name not in entries:
                made.setdefault(name, part)
            elif (*here, key) not in self.lost:
                made[key] = self.copy(part, (*here, key))
        for path, instead in self.made_up.items():
            if path[:-1] == here:
                made.setdefault(str(path[-1]), instead)
        return made

    def _list(self, members: list[object], here: Path) -> list[object]:
        stay = [number for number in range(len(members)) if (*here, number) not in self.lost]
        if len(stay) < len(members):
            self.kept[here] = stay
        return [self.copy(members[number], (*here, number)) for number in stay]
