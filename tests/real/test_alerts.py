"""
A fault in the simulated world wakes somebody, through a real Prometheus and a real Alertmanager.

The rules and the configuration are those that are deployed. What is changed is mechanical: targets
and receivers lead to loopback, waits are seconds, and `for` is a three-hundredth. Two rules are
left out: they judge how long fleetd takes, which the pace of the simulated time makes longer.
"""

import asyncio
import json
import re
import sys
import urllib.request
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from aiohttp import web

from fleetd.sim import demo
from tests.real import lab, process
from tests.tidy import alerts, files
from topology.documents.base import parse_duration

pytestmark = pytest.mark.real
DEPLOYED = files.ROOT / "deploy" / "prometheus"
RUNBOOKS = "https://git.example/fleetd/docs/runbooks"
OF_SPEED = {"FleetdStoreSlow", "FleetdLoopLag"}
HURRY = 300.0
SHORTEST = 8.0
"""Seconds of a `for`: Prometheus needs so many from its start to its first scrape."""
PACE = 60.0
"""Of the simulated time: servers are known within ten minutes of it, and even a busy machine
answers within deadlines that are so much shorter."""
PATIENCE = 300.0
QUIET = 6.0
"""Seconds after an alert in which no other comes."""


@dataclass
class Desk:
    """Where alerts arrive: what was last said of each, by receiver and fingerprint."""

    told: dict[tuple[str, str], dict[str, Any]] = field(
        default_factory=dict[tuple[str, str], dict[str, Any]]
    )

    async def take(self, request: web.Request) -> web.Response:
        message = await request.json()
        for one in message["alerts"]:
            self.told[message["receiver"], one["fingerprint"]] = one
        return web.Response()

    def fires(self, receiver: str) -> dict[tuple[str, str], dict[str, Any]]:
        """By name and severity."""
        return {
            (one["labels"]["alertname"], one["labels"]["severity"]): one
            for (to, _), one in self.told.items()
            if to == receiver and one["status"] == "firing"
        }


@dataclass
class Play:
    """What runs, and how to wait for what it does."""

    desk: Desk
    folder: Path
    running: list[process.Running] = field(default_factory=list[process.Running])

    def start(self, name: str, program: Path, *arguments: str) -> process.Running:
        one = process.Running(name, program, arguments, self.folder)
        self.running.append(one)
        return one

    def stop(self) -> None:
        for one in reversed(self.running):
            one.stop()

    async def until(self, reached: Callable[[], bool], what: str) -> None:
        for _ in range(int(PATIENCE / 0.5)):
            if await asyncio.to_thread(reached):
                return
            await asyncio.sleep(0.5)
        tails = "\n".join(f"{one.name}: {one.tail()}" for one in self.running)
        pytest.fail(f"not {what} within {PATIENCE:.0f} s; {self.desk.told}\n{tails}")

    async def told(self, name: str, wanted: str) -> dict[str, str]:
        """The first line of a program's log that is JSON and has this."""
        log, found = self.folder / f"{name}.log", dict[str, str]()

        def read() -> bool:
            for line in log.read_text("utf-8").splitlines():
                with suppress(ValueError):
                    said = json.loads(line)
                    if isinstance(said, dict) and wanted in said:
                        found.update(cast("dict[str, str]", said))
            return bool(found)

        await self.until(read, f"told the {wanted} of the {name}")
        return found


def hurried() -> str:
    """The rules as they are, with less patience."""
    groups: list[dict[str, Any]] = []
    for path in sorted(alerts.RULES.glob("*.yaml")):
        for group in yaml.safe_load(path.read_text("utf-8"))["groups"]:
            group.pop("interval", None)
            group["rules"] = [one for one in group["rules"] if one.get("alert") not in OF_SPEED]
            for rule in group["rules"]:
                if "for" in rule:
                    real = parse_duration(rule["for"])
                    assert real is not None
                    rule["for"] = f"{max(real.total_seconds() / HURRY, SHORTEST):.0f}s"
            groups.append(group)
    return json.dumps({"groups": groups})


def prometheus_config(target: str, manager: int) -> str:
    found = yaml.safe_load((DEPLOYED / "prometheus.yml").read_text("utf-8"))
    found["global"] |= {"scrape_interval": "2s", "evaluation_interval": "1s"}
    found["rule_files"] = ["rules.json"]
    found["alerting"]["alertmanagers"][0]["static_configs"] = [
        {"targets": [f"127.0.0.1:{manager}"]}
    ]
    (job,) = found["scrape_configs"]
    for name in ("scheme", "authorization", "tls_config"):
        del job[name]
    job["static_configs"] = [{"targets": [target]}]
    return json.dumps(found)


