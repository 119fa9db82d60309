"""`fleetctl events`: what happened, oldest first."""

from datetime import datetime, timedelta
from typing import Any

import click
from rich.table import Table

from fleetd import clock
from fleetd.cli import client, output, states
from fleetd.cli.frame import Frame
from topology.documents import base

POLL = timedelta(seconds=2)
"""Between two looks with --watch."""


def run(frame: Frame, *, about: str | None, since: str | None, watch: bool, now: datetime) -> None:
    if about is not None and not all(about.partition("/")):
        raise click.UsageError(f"--for {about} is not KIND/NAME; write e.g. --for cluster/hv")
    asked = client.Client(frame.server)
    begin = now - _span(since) if since else None
    if watch and frame.output == "json":
        raise click.UsageError("--watch has no end, so it cannot be one JSON document; use -o text")
    found = [
        event
        for event in asked.pages("/events", for_=about, limit=1000)
        if begin is None or states.moment(event["at"]) >= begin
    ]
    if frame.machine:
        output.data(frame, {"items": found})
        return
    console = output.answers()
    _show(found, headed=True)
    if not found and not watch:
        console.print("No events.")
    last = found[-1]["seq"] if found else 0
    while watch:
        clock.block(POLL)
        fresh = list(asked.pages("/events", for_=about, after=last, limit=1000))
        _show(fresh, headed=False)
        last = fresh[-1]["seq"] if fresh else last


def _span(text: str) -> timedelta:
    found = base.parse_duration(text)
    if found is None:
        raise click.UsageError(f"--since {text} is not a duration; write e.g. 45s, 30m, 2h or 1d")
    return found


def _show(found: list[dict[str, Any]], *, headed: bool) -> None:
    if not found:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=headed, header_style="bold")
    table.add_column("TIME", no_wrap=True, style="dim")
    table.add_column("REASON", no_wrap=True, min_width=14)
    table.add_column("ABOUT", no_wrap=True, min_width=20)
    table.add_column("MESSAGE", overflow="fold")
    for event in found:
        at = states.moment(event["at"]).strftime("%m-%d %H:%M:%S")
        table.add_row(at, event["reason"], event["ref"], event["message"])
    output.table(table)
