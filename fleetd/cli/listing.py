"""`fleetctl get`: things of one kind, or one thing."""

from datetime import datetime
from typing import Any

from rich.table import Table

from fleetd.cli import client, output, states
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame


def run(frame: Frame, *, kind: str, name: str | None, region: str | None, now: datetime) -> None:
    asked = client.Client(frame.server)
    if name is not None:
        found = asked.get(f"/resources/{kind}/{name}")
        if frame.machine:
            output.data(frame, found)
        else:
            _show(frame, [found], now)
        return
    items = list(asked.pages("/resources", kind=kind, region=region, limit=1000))
    if frame.machine:
        output.data(frame, {"items": items})
    elif items:
        _show(frame, items, now)
    else:
        raise Stop(Exit.BAD, f"there is no {kind}; `fleetctl tree` shows what there is")


def _show(frame: Frame, items: list[dict[str, Any]], now: datetime) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("NAME", "STATE", "AGE", "REGION"):
        table.add_column(title, no_wrap=True)
    wide = frame.output == "wide"
    if wide:
        for title in ("DRIVER", "BACKEND", "SEEN"):
            table.add_column(title, no_wrap=True)
    table.add_column("MESSAGE", overflow="fold")
    for item in items:
        ready = item["ready"]
        more = (item["driver"], item["backend"], states.age(item["observedAt"], now))
        table.add_row(
            item["name"],
            states.word(ready),
            states.age(ready.get("since"), now),
            item["region"],
            *(more if wide else ()),
            "" if ready["status"] == "True" else ready["message"],
        )
    output.table(table)
