"""
`--watch`: the same answer again and again, until Ctrl-C.

On a terminal it is drawn over the last one. Elsewhere only lines that are new are written, so that
a log of it says when something changed.
"""

from collections.abc import Callable
from datetime import timedelta

import click
from rich.console import Group
from rich.live import Live
from rich.text import Text

from fleetd import clock
from fleetd.cli import output
from fleetd.cli.frame import Frame

POLL = timedelta(seconds=2)
"""Between two looks."""


def check(frame: Frame) -> None:
    if frame.machine:
        raise click.UsageError(
            f"--watch has no end, so it cannot be one {frame.output.upper()} document; use -o text"
        )


def forever(look: Callable[[], list[Text]]) -> None:
    """`look` gives the whole answer, line by line."""
    if not output.on_terminal():
        _log(look)
        return
    console = output.answers()
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            lines = look()
            # What does not fit on the screen is cut at the end, not at the top.
            for line in lines:
                line.no_wrap, line.overflow = True, "ellipsis"
            live.update(Group(*lines), refresh=True)
            clock.block(POLL)


def _log(look: Callable[[], list[Text]]) -> None:
    known: set[str] = set()
    while True:
        lines = look()
        for line in lines:
            if line.plain not in known:
                output.line(line)
        output.answers().file.flush()
        known = {line.plain for line in lines}
        clock.block(POLL)
