"""
The rules of a component's health, checked: paths that can be read, and values that can occur.

Pure. A rule that can never hold does no visible harm: the component is just never healthy, or its
fault is never seen. So what is easily got wrong in writing one is complained about here.
"""

import re
from collections.abc import Iterator

from topology import healthpath
from topology.catalogue import PLACEHOLDER, Health, Rule, Test
from topology.yamlevents import Path

Fault = tuple[Path, str, str, str]
"""Where it stands, code, what is wrong, what to do."""

_STATUS_OF_CONDITION = re.compile(r"[cC]onditions\[[^\]]+\]\.status$")


def faults(written: Health) -> Iterator[Fault]:
    for kind, rules in _lists(written):
        for number, rule in enumerate(rules):
            place: Path = ("spec", "health", kind, number)
            yield from _words(place, rule)
            for index, test in enumerate(rule.when):
                yield from _test((*place, "when", index), test)


def _lists(written: Health) -> tuple[tuple[str, list[Rule]], ...]:
    return (
        ("failed", written.failed),
        ("progressing", written.progressing),
        ("healthy", written.healthy),
    )


def _words(place: Path, rule: Rule) -> Iterator[Fault]:
    named = [("says", text) for text in PLACEHOLDER.findall(rule.says or "")]
    for key, text in [*named, *([("quote", rule.quote)] if rule.quote is not None else [])]:
        wrong = list(_path((*place, key), text, single=False))
        yield from wrong
        if not wrong and healthpath.parse(text).several and not _about(rule, text):
            yield (
                (*place, key),
                "path-about-nothing",
                f"{text!r} leads into a list that no test of the rule is about",
                "name one value, or test a member of that list with [?] in `when`",
            )


def _about(rule: Rule, text: str) -> bool:
    head = healthpath.parse(text).split()[0]
    tested = [_several(test.path) for test in rule.when]
    return any(path is not None and path.split()[0] == head for path in tested)


def _several(text: str) -> healthpath.Path | None:
    try:
        path = healthpath.parse(text)
    except healthpath.BadPath:
        return None
    return path if path.several else None


def _test(where: Path, test: Test) -> Iterator[Fault]:
    yield from _path((*where, "path"), test.path, single=False)
    others = (
        ("equalsPath", test.equals_path),
        ("differsFrom", test.differs_from),
        ("withinTwice", test.within_twice),
        ("beyondTwice", test.beyond_twice),
    )
    for key, other in others:
        if other is not None:
            yield from _path((*where, key), other, single=True)
    if not _STATUS_OF_CONDITION.search(test.path):
        return
    for key, given in (("in", test.in_), ("notIn", test.not_in)):
        for index, value in enumerate(given):
            if not isinstance(value, str):
                yield (
                    (*where, key, index),
                    "status-not-text",
                    f"the status of a condition is text, never {str(value).lower()} without quotes",
                    f'write "{value}" in quotes',
                )


def _path(where: Path, text: str, *, single: bool) -> Iterator[Fault]:
    try:
        path = healthpath.parse(text)
    except healthpath.BadPath as cause:
        message = f"{text!r} is not a path: {cause}"
    else:
        if not (single and path.several):
            return
        message = f"{text!r} has [*] or [?] in it, but one value is wanted"
    yield where, "path-invalid", message, "see the path language in docs/catalogue.md"
