"""
From pydantic's errors to sentences for a tired operator.

Pure: a model, the value that was read and pydantic's error give complaints with a path each;
`topology.load` adds file, line and column. One rule holds everywhere here: a value below
`access` is never shown, and any other value is cut.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from topology.documents import base, fields
from topology.yamlevents import Path

SHOWN_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    path: Path
    at_key: bool = False
    """The key itself is wrong, not its value."""
    meant: str = ""
    """The key that was probably meant."""
    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class _Case:
    """One error, with what the sentences need to know."""

    error: ErrorDetails
    path: Path
    model: type[BaseModel]
    value: object

    @property
    def limits(self) -> Mapping[str, Any]:
        return self.error.get("ctx", {})

    @property
    def secret(self) -> bool:
        return "access" in self.path

    @property
    def shown(self) -> str:
        return "the value" if self.secret else show(self.value)

    @property
    def description(self) -> str:
        found = fields.at(self.model, self.path)
        return (found.description if found else None) or ""

    @property
    def expected(self) -> str:
        """What the field is for, as a hint; empty if it has no description."""
        return f"expected: {sentence(self.description)}" if self.description else ""


def translate(
    model: type[BaseModel], value: object, error: ValidationError, most: int
) -> Iterator[Complaint]:
    """At most `most` complaints, in the order of pydantic's errors; of several about one value
    (the arms of a union) the first says what all of them want."""
    seen: set[Path] = set()
    errors = error.errors(include_url=False, include_input=False)
    wanted = _wanted(model, value, errors[: most * 4])
    misspelt = _misspelt(model, errors[: most * 4])
    for one in errors:
        path, found = _real_path(model, value, one)
        if path in seen or path in misspelt:
            continue
        seen.add(path)
        if len(seen) > most:
            return
        yield _say(_Case(one, path, model, found), wanted.get(path, []))


def _say(case: _Case, wanted: Sequence[str]) -> Complaint:
    kind = case.error["type"]
    if "text" in case.limits:
        return _own(case)
    if kind in _NEEDED:
        return _wrong_type(case, wanted)
    if (words := _SENTENCES.get(kind)) is not None:
        return words(case)
    # A kind of error that no sentence knows is still told, in pydantic's words.
    return _complaint(case, kind.replace("_", "-"), case.error["msg"], case.expected)


def _complaint(case: _Case, code: str, message: str, hint: str) -> Complaint:
    return Complaint(path=case.path, code=code, message=message, hint=hint)


def _real_path(model: type[BaseModel], value: object, error: ErrorDetails) -> tuple[Path, object]:
    """pydantic's location without the parts that name the arm of a union, and the value there."""
    location = error["loc"]
    named = error["type"] in {"missing", "extra_forbidden"}
    path: list[str | int] = []
    here = value
    for position, part in enumerate(location):
        if isinstance(part, str) and path and fields.is_choice(fields.at(model, path)):
            break
        below = _child(here, part)
        if below is _NOTHING and not (named and position == len(location) - 1):
            break
        here = None if below is _NOTHING else below
        path.append(part)
    moved = str(error.get("ctx", {}).get("field", ""))
    path.extend(int(part) if part.isdigit() else part for part in moved.split(".") if part)
    return tuple(path), here


_NOTHING = object()


def _child(value: object, part: str | int) -> object:
    if isinstance(value, dict):
        return cast("dict[str | int, object]", value).get(part, _NOTHING)
    if isinstance(value, list) and isinstance(part, int):
        members = cast("list[object]", value)
        return members[part] if part < len(members) else _NOTHING
    return _NOTHING


def _wanted(
    model: type[BaseModel], value: object, errors: Sequence[ErrorDetails]
) -> dict[Path, list[str]]:
    """What each place that has the wrong type could hold instead."""
    found: dict[Path, list[str]] = {}
    for error in errors:
        if error["type"] in _NEEDED:
            found.setdefault(_real_path(model, value, error)[0], []).append(_NEEDED[error["type"]])
    return found


def _misspelt(model: type[BaseModel], errors: Sequence[ErrorDetails]) -> set[Path]:
    """Missing fields that stand there under a wrong name: the complaint about the name tells it
    all. Pydantic's locations are good enough here; in a union both complaints stay."""
    missing = {error["loc"] for error in errors if error["type"] == "missing"}
    found: set[Path] = set()
    for error in errors:
        *above, name = error["loc"] or ("",)
        inner = fields.model_at(model, above) if error["type"] == "extra_forbidden" else None
        meant = _nearest(str(name), list(fields.of(inner))) if inner is not None else None
        if meant is not None and (*above, meant) in missing:
            found.add((*above, meant))
    return found


