"""The exposition keeps the Prometheus conventions, starts at zero and costs no walk."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fleetd.surface import metrics
from fleetd.surface.metrics import Metrics
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


def test_histograms_add_up() -> None:
    """Buckets are cumulative, the last is everything, and the sum is the sum."""
    panel = panels.small()
    found = {
        bound: value(
            panel, "fleetd_observe_duration_seconds_bucket", backend_kind="garden", le=bound
        )
        for bound in ("0.1", "1", "10", "+Inf")
    }
    assert found == {"0.1": 3, "1": 5, "10": 6, "+Inf": 6}
    assert value(panel, "fleetd_observe_duration_seconds_sum", backend_kind="garden") == 4.5
    assert value(panel, "fleetd_observe_duration_seconds_count", backend_kind="garden") == 6
    assert value(panel, "fleetd_plan_duration_seconds_count") == 10


def test_series_start_at_zero() -> None:
    """Every reason, outcome and state is there before it first happens."""
    panel = panels.small()
    for reason in HoldReason:
        assert value(panel, "fleetd_holds", region="eu-1", reason=reason.value) in {0, 1}
    for outcome in metrics.OUTCOMES:
        assert value(panel, "fleetd_steps_total", driver="gardener", outcome=outcome) in {0, 2}
    assert value(panel, "fleetd_apply_duration_seconds_count", backend_kind="cluster") == 0


def test_an_empty_daemon_answers() -> None:
    """Before the first document there are metrics already."""
    assert value(FakePanel(), "fleetd_plan_duration_seconds_count") == 0


@pytest.mark.parametrize("declared", metrics.ALL, ids=lambda one: one.name)
def test_names_follow_the_conventions(declared: metrics.Declared) -> None:
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
    assert typed == {(one.name, one.type) for one in metrics.ALL}


def test_labels_are_the_declared_ones() -> None:
    """No sample has a label that its declaration does not name."""
    by_name = {one.name: set(one.labels) for one in metrics.ALL}
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
    counts = metrics.panel.Counts()
    counts.move("cluster", "eu-1", None, Truth.UNKNOWN)
    counts.move("cluster", "eu-1", Truth.UNKNOWN, Truth.TRUE)
    assert counts.slots[metrics.panel.Slot("cluster", "eu-1", Truth.TRUE)] == 1
    counts.move("cluster", "eu-1", Truth.TRUE, None)
    assert sum(counts.slots.values()) == 0


def test_the_page_is_current() -> None:
    """docs/metrics.md says what the code declares."""
    page = Path(metrics.__file__).parents[2] / "docs" / "metrics.md"
    assert page.read_text("utf-8") == metrics.page()
    assert metrics.main(["--check"]) == 0
