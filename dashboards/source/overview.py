"""The first look: is the fleet as declared, what is wrong, where to go on. For all regions."""

from dashboards.source import fleet as f
from dashboards.source import model as m

_CLUSTERS = f"fleetd_cluster_ready{{{f.IN_REGION}}}"
_SINCE = f"fleetd_region_not_ready_timestamp_seconds{{{f.IN_REGION}}}"
_CHANGE = f"fleetd_region_change_timestamp_seconds{{{f.IN_REGION}}}"
_BAD = f'sum by (region) (fleetd_resources{{{f.IN_REGION}, state!="ready"}})'


def _of_region(name: str, expr: str) -> m.Query:
    """A column of the table of regions: of those with the most that is not Ready."""
    return m.Query(f.worst(expr, _BAD, "region", f.ROWS), name)


NOW = m.Row(
    "Now",
    (
        m.Stat(
            title="Regions not as declared",
            about="Regions in which something is not as the documents say. A bring-up, an upgrade "
            "and a failure all count; the table below says for how long.",
            unit="none",
            queries=(m.Query(f.counted(f"{_SINCE} > 0")),),
            steps=m.NONE_IS_GOOD,
            links=(f.page("All regions", ""),),
        ),
        m.Stat(
            title="Clusters not Ready",
            about="Clusters that are declared and not Ready.",
            unit="none",
            queries=(m.Query(f.counted(f"{_CLUSTERS} == 0")),),
            steps=m.NONE_IS_GOOD,
            links=(
                f.page("Clusters that are not Ready", "things", kind="cluster", ready="false"),
                f.onward("Bring-up and upgrade", "fleetd-clusters"),
            ),
        ),
        m.Stat(
            title="Critical incidents",
            about="Open incidents because of which a cloud that served is not Ready. Each failure "
            "is counted once, at its cause.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_incidents{{{f.IN_REGION}, severity="critical"}})'),),
            steps=m.NONE_OR_BAD,
            links=(f.page("Incidents", "incidents"),),
        ),
        m.Stat(
            title="Other incidents",
            about="Open incidents that no cloud suffers from yet.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_incidents{{{f.IN_REGION}, severity="warning"}})'),),
            steps=m.NONE_IS_GOOD,
            links=(f.page("Incidents", "incidents"),),
        ),
        m.Stat(
            title="Waiting for approval",
            about="Resources whose next step somebody has to approve.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_holds{{{f.IN_REGION}, reason="NeedsApproval"}})'),),
            steps=((None, "green"), (1, "blue")),
            links=(f.page("Plans", "plan"),),
        ),
        m.Stat(
            title="fleetd answers",
            about="1 if every fleetd that Prometheus reaches says that it is ready, 0 if one says "
            "no. Empty if none is reached.",
            unit="none",
            queries=(m.Query("min(fleetd_ready)"),),
            steps=m.ONE_IS_GOOD,
            links=(f.onward("fleetd itself", "fleetd-self"), f.page("fleetd's page", "")),
        ),
        m.Stat(
            title="Regions in all",
            about="Regions that fleetd has documents for.",
            unit="none",
            queries=(m.Query(f"count({_SINCE})"),),
            steps=m.PLAIN,
            links=(f.page("All regions", ""),),
        ),
        m.Stat(
            title="Clusters",
            about="Clusters that should exist.",
            unit="none",
            queries=(m.Query(f"count({_CLUSTERS})"),),
            steps=m.PLAIN,
            links=(f.page("Clusters", "things", kind="cluster"),),
        ),
        m.Stat(
            title="Servers",
            about="Servers in the pools.",
            unit="none",
            queries=(m.Query(f"sum(fleetd_pool_servers{{{f.IN_REGION}}})"),),
            steps=m.PLAIN,
            links=(f.page("Capacity", "capacity"), f.onward("Bare metal", "fleetd-metal")),
        ),
        m.Stat(
            title="Resources that are Ready",
            about="Share of everything that should exist and is Ready.",
            unit="percentunit",
            queries=(
                m.Query(
                    f"sum(fleetd_resource_ready{{{f.IN_REGION}}})"
                    f" / sum(fleetd_resources{{{f.IN_REGION}}})"
                ),
            ),
            steps=((None, "red"), (0.9, "orange"), (1, "green")),
            links=(f.page("What is not Ready", "things", ready="false"),),
        ),
        m.Stat(
            title="Could not be looked at",
            about="Resources of which nothing is known, because their far side did not answer.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_resources{{{f.IN_REGION}, state="unknown"}})'),),
            steps=m.NONE_IS_GOOD,
            links=(f.page("What is unknown", "things", ready="unknown"),),
        ),
        m.Stat(
            title="First credential ends in",
            about="Time until the first credential ends that fleetd knows the end of.",
            unit="s",
            queries=(
                m.Query(
                    f"min(fleetd_credential_expiry_timestamp_seconds{{{f.IN_REGION}}}) - time()"
                ),
            ),
            steps=((None, "red"), (3600, "orange"), (6 * 3600, "green")),
            links=(
                f.page("What ends when", "credentials", by="end"),
                f.onward("Credentials", "fleetd-credentials"),
            ),
        ),
    ),
)
WHERE = m.Row(
    "Where",
    (
        m.Table(
            title="Regions",
            about=f"At most {f.ROWS} regions, those with the most that is not Ready first. A name "
            "leads to the region's dashboard, a figure to fleetd's page.",
            unit="none",
            labels=("region",),
            queries=(
                _of_region("Not Ready", _BAD),
                _of_region("Clusters", f"count by (region) ({_CLUSTERS})"),
                _of_region("Clusters Ready", f"sum by (region) ({_CLUSTERS})"),
                _of_region("Incidents", f"sum by (region) (fleetd_incidents{{{f.IN_REGION}}})"),
                _of_region("Held back", f"sum by (region) (fleetd_holds{{{f.IN_REGION}}})"),
                _of_region("Far side at work", f"sum by (region) (fleetd_waits{{{f.IN_REGION}}})"),
                _of_region("Steps", f"sum by (region) (fleetd_planned_steps{{{f.IN_REGION}}})"),
                _of_region("Not as declared for", f"time() - max by (region) ({_SINCE} > 0)"),
                _of_region("Change asked for since", f"time() - max by (region) ({_CHANGE} > 0)"),
            ),
            columns={
                "region": m.Column(
                    unit="string", link=f.onward("Region", "fleetd-region", region=f.cell("region"))
                ),
                "Not Ready": m.Column(
                    steps=m.NONE_IS_GOOD,
                    link=f.page(
                        "What is not Ready", "things", region=f.cell("region"), ready="false"
                    ),
                ),
                "Incidents": m.Column(
                    steps=m.NONE_IS_GOOD,
                    link=f.page("Incidents", "incidents", region=f.cell("region")),
                ),
                "Held back": m.Column(link=f.page("Plan", "plan", region=f.cell("region"))),
                "Not as declared for": m.Column(unit="s"),
                "Change asked for since": m.Column(
                    unit="s", link=f.page("Plan", "plan", region=f.cell("region"))
                ),
            },
            sort="Not Ready",
        ),
    ),
)
PROMISES = m.Row(
    "Promises and alerts",
    (
        m.Graph(
            title="Changes that stall",
            about="For what part of an hour something declared neither moved nor waited for "
            f"somebody, in the {f.LINES} regions where that was worst. Above the dashed line the "
            "budget of 30 days is spent within days; below, 1% of the time is promised.",
            unit="percentunit",
            queries=(
                m.Query(
                    f.worst(
                        f"region:fleetd_change_stalled:ratio1h{{{f.IN_REGION}}}",
                        "max_over_time("
                        f"region:fleetd_change_stalled:ratio1h{{{f.IN_REGION}}}{f.SPAN})",
                        "region",
                    ),
                    "{{region}}",
                ),
            ),
            steps=((None, "green"), (0.144, "red")),
            links=(f.page("Incidents", "incidents"),),
            each=f.page("Plan", "plan", region=f.line("region")),
        ),
        m.Table(
            title="Alerts that fire",
            about=f"At most {f.ROWS} alerts of fleetd's rules. FleetdWatchdog is always there: "
            "without it nobody would be woken by the others.",
            unit="none",
            labels=("alertname", "severity", "region"),
            queries=(
                m.Query(
                    f"topk({f.ROWS}, count by (alertname, severity, region)"
                    ' (ALERTS{alertname=~"Fleetd.*", alertstate="firing"}))',
                    "Count",
                ),
            ),
            columns={
                "alertname": m.Column(unit="string", link=f.page("Incidents", "incidents")),
            },
            sort="alertname",
            worst_is_low=True,
            width=12,
            height=8,
        ),
    ),
)
TIME = m.Row(
    "Over time",
    (
        m.Graph(
            title="Resources by state",
            about="Everything that should exist: Ready, not Ready, or unknown because it could not "
            "be looked at.",
            unit="none",
            links=(f.page("What is not Ready", "things", ready="false"),),
            queries=(m.Query(f"sum by (state) (fleetd_resources{{{f.IN_REGION}}})", "{{state}}"),),
            stacked=True,
        ),
        m.Graph(
            title="Open incidents",
            about="By severity. Critical: a cloud that served is not Ready because of it.",
            unit="none",
            queries=(
                m.Query(f"sum by (severity) (fleetd_incidents{{{f.IN_REGION}}})", "{{severity}}"),
            ),
            links=(f.page("Incidents", "incidents"),),
        ),
        m.Graph(
            title="Held back, by reason",
            about="Resources that have something to be done that the plan does not do now, and "
            "why not.",
            unit="none",
            queries=(
                m.Query(f"sum by (reason) (fleetd_holds{{{f.IN_REGION}}}) > 0", "{{reason}}"),
            ),
            stacked=True,
            links=(f.page("Plans", "plan"),),
        ),
        m.Graph(
            title="Steps carried out",
            about="Steps per second of all regions, by how they ended. Lost: the daemon ended "
            "before the step did, and will look before it goes on.",
            unit="ops",
            queries=(
                m.Query(
                    "sum by (outcome) (rate(fleetd_steps_total[$__rate_interval]))", "{{outcome}}"
                ),
            ),
            links=(f.page("Events", "events"),),
        ),
        m.Graph(
            title="Regions with the most that is not Ready",
            about=f"The {f.LINES} regions that had the most resources that are not Ready in "
            "the time shown.",
            unit="none",
            links=(f.page("All regions", ""),),
            queries=(
                m.Query(
                    f.worst(
                        _BAD,
                        "sum by (region) (max_over_time("
                        f'fleetd_resources{{{f.IN_REGION}, state!="ready"}}{f.SPAN}))',
                        "region",
                    ),
                    "{{region}}",
                ),
            ),
            each=f.onward("Region", "fleetd-region", region=f.line("region")),
            width=24,
        ),
    ),
)


def made() -> m.Board:
    return f.board(
        "fleetd-overview",
        "fleetd: fleet",
        "Is the fleet as declared, what is wrong with it, and where to go on.",
        choices=(f.REGIONS,),
        rows=(NOW, WHERE, PROMISES, TIME),
    )
