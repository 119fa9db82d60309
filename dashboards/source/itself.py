"""fleetd itself: is it well, is it fast, and how do its far sides answer."""

from dashboards.source import fleet as f
from dashboards.source import model as m

INSTANCE = m.Choice(
    name="instance",
    label="fleetd",
    about="One fleetd, several, or all, as Prometheus calls them.",
    query="label_values(fleetd_build_info, instance)",
)
HERE = 'instance=~"$instance"'
_RATE = "[$__rate_interval]"
_BUSY = f"sum by (backend) (increase(fleetd_backend_call_seconds_total{{{HERE}}}{f.SPAN}))"


def _of_backend(name: str, expr: str) -> m.Query:
    return m.Query(f.worst(expr, _BUSY, "backend", f.ROWS), name)


def _rate(metric: str) -> str:
    return f"sum by (backend) (rate({metric}{{{HERE}}}{_RATE}))"


def _most(metric: str) -> str:
    """A figure of the process, of the fleetds where it is highest."""
    chosen = f"{metric}{{{HERE}}}"
    return f.worst(
        f"sum by (instance) ({chosen})",
        f"sum by (instance) (max_over_time({chosen}{f.SPAN}))",
        "instance",
    )


NOW = m.Row(
    "Now",
    (
        m.Stat(
            title="Ready",
            about="1 if every fleetd says that it is ready, 0 if one says no; `/readyz` says why.",
            unit="none",
            queries=(m.Query(f"min(fleetd_ready{{{HERE}}})"),),
            steps=m.ONE_IS_GOOD,
            links=(f.page("fleetd's page", ""),),
        ),
        m.Word(
            title="Version",
            about="The versions that run. More than one for longer than an upgrade takes is a "
            "fleetd that was forgotten.",
            unit="none",
            queries=(m.Query(f"count by (version) (fleetd_build_info{{{HERE}}})", "{{version}}"),),
            steps=m.PLAIN,
        ),
        m.Stat(
            title="Up for",
            about="Time since the youngest of them was started.",
            unit="s",
            queries=(m.Query(f"time() - max(process_start_time_seconds{{{HERE}}})"),),
            steps=((None, "orange"), (600, "green")),
        ),
        m.Stat(
            title="Far sides left alone",
            about="Far sides that did not answer and are asked again only after a pause.",
            unit="none",
            queries=(m.Query(f"sum(fleetd_backend_breaker_open{{{HERE}}})"),),
            steps=m.NONE_IS_GOOD,
            links=(f.page("Incidents", "incidents"),),
        ),
        m.Stat(
            title="Plans refused",
            about="Plans of the last hour that did not pass the lint. Not one should: it is a "
            "fault in fleetd, and its log says which rule.",
            unit="none",
            queries=(m.Query(f"sum(increase(fleetd_plans_refused_total{{{HERE}}}[1h]))"),),
            steps=m.NONE_OR_BAD,
        ),
        m.Stat(
            title="Calls given up",
            about="Calls of drivers that went past their deadline and have still not ended.",
            unit="none",
            queries=(m.Query(f"sum(fleetd_calls_abandoned{{{HERE}}})"),),
            steps=m.NONE_IS_GOOD,
        ),
    ),
)
WORK = m.Row(
    "Its work",
    (
        m.Graph(
            title="Queue",
            about="Resources that wait for a worker, are looked at later, or are worked on. "
            "Ready ones that grow: it is too slow for the fleet.",
            unit="none",
            queries=(m.Query(f"sum by (state) (fleetd_queue_depth{{{HERE}}})", "{{state}}"),),
        ),
        m.Graph(
            title="Looks and steps",
            about="Looks at resources per second, those in which nothing was to be seen, and "
            "steps carried out.",
            unit="ops",
            queries=(
                m.Query(
                    f"sum by (result) (rate(fleetd_looks_total{{{HERE}}}{_RATE}))",
                    "look: {{result}}",
                ),
                m.Query(
                    f"sum by (outcome) (rate(fleetd_steps_total{{{HERE}}}{_RATE}))",
                    "step: {{outcome}}",
                ),
            ),
        ),
        m.Graph(
            title="How long a plan takes",
            about="Time of one plan of one region.",
            unit="s",
            queries=f.seconds("fleetd_plan_duration_seconds", match=HERE),
        ),
        m.Graph(
            title="How long a look takes",
            about="Time of one look, by driver; half of them are faster.",
            unit="s",
            queries=f.seconds("fleetd_observe_duration_seconds", "driver", HERE)[:1],
        ),
        m.Graph(
            title="How long looks wait",
            about="How long what is due for a look waits for a worker. Seconds, and for long: more "
            "workers (observe.workers), or a far side that is slow.",
            unit="s",
            queries=f.seconds("fleetd_queue_wait_seconds", match=HERE),
        ),
        m.Graph(
            title="How late the event loop is",
            about="How late timers are woken up. Above the dashed line everything else is late.",
            unit="s",
            queries=f.seconds("fleetd_event_loop_lag_seconds", match=HERE),
            steps=((None, "green"), (0.1, "red")),
        ),
        m.Graph(
            title="Until an intent is on disk",
            about="Time of one durable write, with its fsync: nothing goes out before.",
            unit="s",
            queries=f.seconds("fleetd_store_write_duration_seconds", match=HERE),
            steps=((None, "green"), (0.5, "red")),
        ),
    ),
)
FAR = m.Row(
    "Far sides",
    (
        m.Table(
            title="Far sides",
            about=f"At most {f.ROWS}, those that took the most time in the time shown. Open: left "
            "alone for a while because it did not answer.",
            unit="none",
            labels=("backend",),
            queries=(
                _of_backend("Calls", _rate("fleetd_backend_calls_total")),
                _of_backend("No answer", _rate("fleetd_backend_calls_unanswered_total")),
                _of_backend(
                    "Time of a call",
                    f"{_rate('fleetd_backend_call_seconds_total')}"
                    f" / ({_rate('fleetd_backend_calls_total')} > 0)",
                ),
                _of_backend("Waiting for a turn", _rate("fleetd_backend_wait_seconds_total")),
                _of_backend(
                    "Under way", f"sum by (backend) (fleetd_backend_calls_in_flight{{{HERE}}})"
                ),
                _of_backend("Breaker", f"max by (backend) (fleetd_backend_breaker_open{{{HERE}}})"),
            ),
            columns={
                "backend": m.Column(unit="string"),
                "Calls": m.Column(unit="reqps"),
                "No answer": m.Column(unit="reqps"),
                "Time of a call": m.Column(unit="s"),
                "Waiting for a turn": m.Column(unit="percentunit"),
                "Breaker": m.Column(
                    steps=m.NONE_IS_GOOD,
                    words={"0": "closed", "1": "open"},
                    link=f.page("Incidents", "incidents"),
                ),
            },
            sort="Calls",
        ),
        m.Graph(
            title="Calls without an answer",
            about=f"Share of calls that were refused, reset or timed out, of the {f.LINES} far "
            "sides with the most of them.",
            unit="percentunit",
            queries=(
                m.Query(
                    f.worst(
                        f"{_rate('fleetd_backend_calls_unanswered_total')}"
                        f" / ({_rate('fleetd_backend_calls_total')} > 0)",
                        "sum by (backend) (increase("
                        f"fleetd_backend_calls_unanswered_total{{{HERE}}}{f.SPAN}))",
                        "backend",
                    ),
                    "{{backend}}",
                ),
            ),
        ),
        m.Graph(
            title="How long a step takes",
            about="Time of one step at the far side, by driver; half of them are faster.",
            unit="s",
            queries=f.seconds("fleetd_apply_duration_seconds", "driver", HERE)[:1],
        ),
    ),
)
HTTP = m.Row(
    "Its HTTP face",
    (
        m.Graph(
            title="Requests that failed",
            about="Part of an hour in which it did not answer, and of what it answered that was an "
            "error of its own. Above the dashed line the budget of 30 days is spent within days; "
            "below, 0.1% is promised.",
            unit="percentunit",
            queries=(
                m.Query(
                    f.worst(
                        f"instance:fleetd_api_errors:ratio1h{{{HERE}}}",
                        f"max_over_time(instance:fleetd_api_errors:ratio1h{{{HERE}}}{f.SPAN})",
                        "instance",
                    ),
                    "{{instance}}",
                ),
            ),
            steps=((None, "green"), (0.0144, "red")),
            width=8,
        ),
        m.Graph(
            title="Requests",
            about="HTTP requests per second, by status code. 5xx is a fault in fleetd.",
            unit="reqps",
            width=8,
            queries=(
                m.Query(
                    f"sum by (code) (rate(fleetd_http_requests_total{{{HERE}}}{_RATE}))", "{{code}}"
                ),
            ),
        ),
        m.Graph(
            title="How long a request takes",
            about=f"All but one of a hundred are faster, of the {f.LINES} routes that are "
            "asked for most. Events are a stream and take as long as somebody listens.",
            unit="s",
            width=8,
            queries=(
                m.Query(
                    f.worst(
                        "histogram_quantile(0.99, sum by (le, route) (rate("
                        f"fleetd_http_request_duration_seconds_bucket{{{HERE}}}{_RATE})))",
                        "sum by (route) (increase("
                        f"fleetd_http_request_duration_seconds_count{{{HERE}}}{f.SPAN}))",
                        "route",
                    ),
                    "{{route}}",
                ),
            ),
        ),
    ),
)
PROCESS = m.Row(
    "The process",
    (
        m.Graph(
            title="CPU",
            about="Cores in use. fleetd decides in one thread: near 1 it is at its limit.",
            unit="none",
            queries=(
                m.Query(
                    f.rates("process_cpu_seconds_total", "instance", HERE),
                    "{{instance}}",
                ),
            ),
            steps=((None, "green"), (0.9, "red")),
            width=8,
        ),
        m.Graph(
            title="Memory",
            about="Memory that is held. It grows with the fleet, not with time.",
            unit="bytes",
            queries=(m.Query(_most("process_resident_memory_bytes"), "{{instance}}"),),
            width=8,
        ),
        m.Graph(
            title="Size of the store",
            about="The database on disk; 0 if it is kept in memory.",
            unit="bytes",
            queries=(m.Query(_most("fleetd_store_size_bytes"), "{{instance}}"),),
            width=8,
        ),
        m.Graph(
            title="Durable writes",
            about="Commits of the store per second.",
            unit="ops",
            queries=(
                m.Query(f"sum(rate(fleetd_store_commits_total{{{HERE}}}{_RATE}))", "commits"),
            ),
            width=8,
        ),
        m.Graph(
            title="Open files",
            about="Share of the files and connections that the process may have open.",
            unit="percentunit",
            queries=(
                m.Query(
                    f"max(process_open_fds{{{HERE}}} / process_max_fds{{{HERE}}})", "share in use"
                ),
            ),
            steps=((None, "green"), (0.8, "red")),
            width=8,
        ),
        m.Graph(
            title="Scrapes",
            about="How long Prometheus takes to read the metrics, at most.",
            unit="s",
            queries=(
                m.Query(
                    f"max(scrape_duration_seconds{{{HERE}}} and on (instance) fleetd_ready)",
                    "slowest scrape",
                ),
            ),
            width=8,
        ),
    ),
)


def made() -> m.Board:
    return f.board(
        "fleetd-self",
        "fleetd: itself",
        "Is fleetd well, is it fast, and how do its far sides answer.",
        choices=(INSTANCE,),
        rows=(NOW, WORK, FAR, HTTP, PROCESS),
    )
