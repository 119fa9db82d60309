"""`fleetctl credentials`: what there is, where it lies, how old, who uses it. Never a value."""

from datetime import datetime, timedelta
from typing import Any

from rich.table import Table
from rich.text import Text

from fleetd.cli import client, output, states
from fleetd.cli.frame import Frame
from fleetd.plan import words

ROOM = 190
"""Columns that the table needs."""
_STYLES = {
    "Expired": "bold red",
    "Overdue": "bold red",
    "Spreading": "yellow",
    "Expiring": "yellow",
    "OldKept": "yellow",
    "Good": "green",
    "NotSeen": "dim",
}
_WORDS = {
    "Expired": "no longer good",
    "Overdue": "its rotation should have been",
    "Spreading": "somebody still uses the old one",
    "Expiring": "its last tenth of life",
    "OldKept": "nobody uses the old one, which still lies there; approve its end (`fleetctl plan`)",
    "NotSeen": "nobody tells version or age yet",
}
"""What a state means; only those that occur are explained."""


def run(frame: Frame, *, region: str | None) -> None:
    found = client.of(frame).get("/credentials", region=region)
    items: list[dict[str, Any]] = found["items"]
    if frame.machine:
        output.data(frame, {"items": items})
        return
    if not items:
        output.answers().print("No credentials: nothing here makes one.")
        return
    now, wide = states.moment(found["now"]), frame.output == "wide"
    if not wide and output.on_terminal() and output.width() < ROOM:
        _narrow(items, now)
    else:
        output.table(_table(items, now, wide=wide))
    _explain(items)


def _table(items: list[dict[str, Any]], now: datetime, *, wide: bool) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("NAME", "STATE", "VERSION", "AGE", "EXPIRES", "ROTATION", "USERS"):
        table.add_column(title, no_wrap=True)
    for title in ("MADE BY", "WHERE", "STILL ON AN OLD ONE"):
        table.add_column(title, overflow="fold")
    if wide:
        table.add_column("HOW", overflow="fold")
        table.add_column("USED BY, SEEN WITH, AND THE PROOF", overflow="fold")
    for item in items:
        table.add_row(
            item["name"],
            _state(item),
            _version(item["version"]),
            _span(item["ageSeconds"]),
            _when(item["expires"], now),
            _rotation(item, now),
            f"{item['users']:,}",
            item["madeBy"],
            "\n".join(item["where"]),
            "\n".join(item["stillOld"]) or "-",
            *(_more(item) if wide else ()),
        )
    return table


def _narrow(items: list[dict[str, Any]], now: datetime) -> None:
    """Some lines each: a place in OpenBao is too long for a column."""
    for item in items:
        told: list[str] = []
        if item["version"] is not None:
            told.append(f"version {_version(item['version'])}")
        if item["ageSeconds"] is not None:
            told.append(f"{_span(item['ageSeconds'])} old")
        if item["expires"]:
            told.append(f"expires {_when(item['expires'], now)}")
        count = item["users"]
        told += [f"rotation {_rotation(item, now)}", f"{count:,} user{'' if count == 1 else 's'}"]
        head = Text.assemble((item["name"], "bold"), "  ", _state(item), f"  {item['madeBy']}")
        told_line = Text(f"    {', '.join(told)}", style="dim")
        short = len(head) + len(told_line) <= output.width()
        lines = [head + told_line] if short else [head, told_line]
        lines += [Text(f"    {place}") for place in item["where"]]
        if item["stillOld"]:
            lines.append(Text(f"    on an old one: {', '.join(item['stillOld'])}", style="yellow"))
        for line in lines:
            for part in output.folded_text(line):
                output.line(part)


def _explain(items: list[dict[str, Any]]) -> None:
    present = {item["state"] for item in items}
    said = [(state, text) for state, text in _WORDS.items() if state in present]
    if said and output.on_terminal():
        output.line(Text(""))
        for state, text in said:
            for part in output.folded_text(Text.assemble((state, _STYLES[state]), f": {text}")):
                output.line(part)


def _state(item: dict[str, Any]) -> Text:
    return Text(item["state"], style=_STYLES.get(item["state"], ""))


def _rotation(item: dict[str, Any], now: datetime) -> str:
    """When it is replaced next; where nobody knows, how often it should be."""
    if item["nextRotation"]:
        return _when(item["nextRotation"], now)
    every = item["rotateSeconds"]
    return f"every {_span(every)}" if every else "never"


def _more(item: dict[str, Any]) -> tuple[str, str]:
    users = [f"{use['who']} ({_version(use['version'])}): {use['proof']}" for use in item["usedBy"]]
    left = item["users"] - len(users)
    return item["how"], "\n".join([*users, *([f"and {left:,} more"] if left else [])])


def _version(version: int | str | None) -> str:
    """A number, a serial number; or a moment, of what is known by its end."""
    if not isinstance(version, str):
        return "-" if version is None else str(version)
    try:
        return f"{states.moment(version):%Y-%m-%d %H:%M}"
    except ValueError:
        return version


def _when(moment: str | None, now: datetime) -> str:
    if moment is None:
        return "-"
    left = states.moment(moment) - now
    return f"in {words.span(left)}" if left > timedelta(0) else f"{words.span(-left)} ago"


def _span(seconds: float | None) -> str:
    return words.span(timedelta(seconds=seconds)) if seconds is not None else "-"
