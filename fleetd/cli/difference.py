"""`fleetctl diff`: what would be different, against older documents or against the daemon."""

import json
from pathlib import Path
from typing import Any

from rich.text import Text

from fleetd.cli import client, output, reading
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame
from topology import diff, effects, read
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
        output.data(frame, shape(change))
    else:
        _show(change)
    if exit_code and not change.empty:
        raise Stop(Exit.TO_DO)


def _of_daemon(frame: Frame, catalogue: tuple[Path, ...]) -> Topology:
    """What the daemon has, compiled here: the same code on both sides, so only documents differ."""
    documents = client.Client(frame.server).get("/documents")["items"]
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


def shape(change: diff.Change) -> dict[str, Any]:
    return {
        "added": [str(one.ref) for one in change.added],
        "changed": [
            {
                "ref": str(one.ref),
                "effect": one.effect.words,
                "nodes": one.nodes,
                "fields": [
                    {"path": field.path, "old": _plain(field.old), "new": _plain(field.new)}
                    for field in one.fields
                ],
                "notes": list(one.notes),
                "refusals": list(one.refusals),
            }
            for one in change.changed
        ],
        "removed": [str(one.ref) for one in change.removed],
        "guard": [str(one) for one in change.guard if one.consent],
        "consent": change.consent,
    }


def _plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool, type(None))) else effects.shown(value)


def _show(change: diff.Change) -> None:
    console = output.answers()
    if change.empty:
        console.print("No difference.")
        return
    for line in diff.show(change):
        mark, *rest = output.folded(line)
        console.print(Text.assemble((mark[:1], _STYLES.get(mark[:1], "")), mark[1:]))
        for more in rest:
            console.print(Text(more))
    console.print()
    console.print(
        f"{len(change.added):,} to add, {len(change.changed):,} to change, "
        f"{reading.count(len(change.removed), 'orphan')}"
    )
