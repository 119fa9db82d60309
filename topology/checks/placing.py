"""
From findings to problems: file, line and column for each, and for each place a sentence names.

Lines are found by reading a file again, so each file is read once for all findings in it.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence

from topology.checks import index as indexes
from topology.checks.index import Finding, Index, Spot
from topology.problem import Problem

PROBLEMS_MAX = 100
"""Per file. Nobody reads more of them before the first are repaired."""

PLACED_MAX = 10 * PROBLEMS_MAX
"""Per file. Finding a line costs more than finding the problem, and of a template that is wrong
ten thousand times only the first lines are told. Checks go through documents in the order of the
file, so what is left out stands behind what is told, or nearly so."""

_MARK = re.compile(indexes.MARK.format(r"(\d+)"))


def place(fleet: Index, findings: Sequence[Finding]) -> list[Problem]:
    """The problems, sorted by place. Of a file with very many only the first are told."""
    findings, left = _few(findings)
    mentioned = _mentioned(findings)
    spots = [finding.spot for finding in findings]
    blanks = _locate(fleet, [*spots, *(fleet.spots[number] for number in mentioned)])
    there = blanks[len(spots) :]
    names = {n: f"{blank.file}:{blank.line}" for n, blank in zip(mentioned, there, strict=True)}
    found: dict[str, set[Problem]] = {}
    for finding, blank in zip(findings, blanks, strict=False):
        problem = dataclasses.replace(
            blank,
            code=finding.code,
            message=_fill(finding.message, names),
            hint=_fill(finding.hint, names),
        )
        found.setdefault(problem.file, set()).add(problem)
    return sorted(
        problem for file, problems in found.items() for problem in _first(problems, left[file])
    )


def _few(findings: Sequence[Finding]) -> tuple[list[Finding], Mapping[str, int]]:
    """Those worth placing, and how many were left out of each file."""
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.spot.item.file, []).append(finding)
    for found in by_file.values():
        if len(found) > PLACED_MAX:
            found.sort(key=lambda finding: finding.spot.item.index)
    few = [finding for found in by_file.values() for finding in found[:PLACED_MAX]]
    return few, {file: max(0, len(found) - PLACED_MAX) for file, found in by_file.items()}


def _mentioned(findings: Sequence[Finding]) -> list[int]:
    """Numbers of the spots that sentences name."""
    found: dict[int, None] = {}
    for finding in findings:
        for text in (finding.message, finding.hint):
            found.update((int(number), None) for number in _MARK.findall(text))
    return list(found)


def _locate(fleet: Index, spots: Sequence[Spot]) -> list[Problem]:
    """A problem without words for each spot. Spots are visited file by file, because the places
    of one file only are kept in memory."""
    order = sorted(range(len(spots)), key=lambda number: spots[number].item.file)
    found: dict[int, Problem] = {}
    for number in order:
        item, path = spots[number]
        found[number] = fleet.bundle.complain(item, path, code="", message="")
    return [found[number] for number in range(len(spots))]


def _fill(text: str, names: Mapping[int, str]) -> str:
    return _MARK.sub(lambda mark: names[int(mark.group(1))], text)


def _first(problems: set[Problem], others: int) -> list[Problem]:
    ordered = sorted(problems)
    if len(ordered) <= PROBLEMS_MAX:
        return ordered
    left = len(ordered) - PROBLEMS_MAX + others
    more = Problem(
        file=ordered[0].file,
        code="more-problems",
        message=f"{left} more problems of this file are not shown",
        hint="repair these first; the rest is shown then",
    )
    return [*ordered[:PROBLEMS_MAX], more]
