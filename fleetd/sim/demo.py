"""
`make demo`: a whole simulated region comes up before your eyes.

Two processes that talk over loopback: the simulated world (`fleetd.sim.serve`) and a real daemon,
both in a time that runs faster than life. Nothing is recorded: what is shown is what the daemon
answers, here and on its web page. When the region is Ready, a walk leads through three failures
(`fleetd.sim.walk`), others are offered as commands to try, and the tree goes on to show what they
do. A Prometheus, where there is one, watches it with the project's rules. Whatever ends the demo,
it takes the processes and its folder along.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
import webbrowser
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fleetd import clock
from fleetd.sim import pace, serve, watcher
from fleetd.sim import walk as walking
from fleetd.sim.walk import Failure
from topology import read
from topology.resource import Topology

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "topology" / "examples" / "racks"
PACE = 120.0
"""A region on bare metal takes a good hour; at this pace that is well under a minute. Deadlines
shrink with it, and a faster one leaves a busy machine too little time to answer."""
BAR = 16
LIMIT = 900.0
"""Seconds until the demo gives up: many times what a busy machine needs."""
SILENCE = 120.0
"""Seconds for which the daemon may give no answer on a busy machine."""
START = 300.0
"""Seconds for a program to listen, on a machine that is busy with everything else."""
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_time = clock.SystemClock()
# A proxy that the shell names has no business between us and our own daemon.
_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


Node = dict[str, Any]
Until = Callable[[list[Node]], bool]


class Trouble(Exception):
    """The demo cannot go on; says why."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--once", action="store_true", help="end when the region is Ready")
    parser.add_argument("--walk", action="store_true", help="three failures by itself, then end")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--pace", type=float, default=PACE)
    parser.add_argument("--documents", type=Path, default=EXAMPLE)
    parser.add_argument("--prometheus", default="", help="the program; that of the PATH if empty")
    given = parser.parse_args()
    for number in ENDINGS:
        signal.signal(number, _leave)
    with tempfile.TemporaryDirectory(prefix="fleetd-demo-") as folder:
        demo = Demo(Path(folder), given.documents.absolute(), given.seed, given.pace)
        try:
            return demo.run(once=given.once, walk=given.walk, prometheus=given.prometheus)
        except KeyboardInterrupt:
            return 130 if given.once else 0
        except Trouble as trouble:
            click.echo(f"make demo: {trouble}", err=True)
            return 1
        finally:
            for number in ENDINGS:
                signal.signal(number, signal.SIG_IGN)
            demo.end()


def _leave(number: int, frame: FrameType | None) -> None:
    """A closed terminal and `kill` end it as Ctrl-C does."""
    del number, frame
    raise KeyboardInterrupt


