"""
`fleetctl rehearse`: the documents on a simulated twin, in virtual time, with faults if you like.

Needs no daemon. Everything printed follows from documents, seed and faults; how long it took to
compute does not appear, so that two runs can be compared byte by byte.
"""

import logging
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from fleetd import clock, settings
from fleetd.cli import output, reading
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame
from fleetd.plan import words
from fleetd.plan.policy import Policy
from fleetd.settings import LogLevel, LogSettings
from fleetd.sim import mishaps, rehearsal, script
from fleetd.sim.rehearsal import Moment, Outcome, Script
from fleetd.surface import log

_STYLES = {
    "Ready": "green",
    "NotReady": "yellow",
    "Unknown": "yellow",
    "Failed": "red",
    "fault": "bold red",
    "mended": "bold green",
    "Approved": "bold",
}
_ALWAYS = ("Ready", "Failed", "fault", "mended", "Approved")
_LOST = ("NotReady", "Unknown")
"""Told of what was Ready before; what comes up is not Ready at first, and nobody wonders."""


def run(
    frame: Frame,
    paths: tuple[Path, ...],
    catalogue: tuple[Path, ...],
    *,
    seed: int,
    faults: Sequence[str],
    before: tuple[Path, ...],
    chaos: bool,
    no_approvals: bool,
) -> None:
    found = reading.fleet(frame, paths, catalogue)
    start = reading.fleet(frame, before, catalogue).topology if before else None
    try:
        lines = mishaps.read_all(faults)
    except script.ScriptError as cause:
        raise click.UsageError(str(cause)) from None
    given = Script(
        topology=found.topology,
        catalogue=found.catalogue,
        policy=Policy.of(item.document for item in found.bundle.items),
        before=start,
        seed=seed,
        faults=lines,
        chaos=chaos,
        approvals=not no_approvals,
        modules=settings.Settings().drivers,
    )
    _hush()
    try:
        with output.working("rehearsing") as progress:
            outcome = rehearsal.rehearse(given, progress)
    except script.ScriptError as cause:
        raise click.UsageError(str(cause)) from None
    if frame.machine:
        output.data(frame, shape(outcome))
    else:
        _print(outcome, each=frame.output == "wide")
    if not outcome.converged:
        raise Stop(Exit.BAD)


def list_faults() -> None:
    """Every fault there is, as it is written behind the colon."""
    output.line(Text("at WHEN: WHAT NAME HOW [for SPAN], e.g. 'at 12m: rack r2 dark for 20m'"))
    output.line(Text(f"{script.NOTE}\n"))
    for what, hows in script.VOCABULARY.items():
        for how, meaning in hows.items():
            output.line(Text(f"{what:<10} NAME {how:<15} {meaning}"))


def _hush() -> None:
    """What the parts of the daemon log goes to stderr, and only errors: the timeline tells the
    rest, and stdout holds nothing but the result."""
    log.set_up(LogSettings(level=LogLevel.ERROR), now=clock.SystemClock().now)
    for library in log.QUIET:
        logging.getLogger(library).setLevel(logging.ERROR)


def shape(outcome: Outcome) -> dict[str, Any]:
    return {
        "converged": outcome.converged,
        "why": outcome.why,
        "steps": outcome.steps,
        "simulatedSeconds": round(outcome.simulated.total_seconds()),
        "disruptions": [str(ref) for ref in outcome.disrupted],
        "consent": outcome.consent,
        "held": {reason.value: count for reason, count in outcome.held.items()},
        "requests": outcome.requests,
        "writes": outcome.writes,
        "faults": [
            {"fault": one.said, "begun": one.begun, "met": one.met} for one in outcome.faults
        ],
        "faultsMet": dict(outcome.hits),
        "beforeBreach": list(outcome.before),
        "timeline": [
            {
                "atSeconds": round(moment.at.total_seconds(), 3),
                "about": moment.about,
                "what": moment.what,
                "detail": moment.detail,
            }
            for moment in outcome.timeline
        ],
    }


def _print(outcome: Outcome, *, each: bool) -> None:
    was_ready: set[str] = set()
    for moment in outcome.timeline:
        lost = moment.what in _LOST and moment.about in was_ready
        if each or moment.what in _ALWAYS or lost:
            output.line(_text(moment))
        if moment.what == "Ready":
            was_ready.add(moment.about)
    output.line(Text())
    if outcome.disrupted:
        output.line(Text(f"disrupted: {words.names(set(outcome.disrupted), most=6)}"))
    if outcome.consent:
        output.line(Text(f"a daemon asks for consent before it takes these: {outcome.consent}"))
    for reason, count in outcome.held.items():
        output.line(Text(f"held at some time: {count} by {reason.value}"))
    for one in outcome.faults:
        style = "" if one.met else "bold yellow"
        output.line(Text(f"fault '{one.said}' {one.told}", style=style))
    if outcome.hits:
        met = ", ".join(f"{count} x {cell}" for cell, count in outcome.hits.items())
        output.line(Text(f"faults on the way: {met}"))
    for told in outcome.before:
        output.line(Text(f"before the breach: {told}"))
    output.line(Text(f"{outcome.requests} requests, {outcome.writes} of them writes"))
    output.line(Text(outcome.last_line, style="bold green" if outcome.converged else "bold red"))


def _text(moment: Moment) -> Text:
    """One line of at most the terminal's width; ready ones need no words."""
    told = "" if moment.what == "Ready" else f"  {moment.detail}"
    line = Text(f"{_at(moment.at):>9}  ", style="dim")
    line.append(f"{moment.what:<9}", style=_STYLES.get(moment.what, ""))
    line.append(f" {moment.about}{told}")
    width = output.width()
    if len(line) > width:
        line.truncate(width, overflow="ellipsis")
    return line


def _at(at: timedelta) -> str:
    seconds = int(at.total_seconds())
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
