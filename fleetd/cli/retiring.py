"""`fleetctl retire`: have what no document names any more removed, in the order that is safe."""

from typing import Any

import click
from rich.text import Text

from fleetd.cli import asking, client, naming, output, reading
from fleetd.cli.client import Client, Refusal
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame

SHOWN_MAX = 40


def run(frame: Frame, *, kind: str, name: str | None, yes: bool) -> None:
    kind, name = naming.split(kind, name)
    if name is None:
        raise click.UsageError(f"which {kind}? write {kind} NAME, or {kind}/NAME")
    if not yes and not asking.possible():
        raise click.UsageError(
            "this asks before it removes anything, and there is no terminal to ask on; look at "
            "`fleetctl get orphans`, then add --yes"
        )
    asked = client.of(frame)
    told = asked.post("/retire", kind=kind, name=name) if yes else _agreed(asked, kind, name)
    if frame.machine:
        output.data(frame, told)
        return
    output.line(
        Text(f"retired {told['ref']}: {reading.count(len(told['going']), 'thing')} will go")
    )
    output.line(Text("to watch it: fleetctl get orphans --watch", style="dim"))


def _agreed(asked: Client, kind: str, name: str) -> dict[str, Any]:
    """Only what was shown goes. If that is not all any more, it is shown and asked again."""
    while True:
        shown = asked.post("/retire", kind=kind, name=name, dryRun=True)
        _show(shown["going"])
        question = f"Remove {reading.count(len(shown['going']), 'thing')} for good?"
        if not asking.confirm(question):
            raise Stop(Exit.BAD, "nothing is retired")
        try:
            return asked.post("/retire", kind=kind, name=name, id=shown["id"])
        except Refusal as refusal:
            if refusal.problem != "plan-stale":
                raise
            output.summary("what would go has changed since it was shown:")


def _show(going: list[str]) -> None:
    console = output.complaints()
    console.print(f"{reading.count(len(going), 'thing')} would go, in this order:")
    for number, ref in enumerate(going[:SHOWN_MAX], 1):
        console.print(f"  {number:>3}. {ref}", highlight=False)
    if len(going) > SHOWN_MAX:
        console.print(f"       ... and {len(going) - SHOWN_MAX:,} more")
