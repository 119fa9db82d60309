"""
Every metric of fleetd, declared once: name, type, help, labels.

Values are read from the `Panel` when somebody scrapes; nothing is counted here. Label values come
from enums, kinds, drivers and regions; only backends, of which there is one per cluster and
region, are named one by one. Every series exists from the start with zero, so that a rate exists
before the first failure. `python -m fleetd.surface.metrics --write` makes `docs/metrics.md`.
"""

import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, ProcessCollector, exposition, registry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

import fleetd
from fleetd import secrets
from fleetd.surface import generated, ledger, panel
from fleetd.surface.panel import Histogram, Panel
from fleetd.vocabulary import HoldReason, Truth

CONTENT_TYPE = exposition.CONTENT_TYPE_PLAIN_0_0_4


class Declared(NamedTuple):
    name: str
    type: str
    help: str
    labels: tuple[str, ...] = ()


STATES = {Truth.TRUE: "ready", Truth.FALSE: "not_ready", Truth.UNKNOWN: "unknown"}
OUTCOMES = ("done", "waiting", "failed", "lost")

BUILD_INFO = Declared(
    "fleetd_build_info", "gauge", "Version of this fleetd; always 1.", ("version",)
)
READY = Declared("fleetd_ready", "gauge", "Whether /readyz says yes (1) or no (0).")
RESOURCE_READY = Declared(
    "fleetd_resource_ready",
    "gauge",
    "Resources whose Ready condition is True.",
    ("kind", "region"),
)
RESOURCES = Declared(
    "fleetd_resources",
    "gauge",
    "Resources that should exist, by state: ready, not_ready or unknown.",
    ("kind", "region", "state"),
)
PLANNED = Declared(
    "fleetd_planned_steps", "gauge", "Steps in the current plan of the region.", ("region",)
)
HOLDS = Declared(
    "fleetd_holds",
    "gauge",
    "Resources the current plan holds back, by reason.",
    ("region", "reason"),
)
WAITS = Declared(
    "fleetd_waits",
    "gauge",
    "Resources where the far side is at work and there is nothing to do but look again.",
    ("region",),
)
STEPS = Declared(
    "fleetd_steps_total",
    "counter",
    "Steps carried out, by driver and outcome; counted after the outcome is on disk.",
    ("driver", "outcome"),
)
APPLY = Declared(
    "fleetd_apply_duration_seconds",
    "histogram",
    "Time one step took at the far side, by kind of backend.",
    ("backend_kind",),
)
OBSERVE = Declared(
    "fleetd_observe_duration_seconds",
    "histogram",
    "Time one look took, by kind of backend.",
    ("backend_kind",),
)
PLAN = Declared("fleetd_plan_duration_seconds", "histogram", "Time one plan of one region took.")
REFUSED = Declared("fleetd_plans_refused_total", "counter", "Plans that did not pass the lint.")
ABANDONED = Declared(
    "fleetd_calls_abandoned",
    "gauge",
    "Calls of drivers that were given up after their deadline and have not ended.",
)
QUEUE = Declared(
    "fleetd_queue_depth",
    "gauge",
    "Resources in the work queue: ready for a worker, delayed, or working.",
    ("state",),
)
BREAKER = Declared(
    "fleetd_backend_breaker_open",
    "gauge",
    "Whether a backend is left alone because it did not answer (1) or not (0).",
    ("backend",),
)
IN_FLIGHT = Declared(
    "fleetd_backend_calls_in_flight", "gauge", "Calls to a backend under way.", ("backend",)
)
WAITED = Declared(
    "fleetd_backend_wait_seconds_total",
    "counter",
    "Time that calls to a backend have waited for its rate and concurrency limits.",
    ("backend",),
)
EXPIRY = Declared(
    "fleetd_credential_expiry_timestamp_seconds",
    "gauge",
    "When the first of the credentials of this name in the region ends, in seconds since 1970.",
    ("region", "credential"),
)
COMMITS = Declared("fleetd_store_commits_total", "counter", "Durable writes of the store.")
LAG = Declared(
    "fleetd_event_loop_lag_seconds", "gauge", "How late the event loop last woke up a timer."
)

ALL = (
    BUILD_INFO,
    READY,
    RESOURCE_READY,
    RESOURCES,
    PLANNED,
    HOLDS,
    WAITS,
    STEPS,
    APPLY,
    OBSERVE,
    PLAN,
    REFUSED,
    ABANDONED,
    QUEUE,
    BREAKER,
    IN_FLIGHT,
    WAITED,
    EXPIRY,
    COMMITS,
    LAG,
)


class Metrics:
    """What `/metrics` answers for one panel."""

    def __init__(self, source: Panel) -> None:
        self._panel = source
        self._registry = CollectorRegistry()
        self._registry.register(_Collector(source))
        ProcessCollector(registry=self._registry)

    def render(self) -> bytes:
        return exposition.generate_latest(self._registry)


