"""`fleetctl events`: what happened, oldest first."""

from datetime import timedelta
from functools import partial
from typing import Any, NoReturn

import click
from rich.table import Table

from fleetd import clock
from fleetd.cli import client, naming, output, states, watching
from fleetd.cli.client import Client
from fleetd.cli.frame import Frame
from topology.documents import base


def run(frame: Frame, *, about: str | None, since: str | None, watch: bool) -> None:
    if about is not None and not all(about.partition("/")):
        raise click.UsageError(f"--for {about} is not KIND/NAME; write e.g. --for cluster/hv")
    if watch:
        watching.check(frame)
    span = _span(since) if since else None
    asked = client.of(frame)
    about = naming.about(asked, about) if about is not None else None
    found = list(asked.pages("/events", for_=about, limit=1000)) if span is None else []
    if span is not None:
        found = _last(asked, about, span)
    if frame.machine:
        output.data(frame, {"items": found})
        return
    console = output.answers()
    _show(found, headed=True)
    if not found and not watch:
        console.print("No events.")
    if watch:
        console.file.flush()
        _follow(asked, about, found[-1]["seq"] if found else 0)


def _follow(asked: Client, about: str | None, last: int) -> NoReturn:
    """From the number of the last event that was shown, so that none is lost or told twice, also
    over a restart of the daemon; a history that was begun anew is told from its beginning."""
    patience = watching.Patience(good=True)
    last = last or patience.look(lambda: _newest(asked)) or 0
    while True:
        clock.block(watching.POLL)
        away = patience.was_away
        newest = patience.look(lambda: _newest(asked))
        if newest is None:
            continue
        if away and newest < last:
            last = 0
        if newest == last:
            continue
        fresh = patience.look(partial(_since, asked, about, last)) or []
        _show(fresh, headed=False)
        output.answers().file.flush()
        last = fresh[-1]["seq"] if fresh else last


def _since(asked: Client, about: str | None, last: int) -> list[dict[str, Any]]:
    return list(asked.pages("/events", for_=about, after=last, limit=1000))


def _last(asked: Client, about: str | None, span: timedelta) -> list[dict[str, Any]]:
    """Read from the end, so that an hour of a year costs an hour."""
    found: list[dict[str, Any]] = []
    for page in asked.whole_pages("/events", for_=about, limit=500, newest="true"):
        begin = states.moment(page["now"]) - span
        fresh = [event for event in page["items"] if states.moment(event["at"]) >= begin]
        found += fresh
        if len(fresh) < len(page["items"]):
            break
    return found[::-1]


def _newest(asked: Client) -> int:
    items = asked.get("/events", limit=1, newest="true")["items"]
    return items[0]["seq"] if items else 0


def _span(text: str) -> timedelta:
    found = base.parse_duration(text)
    if found is None:
        raise click.UsageError(f"--since {text} is not a duration; write e.g. 45s, 30m, 2h or 1d")
    return found


def _show(found: list[dict[str, Any]], *, headed: bool) -> None:
    if not found:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=headed, header_style="bold")
    table.add_column("TIME (UTC)", no_wrap=True, style="dim")
    table.add_column("REASON", no_wrap=True, min_width=14)
    table.add_column("ABOUT", no_wrap=True, min_width=20)
    table.add_column("MESSAGE", overflow="fold")
    for event in found:
        at = states.moment(event["at"]).strftime("%m-%d %H:%M:%S")
        table.add_row(at, event["reason"], event["ref"], event["message"])
    output.table(table)
