"""
Label and field selectors, as they stand in a query: `a=b,c!=d,e in (f,g),!h`.

Parsed once a request; what cannot be read is refused with 400.
"""

import re
from collections.abc import Callable, Collection, Mapping

from fleetd.sim.kube import refusal
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.kube.values import Obj, at

Test = Callable[[Obj], bool]

_SET = re.compile(r"^([^\s!=]+)\s+(in|notin)\s+\(([^)]*)\)$")
_KEY = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?$")
_VALUE = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
_SPLIT = re.compile(r",(?![^(]*\))")


def _everything(_obj: Obj) -> bool:
    return True


def _labels(obj: Obj) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def labels(text: str) -> Test:
    """The test of a label selector."""
    tests = [_label_test(part.strip()) for part in _SPLIT.split(text) if part.strip()]
    return _all(tests)


def _label_test(part: str) -> Test:
    if found := _SET.match(part):
        key, how, inside = found.groups()
        values = frozenset(value.strip() for value in inside.split(","))
        if how == "in":
            return lambda obj: _labels(obj).get(key) in values
        return lambda obj: _labels(obj).get(key) not in values
    if "!=" in part:
        key, value = (side.strip() for side in part.split("!=", 1))
        return lambda obj: _labels(obj).get(key) != value
    if "=" in part:
        key, value = (side.strip() for side in re.split("==?", part, maxsplit=1))
        _checked(key, part)
        if value and not _VALUE.match(value):
            raise refusal.bad_request(f"unable to parse requirement: {part}")
        return lambda obj: _labels(obj).get(key) == value
    if part.startswith("!"):
        key = _checked(part[1:].strip(), part)
        return lambda obj: key not in _labels(obj)
    key = _checked(part, part)
    return lambda obj: key in _labels(obj)


def _checked(key: str, part: str) -> str:
    if not _KEY.match(key):
        raise refusal.bad_request(f"unable to parse requirement: {part}")
    return key


def fields(text: str, definition: Definition) -> Test:
    """The test of a field selector; only declared fields can be selected by."""
    tests: list[Test] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = re.match(r"^([^!=]+?)\s*(!=|==|=)\s*(.*)$", part)
        if found is None:
            raise refusal.bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
        path, how, value = found.groups()
        if path not in ("metadata.name", "metadata.namespace", *definition.selectable):
            raise refusal.bad_request(f"field label not supported: {path}")
        tests.append(_field_test(path, value, wanted=how != "!="))
    return _all(tests)


def only_name(query: Mapping[str, str]) -> str:
    """The one name that a field selector leaves; empty: there may be others."""
    parts = (part.strip() for part in query.get("fieldSelector", "").split(","))
    found = (re.match(r"^metadata\.name\s*==?\s*([^=\s]+)$", part) for part in parts)
    return next((one[1] for one in found if one is not None), "")


def _field_test(path: str, value: str, *, wanted: bool) -> Test:
    def test(obj: Obj) -> bool:
        found = at(obj, path)
        text = "" if found is None else str(found).lower() if isinstance(found, bool) else found
        return (str(text) == value) is wanted

    return test


def _all(tests: list[Test]) -> Test:
    if not tests:
        return _everything
    if len(tests) == 1:
        return tests[0]
    return lambda obj: all(test(obj) for test in tests)


def of(label_text: str, field_text: str, definition: Definition) -> Test | None:
    """Both together; None selects everything."""
    if not label_text and not field_text:
        return None
    return _all([labels(label_text), fields(field_text, definition)])


def of_object(selector: Obj) -> Test:
    """The test of a selector as it stands in a budget or a Deployment; an empty one is for all."""
    wanted: Mapping[str, str] = selector.get("matchLabels") or {}
    expressions: list[Obj] = selector.get("matchExpressions") or []
    tests = [_expression(key, "In", (value,)) for key, value in wanted.items()]
    tests += [
        _expression(str(one.get("key")), one.get("operator"), one.get("values") or ())
        for one in expressions
    ]
    return _all(tests)


def _expression(key: str, operator: object, values: Collection[str]) -> Test:
    match operator:
        case "In":
            return lambda obj: _labels(obj).get(key) in values
        case "NotIn":
            return lambda obj: _labels(obj).get(key) not in values
        case "Exists":
            return lambda obj: key in _labels(obj)
        case _:
            return lambda obj: key not in _labels(obj)
