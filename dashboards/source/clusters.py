"""Bring-up and upgrade of clusters: how far, how fast, and what holds it up."""

from dashboards.source import fleet as f
from dashboards.source import model as m

CLUSTER = m.Choice(
    name="cluster",
    label="Cluster",
    about="One cluster, several, or all of the region.",
    query=f"label_values(fleetd_cluster_ready{{{f.IN_REGION}}}, cluster)",
)
_CHOSEN = f'{f.IN_REGION}, cluster=~"$cluster"'
_READY = f"fleetd_cluster_ready{{{_CHOSEN}}}"
_API = 'backend=~"cluster:($cluster)"'
_DOWN = f"1 - avg_over_time({_READY}{f.SPAN})"
SHOWN = 40
"""Clusters of the timeline, which has pages."""

NOW = m.Row(
    "Now",
    (
        m.Stat(
            title="Clusters",
            about="Clusters that are chosen above.",
            unit="none",
            queries=(m.Query(f"count({_READY})"),),
            steps=m.PLAIN,
            links=(f.page("Clusters", "things", kind="cluster"),),
        ),
        m.Stat(
            title="Not Ready",
            about="Those of them that are not Ready.",
            unit="none",
            queries=(m.Query(f.counted(f"{_READY} == 0")),),
            steps=m.NONE_IS_GOOD,
            links=(f.page("Not Ready", "things", kind="cluster", ready="false"),),
        ),
        m.Stat(
            title="Parts that are Ready",
            about="Of everything that the chosen regions are made of.",
            unit="percentunit",
            queries=(
                m.Query(
                    f"sum(fleetd_resource_ready{{{f.IN_REGION}}})"
                    f" / sum(fleetd_resources{{{f.IN_REGION}}})"
                ),
            ),
            steps=((None, "orange"), (1, "green")),
            links=(f.page("What is not Ready", "things", ready="false"),),
        ),
        m.Stat(
            title="Waiting for approval",
            about="Resources of the regions whose next step somebody has to approve: a change "
            "that destroys something, or a step of a rollout.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_holds{{{f.IN_REGION}, reason="NeedsApproval"}})'),),
            steps=((None, "green"), (1, "blue")),
            links=(f.page("Plans", "plan"),),
        ),
        m.Stat(
            title="Waiting for a window",
            about="Resources of the regions that wait for their maintenance window to open, or "
            "for one in the budget to come back.",
            unit="none",
            queries=(
                m.Query(f'sum(fleetd_holds{{{f.IN_REGION}, reason=~"OutsideWindow|BudgetSpent"}})'),
            ),
            steps=m.PLAIN,
            links=(f.page("Plans", "plan"),),
        ),
        m.Stat(
            title="Overdue or failed",
            about="Resources of the regions where the far side takes longer than it should, or "
            "where a step failed and is tried again later.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_holds{{{f.IN_REGION}, reason=~"Overdue|StepFailed"}})'),),
            steps=m.NONE_IS_GOOD,
            links=(f.page("Incidents", "incidents"),),
        ),
    ),
)
WHICH = m.Row(
    "Which",
    (
        m.Timeline(
            title="Which cluster was Ready when",
            about=f"At most {SHOWN} clusters, those that were not Ready for the largest part of "
            "the time shown. An upgrade of workers shows as a short gap.",
            unit="none",
            queries=(
                m.Query(f.worst(_READY, _DOWN, "region, cluster", SHOWN), "{{region}} {{cluster}}"),
            ),
            words={"0": ("not Ready", "orange"), "1": ("Ready", "green")},
            each=f.page("The cluster", "thing", "cluster", f.line("cluster")),
        ),
        m.Table(
            title="Clusters that were not always Ready",
            about=f"At most {f.ROWS}: for which part of the time shown each was not Ready, and how "
            "often that changed. Many changes: it flaps, and its events say why.",
            unit="none",
            labels=("region", "cluster"),
            queries=(
                m.Query(
                    f.worst(
                        f"max by (region, cluster) ({_READY})", _DOWN, "region, cluster", f.ROWS
                    ),
                    "State",
                ),
                m.Query(
                    f.worst(
                        f"max by (region, cluster) ({_DOWN})", _DOWN, "region, cluster", f.ROWS
                    ),
                    "Not Ready",
                ),
                m.Query(
                    f.worst(
                        f"max by (region, cluster) (changes({_READY}{f.SPAN}))",
                        _DOWN,
                        "region, cluster",
                        f.ROWS,
                    ),
                    "Changes",
                ),
            ),
            columns={
                "region": m.Column(
                    unit="string", link=f.onward("Region", "fleetd-region", region=f.cell("region"))
                ),
                "cluster": m.Column(
                    unit="string", link=f.page("The cluster", "thing", "cluster", f.cell("cluster"))
                ),
                "State": m.Column(
                    steps=((None, "orange"), (1, "green")), words={"0": "not Ready", "1": "Ready"}
                ),
                "Not Ready": m.Column(unit="percentunit"),
            },
            sort="Not Ready",
        ),
    ),
)
HOW = m.Row(
    "How fast, and what holds it up",
    (
        m.Graph(
            title="Parts by state",
            about="Everything that the chosen regions are made of, over time.",
            unit="none",
            links=(f.page("What is not Ready", "things", ready="false"),),
            queries=(m.Query(f"sum by (state) (fleetd_resources{{{f.IN_REGION}}})", "{{state}}"),),
            stacked=True,
        ),
        m.Graph(
            title="Held back, by reason",
            about="Why the plan does not do now what there is to do.",
            unit="none",
            queries=(
                m.Query(f"sum by (reason) (fleetd_holds{{{f.IN_REGION}}}) > 0", "{{reason}}"),
            ),
            stacked=True,
            links=(f.page("Plans", "plan"),),
        ),
        m.Graph(
            title="Steps, by driver",
            about="Steps per second of all regions that were done, by the driver that did them.",
            unit="ops",
            queries=(
                m.Query(
                    "sum by (driver) (rate(fleetd_steps_total"
                    '{outcome=~"done|waiting"}[$__rate_interval])) > 0',
                    "{{driver}}",
                ),
            ),
            links=(f.page("Events", "events"),),
        ),
        m.Graph(
            title="Steps that failed",
            about="Steps per second of all regions that failed or were lost, by driver. A few are "
            "normal while a far side is made; they are tried again.",
            unit="ops",
            queries=(
                m.Query(
                    "sum by (driver) (rate(fleetd_steps_total"
                    '{outcome=~"failed|lost"}[$__rate_interval])) > 0',
                    "{{driver}}",
                ),
            ),
            links=(f.page("Events", "events"),),
        ),
        m.Graph(
            title="How long a step takes",
            about="Time of one step at the far side, by kind of far side.",
            unit="s",
            links=(f.page("Events", "events"),),
            queries=f.seconds("fleetd_apply_duration_seconds", "backend_kind"),
        ),
        m.Graph(
            title="Calls to API servers",
            about=f"Calls per second to the API servers of the chosen clusters, the {f.LINES} "
            "that are called most.",
            unit="reqps",
            queries=(
                m.Query(
                    f.rates("fleetd_backend_calls_total", "backend", _API),
                    "{{backend}}",
                ),
            ),
            links=(f.onward("fleetd itself", "fleetd-self"), f.page("Incidents", "incidents")),
        ),
    ),
)


def made() -> m.Board:
    return f.board(
        "fleetd-clusters",
        "fleetd: cluster bring-up and upgrade",
        "How far clusters are that are made or upgraded, how fast it goes, what holds it up.",
        choices=(f.REGIONS, CLUSTER),
        rows=(NOW, WHICH, HOW),
    )
