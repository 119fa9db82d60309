"""
`make demo`: a region comes up before your eyes.

The world is the toy world of the tests for now, and time runs sixty times as fast; planner,
executor, store and daemon are the real ones, in a process of their own. Nothing is recorded: what
is shown is what the daemon answers.
"""

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tests.toy import processes

PACE = 60.0
EXAMPLE = processes.ROOT / "topology" / "examples" / "minimal"
BAR = 16
"""Columns of a progress bar."""
LIMIT = 300.0
"""Seconds. The bring-up takes about one minute on two cores."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="end when the region is Ready")
    once: bool = parser.parse_args().once
    console = Console()
    with (
        tempfile.TemporaryDirectory(prefix="fleetd-demo-") as folder,
        processes.world(PACE) as port,
    ):
        log = Path(folder, "fleetd.log")
        with log.open("w") as out:
            process = processes.daemon(EXAMPLE, Path(folder, "state"), port, pace=PACE, log=out)
            try:
                return _show(console, process, log, once=once)
            except KeyboardInterrupt:
                return 0 if not once else 130
            finally:
                processes.end(process)


def _show(console: Console, process: "subprocess.Popen[str]", log: Path, *, once: bool) -> int:
    url = processes.address(log, process)
    console.print(f"fleetd serves [bold]{url}[/]")
    started = time.monotonic()
    with _screen(console) as draw:
        while time.monotonic() - started < LIMIT:
            region = processes.ask(f"{url}/api/v1/regions")["items"]
            if region:
                nodes: list[dict[str, Any]] = processes.ask(
                    f"{url}/api/v1/topology/{region[0]['name']}"
                )["nodes"]
                took = time.monotonic() - started
                draw(_rows(nodes), took)
                if all(node["ready"]["status"] == "True" for node in nodes):
                    break
            if process.poll() is not None:
                console.print(f"the daemon ended with {process.returncode}; see {log}")
                return 1
            time.sleep(0.5)
        else:
            console.print(f"not Ready after {LIMIT:.0f} s")
            return 1
    took = time.monotonic() - started
    if not once:
        console.print(
            f"region/{region[0]['name']} is Ready. Ctrl-C ends the demo; until then, ask it:"
        )
        console.print(
            f"  .venv/bin/fleetctl --server {url} tree\n  .venv/bin/fleetctl --server {url} events"
        )
        with contextlib.suppress(KeyboardInterrupt):
            process.wait()
    print(
        f"region/{region[0]['name']} Ready: {len(nodes)} resources, "
        f"{took * PACE / 60:.0f} simulated minutes, {took:.0f} s"
    )
    return 0


Row = tuple[str, int, int, str]


def _rows(nodes: list[dict[str, Any]]) -> list[Row]:
    """Per document: how much of it is Ready, and what is under way."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for node in nodes:
        groups.setdefault(node["owner"] or node["id"], []).append(node)
    rows: list[Row] = []
    order = sorted(groups, key=lambda owner: (min(node["rank"] for node in groups[owner]), owner))
    for owner in order:
        members = groups[owner]
        good = sum(node["ready"]["status"] == "True" for node in members)
        busy = [
            f"{node['id']} {node['ready']['reason']}"
            for node in members
            if node["ready"]["status"] != "True" and node["ready"]["reason"] != "Absent"
        ]
        rows.append((owner, good, len(members), ", ".join(busy)))
    return rows


@contextlib.contextmanager
def _screen(console: Console) -> Generator[Callable[[list[Row], float], None]]:
    """Live on a terminal; elsewhere one line whenever a group moves on."""
    if not console.is_terminal:
        told: dict[str, int] = {}

        def tell(rows: list[Row], took: float) -> None:
            for owner, good, total, _ in rows:
                if told.get(owner) != good:
                    told[owner] = good
                    print(
                        f"{took * PACE / 60:4.0f} min  {owner}: {good} of {total} Ready", flush=True
                    )

        yield tell
        return
    with Live(console=console, refresh_per_second=4, transient=False) as live:

        def draw(rows: list[Row], took: float) -> None:
            live.update(_table(rows, took))

        yield draw


def _table(rows: list[Row], took: float) -> Group:
    table = Table(box=None, show_header=False, pad_edge=False, expand=True)
    # Names and counts keep their room; only what is under way is cut where there is none.
    table.add_column(no_wrap=True, min_width=max(len(owner) for owner, *_ in rows))
    table.add_column(no_wrap=True, min_width=BAR + 8)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for owner, good, total, busy in rows:
        full = good * BAR // total
        colour = "green" if good == total else "yellow"
        bar = Text("━" * full, style=colour) + Text("━" * (BAR - full), style="grey30")
        table.add_row(owner, bar + Text(f" {good:3}/{total}"), Text(busy, style="dim"))
    return Group(Text(f"\n{took * PACE / 60:4.0f} simulated minutes", style="bold"), table)


if __name__ == "__main__":
    sys.exit(main())
