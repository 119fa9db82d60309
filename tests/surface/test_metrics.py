"""The exposition keeps the Prometheus conventions, starts at zero and costs no walk."""

import asyncio
import gzip
import re
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.core import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from fleetd import secrets
from fleetd.surface import exposition, families, ledger
from fleetd.surface.metrics import Metrics
from fleetd.surface.panel import BackendState, Counts, Figures, Slot
from fleetd.vocabulary import HoldReason, Observation, Truth
from tests.surface import panels
from tests.surface.panels import FakePanel
from topology import catalogue_load
from topology.resource import Topology


def samples(panel: FakePanel) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    text = Metrics(panel).render().decode()
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def value(panel: FakePanel, name: str, **labels: str) -> float:
    return samples(panel)[name, tuple(sorted(labels.items()))]


def test_what_is_counted() -> None:
    """Resources, holds, outcomes, backends and times come from the panel."""
    panel = panels.small()
    place = {"kind": "cluster", "region": "eu-1"}
    assert value(panel, "fleetd_resource_ready", kind="serverpool", region="eu-1") == 1
    assert value(panel, "fleetd_resource_ready", **place) == 0
    assert value(panel, "fleetd_resources", **place, state="not_ready") == 1
    assert value(panel, "fleetd_resources", **place, state="ready") == 0
    assert value(panel, "fleetd_holds", region="eu-1", reason="DependencyNotReady") == 1
    assert value(panel, "fleetd_steps_total", driver="gardener", outcome="done") == 2
    assert value(panel, "fleetd_backend_breaker_open", backend="cluster:hv") == 1
    assert value(panel, "fleetd_backend_breaker_open", backend="garden:eu-1") == 0
    assert value(panel, "fleetd_store_commits_total") == 5
    assert value(panel, "fleetd_ready") == 1
    assert value(panel, "fleetd_queue_depth", state="delayed") == 2


GARDEN = {"driver": "gardener", "backend_kind": "garden"}


def test_histograms_add_up() -> None:
    """Buckets are cumulative, the last is everything, and the sum is the sum."""
    panel = panels.small()
    found = {
        bound: value(panel, "fleetd_observe_duration_seconds_bucket", le=bound, **GARDEN)
        for bound in ("0.1", "1.0", "10.0", "+Inf")
    }
    assert found == {"0.1": 3, "1.0": 5, "10.0": 6, "+Inf": 6}
    assert value(panel, "fleetd_observe_duration_seconds_sum", **GARDEN) == 4.5
    assert value(panel, "fleetd_observe_duration_seconds_count", **GARDEN) == 6
    assert value(panel, "fleetd_plan_duration_seconds_count") == 10


def test_series_start_at_zero() -> None:
    """Every reason, outcome and state is there before it first happens."""
    panel = panels.small()
    for reason in HoldReason:
        assert value(panel, "fleetd_holds", region="eu-1", reason=reason.value) in {0, 1}
    for outcome in families.OUTCOMES:
        assert value(panel, "fleetd_steps_total", driver="gardener", outcome=outcome) in {0, 2}


def test_an_empty_daemon_answers() -> None:
    """Before the first document there are metrics already."""
    assert value(FakePanel(), "fleetd_plan_duration_seconds_count") == 0


@pytest.mark.parametrize("declared", families.ALL, ids=lambda one: one.name)
def test_names_follow_the_conventions(declared: exposition.Declared) -> None:
    """Prefix, snake case, base units, `_total` on counters and only there, help with a stop."""
    name = declared.name
    assert re.fullmatch(r"fleetd(_[a-z0-9]+)+", name)
    assert name.endswith("_total") == (declared.type == "counter")
    assert not re.search(r"_(milliseconds|minutes|hours|percent|count|sum|bucket)\b", name)
    assert declared.type != "histogram" or name.endswith("_seconds")
    assert declared.help.endswith(".")
    assert "\n" not in declared.help
    assert not {"name", "server", "node", "id", "le", "job", "instance"} & set(declared.labels)


