"""
Every query of every dashboard, on a real Prometheus: fed by a daemon on a simulated region, where
things go wrong, and by what a fleet of a thousand clusters would serve.
"""

import re
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dashboards.source import fleet
from fleetd.sim import demo
from tests.dashboards import boards, thousand
from tests.dashboards.boards import BOARDS, FALLBACK, Asked
from tests.real import prometheus
from tests.real.prometheus import Prometheus
from topology import read

pytestmark = pytest.mark.real

PATIENCE = 300.0
SEED, PACE = 7, 120.0
TROUBLE = ("cluster mgmt failing for 15s", "cluster cp failing for 15s")
"""Again and again on the way up: what was just seen to be well fails when it is worked on."""
ENOUGH = 'sum(fleetd_steps_total{outcome="failed"}) > 2'
LINES = 50
"""More of them in one graph is wallpaper."""
NOT_HERE = {
    "fleetd-credentials, Ended, A": "credentials are renewed long before",
    "fleetd-credentials, End within an hour, A": "credentials are renewed long before",
}
"""What nothing is found for in the simulated region, and why; the crowd has some of it."""


@dataclass(frozen=True, slots=True)
class Watched:
    prometheus: Prometheus
    span: int
    at: float = 0.0
    """A moment at which all was there: on a busy machine a round of questions is lost now and then,
    and what was not seen for so long is not there."""

    def filled(self, expr: str, chosen: Mapping[str, str]) -> str:
        """As Grafana asks: with what is chosen in the place of variables."""
        given = {**chosen, "__rate_interval": "10s", "__range": f"{self.span}s"}
        return re.sub(r"\$\{?(\w+)\}?", lambda found: given[found[1]], expr)

    def choice(self, board: dict[str, Any]) -> dict[str, str]:
        """The first value of each variable, one after the other."""
        chosen: dict[str, str] = {}
        for name, (series, label) in boards.choices(board).items():
            found = self.prometheus.values(self.filled(series, chosen), label)
            assert found, f"{board['uid']}: nothing to choose for {name}"
            chosen[name] = found[0]
        return chosen


def everything(board: dict[str, Any], one: Mapping[str, str]) -> dict[str, str]:
    """All where all can be chosen; else one."""
    return {
        model["name"]: model.get("allValue", one[model["name"]])
        for model in board["templating"]["list"]
        if model["name"] in one
    }


def until(there: Callable[[], object], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < end, f"{what}: not after {PATIENCE:.0f} s"
        time.sleep(0.5)


@pytest.fixture(scope="module")
def region(tmp_path_factory: pytest.TempPathFactory) -> Generator[Watched]:
    """A region on a simulated world that came up with trouble, and in which three things are
    broken now."""
    folder = tmp_path_factory.mktemp("region")
    shown = demo.Demo(folder, demo.EXAMPLE, SEED, PACE)
    try:
        world = shown._start_world()
        url = shown._start_daemon(world)
        scrape = {"job_name": "fleetd", "static_configs": [{"targets": [url.split("/")[2]]}]}
        with prometheus.running(folder / "prometheus", [scrape]) as asked:

            def failed() -> object:
                for line in TROUBLE:
                    _tell(world["address"], line)
                return asked.now(ENOUGH)

            until(lambda: asked.now("sum(fleetd_steps_total) > 60"), "steps")
            until(failed, "steps that failed")
            shown._watch(url, time.monotonic(), until=demo._all_ready)
            topology = read.read([demo.EXAMPLE]).topology
            assert topology is not None
            for line in demo.faults(topology, min(topology.regions)):
                _tell(world["address"], line)
            until(lambda: asked.now("sum(fleetd_incidents) > 1"), "incidents")
            until(lambda: asked.now("sum(fleetd_cluster_ready == 0)"), "a cluster that is down")
            yield Watched(asked, int(time.time() - asked.began) + 1)
    finally:
        shown.end()


def _tell(world: str, line: str) -> None:
    request = urllib.request.Request(f"{world}/faults", data=line.encode())
    demo._direct.open(request, timeout=20).close()


@pytest.mark.parametrize("uid", BOARDS)
def test_every_query_finds_something(uid: str, region: Watched) -> None:
    """For all that can be chosen and for one of it; a 0 that only stands for nothing does not
    count. And what a link names is a label of what is found."""
    board = BOARDS[uid]
    one = region.choice(board)
    empty: list[str] = []
    for asked in (asked for asked in boards.asked() if asked.place.startswith(f"{uid},")):
        for chosen in (everything(board, one), one):
            expr = region.filled(asked.expr, chosen)
            found = region.prometheus.since_start(expr.removesuffix(FALLBACK))
            if not found and asked.place not in NOT_HERE:
                empty.append(f"{asked.place}: {expr}")
            assert region.prometheus.since_start(expr) or FALLBACK not in expr, asked.place
            for series in found:
                assert linked(asked) <= {*series["metric"]}, asked.place

    assert empty == []


def linked(asked: Asked) -> set[str]:
    """Labels that links from a row or a line of the panel name."""
    text = str(asked.panel["fieldConfig"])
    return {*re.findall(r"\$\{__(?:data\.fields|field\.labels)\.(\w+)", text)}


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Generator[Watched]:
    folder: Path = tmp_path_factory.mktemp("crowd")
    with (
        thousand.served() as scrapes,
        prometheus.running(folder / "prometheus", scrapes, every=3) as asked,
    ):
        often = "min(count_over_time(fleetd_ready[1m])) > 4"
        lately = "min(count_over_time(fleetd_ready[10s])) > 2"
        at = 0.0

        def steady() -> object:
            nonlocal at
            at = time.time()
            up = f"count(up == 1) == {thousand.FLEETDS}"
            return asked.now(f"{up} and {often} and {lately}", at)

        until(steady, "all scraped often")
        yield Watched(asked, int(at - asked.began) + 1, at)


@pytest.mark.parametrize("uid", BOARDS)
def test_a_thousand_clusters_are_not_a_thousand_lines(uid: str, crowd: Watched) -> None:
    """A graph has at most fifty lines, a table a hundred rows; here nothing is empty at all."""
    board = BOARDS[uid]
    chosen = everything(board, crowd.choice(board))
    many: list[str] = []
    empty: list[str] = []
    for panel in boards.panels(board):
        asks = [crowd.filled(target["expr"], chosen) for target in panel["targets"]]
        if panel["type"] == "table":
            most, found = fleet.ROWS, [crowd.prometheus.now(ask, crowd.at) for ask in asks]
            rows = {str(sorted(_row(one["metric"]).items())) for each in found for one in each}
            count = len(rows)
        else:
            most = LINES
            found = [crowd.prometheus.since_start(ask.removesuffix(FALLBACK)) for ask in asks]
            count = sum(map(len, found))
        place = f"{panel['title']}: {count}"
        many += [place] if count > most else []
        empty += [place] if not all(found) else []

    assert (many, empty) == ([], [])


def _row(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name != "__name__"}


def test_the_crowd_is_a_thousand(crowd: Watched) -> None:
    """Otherwise the test above would be about nothing."""
    (clusters,) = crowd.prometheus.now("count(fleetd_cluster_ready)", crowd.at)
    (regions,) = crowd.prometheus.now("count(fleetd_planned_steps)", crowd.at)

    assert (clusters["value"][1], regions["value"][1]) == ("1000", "100")


def test_a_query_that_is_wrong_is_refused(crowd: Watched) -> None:
    """Prometheus says so, and the test would fail."""
    with pytest.raises(prometheus.Refused, match="parse error"):
        crowd.prometheus.now("sum by (region (fleetd_waits)")
