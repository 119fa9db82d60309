"""
`--watch`: the same answer again and again, until Ctrl-C.

On a terminal it is drawn over the last one. Elsewhere only lines that are new are written, so that
a log of it says when something changed. A daemon that does not answer for a while, e.g. because it
is started anew, ends nothing: stderr says so, and the watch goes on when it is back.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import click
from rich.console import Group
from rich.live import Live
from rich.text import Text

from fleetd import clock
from fleetd.cli import output
from fleetd.cli.client import Refusal
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame

T = TypeVar("T")

POLL = timedelta(seconds=2)
"""Between two looks."""


def check(frame: Frame) -> None:
    if frame.machine:
        raise click.UsageError(
            f"--watch has no end, so it cannot be one {frame.output.upper()} document; use -o text"
        )


class Patience:
    """Looks that may fail, once one was good. `good`: one was, before."""

    def __init__(self, *, good: bool = False) -> None:
        self._good = good
        self._missed = False

    @property
    def was_away(self) -> bool:
        """Whether a look failed since one was good."""
        return self._missed

    def look(self, ask: Callable[[], T]) -> T | None:
        """What `ask` answers, or nothing if the daemon is away; what a person has to mend, and a
        first look that fails, end the program."""
        try:
            found = ask()
        except Stop as stop:
            if not self._good or not self._passes(stop):
                raise
            if not self._missed:
                output.summary(f"{str(stop).splitlines()[0]}; trying again")
            self._missed = True
            return None
        if self._missed:
            output.summary("the daemon answers again")
        self._good, self._missed = True, False
        return found

    def _passes(self, stop: Stop) -> bool:
        """Whether time may end it: nobody is there, or somebody who is not ready yet, or does not
        know yet what he will know when he has looked at his documents."""
        if isinstance(stop, Refusal):
            return int(stop.told.get("status", 0)) >= 500 or stop.problem in _NOT_YET
        return stop.code is Exit.UNREACHABLE or (stop.code is Exit.BAD and self._missed)


_NOT_YET = {"not-found", "too-many-requests", "continue-expired"}


def forever(look: Callable[[], list[Text]]) -> None:
    """`look` gives the whole answer, line by line."""
    if not output.on_terminal():
        _log(look)
        return
    console = output.answers()
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        patience = Patience()
        while True:
            lines = patience.look(look)
            if lines is None:
                clock.block(POLL)
                continue
            # What does not fit on the screen is cut at the end, not at the top.
            for line in lines:
                line.no_wrap, line.overflow = True, "ellipsis"
            live.update(Group(*lines), refresh=True)
            clock.block(POLL)


def _log(look: Callable[[], list[Text]]) -> None:
    known: set[str] = set()
    patience = Patience()
    while True:
        lines = patience.look(look)
        if lines is None:
            clock.block(POLL)
            continue
        for line in lines:
            if line.plain not in known:
                output.line(line)
        output.answers().file.flush()
        known = {line.plain for line in lines}
        clock.block(POLL)
