"""`fleetctl incidents`: what has failed, each once at its cause, with what it takes along."""

from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from fleetd.cli import client, output, states
from fleetd.cli.frame import Frame

_STYLES = {"critical": "bold red", "warning": "yellow"}


def run(frame: Frame, *, region: str | None) -> None:
    found = client.of(frame).get("/incidents", region=region)
    if frame.machine:
        output.data(frame, {"items": found["items"], "left": found["left"]})
        return
    items: list[dict[str, Any]] = found["items"]
    if items:
        now = states.moment(found["now"])
        output.table(_table(items, now, wide=frame.output == "wide"))
    elif not found["left"]:
        output.answers().print("No incidents: nothing is wrong that has a cause of its own.")
    if left := found["left"]:
        things = "thing is" if left == 1 else "things are"
        output.summary(f"{left:,} more {things} in trouble, too many to tell one by one")


def _table(items: list[dict[str, Any]], now: datetime, *, wide: bool) -> Table:
    """The worst first, as the daemon tells them."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("CAUSE", "SEVERITY", "AGE", "REGION", "AFFECTS"):
        table.add_column(title, no_wrap=True)
    table.add_column("WHAT", overflow="fold")
    if wide:
        table.add_column("WHAT TO DO", overflow="fold")
        table.add_column("WHAT IT AFFECTS", overflow="fold")
    for item in items:
        cause = item["cause"]
        table.add_row(
            cause["ref"],
            Text(item["severity"], style=_STYLES.get(item["severity"], "")),
            states.age(item["since"], now),
            item["region"],
            f"{item['affectedTotal']:,}{'+' if item['affectedMore'] else ''}",
            f"{cause['reason']}: {cause['message']}",
            *((item["advice"] or "-", _affected(item)) if wide else ()),
        )
    return table


def _affected(item: dict[str, Any]) -> str:
    names: list[str] = item["affected"]
    left = item["affectedTotal"] - len(names)
    return "\n".join([*names, *([f"and {left:,} more"] if left else [])]) or "-"
