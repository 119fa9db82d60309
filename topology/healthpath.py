"""
The little path language of health tests: `status.conditions[Ready].status` in an object as JSON.

`parse` turns the text into steps once; `Path` walks them. A reader must know one rule: what is
not there is `MISSING`, which is a value like any other here, so that nobody takes a hole for an
empty text. The language itself is described at `topology.catalogue.Test`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final, cast


class Missing(Enum):
    MISSING = "missing"


MISSING: Final = Missing.MISSING


class Quantifier(Enum):
    EVERY = "*"
    ANY = "?"


@dataclass(frozen=True, slots=True)
class Pick:
    """The member of a list whose `type` or `name` is this; of a mapping, the one of this name."""

    name: str


Step = str | int | Pick | Quantifier
"""A key, a member by number, a member by its type or name, or every or any member."""

_SEGMENT = re.compile(r"([A-Za-z_$][A-Za-z0-9_$-]*)((?:\[[^\[\]]+\])*)(\.|$)")
_SELECTOR = re.compile(r"\[([^\[\]]+)\]")


class BadPath(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Path:
    text: str
    steps: tuple[Step, ...]
    several: bool
    """It has a `[*]` or `[?]` in it, so it has no single value."""

    def value(self, root: object) -> object:
        """The value of a path that is not `several`."""
        found: Any = root
        for step in self.steps:
            # Nearly all steps are keys of a dict, and the general way costs three times as much.
            if found.__class__ is dict and step.__class__ is str:
                found = found.get(step, MISSING)
            else:
                found = _below(found, step)
            if found is MISSING:
                break
        return MISSING if found is None else found

    def holds(self, root: object, test: Callable[[object], bool]) -> bool:
        if not self.several:
            return test(self.value(root))
        return _holds(root, self.steps, test)

    def split(self) -> tuple["Path", "Path"]:
        """Of one that is `several`: the way to its first list, and the way on from a member."""
        cut = next(at for at, step in enumerate(self.steps) if isinstance(step, Quantifier))
        head, rest = self.steps[:cut], self.steps[cut + 1 :]
        return Path("", head, several=False), Path(
            "", rest, several=any(isinstance(step, Quantifier) for step in rest)
        )

    def members(self, root: object) -> Iterator[tuple[str, object]]:
        """Of one that leads to a list: what is in it, with what it is called."""
        for number, member in enumerate(_members(self.value(root))):
            yield _label(member, number), member

    def found(self, root: object) -> Iterator[tuple[str, object]]:
        """All places the path leads to, written out, with their values."""
        return _found(root, self.steps, "")


def _below(value: object, step: Step) -> object:
    if isinstance(step, str):
        if isinstance(value, Mapping):
            return cast("Mapping[str, Any]", value).get(step, MISSING)
    elif isinstance(step, Pick):
        return _picked(value, step.name)
    elif isinstance(step, int) and isinstance(value, list):
        members = cast("list[Any]", value)
        return members[step] if step < len(members) else MISSING
    return MISSING


def _picked(value: object, name: str) -> object:
    if isinstance(value, list):
        for member in cast("list[Any]", value):
            if type(member) is dict or isinstance(member, Mapping):
                known = cast("Mapping[str, Any]", member)
                if known.get("type") == name or known.get("name") == name:
                    return known
        return MISSING
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).get(name, MISSING)
    return MISSING


def _members(value: object) -> Sequence[object]:
    return cast("list[object]", value) if isinstance(value, list) else ()


def _holds(value: object, steps: tuple[Step, ...], test: Callable[[object], bool]) -> bool:
    for position, step in enumerate(steps):
        if isinstance(step, Quantifier):
            rest = steps[position + 1 :]
            members = _members(value)
            if not members:
                return test(MISSING)
            results = (_holds(member, rest, test) for member in members)
            return all(results) if step is Quantifier.EVERY else any(results)
        value = _below(value, step)
        if value is MISSING or value is None:
            return test(MISSING)
    return test(value)


def _found(value: object, steps: tuple[Step, ...], before: str) -> Iterator[tuple[str, object]]:
    text = before
    for position, step in enumerate(steps):
        if isinstance(step, Quantifier):
            members = _members(value)
            if not members:
                yield f"{text}[{step.value}]", MISSING
            for number, member in enumerate(members):
                place = f"{text}[{_label(member, number)}]"
                yield from _found(member, steps[position + 1 :], place)
            return
        text += _written(step, first=not text)
        value = _below(value, step)
    yield text, MISSING if value is None else value


def _label(member: object, number: int) -> str:
    if isinstance(member, Mapping):
        known = cast("Mapping[str, Any]", member)
        label = known.get("type") or known.get("name")
        if isinstance(label, str):
            return label
    return str(number)


def _written(step: Step, *, first: bool) -> str:
    match step:
        case str():
            return step if first else f".{step}"
        case Pick(name):
            return f"[{name}]"
        case Quantifier():
            return f"[{step.value}]"
        case int():
            return f"[{step}]"


@lru_cache(maxsize=4096)
def parse(text: str) -> Path:
    """Raises `BadPath` with what is wrong."""
    steps: list[Step] = []
    position = 0
    while True:
        found = _SEGMENT.match(text, position)
        if not found:
            rest = text[position:]
            raise BadPath(f"cannot read {rest[:40]!r} in it" if rest else "it ends with a dot")
        steps.append(found.group(1))
        steps.extend(_selector(name) for name in _SELECTOR.findall(found.group(2)))
        position = found.end()
        if not found.group(3):
            return Path(text, tuple(steps), any(isinstance(s, Quantifier) for s in steps))


def _selector(text: str) -> Step:
    if text in ("*", "?"):
        return Quantifier(text)
    if text.isascii() and text.isdigit():
        return int(text)
    return Pick(text)