def test_the_text_is_well_formed() -> None:
    """Each family has HELP and TYPE once, its samples stand together, and no series is doubled."""
    lines = Metrics(panels.small()).render().decode().splitlines()
    helped = [line.split()[2] for line in lines if line.startswith("# HELP")]
    typed = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    series = [line.rsplit(" ", 1)[0] for line in lines if not line.startswith("#")]
    assert helped == typed
    assert len(set(helped)) == len(helped)
    assert len(set(series)) == len(series)
    families = [re.sub(r"_(bucket|sum|count)$", "", one.partition("{")[0]) for one in series]
    order = [name for place, name in enumerate(families) if families[place - 1 : place] != [name]]
    assert len(order) == len(set(order))


def test_exactly_the_declared_metrics_are_served() -> None:
    """What is declared is served, and nothing of ours beside it."""
    lines = Metrics(panels.small()).render().decode().splitlines()
    typed = {tuple(line.split()[2:]) for line in lines if line.startswith("# TYPE fleetd_")}
    assert typed == {(one.name, one.type) for one in families.ALL}


def test_labels_are_the_declared_ones() -> None:
    """No sample has a label that its declaration does not name."""
    by_name = {one.name: set(one.labels) for one in families.ALL}
    for name, labels in samples(panels.small()):
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        if family in by_name:
            assert {label for label, _ in labels} - {"le"} == by_name[family]


def test_the_credential_that_ends_first_is_told() -> None:
    """One series for each region and name, however many clusters have one."""
    panel = FakePanel(catalogue=catalogue_load.load(())[0])
    ways = [panels.resource("access", name) for name in ("hv", "cp")]
    panel.want = panels.topology(*ways)
    for hours, one in zip((20, 9), ways, strict=True):
        until = (panels.NOW + timedelta(hours=hours)).isoformat()
        told = {"credentials": {"kubeconfig": {"version": until, "expires": until}}}
        panel.looked[one.ref] = Observation(ref=one.ref, at=panels.NOW, facts={"observed": told})
    name = "fleetd_credential_expiry_timestamp_seconds"
    first = value(panel, name, region="eu-1", credential="kubeconfig")
    assert first == (panels.NOW + timedelta(hours=9)).timestamp()


