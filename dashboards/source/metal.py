"""Bare metal: servers that are free, used or lost, by pool and class, and how BMCs answer."""

from dashboards.source import fleet as f
from dashboards.source import model as m

CLASS = m.Choice(
    name="class",
    label="Class",
    about="Servers of one class of machine, of several, or of all.",
    query=f"label_values(fleetd_pool_servers{{{f.IN_REGION}}}, class)",
)
POOL = m.Choice(
    name="pool",
    label="Pool",
    about="One pool of servers, several, or all.",
    query=f'label_values(fleetd_pool_servers{{{f.IN_REGION}, class=~"$class"}}, pool)',
)
_CHOSEN = f'{f.IN_REGION}, class=~"$class", pool=~"$pool"'
_PLACE = "region, pool, class, zone"
_FAR = 'backend=~"(bmc|metal):.*"'


def _servers(state: str = "") -> str:
    chosen = f'{_CHOSEN}, state="{state}"' if state else _CHOSEN
    return f"fleetd_pool_servers{{{chosen}}}"


_TIGHT = f"-sum by ({_PLACE}) ({_servers('free')})"


def _of_place(name: str, expr: str) -> m.Query:
    return m.Query(f.worst(expr, _TIGHT, _PLACE, f.ROWS), name)


NOW = m.Row(
    "Now",
    (
        m.Stat(
            title="Servers",
            about="Servers in the pools that are chosen above.",
            unit="none",
            queries=(m.Query(f"sum({_servers()})"),),
            steps=m.PLAIN,
            links=(f.page("Servers", "things", kind="server"),),
        ),
        m.Stat(
            title="Free",
            about="Servers that a cluster could take.",
            unit="none",
            queries=(m.Query(f"sum({_servers('free')})"),),
            steps=m.PLAIN,
            links=(f.page("Capacity", "capacity"),),
        ),
        m.Stat(
            title="Used",
            about="Servers that belong to a cluster.",
            unit="none",
            queries=(m.Query(f"sum({_servers('used')})"),),
            steps=m.PLAIN,
            links=(f.page("Capacity", "capacity"),),
        ),
        m.Stat(
            title="Unavailable",
            about="Servers that nobody can take: broken, in maintenance, or not yet known.",
            unit="none",
            queries=(m.Query(f"sum({_servers('unavailable')})"),),
            steps=m.NONE_IS_GOOD,
            links=(f.page("Servers not Ready", "things", kind="server", ready="false"),),
        ),
        m.Stat(
            title="Pools without a spare",
            about="Pools that have no free server in some zone: a server that breaks there has no "
            "other to take its place.",
            unit="none",
            queries=(m.Query(f.counted(f"sum by (region, pool, zone) ({_servers('free')}) == 0")),),
            steps=((None, "green"), (1, "yellow")),
            links=(f.page("Capacity", "capacity"),),
        ),
        m.Stat(
            title="Servers not Ready",
            about="Servers of the chosen regions that are not as their documents say, or could "
            "not be looked at.",
            unit="none",
            queries=(
                m.Query(f'sum(fleetd_resources{{{f.IN_REGION}, kind="server", state!="ready"}})'),
            ),
            steps=m.NONE_IS_GOOD,
            links=(f.page("Servers not Ready", "things", kind="server", ready="false"),),
        ),
    ),
)
POOLS = m.Row(
    "Pools",
    (
        m.Table(
            title="Servers by pool and zone",
            about=f"At most {f.ROWS} pools, those with the fewest free servers first.",
            unit="none",
            labels=("region", "pool", "class", "zone"),
            queries=(
                _of_place("Free", f"sum by ({_PLACE}) ({_servers('free')})"),
                _of_place("Used", f"sum by ({_PLACE}) ({_servers('used')})"),
                _of_place("Unavailable", f"sum by ({_PLACE}) ({_servers('unavailable')})"),
                _of_place(
                    "Share used",
                    f"sum by ({_PLACE}) ({_servers('used')}) / sum by ({_PLACE}) ({_servers()})",
                ),
            ),
            columns={
                "region": m.Column(
                    unit="string", link=f.onward("Region", "fleetd-region", region=f.cell("region"))
                ),
                "pool": m.Column(
                    unit="string", link=f.page("The pool", "thing", "serverpool", f.cell("pool"))
                ),
                "Free": m.Column(
                    steps=((None, "yellow"), (1, "green")),
                    link=f.page("Capacity", "capacity", region=f.cell("region")),
                ),
                "Unavailable": m.Column(steps=m.NONE_IS_GOOD),
                "Share used": m.Column(unit="percentunit"),
            },
            sort="Free",
            worst_is_low=True,
        ),
        m.Graph(
            title="Servers by state",
            about="Of the chosen pools. A bring-up moves servers from unavailable to free, and "
            "from free to used.",
            unit="none",
            links=(f.page("Capacity", "capacity"),),
            queries=(m.Query(f"sum by (state) ({_servers()})", "{{state}}"),),
            stacked=True,
        ),
        m.Graph(
            title="Free servers by class",
            about=f"The {f.LINES} classes with the most servers.",
            unit="none",
            links=(f.page("Capacity", "capacity"),),
            queries=(
                m.Query(
                    f.worst(
                        f"sum by (class) ({_servers('free')})",
                        f"sum by (class) (max_over_time({_servers()}{f.SPAN}))",
                        "class",
                    ),
                    "{{class}}",
                ),
            ),
        ),
    ),
)
FAR = m.Row(
    "BMCs and metal clusters",
    (
        m.Graph(
            title="Calls",
            about="Calls per second to the BMCs of a region and to the cluster that holds its "
            f"servers, the {f.LINES} that are called most.",
            unit="reqps",
            links=(f.page("Servers", "things", kind="server"),),
            queries=(
                m.Query(f.rates("fleetd_backend_calls_total", "backend", _FAR), "{{backend}}"),
            ),
        ),
        m.Graph(
            title="Calls without an answer",
            about="Calls per second that were refused, reset or timed out. Of BMCs a few are "
            "normal; many at once are a switch or a proxy.",
            unit="reqps",
            queries=(
                m.Query(
                    f.rates("fleetd_backend_calls_unanswered_total", "backend", _FAR), "{{backend}}"
                ),
            ),
            links=(f.page("Incidents", "incidents"),),
        ),
        m.Graph(
            title="How long a call takes",
            about="On average, without the time that a call waits for its turn.",
            unit="s",
            links=(f.page("Servers", "things", kind="server"),),
            queries=(
                m.Query(
                    f.worst(
                        "sum by (backend) (rate(fleetd_backend_call_seconds_total"
                        f"{{{_FAR}}}[$__rate_interval])) / sum by (backend) ("
                        f"rate(fleetd_backend_calls_total{{{_FAR}}}[$__rate_interval]))",
                        "sum by (backend) (increase(fleetd_backend_call_seconds_total"
                        f"{{{_FAR}}}{f.SPAN}))",
                        "backend",
                    ),
                    "{{backend}}",
                ),
            ),
        ),
        m.Graph(
            title="Looks at servers",
            about="Looks per second, by driver, and those in which nothing was to be seen.",
            unit="ops",
            links=(f.page("Servers", "things", kind="server", ready="unknown"),),
            queries=(
                m.Query(
                    "sum by (driver, result) (rate(fleetd_looks_total"
                    '{driver=~"ironcore|ironic"}[$__rate_interval]))',
                    "{{driver}} {{result}}",
                ),
            ),
        ),
    ),
)


def made() -> m.Board:
    return f.board(
        "fleetd-metal",
        "fleetd: bare metal",
        "Servers that are free, used or lost, by pool and class, and how their BMCs answer.",
        choices=(f.REGIONS, CLASS, POOL),
        rows=(NOW, POOLS, FAR),
        since="now-24h",
    )
