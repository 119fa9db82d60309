"""
Every metric of fleetd, declared once: name, type, help, labels. Data, and `docs/metrics.md` of it.

Label values come from enums, kinds, drivers, routes and regions; one by one only regions, clusters,
pools, credentials and backends are named. `python -m fleetd.surface.families --write` makes the
page.
"""

import sys
from collections.abc import Iterable

from fleetd.surface import generated, ledger
from fleetd.surface.exposition import Declared
from fleetd.vocabulary import HoldReason, Truth

STATES = {Truth.TRUE: "ready", Truth.FALSE: "not_ready", Truth.UNKNOWN: "unknown"}
OUTCOMES = ("done", "waiting", "failed", "lost")
RESULTS = ("seen", "blind")

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
    "Time one step took at the far side, however it ended, by driver and kind of backend.",
    ("driver", "backend_kind"),
)
OBSERVE = Declared(
    "fleetd_observe_duration_seconds",
    "histogram",
    "Time one look took, however it ended, by driver and kind of backend.",
    ("driver", "backend_kind"),
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
QUEUED = Declared(
    "fleetd_queue_wait_seconds",
    "histogram",
    "How long a resource that was due for a look waited for a worker.",
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
CREDENTIALS = Declared(
    "fleetd_credentials",
    "gauge",
    "Credentials in the ledger, by state; those of servers are left out.",
    ("region", "state"),
)
COMMITS = Declared("fleetd_store_commits_total", "counter", "Durable writes of the store.")
LAG = Declared(
    "fleetd_event_loop_lag_seconds",
    "histogram",
    "How late the event loop woke up a timer; asked four times a second.",
)
STORE_SIZE = Declared(
    "fleetd_store_size_bytes", "gauge", "Size of the store's database on disk; 0 if in memory."
)
WRITTEN = Declared(
    "fleetd_store_write_duration_seconds",
    "histogram",
    "Time until the intent of a step was on disk, with its fsync.",
)
CLUSTER_READY = Declared(
    "fleetd_cluster_ready",
    "gauge",
    "Whether a cluster is Ready (1) or not (0).",
    ("region", "cluster"),
)
REGION_NOT_READY = Declared(
    "fleetd_region_not_ready_timestamp_seconds",
    "gauge",
    "Since when a region is not as its documents say, in seconds since 1970; 0 if it is.",
    ("region",),
)
REGION_CHANGE = Declared(
    "fleetd_region_change_timestamp_seconds",
    "gauge",
    "Since when something new is asked of a region that is not reached, in seconds since 1970; 0"
    " if all is. Waiting for a window or an approval counts; a restart begins anew.",
    ("region",),
)
POOL = Declared(
    "fleetd_pool_servers",
    "gauge",
    "Servers of a pool, by state: free, used or unavailable.",
    ("region", "pool", "class", "zone", "state"),
)
INCIDENTS = Declared(
    "fleetd_incidents",
    "gauge",
    "Open incidents, each counted once at its cause, by severity.",
    ("region", "severity"),
)
LOOKS = Declared(
    "fleetd_looks_total",
    "counter",
    "Looks at resources, by driver and result: seen, or blind if nothing was to be seen.",
    ("driver", "result"),
)
CALLS = Declared(
    "fleetd_backend_calls_total", "counter", "Calls to a backend that have ended.", ("backend",)
)
UNANSWERED = Declared(
    "fleetd_backend_calls_unanswered_total",
    "counter",
    "Calls to a backend that it did not answer: refused, reset, timed out.",
    ("backend",),
)
CALLED = Declared(
    "fleetd_backend_call_seconds_total",
    "counter",
    "Time that calls to a backend took, without waiting for its limits.",
    ("backend",),
)
ROTATION = Declared(
    "fleetd_credential_rotation_timestamp_seconds",
    "gauge",
    "When the first of the credentials of this name in the region is due, in seconds since 1970.",
    ("region", "credential"),
)
REQUESTS = Declared(
    "fleetd_http_requests_total",
    "counter",
    "HTTP requests answered, by route of the table, method and status code.",
    ("route", "method", "code"),
)
REQUEST_TIME = Declared(
    "fleetd_http_request_duration_seconds",
    "histogram",
    "Time until an HTTP request was answered, by route.",
    ("route",),
)

PER_REGION = (RESOURCE_READY, RESOURCES, PLANNED, HOLDS, WAITS)
"""Made from the counts of a region."""
PER_OBJECT = (CLUSTER_READY, REGION_NOT_READY, REGION_CHANGE, POOL, INCIDENTS)
PER_BACKEND = (BREAKER, IN_FLIGHT, WAITED, CALLS, UNANSWERED, CALLED)
PER_CREDENTIAL = (CREDENTIALS, EXPIRY, ROTATION)
PER_DRIVER = (STEPS, LOOKS)
PER_KIND = (APPLY, OBSERVE)
"""By driver as well."""
PER_ROUTE = (REQUESTS, REQUEST_TIME)
SINGLE = (
    *(BUILD_INFO, READY, PLAN, REFUSED, ABANDONED, QUEUE, QUEUED),
    *(COMMITS, STORE_SIZE, WRITTEN, LAG),
)
ALL = (
    *SINGLE,
    *PER_REGION,
    *PER_OBJECT,
    *PER_BACKEND,
    *PER_CREDENTIAL,
    *PER_DRIVER,
    *PER_KIND,
    *PER_ROUTE,
)


def page() -> str:
    """`docs/metrics.md`."""
    rows = [
        f"| `{one.name}` | {one.type} | {', '.join(f'`{label}`' for label in one.labels) or '-'} |"
        f" {one.help} |"
        for one in ALL
    ]
    return (
        "# Metrics\n\n"
        "Served at `/metrics`. Made by `python -m fleetd.surface.families --write`;"
        " do not edit.\n\n"
        f"- `state` of a resource is one of {_words(STATES.values())};"
        f" `outcome` one of {_words(OUTCOMES)}.\n"
        f"- `reason` of a hold is one of {_words(reason.value for reason in HoldReason)}.\n"
        f"- `state` of a credential is one of {_words(ledger.STATES)}.\n"
        "- `backend` is a far side such as `garden:eu-1` or `cluster:hv`; `backend_kind` is"
        " what stands before the colon.\n"
        "- The standard `process_...` metrics are served as well.\n\n"
        "| name | type | labels | meaning |\n"
        "|---|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def main(argv: list[str]) -> int:
    return generated.main(argv, module="fleetd.surface.families", name="metrics.md", page=page)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
