"""Credentials: what ends next, what is due, and whether renewal keeps ahead of it."""

from dashboards.source import fleet as f
from dashboards.source import model as m

CREDENTIAL = m.Choice(
    name="credential",
    label="Credential",
    about="Credentials of one name, of several, or of all.",
    query="label_values(fleetd_credential_rotation_timestamp_seconds"
    f"{{{f.IN_REGION}}}, credential)",
)
_CHOSEN = f'{f.IN_REGION}, credential=~"$credential"'
ENDS = f"fleetd_credential_expiry_timestamp_seconds{{{_CHOSEN}}}"
DUE = f"fleetd_credential_rotation_timestamp_seconds{{{_CHOSEN}}}"
HOUR = 3600
DAY = 24 * HOUR
_LEFT: m.Steps = ((None, "red"), (HOUR, "orange"), (6 * HOUR, "green"))


def _ending(title: str, about: str, within: int, steps: m.Steps) -> m.Stat:
    return m.Stat(
        title=title,
        about=about,
        unit="none",
        queries=(m.Query(f.counted(f"{ENDS} - time() < {within}")),),
        steps=steps,
        links=(f.page("What ends when", "credentials", by="end"),),
    )


def _next(title: str, about: str, metric: str, word: str, by: str) -> m.Table:
    label = f"bottomk({f.ROWS}, min by (region, credential) ({metric} - time()))"
    return m.Table(
        title=title,
        about=f"At most {f.ROWS}, {about} A name leads to the ledger on fleetd's page.",
        unit="s",
        labels=("region", "credential"),
        queries=(m.Query(label, word),),
        columns={
            "region": m.Column(
                unit="string", link=f.onward("Region", "fleetd-region", region=f.cell("region"))
            ),
            "credential": m.Column(
                unit="string",
                link=f.page("The ledger", "credentials", region=f.cell("region"), **_by(by)),
            ),
            word: m.Column(unit="s", steps=_LEFT),
        },
        sort=word,
        worst_is_low=True,
        width=12,
    )


def _by(by: str) -> dict[str, str]:
    return {"by": by} if by else {}


NOW = m.Row(
    "Now",
    (
        _ending(
            "Ended",
            "Names of credentials of which one has ended. Whoever uses it is refused.",
            0,
            m.NONE_OR_BAD,
        ),
        _ending(
            "End within an hour",
            "Names of credentials of which one ends within the hour, and is not yet renewed.",
            HOUR,
            m.NONE_OR_BAD,
        ),
        _ending(
            "End within a week",
            "Short-lived ones are always here; they are renewed in time or the two figures to the "
            "left say so.",
            7 * DAY,
            m.PLAIN,
        ),
        m.Stat(
            title="Overdue",
            about="Credentials that should have been renewed and are not: a window, an approval or "
            "a failure holds it up.",
            unit="none",
            queries=(m.Query(f'sum(fleetd_credentials{{{f.IN_REGION}, state="Overdue"}})'),),
            steps=m.NONE_IS_GOOD,
            links=(f.page("The ledger", "credentials"), f.page("Plans", "plan")),
        ),
        m.Stat(
            title="First end in",
            about="Time until the first of them ends.",
            unit="s",
            queries=(m.Query(f"min({ENDS}) - time()"),),
            steps=_LEFT,
            links=(f.page("What ends when", "credentials", by="end"),),
        ),
        m.Stat(
            title="First due in",
            about="Time until the first of them is to be renewed; below 0 it is overdue.",
            unit="s",
            queries=(m.Query(f"min({DUE}) - time()"),),
            steps=((None, "orange"), (0, "green")),
            links=(f.page("The ledger", "credentials"),),
        ),
    ),
)
NEXT = m.Row(
    "What comes next",
    (
        _next("What ends next", "the first to end first.", ENDS, "Ends in", "end"),
        _next("What is due next", "the first to be renewed first.", DUE, "Due in", ""),
    ),
)
TIME = m.Row(
    "Over time",
    (
        m.Graph(
            title="How near it gets",
            about="Time that the first credential to end had left. A saw: it falls, and jumps up "
            "when fleetd renews. It should never touch the dashed line.",
            unit="s",
            links=(f.page("What ends when", "credentials", by="end"),),
            queries=(m.Query(f"min({ENDS}) - time()", "first end"),),
            steps=((None, "red"), (HOUR, "green")),
        ),
        m.Graph(
            title="Credentials by state",
            about="All in the ledger of the chosen regions, those of servers left out. Spreading: "
            "renewed, and not everybody has the new one. OldKept: everybody has it, and the old "
            "one is still let in.",
            unit="none",
            queries=(
                m.Query(f"sum by (state) (fleetd_credentials{{{f.IN_REGION}}}) > 0", "{{state}}"),
            ),
            stacked=True,
            links=(f.page("The ledger", "credentials"),),
        ),
        m.Graph(
            title="Regions where it gets nearest",
            about=f"Time left in the {f.LINES} regions whose credentials end first.",
            unit="s",
            queries=(
                m.Query(
                    f"(min by (region) ({ENDS}) - time()) and on (region)"
                    f" bottomk({f.LINES}, min by (region) ({ENDS} @ end()))",
                    "{{region}}",
                ),
            ),
            each=f.page("What ends when", "credentials", region=f.line("region"), by="end"),
        ),
        m.Graph(
            title="Steps of OpenBao and the stores of secrets",
            about="Steps per second of all regions that make, spread or end secrets, by driver "
            "and outcome.",
            unit="ops",
            queries=(
                m.Query(
                    "sum by (driver, outcome) (rate(fleetd_steps_total"
                    '{driver=~"access|eso|openbao"}[$__rate_interval])) > 0',
                    "{{driver}} {{outcome}}",
                ),
            ),
            links=(f.page("Events", "events"),),
        ),
    ),
)


def made() -> m.Board:
    return f.board(
        "fleetd-credentials",
        "fleetd: credentials",
        "What ends next, what is due, and whether renewal keeps ahead of it.",
        choices=(f.REGIONS, CREDENTIAL),
        rows=(NOW, NEXT, TIME),
        since="now-7d",
    )
