"""
`make demo`: a whole simulated region comes up before your eyes.

Two processes that talk over loopback: the simulated world (`fleetd.sim.serve`) and a real daemon,
both in a time that runs faster than life. Nothing is recorded: what is shown is what the daemon
answers. When the region is Ready, a few failures are offered as commands to try.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fleetd import clock
from fleetd.sim import serve

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "topology" / "examples" / "minimal"
PACE = 240.0
"""A region on bare metal takes about two hours; at this pace that is half a minute."""
BAR = 16
LIMIT = 300.0
"""Seconds until the demo gives up."""

_time = clock.SystemClock()


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="end when the region is Ready")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--pace", type=float, default=PACE)
    parser.add_argument("--documents", type=Path, default=EXAMPLE)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fleetd-demo-") as folder:
        demo = Demo(Path(folder), given.documents, given.seed, given.pace)
        try:
            return demo.run(once=given.once)
        except KeyboardInterrupt:
            return 130 if given.once else 0
        finally:
            demo.end()


class Demo:
    def __init__(self, folder: Path, documents: Path, seed: int, pace: float) -> None:
        self._folder = folder
        self._documents = documents
        self._seed = seed
        self._pace = pace
        self._since = _time.now().timestamp()
        self._console = Console()
        self._processes: list[subprocess.Popen[str]] = []

    def run(self, *, once: bool) -> int:
        world = self._start_world()
        url, daemon = self._start_daemon(world)
        self._console.print(
            f"fleetd serves [bold]{url}[/], on a world simulated with seed {self._seed}"
        )
        started = _time.monotonic()
        nodes = self._watch(url, started)
        if nodes is None:
            return 1
        took = _time.monotonic() - started
        region = next(node["region"] for node in nodes)
        if not once:
            self._offer(url, world["address"], region, nodes)
            daemon.wait()
        click.echo(
            f"region/{region} Ready: {len(nodes)} resources, "
            f"{took * self._pace / 60:.0f} simulated minutes, {took:.0f} s"
        )
        return 0

    def end(self) -> None:
        """By their ids, the daemon first."""
        for process in reversed(self._processes):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in reversed(self._processes):
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            if process.poll() is None:
                process.kill()
                process.wait()

    def _start(
        self, name: str, args: list[str], env: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        log = (self._folder / f"{name}.log").open("w")
        clean = {key: value for key, value in os.environ.items() if not key.startswith("FLEETD_")}
        process = subprocess.Popen(  # noqa: S603 - our own programs
            [sys.executable, "-m", *args],
            cwd=ROOT,
            env={**clean, **(env or {})},
            stdout=subprocess.PIPE if name == "world" else log,
            stderr=log,
            text=True,
            # Ctrl-C is for this process; it then ends the others by their ids.
            start_new_session=True,
        )
        self._processes.append(process)
        return process

    def _start_world(self) -> dict[str, str]:
        process = self._start(
            "world",
            [
                *("fleetd.sim.serve", "--documents", str(self._documents)),
                *("--folder", str(self._folder), "--seed", str(self._seed)),
                *("--pace", str(self._pace), "--since", str(self._since)),
            ],
        )
        line = process.stdout.readline() if process.stdout is not None else ""
        if not line:
            raise click.ClickException(f"the world did not start:\n{self._said('world')}")
        return json.loads(line)

    def _start_daemon(self, world: Mapping[str, str]) -> tuple[str, "subprocess.Popen[str]"]:
        process = self._start(
            "daemon",
            [
                *("fleetd", "serve", "--documents", world["documents"]),
                *("--state", str(self._folder / "state"), "--listen", "127.0.0.1:0"),
                *("--log-format", "json", "--pace", str(self._pace)),
                *("--pace-since", str(self._since), "--execute-rate", "500"),
                *("--execute-burst", "1000", "--observe-deadline", "10m"),
            ],
            # The world answers for every BMC; a real site has a proxy into that network too.
            {"HTTP_PROXY": world["address"], "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
        )
        log = self._folder / "daemon.log"
        deadline = _time.monotonic() + 60
        while _time.monotonic() < deadline and process.poll() is None:
            for line in log.read_text("utf-8").splitlines():
                with contextlib.suppress(ValueError):
                    told: Any = json.loads(line)
                    if told.get("event") == "serving":
                        return str(told["address"]), process
            clock.block(clock.seconds(0.1))
        raise click.ClickException(f"the daemon did not start:\n{self._said('daemon')}")

    def _said(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text("utf-8")[-2000:]

    def _watch(self, url: str, started: float) -> list[dict[str, Any]] | None:
        """Until all is Ready; None if that does not happen."""
        nodes: list[dict[str, Any]] = []
        with _screen(self._console) as draw:
            while (took := _time.monotonic() - started) < LIMIT:
                regions = _ask(f"{url}/api/v1/regions")["items"]
                nodes = [
                    {**node, "region": region["name"]}
                    for region in regions
                    for node in _ask(f"{url}/api/v1/topology/{region['name']}")["nodes"]
                ]
                if nodes:
                    draw(_rows(nodes), took * self._pace / 60)
                    if all(node["ready"]["status"] == "True" for node in nodes):
                        return nodes
                for process, name in zip(self._processes, ("world", "daemon"), strict=True):
                    if process.poll() is not None:
                        self._console.print(f"the {name} ended:\n{self._said(name)}")
                        return None
                clock.block(clock.seconds(0.5))
        self._console.print(f"not Ready after {LIMIT:.0f} s:")
        for node in nodes:
            if node["ready"]["status"] != "True":
                self._console.print(f"  {node['id']}: {node['ready']['reason']}")
        return None

    def _offer(self, url: str, world: str, region: str, nodes: list[dict[str, Any]]) -> None:
        server = next((n["id"].partition("/")[2] for n in nodes if n["kind"] == "server"), "")
        cluster = next((n["id"].partition("/")[2] for n in nodes if n["kind"] == "cluster"), "")
        say = self._console.print
        say(f"\n[bold green]region/{region} is Ready.[/] Ctrl-C ends the demo. Until then, ask it:")
        for command in ("tree", f"why cluster {cluster}", "events -w", "credentials"):
            say(f"  .venv/bin/fleetctl --server {url} {command}", soft_wrap=True)
        say("or break something, and see what it says:")
        for fault in (
            f"bmc {server} unreachable for 30m",
            f"openbao {region} sealed",
            f"server {server} dark for 1h",
            f"image {cluster}/cert-manager bad for 20m",
        ):
            say(f"  curl -d '{fault}' {world}/faults", soft_wrap=True)
        kubeconfigs = sorted((self._folder / serve.KUBECONFIGS).glob("*.kubeconfig"))
        if kubeconfigs:
            say("Every simulated cluster speaks to kubectl:")
            say(f"  kubectl --kubeconfig {kubeconfigs[0]} get nodes", soft_wrap=True)
            names = ", ".join(path.stem for path in kubeconfigs)
            say(f"  (there are {names})", soft_wrap=True)


def _ask(url: str) -> Any:  # noqa: ANN401 - JSON
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 - our own daemon
        return json.load(answer)


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

        def tell(rows: list[Row], minutes: float) -> None:
            for owner, good, total, _ in rows:
                if told.get(owner) != good:
                    told[owner] = good
                    click.echo(f"{minutes:4.0f} min  {owner}: {good} of {total} Ready")

        yield tell
        return
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        yield lambda rows, minutes: live.update(_table(rows, minutes))


def _table(rows: list[Row], minutes: float) -> Group:
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
    return Group(Text(f"\n{minutes:4.0f} simulated minutes", style="bold"), table)


if __name__ == "__main__":
    sys.exit(main())