def _own(case: _Case) -> Complaint:
    """Made by `documents.base.complain`."""
    message, hint = str(case.limits["text"]), str(case.limits.get("hint", ""))
    if case.secret:
        message = re.sub(r"'.*'|\".*\"", "the value", message)
    return _complaint(case, case.error["type"], message, hint)


_NEEDED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _wrong_type(case: _Case, wanted: Sequence[str]) -> Complaint:
    needed = " or ".join(dict.fromkeys(wanted)) or _NEEDED[case.error["type"]]
    value = case.value
    if value is None:
        field = fields.at(case.model, case.path)
        optional = field is not None and not field.is_required() and isinstance(case.path[-1], str)
        return _complaint(
            case,
            "value-missing",
            f"has no value, but {needed} is needed",
            "write it after the ':', or remove the field"
            if optional
            else _how_to_change(value, needed, case),
        )
    return _complaint(
        case,
        "wrong-type",
        f"is {_what(value)}, but {needed} is needed",
        _how_to_change(value, needed, case),
    )


def _how_to_change(value: object, needed: str, case: _Case) -> str:
    if isinstance(value, str) and (hint := _how_to_change_text(value, needed)):
        return hint
    if needed == "text" and isinstance(value, bool | int | float):
        return "put it in quotes"
    if needed == "a whole number" and isinstance(value, float):
        return f"write {value:.0f}" if value.is_integer() else "write it without a fraction"
    if needed == "text" and isinstance(value, list):
        return "write one value, without brackets or '-'"
    if needed == "a list" and isinstance(value, dict):
        return "put '- ' before the first key, or brackets around it"
    if needed == "a mapping":
        inner = fields.model_at(case.model, case.path)
        return f"it has the fields {_listed(fields.of(inner))}" if inner else "write `key: value`"
    return case.expected or f"write {needed}"


def _how_to_change_text(value: str, needed: str) -> str:
    word = value.lower() if len(value) < 6 else ""
    if "number" in needed and re.fullmatch(r"0|[1-9][0-9]{0,17}", value, re.ASCII):
        return "remove the quotes"
    if "number" in needed and re.fullmatch(r"0[0-9]{1,17}", value, re.ASCII):
        return "remove the zeros in front of it"
    if "number" in needed and re.fullmatch(r"[0-9][0-9_ ,']{1,17}", value, re.ASCII):
        return f"write {re.sub('[^0-9]', '', value)}"
    if needed == "true or false" and word in {"yes", "on", "true", "y"}:
        return "write true"
    if needed == "true or false" and word in {"no", "off", "false", "n"}:
        return "write false"
    return "put it in brackets: [...]" if needed == "a list" else ""


def _missing(case: _Case) -> Complaint:
    name = case.path[-1] if case.path else ""
    # Not the second sentence: in a list of missing fields it would be too much.
    about = sentence(re.split(r"(?<!e\.g)\.\s", case.description)[0])
    return _complaint(
        case, "field-missing", "is missing", f"add {name}" + (f" ({about})" if about else "")
    )


def _unknown(case: _Case) -> Complaint:
    name = str(case.path[-1])
    inner = fields.model_at(case.model, case.path[:-1])
    known = list(fields.of(inner)) if inner is not None else []
    if case.secret and case.value is None:
        # `access: {s3cret}` is a key without a value: what looks like a field may be the secret.
        return Complaint(
            path=case.path[:-1],
            code="unknown-field",
            message="there is an unknown field without a value",
            hint=f"use one of {_listed(known)}; a secret is named, never written",
        )
    meant = _nearest(name, known) or ""
    if case.path == ("status",):
        hint = "remove it; fleetd writes the status itself"
    elif meant:
        hint = f"did you mean {meant}?"
    else:
        hint = f"remove it, or use one of {_listed(known)}" if known else "remove it"
    return Complaint(
        path=case.path,
        at_key=True,
        meant=meant,
        code="unknown-field",
        message=f"unknown field {show(name)}",
        hint=hint,
    )


