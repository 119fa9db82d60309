"""
Ranges of versions, as a CloudProfile says which kubelets an image carries.

Pure. The grammar is that of the garden's own library, with its oddities: a version that is not
whole, or has an `x` in it, stands for all that begin so, and each operator reads that in a way of
its own. The one rule: what cannot be read holds nothing back; the garden decides.
"""

import re
from typing import NamedTuple

Version = tuple[int, int, int]

_NUMBER, _WORDS = "([0-9]+|[xX*])", "[0-9A-Za-z.-]+"
_PART = rf"v?{_NUMBER}(?:\.{_NUMBER})?(?:\.{_NUMBER})?(-{_WORDS})?(?:\+{_WORDS})?"
_OPERATOR = r"(=>|>=|=<|<=|~>|!=|[=<>~^])?"
_ONE = re.compile(rf"\s*{_OPERATOR}\s*{_PART}\s*")
_HYPHEN = re.compile(rf"\s*({_PART})\s+-\s+({_PART})\s*")
_ANY = ("x", "X", "*", "", None)


class _Bound(NamedTuple):
    operator: str
    at: Version
    before: bool
    """Whether a pre-release is named, which comes before the version itself."""
    open: int
    """How many numbers of the version were given: 3 is a whole one, 0 is any."""


def holds(text: str, version: str) -> bool | None:
    """Whether a version is in the range; None if either cannot be read."""
    found = re.fullmatch(r"v?(\d+)\.(\d+)\.(\d+)(?:[-+].*)?", version)
    ways = [_bounds(way) for way in text.split("||")]
    if found is None or None in ways:
        return None
    at = (int(found[1]), int(found[2]), int(found[3]))
    return any(all(_within(at, one) for one in way or ()) for way in ways)


def _bounds(text: str) -> list[_Bound] | None:
    """All of one alternative, or None."""
    text = _HYPHEN.sub(lambda found: f" >={_first(found)} <={_last(found)} ", text)
    found: list[_Bound] = []
    at = 0
    while at < len(text):
        one = _ONE.match(text, at)
        if one is None or one.end() == at:
            return None
        found.append(_bound(one))
        at = one.end()
        if text[at : at + 1] == ",":
            at += 1
            if not text[at:].strip():
                return None
        elif at < len(text) and not text[at - 1].isspace():
            return None
    return found or None


def _first(found: re.Match[str]) -> str:
    return found[1]


def _last(found: re.Match[str]) -> str:
    return found[6]


def _bound(one: re.Match[str]) -> _Bound:
    operator, *parts, before = one.groups()
    given = next((number for number, part in enumerate(parts) if part in _ANY), 3)
    numbers = [int(part) for part in parts[:given]] + [0] * (3 - given)
    return _Bound(operator or "=", (numbers[0], numbers[1], numbers[2]), bool(before), given)


def _within(at: Version, bound: _Bound) -> bool:
    match bound.operator:
        case "=":
            return _tilde(at, bound) if bound.open < 3 else at == bound.at and not bound.before
        case "!=":
            same = at[: bound.open] == bound.at[: bound.open]
            return (
                not (same and bound.open > 0) if bound.open < 3 else at != bound.at or bound.before
            )
        case ">":
            return (
                at[: bound.open] > bound.at[: bound.open] if bound.open < 3 else _above(at, bound)
            )
        case "<":
            return at < bound.at
        case ">=" | "=>":
            return at >= bound.at
        case "<=" | "=<":
            return _up_to(at, bound)
        case "^":
            return _caret(at, bound)
        case _:
            return _tilde(at, bound)


def _above(at: Version, bound: _Bound) -> bool:
    return at > bound.at or (bound.before and at == bound.at)


def _up_to(at: Version, bound: _Bound) -> bool:
    if bound.open < 3:
        return at[: max(bound.open, 1)] <= bound.at[: max(bound.open, 1)]
    return at < bound.at or (at == bound.at and not bound.before)


def _tilde(at: Version, bound: _Bound) -> bool:
    """The same minor version, or whatever was given of it."""
    if bound.at == (0, 0, 0) and bound.open in (0, 3):
        return True
    return at >= bound.at and at[: min(bound.open, 2)] == bound.at[: min(bound.open, 2)]


def _caret(at: Version, bound: _Bound) -> bool:
    """The same up to the first number that is not 0."""
    if at < bound.at:
        return False
    if bound.at[0] or bound.open == 1:
        return at[0] == bound.at[0]
    if bound.at[1] or bound.open == 2:
        return at[:2] == bound.at[:2]
    return at == bound.at