class Demo:
    _course: pace.Shared | None = None

    def __init__(self, folder: Path, documents: Path, seed: int, pace: float) -> None:
        self._folder = folder
        self._documents = documents
        self._seed = seed
        self._pace = pace
        self._console = Console()
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def run(self, *, once: bool, walk: bool, prometheus: str = "") -> int:
        topology = read.read([self._documents]).topology
        world = self._start_world()
        url = self._start_daemon(world)
        self._console.print(
            f"fleetd serves [bold]{url}[/], on a world simulated with seed {self._seed}"
        )
        if not once:
            self._console.print(self._watched(url, prometheus), soft_wrap=True, highlight=False)
        if not once and not walk and _can_show_pages():
            webbrowser.open(url)
        started = _time.monotonic()
        nodes = self._watch(url, started, until=_all_ready)
        took = _time.monotonic() - started
        region = next(node["region"] for node in nodes)
        if walk and topology is not None:
            self._walk(url, world["address"], topology, alone=True)
        elif not once and topology is not None:
            self._offer(url, world["address"], topology)
            if self._console.is_terminal and sys.stdin.isatty():
                self._walk(url, world["address"], topology, alone=False)
            self._watch(url, started, until=None)
        click.echo(
            f"region/{region} Ready: {len(nodes)} resources, "
            f"{self._minutes():.0f} simulated minutes, {took:.0f} s"
        )
        return 0

    def end(self) -> None:
        """By their ids, the world last."""
        started = [*reversed(self._processes.values())]
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if self._course is not None:
            self._course.leave()

    def _minutes(self) -> float:
        """Of the simulated time, which slows down on a busy machine."""
        return self._course.passed() * self._pace / 60 if self._course is not None else 0.0

    def _start(self, name: str, command: list[str]) -> "subprocess.Popen[str]":
        clean = {key: value for key, value in os.environ.items() if not key.startswith("FLEETD_")}
        with (self._folder / f"{name}.log").open("w") as log:
            process = subprocess.Popen(  # noqa: S603 - our own programs
                command,
                cwd=ROOT,
                env=clean,
                stdout=subprocess.PIPE if name == "world" else log,
                stderr=log,
                text=True,
                # Ctrl-C is for this process; it then ends the others by their ids.
                start_new_session=True,
            )
        self._processes[name] = process
        return process

    def _watched(self, url: str, prometheus: str) -> str:
        """Have it watched; a line that says by whom."""
        program = shutil.which(prometheus or "prometheus")
        if program is None:
            return "no Prometheus is installed or built (make parts PART=prometheus): no alerts"
        (self._folder / "prometheus.yml").write_text(watcher.config(url, ROOT), "utf-8")
        process = self._start("prometheus", [program, *watcher.arguments(self._folder)])
        deadline = _time.monotonic() + START
        while _time.monotonic() < deadline and process.poll() is None:
            if found := watcher.address((self._folder / "prometheus.log").read_text("utf-8")):
                return f"Prometheus ({program}) watches it with our rules: {found}/api/v1/alerts"
            clock.block(clock.seconds(0.1))
        return f"{program} does not start: no alerts\n{self._said('prometheus')}"

    def _start_world(self) -> dict[str, str]:
        process = self._start(
            "world",
            [
                *(sys.executable, "-m", "fleetd.sim.serve", "--documents", str(self._documents)),
                *("--folder", str(self._folder), "--seed", str(self._seed)),
                *("--pace", str(self._pace)),
            ],
        )
        line = process.stdout.readline() if process.stdout is not None else ""
        if not line:
            raise Trouble(f"the world did not start:\n{self._said('world')}")
        told: dict[str, str] = json.loads(line)
        self._course = pace.Shared(Path(told["time"]))
        return told

    def _start_daemon(self, world: Mapping[str, str]) -> str:
        process = self._start(
            "daemon",
            [
                *(sys.executable, "-m", "fleetd", "serve", "--documents", world["documents"]),
                *("--state", str(self._folder / "state"), "--listen", "127.0.0.1:0"),
                *("--log-format", "json", "--pace", str(self._pace)),
                *("--pace-with", world["time"], "--execute-rate", "500"),
                *("--execute-burst", "1000", "--observe-deadline", "10m"),
                # The world answers for every BMC; a real site has a proxy into that network too.
                *("--network-proxy", world["address"], "--network-direct", "127.0.0.1"),
            ],
        )
        log = self._folder / "daemon.log"
        deadline = _time.monotonic() + START
        while _time.monotonic() < deadline and process.poll() is None:
            for line in log.read_text("utf-8").splitlines():
                with contextlib.suppress(ValueError):
                    told: Any = json.loads(line)
                    if told.get("event") == "serving":
                        return str(told["address"])
            clock.block(clock.seconds(0.1))
        raise Trouble(f"the daemon did not start:\n{self._said('daemon')}")

    def _said(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text("utf-8")[-2000:]

    def _watch(self, url: str, started: float, *, until: Until | None) -> list[Node]:
        """Show how it is, until it is as wanted; without a wish, for ever."""
        nodes: list[Node] = []
        heard = _time.monotonic()
        with _screen(self._console) as draw:
            while until is None or _time.monotonic() - started < LIMIT:
                self._check_alive()
                try:
                    nodes = _nodes(url)
                    heard = _time.monotonic()
                except OSError as cause:
                    if _time.monotonic() - heard > SILENCE:
                        raise Trouble(f"the daemon does not answer: {cause}") from None
                if nodes:
                    draw(_rows(nodes), self._minutes())
                    if until is not None and until(nodes):
                        return nodes
                clock.block(clock.seconds(0.5))
        bad = [node for node in nodes if node["ready"]["status"] != "True"]
        told = "\n".join(f"  {node['id']}: {node['ready']['reason']}" for node in bad)
        raise Trouble(f"not Ready after {LIMIT:.0f} s:\n{told}")

    def _check_alive(self) -> None:
        for name in ("world", "daemon"):
            if self._processes[name].poll() is not None:
                raise Trouble(f"the {name} ended:\n{self._said(name)}")

    def _walk(self, url: str, world: str, topology: Topology, *, alone: bool) -> None:
        def further(deed: str) -> bool:
            if alone:
                return True
            self._console.print(f"  Enter: {deed};  q, Enter: go on alone ", end="")
            return sys.stdin.readline().strip().lower() != "q"

        def tell(line: str) -> None:
            request = urllib.request.Request(f"{world}/faults", data=line.encode())  # noqa: S310 -- our own world
            _direct.open(request, timeout=20).close()

        def say(line: str) -> None:
            self._console.print(line, soft_wrap=True, highlight=False)

        def ask(path: str) -> Any:  # noqa: ANN401 - JSON
            return _ask(url + path)

        wrong = walking.walk(
            failures(topology, min(topology.regions)),
            walking.Walk(
                say=say,
                ask=ask,
                tell=tell,
                next=further,
                time=_time,
                minutes=self._minutes,
                url=url,
            ),
        )
        if wrong:
            raise Trouble(wrong)

    def _offer(self, url: str, world: str, topology: Topology) -> None:
        region = min(topology.regions)
        say = self._console.print
        say(f"\n[bold green]region/{region} is Ready.[/] Ctrl-C ends the demo. Until then, ask it:")
        say(f"  {url}    the web page: see it there while it happens")
        for command in ("tree", f"why region {region}", "events -w", "credentials"):
            say(f"  .venv/bin/fleetctl --server {url} {command}", soft_wrap=True)
        say("or break something, see below what comes of it, ask why, and mend it:")
        for fault in (*faults(topology, region), serve.MEND):
            say(f"  curl -d '{fault}' {world}/faults", soft_wrap=True)
        say("Every simulated cluster speaks to kubectl:")
        for path in sorted((self._folder / serve.KUBECONFIGS).glob("*.kubeconfig")):
            say(f"  kubectl --kubeconfig {path} get ns", soft_wrap=True)


def failures(topology: Topology, region: str) -> list[Failure]:
    """The three of the walk."""
    names = _names(topology, region)
    first = min(names["server"])
    dead = Failure(f"the BMC of {first} is dead", f"bmc {first} unreachable", f"server {first}")
    found = [dead]
    if (rack := _rack(topology, region)) and "cephcluster" in names:
        ceph = f"cephcluster {min(names['cephcluster'])}"
        found.append(Failure(f"rack {rack} loses its power", f"rack {rack} dark", ceph))
    if "nova-compute" in names:
        name = min(names["nova-compute"])
        bad = f"image {name}/nova-compute bad"
        found.append(Failure("an image of nova-compute is bad", bad, f"nova-compute {name}"))
    return found


def _names(topology: Topology, region: str) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for ref, want in topology.resources.items():
        if want.region == region:
            names.setdefault(ref.kind, []).append(ref.name)
    return names


def _can_show_pages() -> bool:
    """Whether somebody sits in front of it who could see a browser's window."""
    there = sys.platform == "darwin" or any(
        os.environ.get(n) for n in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return there and sys.stdout.isatty()


def faults(topology: Topology, region: str) -> list[str]:
    """What can be broken here. A sealed OpenBao is opened again; the others last."""
    names = _names(topology, region)
    found = [f"bmc {min(names['server'])} unreachable", f"openbao {region} sealed"]
    rack = _rack(topology, region)
    if rack:
        found.append(f"rack {rack} dark")
    if "nova-compute" in names:
        found.append(f"image {min(names['nova-compute'])}/nova-compute bad")
    return found


def _rack(topology: Topology, region: str) -> str:
    """The one whose loss is felt most: with the most servers of a storage cluster."""
    clusters = [want for ref, want in topology.resources.items() if ref.kind == "cluster"]
    pools = {
        worker["pool"]
        for want in clusters
        if want.region == region and want.spec["role"] == "storage"
        for worker in want.spec["workers"]
    }
    racks = Counter(
        domain.rpartition("/")[2]
        for ref, want in topology.resources.items()
        if ref.kind == "server" and want.spec["pool"] in pools
        for domain in want.domains
        if domain.startswith("rack:")
    )
    return max(sorted(racks), key=lambda rack: racks[rack], default="")


def _nodes(url: str) -> list[Node]:
    return [
        {**node, "region": region["name"]}
        for region in _ask(f"{url}/api/v1/regions")["items"]
        for node in _ask(f"{url}/api/v1/topology/{region['name']}")["nodes"]
    ]


def _all_ready(nodes: list[Node]) -> bool:
    return all(node["ready"]["status"] == "True" for node in nodes)


def _ask(url: str) -> Any:  # noqa: ANN401 - JSON
    with _direct.open(url, timeout=20) as answer:
        return json.load(answer)


Row = tuple[str, int, int, str]


def _rows(nodes: list[Node]) -> list[Row]:
    """Per document, below its region: how much of it is Ready, and what is under way."""
    groups: dict[str, list[Node]] = {}
    for node in nodes:
        groups.setdefault(node["owner"] or node["id"], []).append(node)
    regions = sorted({f"region/{node['region']}" for node in nodes})
    rows: list[Row] = []
    for region in regions:
        rows.append(_row(region, groups.pop(region, [])))
        inside = [name for name in groups if f"region/{groups[name][0]['region']}" == region]
        inside.sort(key=lambda name: (min(node["rank"] for node in groups[name]), name))
        for name in inside:
            lead = "└─ " if name == inside[-1] else "├─ "
            rows.append(_row(name, groups[name], lead))
    return rows


def _row(name: str, members: list[Node], lead: str = "") -> Row:
    good = sum(node["ready"]["status"] == "True" for node in members)
    bad = [node for node in members if node["ready"]["status"] != "True"]
    # What only waits for others says nothing here.
    own = [node for node in bad if node["plan"] and not node["plan"]["blocker"]]
    told = [f"{node['id']} {node['ready']['reason']}" for node in own]
    return f"{lead}{name}", good, len(members), ", ".join(told)


@contextlib.contextmanager
def _screen(console: Console) -> Generator[Callable[[list[Row], float], None]]:
    """Live on a terminal; elsewhere one line whenever a group moves on."""
    if not console.is_terminal:
        told: dict[str, int] = {}

        def tell(rows: list[Row], minutes: float) -> None:
            for name, good, total, _ in rows:
                owner = name.lstrip("├└─ ")
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
        full = good * BAR // max(total, 1)
        colour = "green" if good == total else "yellow"
        bar = Text("━" * full, style=colour) + Text("━" * (BAR - full), style="grey30")
        table.add_row(owner, bar + Text(f" {good:3}/{total}"), Text(busy, style="dim"))
    return Group(Text(f"\n{minutes:4.0f} simulated minutes", style="bold"), table)


if __name__ == "__main__":
    sys.exit(main())