def _not_a_choice(case: _Case) -> Complaint:
    found = fields.at(case.model, case.path)
    options = fields.choices(found.annotation) if found is not None else []
    if not options:
        options = re.findall(r"'([^']*)'", str(case.limits.get("expected", "")))
    close = did_you_mean(case.value, options) if isinstance(case.value, str) else ""
    if case.value in options:
        close = "remove the quotes:"
    if case.value is None:
        message = "has no value"
    elif isinstance(case.value, str | int | float):
        message = f"{case.shown} is not possible here"
    else:
        message = f"is {_what(case.value)}, but one word is needed"
    listed = f"use one of {_listed(options, most=20)}" if len(options) > 1 else ""
    if len(options) == 1:
        listed = f"write {options[0]}"
    return _complaint(case, "not-a-choice", message, f"{close} {listed}".strip())


def _pattern(case: _Case) -> Complaint:
    return _complaint(
        case,
        "wrong-form",
        f"{case.shown} does not have the right form",
        case.expected or f"it must match {case.limits.get('pattern', '')}",
    )


def _text_length(case: _Case) -> Complaint:
    if case.error["type"] == "string_too_short":
        message = "is empty" if not case.value else "is too short"
        return _complaint(
            case,
            "text-too-short",
            message,
            case.expected or f"write at least {case.limits.get('min_length')} characters",
        )
    most = case.limits.get("max_length")
    length = len(case.value) if isinstance(case.value, str) else 0
    return _complaint(
        case, "text-too-long", f"{length} characters are more than {most}", "shorten it"
    )


def _list_length(case: _Case) -> Complaint:
    actual = case.limits.get("actual_length")
    if case.error["type"] == "too_short":
        least = case.limits.get("min_length")
        message = "the list is empty" if actual == 0 else f"{actual} is too few"
        return _complaint(case, "list-too-short", message, f"it needs at least {least}")
    most = case.limits.get("max_length")
    return _complaint(
        case,
        "list-too-long",
        f"there are more than {most} in the list",
        "remove some, or split the document"
        if isinstance(most, int) and most > 7
        else f"keep {most} of them",
    )


def _number_range(case: _Case) -> Complaint:
    if (least := case.limits.get("ge")) is not None:
        return _complaint(
            case, "number-too-small", f"{case.shown} is too small", f"it is at least {least}"
        )
    most = case.limits.get("le")
    return _complaint(
        case, "number-too-large", f"{case.shown} is too large", f"it is at most {most}"
    )


def _bad_text(case: _Case) -> Complaint:
    return _complaint(
        case, "text-invalid", "the text is not valid Unicode", "remove the escaped characters"
    )


_SENTENCES: Mapping[str, Callable[[_Case], Complaint]] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "literal_error": _not_a_choice,
    "enum": _not_a_choice,
    "string_pattern_mismatch": _pattern,
    "string_too_short": _text_length,
    "string_too_long": _text_length,
    "too_short": _list_length,
    "too_long": _list_length,
    "greater_than_equal": _number_range,
    "less_than_equal": _number_range,
    "string_unicode": _bad_text,
}


LIKE_A_FIELD = 0.63
LIKE_A_VALUE = 0.6
"""`Tuesday` is like `Tue` (0.6), but `namespace` is not like `name` (0.62)."""


def did_you_mean(word: object, known: Sequence[str]) -> str:
    """`did you mean storage?`, or nothing if no value is close."""
    meant = _nearest(word, known, LIKE_A_VALUE) if isinstance(word, str) else None
    return f"did you mean {meant}?" if meant is not None else ""


def _nearest(word: str, known: Sequence[str], least: float = LIKE_A_FIELD) -> str | None:
    if len(word) > 100:
        return None
    lower = {name.lower(): name for name in known}
    begun = [name for name in lower if len(word) >= 3 and name.startswith(word.lower())]
    if len(begun) == 1:
        # `min` for minimum: shorter than what is alike, and meant without doubt.
        return lower[begun[0]]
    close = difflib.get_close_matches(word.lower().replace("_", ""), lower, n=1, cutoff=least)
    return lower[close[0]] if close else None


def show(value: object) -> str:
    """A value for a sentence: cut, nothing unprintable, and of an address nothing that may be a
    password or a token."""
    if isinstance(value, str):
        return base.quote(value, SHOWN_MAX)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return _what(value)


def _what(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int | float):
        return "a number"
    return "a list" if isinstance(value, list) else "a mapping"


def _listed(names: "Sequence[str] | Mapping[str, object]", most: int = 12) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (" and others" if len(listed) > most else "")


def sentence(description: str) -> str:
    """A description as the end of a sentence: one line, no full stop."""
    return " ".join(description.split()).removesuffix(".")