class _Collector(registry.Collector):
    def __init__(self, source: Panel) -> None:
        self._panel = source

    def describe(self) -> Iterable[Metric]:
        return ()  # otherwise a registration would already walk the panel

    def collect(self) -> Iterator[Metric]:
        source = self._panel
        yield _gauge(BUILD_INFO, [((fleetd.__version__,), 1)])
        yield _gauge(READY, [((), 0 if source.unready() else 1)])
        yield from _resources(source.tally())
        yield from _plans(source.tally(), tuple(source.topology().regions))
        yield from _work(source)
        queue = source.queue()
        depths = (("ready", queue.ready), ("delayed", queue.delayed), ("working", queue.working))
        yield _gauge(QUEUE, [((state,), depth) for state, depth in depths])
        backends = source.backends()
        yield _gauge(BREAKER, [((one.name,), int(one.breaker != "closed")) for one in backends])
        yield _gauge(IN_FLIGHT, [((one.name,), one.in_flight) for one in backends])
        yield _counter(WAITED, [((one.name,), one.waited_seconds) for one in backends])
        ends = ledger.endings(source.topology(), source.component, source.seen)
        yield _gauge(EXPIRY, [((one.region, one.name), one.ends.timestamp()) for one in ends])


def _resources(tally: panel.Tally) -> Iterator[Metric]:
    places = sorted({(slot.kind, slot.region) for slot in tally.resources})
    counted = tally.resources
    yield _gauge(
        RESOURCE_READY,
        [
            ((kind, region), counted.get(panel.Slot(kind, region, Truth.TRUE), 0))
            for kind, region in places
        ],
    )
    yield _gauge(
        RESOURCES,
        [
            ((kind, region, STATES[truth]), counted.get(panel.Slot(kind, region, truth), 0))
            for (kind, region), truth in itertools.product(places, Truth)
        ],
    )


def _plans(tally: panel.Tally, regions: tuple[str, ...]) -> Iterator[Metric]:
    known = sorted(
        {*regions, *tally.planned, *tally.waiting, *(held.region for held in tally.held)}
    )
    yield _gauge(PLANNED, [((region,), tally.planned.get(region, 0)) for region in known])
    yield _gauge(
        HOLDS,
        [
            ((region, reason.value), tally.held.get(panel.Held(region, reason), 0))
            for region, reason in itertools.product(known, HoldReason)
        ],
    )
    yield _gauge(WAITS, [((region,), tally.waiting.get(region, 0)) for region in known])


def _work(source: Panel) -> Iterator[Metric]:
    work = source.work()
    outcomes = {(driver, ending.lower()): n for (driver, ending), n in work.outcomes.items()}
    drivers = sorted({*source.drivers(), *(driver for driver, _ in outcomes)})
    yield _counter(
        STEPS,
        [
            ((driver, outcome), outcomes.get((driver, outcome), 0))
            for driver, outcome in itertools.product(drivers, OUTCOMES)
        ],
    )
    empty = Histogram(work.plans.bounds, [0] * len(work.plans.counts), 0.0)
    kinds = {backend.kind for backend in source.backends()}
    for declared, found in ((APPLY, work.steps), (OBSERVE, work.looks)):
        yield _histogram(
            declared, [((kind,), found.get(kind, empty)) for kind in sorted(kinds | set(found))]
        )
    yield _histogram(PLAN, [((), work.plans)])
    yield _counter(REFUSED, [((), work.plans_refused)])
    yield _gauge(ABANDONED, [((), work.abandoned)])
    yield _counter(COMMITS, [((), work.commits)])
    yield _gauge(LAG, [((), work.lag_seconds)])


def _clean(labels: tuple[str, ...]) -> tuple[str, ...]:
    """Before the values are escaped, so that the scrubbing sees them as they are."""
    return tuple(secrets.scrub(label) for label in labels) if secrets.REGISTRY else labels


Samples = list[tuple[tuple[str, ...], float]]


def _gauge(declared: Declared, samples: Samples) -> Metric:
    family = GaugeMetricFamily(declared.name, declared.help, labels=declared.labels)
    for labels, value in samples:
        family.add_metric(_clean(labels), value)
    return family


def _counter(declared: Declared, samples: Samples) -> Metric:
    family = CounterMetricFamily(declared.name, declared.help, labels=declared.labels)
    for labels, value in samples:
        family.add_metric(_clean(labels), value)
    return family


def _histogram(declared: Declared, samples: list[tuple[tuple[str, ...], Histogram]]) -> Metric:
    family = HistogramMetricFamily(declared.name, declared.help, labels=declared.labels)
    for labels, one in samples:
        bounds = [*(f"{bound:g}" for bound in one.bounds), "+Inf"]
        buckets = list(zip(bounds, itertools.accumulate(one.counts), strict=True))
        family.add_metric(_clean(labels), buckets=buckets, sum_value=one.total)
    return family


def page() -> str:
    """`docs/metrics.md`."""
    rows = [
        f"| `{one.name}` | {one.type} | {', '.join(f'`{label}`' for label in one.labels) or '-'} |"
        f" {one.help} |"
        for one in ALL
    ]
    return (
        "# Metrics\n\n"
        "Served at `/metrics`. Made by `python -m fleetd.surface.metrics --write`; do not edit.\n\n"
        f"- `state` of a resource is one of {_words(STATES.values())};"
        f" `outcome` one of {_words(OUTCOMES)}.\n"
        f"- `reason` of a hold is one of {_words(reason.value for reason in HoldReason)}.\n"
        "- `backend` is a far side such as `garden:eu-1` or `cluster:hv`; `backend_kind` is"
        " what stands before the colon.\n"
        "- The standard `process_...` metrics are served as well.\n\n"
        "| name | type | labels | meaning |\n"
        "|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def main(argv: list[str]) -> int:
    return generated.main(argv, module="fleetd.surface.metrics", name="metrics.md", page=page)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
