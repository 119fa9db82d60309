"""`fleetctl diff`: what would be different, against older documents or against the daemon."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from fleetd.cli import client, output, reading
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame
from fleetd.surface import shapes
from topology import diff, read
from topology.resource import EMPTY, Topology

_STYLES = {"+": "green", "~": "yellow", "-": "red", "!": "bold red"}


def run(
    frame: Frame,
    paths: tuple[Path, ...],
    against: tuple[Path, ...],
    catalogue: tuple[Path, ...],
    *,
    exit_code: bool,
) -> None:
    new = reading.fleet(frame, paths, catalogue).topology
    if against:
        old = reading.fleet(frame, against, catalogue).topology
    else:
        old = _of_daemon(frame, catalogue)
    change = diff.diff(old, new)
    if frame.machine:
        output.data(frame, shapes.change(change))
    else:
        _show(change)
    if exit_code and not change.empty:
        raise Stop(Exit.TO_DO)


def _of_daemon(frame: Frame, catalogue: tuple[Path, ...]) -> Topology:
    """What the daemon has, compiled here: the same code on both sides, so only documents differ."""
    documents = client.of(frame).get("/documents")["items"]
    if not documents:
        return EMPTY
    # JSON is YAML, so the daemon's documents go through the same door as files.
    named = {f"daemon-{n}.yaml": json.dumps(one).encode() for n, one in enumerate(documents)}
    there = read.read_bytes(named, catalogue)
    if there.topology is None:
        raise Stop(
            Exit.BAD,
            "this fleetctl cannot read what the daemon has; is it another version, or is a "
            f"--catalogue missing?\n{there.problems[0]}",
        )
    return there.topology


def _show(change: diff.Change) -> None:
    if change.empty:
        output.answers().print("No difference.")
        return
    lines(diff.show(change))
    output.answers().print()
    output.answers().print(counts(shapes.change(change)))


def lines(told: Iterable[str]) -> None:
    """What changes, one line each, with the sign in its colour."""
    for line in told:
        mark, *rest = output.folded(line)
        output.line(Text.assemble((mark[:1], _STYLES.get(mark[:1], "")), mark[1:]))
        for more in rest:
            output.line(Text(more))


def counts(change: Mapping[str, Any]) -> str:
    """Of the shape that `shapes.change` gives."""
    return (
        f"{len(change['added']):,} to add, {len(change['changed']):,} to change, "
        f"{reading.count(len(change['removed']), 'orphan')}"
    )
