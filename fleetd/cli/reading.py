"""
Documents for a command: read them, show what is wrong, or hand on what should exist.

One rule: a command that goes on has a set without a single problem.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from fleetd.cli import output
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame
from topology import load, read
from topology.catalogue import Component
from topology.problem import Problem
from topology.resource import Topology


class Fleet(NamedTuple):
    """Documents without a problem, and what they become."""

    topology: Topology
    bundle: load.Bundle
    catalogue: Mapping[str, Component]


def fleet(frame: Frame, paths: tuple[Path, ...], catalogue: tuple[Path, ...]) -> Fleet:
    """The topology of the documents. Ends the program with 1 and all problems if there are any."""
    given = paths or frame.documents
    if not given:
        raise click.UsageError("no documents are given; name files or folders")
    with output.working("reading documents"):
        reading = read.read(given, catalogue)
    if reading.topology is None or reading.problems:
        refuse(frame, reading.problems)
        raise Stop(Exit.BAD)
    return Fleet(reading.topology, reading.bundle, reading.catalogue)


def refuse(frame: Frame, problems: tuple[Problem, ...]) -> None:
    """Say what is wrong: as the answer to a program, as complaints to a person."""
    if frame.machine:
        output.data(frame, {"problems": [problem.as_json() for problem in problems]})
        return
    output.problems(problems)
    files = len({problem.file for problem in problems})
    output.summary(
        f"{count(len(problems), 'problem')} in {count(files, 'file')}; nothing is taken from a set "
        "that has one"
    )


def problem(told: dict[str, Any]) -> Problem:
    """A problem as the daemon told it."""
    known = {field.name for field in dataclasses.fields(Problem)}
    return Problem(**{name: value for name, value in told.items() if name in known})


def count(number: int, noun: str) -> str:
    """`1 cluster`, `2 clusters`, `12,000 servers`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
