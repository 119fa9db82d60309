"""One region: what it holds, what the plan does, what is held back and why."""

from dashboards.source import fleet as f
from dashboards.source import model as m

HERE = 'region="$region"'
_SINCE = f"fleetd_region_not_ready_timestamp_seconds{{{HERE}}}"
_CHANGE = f"fleetd_region_change_timestamp_seconds{{{HERE}}}"
_BAD = f'sum by (kind) (fleetd_resources{{{HERE}, state!="ready"}})'
_CLUSTERS = f"fleetd_cluster_ready{{{HERE}}}"


def _of_kind(name: str, state: str) -> m.Query:
    expr = f'sum by (kind) (fleetd_resources{{{HERE}, state="{state}"}})'
    return m.Query(f.worst(expr, _BAD, "kind", f.ROWS), name)


NOW = m.Row(
    "Now",
    (
        m.Stat(
            title="Not as declared for",
            about="Since when something in the region is not as the documents say; 0 if all is.",
            unit="s",
            queries=(m.Query(f"(time() - max({_SINCE} > 0)) or vector(0)"),),
            steps=((None, "green"), (1, "orange"), (3600, "red")),
            links=(f.page("The region", "region", "${region}"),),
        ),
        m.Stat(
            title="Clusters not Ready",
            about="Clusters of the region that are not Ready.",
            unit="none",
            queries=(m.Query(f.counted(f"{_CLUSTERS} == 0")),),
            steps=m.NONE_IS_GOOD,
            links=(
                f.onward("Bring-up and upgrade", "fleetd-clusters", region="${region}"),
                f.page("Clusters", "things", region="${region}", kind="cluster", ready="false"),
            ),
        ),
        m.Stat(
            title="Critical incidents",
            about="Open incidents because of which a cloud that served is not Ready.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_incidents{{{HERE}, severity="critical"}})'),),
            steps=m.NONE_OR_BAD,
            links=(f.page("Incidents", "incidents", region="${region}"),),
        ),
        m.Stat(
            title="Other incidents",
            about="Open incidents that no cloud suffers from yet.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_incidents{{{HERE}, severity="warning"}})'),),
            steps=m.NONE_IS_GOOD,
            links=(f.page("Incidents", "incidents", region="${region}"),),
        ),
        m.Stat(
            title="Steps in the plan",
            about="Steps that the plan has for now.",
            unit="none",
            queries=(m.Query(f"sum(fleetd_planned_steps{{{HERE}}})"),),
            steps=m.PLAIN,
            links=(f.page("Plan", "plan", region="${region}"),),
        ),
        m.Stat(
            title="Far side at work",
            about="Resources where the far side is busy and there is nothing to do but look again.",
            unit="none",
            queries=(m.Query(f"sum(fleetd_waits{{{HERE}}})"),),
            steps=m.PLAIN,
            links=(f.page("Plan", "plan", region="${region}"),),
        ),
        m.Stat(
            title="Change not reached for",
            about="Since when something new is asked of the region that it has not reached; 0 if "
            "it has all. Waiting for a window or an approval counts.",
            unit="s",
            queries=(m.Query(f"(time() - max({_CHANGE} > 0)) or vector(0)"),),
            steps=((None, "green"), (1, "blue"), (6 * 3600, "orange")),
            links=(f.page("Plan", "plan", region="${region}"),),
        ),
        m.Stat(
            title="Resources that are Ready",
            about="Share of everything that should exist in the region and is Ready.",
            unit="percentunit",
            queries=(
                m.Query(f"sum(fleetd_resource_ready{{{HERE}}}) / sum(fleetd_resources{{{HERE}}})"),
            ),
            steps=((None, "red"), (0.9, "orange"), (1, "green")),
            links=(f.page("What is not Ready", "things", region="${region}", ready="false"),),
        ),
        m.Stat(
            title="Could not be looked at",
            about="Resources of which nothing is known, because their far side did not answer.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_resources{{{HERE}, state="unknown"}})'),),
            steps=m.NONE_IS_GOOD,
            links=(f.page("What is unknown", "things", region="${region}", ready="unknown"),),
        ),
        m.Stat(
            title="Waiting for approval",
            about="Resources whose next step somebody has to approve.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_holds{{{HERE}, reason="NeedsApproval"}})'),),
            steps=((None, "green"), (1, "blue")),
            links=(f.page("Plan", "plan", region="${region}"),),
        ),
        m.Stat(
            title="Servers unavailable",
            about="Servers of the region that nobody can take.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_pool_servers{{{HERE}, state="unavailable"}})'),),
            steps=m.NONE_IS_GOOD,
            links=(f.page("Capacity", "capacity", region="${region}"),),
        ),
        m.Stat(
            title="Credentials in trouble",
            about="Credentials of the region that have ended, are overdue, or end soon.",
            unit="none",
            queries=(
                m.Query(f'sum(fleetd_credentials{{{HERE}, state=~"Expired|Overdue|Expiring"}})'),
            ),
            steps=m.NONE_IS_GOOD,
            links=(f.page("Credentials", "credentials", region="${region}"),),
        ),
    ),
)
PLAN = m.Row(
    "What is going on",
    (
        m.Graph(
            title="Resources by state",
            about="Everything that should exist in the region. A bring-up is the first colour "
            "filling up; a failure is a dent in it.",
            unit="none",
            links=(f.page("What is not Ready", "things", region="${region}", ready="false"),),
            queries=(m.Query(f"sum by (state) (fleetd_resources{{{HERE}}})", "{{state}}"),),
            stacked=True,
        ),
        m.Graph(
            title="The plan",
            about="Steps to be done now, resources where the far side is at work, and resources "
            "held back. All at 0 and something not Ready: look at incidents.",
            unit="none",
            queries=(
                m.Query(f"sum(fleetd_planned_steps{{{HERE}}})", "steps"),
                m.Query(f"sum(fleetd_waits{{{HERE}}})", "far side at work"),
                m.Query(f"sum(fleetd_holds{{{HERE}}})", "held back"),
            ),
            links=(f.page("Plan", "plan", region="${region}"),),
        ),
        m.Graph(
            title="Held back, by reason",
            about="Why the plan does not do now what there is to do.",
            unit="none",
            queries=(m.Query(f"sum by (reason) (fleetd_holds{{{HERE}}}) > 0", "{{reason}}"),),
            stacked=True,
            links=(f.page("Plan", "plan", region="${region}"),),
        ),
        m.Graph(
            title="Open incidents",
            about="Each failure once, at its cause, by severity.",
            unit="none",
            queries=(m.Query(f"sum by (severity) (fleetd_incidents{{{HERE}}})", "{{severity}}"),),
            links=(f.page("Incidents", "incidents", region="${region}"),),
        ),
    ),
)
PARTS = m.Row(
    "Its parts",
    (
        m.Table(
            title="Resources by kind",
            about="Kinds with the most that is not Ready first. A name leads to the list on "
            "fleetd's page.",
            unit="none",
            labels=("kind",),
            queries=(
                _of_kind("Not Ready", "not_ready"),
                _of_kind("Unknown", "unknown"),
                _of_kind("Ready", "ready"),
            ),
            columns={
                "kind": m.Column(
                    unit="string",
                    link=f.page("All of them", "things", kind=f.cell("kind"), region="${region}"),
                ),
                "Not Ready": m.Column(steps=m.NONE_IS_GOOD),
                "Unknown": m.Column(steps=m.NONE_IS_GOOD),
            },
            sort="Not Ready",
            width=12,
        ),
        m.Table(
            title="Clusters",
            about=f"At most {f.ROWS} clusters of the region, those that are not Ready first. A "
            "name leads to the cluster on fleetd's page.",
            unit="none",
            labels=("cluster",),
            queries=(m.Query(f"bottomk({f.ROWS}, max by (cluster) ({_CLUSTERS}))", "State"),),
            columns={
                "cluster": m.Column(
                    unit="string", link=f.page("The cluster", "thing", "cluster", f.cell("cluster"))
                ),
                "State": m.Column(
                    steps=((None, "orange"), (1, "green")),
                    words={"0": "not Ready", "1": "Ready"},
                    link=f.onward(
                        "Bring-up and upgrade",
                        "fleetd-clusters",
                        region="${region}",
                        cluster=f.cell("cluster"),
                    ),
                ),
            },
            sort="State",
            worst_is_low=True,
            width=12,
        ),
        m.Graph(
            title="Servers",
            about="Servers in the pools of the region: free, used by a cluster, or unavailable.",
            unit="none",
            queries=(m.Query(f"sum by (state) (fleetd_pool_servers{{{HERE}}})", "{{state}}"),),
            stacked=True,
            links=(
                f.onward("Bare metal", "fleetd-metal", region="${region}"),
                f.page("Capacity", "capacity", region="${region}"),
            ),
        ),
        m.Graph(
            title="Next end of a credential",
            about="Time until the first credential of the region ends, and until the first is due "
            "for renewal. Both jump up when fleetd has renewed it.",
            unit="s",
            queries=(
                m.Query(
                    f"min(fleetd_credential_expiry_timestamp_seconds{{{HERE}}}) - time()", "ends"
                ),
                m.Query(
                    f"min(fleetd_credential_rotation_timestamp_seconds{{{HERE}}}) - time()", "due"
                ),
            ),
            links=(
                f.onward("Credentials", "fleetd-credentials", region="${region}"),
                f.page("Credentials", "credentials", region="${region}"),
            ),
        ),
    ),
)


def made() -> m.Board:
    return f.board(
        "fleetd-region",
        "fleetd: region",
        "One region: what it holds, what the plan does, what is held back and why.",
        choices=(f.REGION,),
        rows=(NOW, PLAN, PARTS),
    )
