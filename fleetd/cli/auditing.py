"""`fleetctl audit list | verify`: what the daemon was told, and whether that is all of it."""

from pathlib import Path
from typing import Any

import click
import msgspec
from rich.table import Table

from fleetd.cli import output
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame
from fleetd.daemon import audit


def verify(frame: Frame, place: Path, head: str) -> None:
    _check(place)
    last = audit.verify(place, expected=head)
    if frame.machine:
        output.data(frame, {"good": True, "lines": last.number, "digest": last.digest})
    else:
        click.echo(f"good: {last.number} lines, the last is {last.digest}")


def show(frame: Frame, place: Path) -> None:
    _check(place)
    found = [
        msgspec.json.decode(text, type=dict[str, Any])
        for path in audit.files(place)
        for where, text in audit.lines(path)
        if audit.check(None, text, where)
    ]
    if frame.machine:
        output.data(frame, {"items": found})
        return
    results = {one["of"]: one["result"] for one in found if one["kind"] == "result"}
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("TIME", "WHO", "WHAT", "RESULT", "TOLD"):
        table.add_column(name, overflow="fold")
    for one in found:
        if one["kind"] == "asked":
            told = ", ".join(f"{key}={value}" for key, value in sorted(one["told"].items()))
            result = results.get(one["n"], "unknown")
            table.add_row(one["at"][:19], one["who"], one["what"], result, told)
        elif one["kind"] == "refused":
            left = f"{one['left']} more were not kept" if one["left"] else ""
            table.add_row(one["at"][:19], one["who"], one["what"], one["code"], left)
    output.table(table)


def _check(place: Path) -> None:
    if not place.exists():
        raise Stop(Exit.USAGE, f"{place} does not exist; name the folder STATE/audit, or a file")