async def test_the_ledger_is_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a thousand clusters that takes longer than the loop has; once in a while is enough."""
    panel = panels.small()
    read: list[int] = []
    whole = ledger.dates

    def dates(*given: Any, **more: Any) -> ledger.Dates:
        read.append(threading.get_ident())
        return whole(*given, **more)

    def now(_: FakePanel) -> datetime:
        asyncio.get_running_loop()  # some clocks are the loop's, and know no time elsewhere
        return panels.NOW

    monkeypatch.setattr(ledger, "dates", dates)
    monkeypatch.setattr(FakePanel, "now", now)
    metrics = Metrics(panel)
    bodies = [b"".join((await metrics.answer("", "")).pieces) for _ in range(2)]

    assert len(read) == 1
    assert read[0] != threading.get_ident()
    for body in bodies:
        assert b"fleetd_credentials{" in body


def test_credentials_are_counted_by_state() -> None:
    """Those of the catalogue and those of the documents; every state is there from the start."""
    panel = FakePanel(catalogue=catalogue_load.load(())[0])
    flow = replace(
        panels.resource("credentialflow", "exporter"),
        spec={"path": "billing/exporter", "source": {"generate": {}}, "targets": []},
    )
    panel.want = panels.topology(panels.resource("access", "hv"), flow)
    name = "fleetd_credentials"
    ends = (panels.NOW - timedelta(hours=1)).isoformat()
    told = {"credentials": {"exporter": {"version": 2, "expires": ends}}}
    panel.looked[flow.ref] = Observation(ref=flow.ref, at=panels.NOW, facts={"observed": told})
    found = {
        state: value(panel, name, region="eu-1", state=state)
        for state in ("Expired", "NotSeen", "Good")
    }

    makes = len(panel.catalogue["access"].spec.makes)
    assert found == {"Expired": 1, "NotSeen": makes, "Good": 0}
    assert makes > 0
    ending = "fleetd_credential_expiry_timestamp_seconds"
    assert (
        value(panel, ending, region="eu-1", credential="exporter")
        == (panels.NOW - timedelta(hours=1)).timestamp()
    )


def test_a_region_tells_since_when_it_is_asked_for_something_new() -> None:
    """And zero if everything is reached."""
    panel = panels.small()
    name = "fleetd_region_change_timestamp_seconds"
    before = value(panel, name, region="eu-1")
    panel.changing = {"eu-1": panels.NOW}

    assert before == 0
    assert value(panel, name, region="eu-1") == panels.NOW.timestamp()


class Unwalked(dict[object, object]):
    """Resources that nobody may walk."""

    def __iter__(self) -> "object":  # pyright: ignore[reportIncompatibleMethodOverride]
        raise AssertionError("a scrape walked the fleet")

    items = values = keys = __iter__  # pyright: ignore[reportAssignmentType]


def test_a_scrape_does_not_walk_the_fleet() -> None:
    """Rendering reads the tally and never the resources."""
    panel = panels.small()
    tally = panel.tally()
    panel.want = Topology(digest="x", resources=Unwalked(), edges=())  # pyright: ignore[reportArgumentType]
    vars(panel.want)["regions"] = {"eu-1": ()}
    vars(panel.want)["kinds"] = {"server": ()}
    panel.tally = lambda: tally
    assert value(panel, "fleetd_resource_ready", kind="serverpool", region="eu-1") == 1


def test_counts_move() -> None:
    """The counter follows a resource from nothing to Ready to gone."""
    counts = Counts()
    counts.move("cluster", "eu-1", None, Truth.UNKNOWN)
    counts.move("cluster", "eu-1", Truth.UNKNOWN, Truth.TRUE)
    assert counts.slots[Slot("cluster", "eu-1", Truth.TRUE)] == 1
    counts.move("cluster", "eu-1", Truth.TRUE, None)
    assert sum(counts.slots.values()) == 0


def test_the_page_is_current() -> None:
    """docs/metrics.md says what the code declares."""
    page = Path(families.__file__).parents[2] / "docs" / "metrics.md"
    assert page.read_text("utf-8") == families.page()
    assert families.main(["--check"]) == 0


def told(panel: FakePanel) -> Metrics:
    """With a scrape behind it."""
    found = Metrics(panel)
    found.render()
    return found


class Marked(FakePanel):
    """Says by itself which regions have changed."""

    mark: int = 1

    def marks(self) -> dict[str, int]:
        return dict.fromkeys(self.want.regions, self.mark)


def test_what_did_not_change_is_not_read_again() -> None:
    """A region's figures are asked for when its mark moves, and only then."""
    panel = Marked(want=panels.small().want)
    asked: list[str] = []
    figures = panel.figures
    panel.figures = lambda region: asked.append(region) or figures(region)
    found = told(panel)
    before = found.render()
    panel.judged[panels.CLUSTER] = panels.ready(Truth.TRUE)
    unmoved = found.render()
    panel.mark = 2
    moved = found.render()

    line = b'fleetd_cluster_ready{region="eu-1",cluster="hv"} '
    assert asked == ["eu-1", "eu-1"]
    assert [line + b"0.0" in one for one in (before, unmoved, moved)] == [True, True, False]
    assert line + b"1.0" in moved


def test_series_go_with_their_objects() -> None:
    """A region that no document names, and a backend that is not asked any more."""
    panel = panels.small()
    found = told(panel)
    panel.want, panel.plans, panel.far_sides = Topology(digest="", resources={}, edges=()), {}, []
    after = found.render()

    assert b'region="eu-1"' not in after
    assert b'backend="cluster:hv"' not in after


