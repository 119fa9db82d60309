"""`fleetctl credentials`: what there is, where it lies, how old, who uses it. Never a value."""

from datetime import timedelta
from typing import Any

from rich.table import Table
from rich.text import Text

from fleetd.cli import client, output
from fleetd.cli.frame import Frame
from fleetd.plan import words

ROOM = 140
"""Columns that the table needs."""


def run(frame: Frame, *, region: str | None) -> None:
    found = client.Client(frame.server).get("/credentials", region=region)
    if frame.machine:
        output.data(frame, {"items": found["items"]})
        return
    if not found["items"]:
        output.answers().print("No credentials: nothing here makes one.")
        return
    wide = frame.output == "wide"
    if not wide and output.on_terminal() and output.width() < ROOM:
        _narrow(found["items"])
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("NAME", "MADE BY", "WHERE"):
        table.add_column(title, overflow="fold")
    for title in ("VERSION", "AGE", "ROTATED", "USERS"):
        table.add_column(title, no_wrap=True)
    if wide:
        table.add_column("HOW", overflow="fold")
        table.add_column("USED BY, AND THE PROOF", overflow="fold")
    for item in found["items"]:
        table.add_row(*_row(item), *(_more(item) if wide else ()))
    output.table(table)


def _narrow(items: list[dict[str, Any]]) -> None:
    """Two lines each: a place in OpenBao is too long for a column."""
    for item in items:
        name, maker, _, version, age, rotated, users = _row(item)
        told = f"version {version}, age {age}, " if item["version"] or age != "-" else ""
        noun = "user" if users == "1" else "users"
        output.line(Text.assemble((name, "bold"), f"  {maker}"))
        output.line(Text(f"    {told}rotated {rotated}, {users} {noun}", style="dim"))
        for place in item["where"]:
            output.line(Text(f"    {place}"))


def _row(item: dict[str, Any]) -> tuple[str, ...]:
    every = item["rotateSeconds"]
    return (
        item["name"],
        item["madeBy"],
        "\n".join(item["where"]),
        str(item["version"] or "-"),
        _span(item["ageSeconds"]),
        f"every {_span(every)}" if every else "never",
        f"{item['users']:,}" + (f" ({len(item['stillOld'])} old)" if item["stillOld"] else ""),
    )


def _more(item: dict[str, Any]) -> tuple[str, str]:
    users = [f"{use['ref']}: {use['proof']}" for use in item["usedBy"]]
    left = item["users"] - len(users)
    return item["how"], "\n".join([*users, *([f"and {left:,} more"] if left else [])])


def _span(seconds: float | None) -> str:
    return words.span(timedelta(seconds=seconds)) if seconds is not None else "-"
