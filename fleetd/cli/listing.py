"""`fleetctl get`: things of one kind, or one thing, or what no document names any more."""

from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from fleetd.cli import client, naming, output, states, watching
from fleetd.cli.client import Client
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame

Item = dict[str, Any]


def run(frame: Frame, *, kind: str, name: str | None, region: str | None, watch: bool) -> None:
    if watch:
        watching.check(frame)
    asked = client.of(frame)
    kind, name = naming.split(kind, name)
    orphans = kind.lower() in {naming.ORPHANS, "orphan"}
    kind = naming.ORPHANS if orphans else naming.known_kind(asked, kind)
    if watch:
        watching.forever(lambda: _lines(frame, *_found(asked, kind, name, region)))
    items, now = _found(asked, kind, name, region)
    if frame.machine:
        output.data(frame, items[0] if name is not None else {"items": items})
    elif items:
        output.table(_table(frame, items, now))
    elif orphans:
        output.answers().print("No orphans: everything that exists is named by a document.")
    else:
        raise Stop(Exit.BAD, f"there is no {kind}" + (f" in {region}" if region else ""))


def _found(
    asked: Client, kind: str, name: str | None, region: str | None
) -> tuple[list[Item], datetime]:
    if kind == naming.ORPHANS:
        page = asked.get("/orphans", region=region)
        items = [one for one in page["items"] if name in {None, one["name"]}]
        return items, states.moment(page["now"])
    if name is not None:
        found = asked.get(naming.path(kind, name))
        return [found], states.moment(found["now"])
    pages = list(asked.whole_pages("/resources", kind=kind, region=region, limit=1000))
    return [item for page in pages for item in page["items"]], states.moment(pages[-1]["now"])


def _lines(frame: Frame, items: list[Item], now: datetime) -> list[Text]:
    console = output.answers()
    with console.capture() as captured:
        console.print(_table(frame, items, now))
    return [Text.from_ansi(line.rstrip()) for line in captured.get().splitlines()]


def _table(frame: Frame, items: list[Item], now: datetime) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    kinds = {item["kind"] for item in items}
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
        orphan = "retired" in item and item.get("orphan", True)
        table.add_row(
            item["name"] if len(kinds) == 1 and not orphan else f"{item['kind']}/{item['name']}",
            _state(item) if orphan else states.word(ready),
            states.age(ready.get("since"), now),
            item["region"],
            *(more if wide else ()),
            _message(item, now, orphan=orphan),
        )
    return table


def _state(item: Item) -> Text:
    return Text("Retiring", style="cyan") if item["retired"] else Text("Orphaned", style="yellow")


def _message(item: Item, now: datetime, *, orphan: bool) -> str:
    if orphan and not item["retired"]:
        return f"fleetctl retire {item['kind']} {item['name']}"
    ready, rests = item["ready"], item["pause"]
    told = "" if ready["status"] == "True" else str(ready["message"])
    return "; ".join(one for one in (told, states.pause(rests, now) if rests else "") if one)