def test_both_formats_say_the_same() -> None:
    """As the strict parser of OpenMetrics reads it, and that of the old format."""
    panel = panels.small()
    found = told(panel)
    found.requests.request("/api/v1/plan", "GET", 200, 0.3)
    text = found.render(openmetrics=True).decode()
    new: list[Metric] = [*openmetrics_parser.text_string_to_metric_families(text)]  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    old = list(text_string_to_metric_families(found.render().decode()))

    def ours(families_: list[Metric]) -> set[tuple[str, str, float]]:
        return {
            (one.name, str(sorted(one.labels.items())), one.value)
            for family in families_
            for one in family.samples
            if one.name.startswith("fleetd_")
        }

    assert ours(new) == ours(old)
    assert len(ours(new)) > 80


def test_the_format_and_the_packing_are_what_was_asked_for() -> None:
    """OpenMetrics and gzip only for who accepts them."""
    found = told(panels.small())
    plain = asyncio.run(found.answer("*/*", ""))
    packed = asyncio.run(found.answer("application/openmetrics-text;version=1.0.0", "gzip, br"))

    assert plain.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Type"].startswith("application/openmetrics-text")
    assert gzip.decompress(packed.pieces[0]).endswith(b"# EOF\n")
    assert b"# EOF" not in b"".join(plain.pieces)


def test_requests_are_counted_by_route_and_never_by_path() -> None:
    """With a fixed set of methods; times fall into the buckets of their route."""
    panel = panels.small()
    found = told(panel)
    for code, seconds in ((200, 0.01), (200, 0.2), (404, 99.0)):
        found.requests.request("/api/v1/plan", "GET", code, seconds)
    found.requests.request("unknown", "BREW", 405, 0.1)
    text = found.render().decode()

    assert 'fleetd_http_requests_total{route="/api/v1/plan",method="GET",code="200"} 2.0' in text
    assert 'fleetd_http_requests_total{route="unknown",method="other",code="405"} 1.0' in text
    assert 'duration_seconds_bucket{route="/api/v1/plan",le="0.02"} 1.0' in text
    assert 'fleetd_http_request_duration_seconds_count{route="/api/v1/plan"} 3.0' in text


def test_a_label_that_became_secret_is_hidden() -> None:
    """Also when the text was kept from before it was known to be one."""
    panel = panels.small()
    name = "cluster:kept-and-then-secret"
    panel.far_sides = [BackendState(name=name, breaker="open", in_flight=0, waited_seconds=0.0)]
    found = told(panel)
    before = found.render()
    secrets.Secret("kept-and-then-secret").reveal()
    after = found.render()

    assert b"kept-and-then-secret" in before
    assert b"kept-and-then-secret" not in after
    assert b"fleetd_backend_breaker_open" in after


def test_cardinality_follows_regions_and_their_objects_and_not_servers() -> None:
    """Ten times the servers, the same series; a cluster more is one series more."""

    def count(servers: int, clusters: int) -> int:
        panel = FakePanel()
        panel.want = panels.topology(
            *(panels.resource("server", f"s{number}") for number in range(servers)),
            *(panels.resource("cluster", f"c{number}") for number in range(clusters)),
        )
        lines = Metrics(panel).render().decode().splitlines()
        return sum(not line.startswith("#") for line in lines)

    assert count(500, 2) == count(50, 2)
    assert count(50, 3) == count(50, 2) + 1


class Noting(FakePanel):
    """Notes in which turn of the loop a region is read."""

    turn = 0
    read: list[int]

    def figures(self, region: str) -> Figures:
        self.read.append(self.turn)
        return super().figures(region)


async def test_many_regions_are_written_in_parts() -> None:
    """After a start all regions are new; others have their turn between them. A region that goes
    takes its series with it."""
    panel = Noting(**vars(panels.small()))
    panel.read = []
    panel.plans = {f"eu-{number}": panel.plans["eu-1"] for number in range(40)}

    async def others() -> None:
        while True:
            panel.turn += 1
            await asyncio.sleep(0)

    source = Metrics(panel)
    async with asyncio.TaskGroup() as group:
        meanwhile = group.create_task(others())
        answered = b"".join((await source.answer("", "")).pieces)
        meanwhile.cancel()
    assert len(set(panel.read[:40])) == 40
    assert b'region="eu-39"' in answered
    del panel.plans["eu-39"]
    assert b'region="eu-39"' not in b"".join((await source.answer("", "")).pieces)