def manager_config(desk: str) -> str:
    """Waits are a second, and all receivers are the desk; who comes with whom, and who silences
    whom, is as deployed."""
    text = (DEPLOYED / "alertmanager.yml").read_text("utf-8")
    text = re.sub(r"(group_wait|group_interval): \w+", r"\1: 1s", text)
    return re.sub(r"url: \S+", f"url: {desk}", text)


def asked(url: str, body: str | None = None) -> Any:
    """What an address on loopback answers; None if it does not."""
    try:
        data = body.encode() if body is not None else None
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(url, data, headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.read()
    except OSError:
        return None


@asynccontextmanager
async def played(folder: Path) -> AsyncGenerator[tuple[Play, int]]:
    """A desk, and an Alertmanager that leads to it: its port."""
    program = lab.program("alertmanager")
    desk, app = Desk(), web.Application()
    app.router.add_post("/", desk.take)
    runner = web.AppRunner(app)
    await runner.setup()
    play = Play(desk, folder)
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        (folder / "alertmanager.yml").write_text(manager_config(address))
        (port,) = process.free_ports(1)
        play.start(
            "alertmanager",
            program,
            f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / 'manager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        )
        ready = f"http://127.0.0.1:{port}/-/ready"
        await play.until(lambda: asked(ready) is not None, "up")
        yield play, port
    finally:
        play.stop()
        await runner.cleanup()


async def world(play: Play) -> tuple[str, str, process.Running]:
    """A region of servers only, and its daemon: the addresses of both."""
    documents = play.folder / "wanted"
    documents.mkdir()
    every = yaml.safe_load_all((demo.EXAMPLE / "region.yaml").read_text("utf-8"))
    kept = [one for one in every if one["kind"] in {"Region", "ServerPool"}]
    (documents / "region.yaml").write_text(yaml.safe_dump_all(kept))
    python = Path(sys.executable)
    play.start(
        "world",
        python,
        *("-m", "fleetd.sim.serve", "--documents", str(documents), "--folder", str(play.folder)),
        *("--seed", "7", "--pace", str(PACE)),
    )
    told = await play.told("world", "documents")
    daemon = play.start(
        "daemon",
        python,
        *("-m", "fleetd", "serve", "--documents", told["documents"], "--log-format", "json"),
        *("--state", str(play.folder / "state"), "--listen", "127.0.0.1:0"),
        *("--pace", str(PACE), "--pace-with", told["time"], "--observe-deadline", "10m"),
        *("--network-proxy", told["address"], "--network-direct", "127.0.0.1"),
    )
    return (await play.told("daemon", "address"))["address"], told["address"], daemon


def watch(play: Play, program: Path, target: str, manager: int) -> None:
    (port,) = process.free_ports(1)
    (play.folder / "rules.json").write_text(hurried())
    config = play.folder / "prometheus.yml"
    config.write_text(prometheus_config(target.partition("//")[2], manager))
    play.start(
        "prometheus",
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={play.folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        # What it says in its first seconds is lost: it does not know Alertmanager yet.
        "--rules.alert.resend-delay=2s",
    )


Told = dict[str, dict[tuple[str, str], dict[str, Any]]]
INCIDENT, DOWN = ("FleetdIncident", "warning"), ("FleetdDown", "critical")


def test_the_right_alert_arrives_and_goes(tmp_path: Path) -> None:
    """Servers come up and nobody is told but the dead man's switch. A BMC dies: one alert, with its
    words and its runbook, and none beside it; it is resolved when the BMC answers again. When
    fleetd dies, that is told, and nothing else."""
    told = asyncio.run(story(tmp_path))
    watchdog = (alerts.WATCHDOG, "none")
    incident, down = (told[when]["tickets"] | told[when]["people"] for when in ("broken", "dead"))

    assert {when: [*map(sorted, one.values())] for when, one in told.items()} == {
        "up": [[watchdog], [], []],
        "broken": [[watchdog], [], [INCIDENT]],
        "mended": [[watchdog], [], []],
        "dead": [[watchdog], [DOWN], []],
    }
    assert incident[INCIDENT]["labels"] == {
        "alertname": "FleetdIncident",
        "severity": "warning",
        "region": "eu-1",
    }
    assert incident[INCIDENT]["annotations"]["summary"] == "Something has failed in eu-1"
    assert [
        incident[INCIDENT]["annotations"]["runbook_url"],
        down[DOWN]["annotations"]["runbook_url"],
    ] == [f"{RUNBOOKS}/FleetdIncident.md", f"{RUNBOOKS}/FleetdDown.md"]


async def story(folder: Path) -> dict[str, Told]:
    """What each receiver knows of, at four moments."""
    prometheus = lab.program("prometheus")
    found: dict[str, Told] = {}
    async with played(folder) as (play, manager):
        desk = play.desk
        url, faults, daemon = await world(play)
        watch(play, prometheus, url, manager)

        def ready() -> bool:
            seen = asked(f"{url}/api/v1/topology/eu-1")
            nodes = json.loads(seen)["nodes"] if seen else [{"ready": {"status": ""}}]
            return all(node["ready"]["status"] == "True" for node in nodes)

        def note(when: str) -> None:
            found[when] = {to: desk.fires(to) for to in ("dead-man", "people", "tickets")}

        await play.until(ready, "Ready")
        await play.until(lambda: bool(desk.fires("dead-man")), "watched")
        note("up")
        await asyncio.to_thread(asked, f"{faults}/faults", "bmc r1-s01 unreachable")
        await play.until(lambda: INCIDENT in desk.fires("tickets"), "told of the BMC")
        await asyncio.sleep(QUIET)
        note("broken")
        await asyncio.to_thread(asked, f"{faults}/faults", "mend")
        await play.until(lambda: not desk.fires("tickets"), "resolved")
        note("mended")
        daemon.stop()
        await play.until(lambda: DOWN in desk.fires("people"), "told that it is down")
        await asyncio.sleep(QUIET)
        note("dead")
    return found


def alert(name: str, severity: str, **labels: str) -> dict[str, Any]:
    return {"labels": {"alertname": name, "severity": severity, **labels}}


@pytest.mark.parametrize(
    ("sent", "people", "tickets"),
    [
        (
            [
                alert("FleetdIncident", "critical", region="eu-1"),
                alert("FleetdNeedsPerson", "warning", region="eu-1"),
                alert("FleetdNeedsPerson", "warning", region="eu-2"),
                alert("FleetdBackendBreakerOpen", "warning", backend="garden:eu-1"),
            ],
            {"FleetdIncident eu-1"},
            {"FleetdNeedsPerson eu-2", "FleetdBackendBreakerOpen "},
        ),
        (
            [
                alert("FleetdDown", "critical"),
                alert("FleetdIncident", "critical", region="eu-1"),
                alert("FleetdConvergenceBudgetBurn", "warning", region="eu-2"),
                alert("SomebodyElses", "warning"),
            ],
            {"FleetdDown "},
            {"SomebodyElses "},
        ),
        (
            [
                alert("FleetdDown", "critical", instance="a"),
                alert("FleetdNotReady", "warning", instance="a"),
                alert("FleetdNotReady", "warning", instance="b"),
                alert("FleetdIncident", "critical", region="eu-1"),
            ],
            {"FleetdDown ", "FleetdIncident eu-1"},
            {"FleetdNotReady "},
        ),
        (
            [
                alert("FleetdApiBudgetBurn", "critical", instance="a"),
                alert("FleetdApiBudgetBurn", "warning", instance="a"),
                alert("FleetdStoreSlow", "warning", instance="a"),
            ],
            {"FleetdApiBudgetBurn "},
            {"FleetdStoreSlow "},
        ),
    ],
    ids=["a region in need", "no fleetd is there", "one fleetd is down", "both levels"],
)
def test_who_is_told_what(
    tmp_path: Path, sent: list[dict[str, Any]], people: set[str], tickets: set[str]
) -> None:
    """A critical alert silences the warnings of its region and of its own kind, a dead fleetd all
    of its own; what belongs to others is left alone."""

    async def scene() -> dict[str, set[str]]:
        async with played(tmp_path) as (play, manager):
            url = f"http://127.0.0.1:{manager}/api/v2/alerts"
            await asyncio.to_thread(asked, url, json.dumps(sent))
            await play.until(lambda: bool(play.desk.told), "told")
            await asyncio.sleep(3)
            found: dict[str, set[str]] = {"people": set(), "tickets": set()}
            for (to, _), one in play.desk.told.items():
                labels = one["labels"]
                found[to].add(f"{labels['alertname']} {labels.get('region', '')}")
            return found

    assert asyncio.run(scene()) == {"people": people, "tickets": tickets}
