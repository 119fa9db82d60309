"""
What the dashboards of fleetd share: variables, ways to its page and to each other, expressions.

The one rule is `worst`: a graph asks for lines by a label that may have a thousand values only
through it, so that a large fleet draws as few lines as a small one, and the same ones all along.
"""

from dashboards.source.model import Board, Choice, Json, Link, Query, Row, board_link, tag_link

TAG = "fleetd"
PAGE = "http://127.0.0.1:8440"
"""Where fleetd listens if nobody says otherwise."""
LINES = 10
ROWS = 100
"""Of a table; whoever needs more is better served by the page, which has them all."""

IN_REGION = 'region=~"$region"'

DATASOURCE: Json = {
    "name": "datasource",
    "label": "Prometheus",
    "description": "The Prometheus that scrapes fleetd.",
    "type": "datasource",
    "query": "prometheus",
    "refresh": 1,
}
PAGE_VARIABLE: Json = {
    "name": "page",
    "label": "fleetd's page",
    "description": "Where a browser finds fleetd's web page; links lead there.",
    "type": "textbox",
    "query": PAGE,
    "current": {"text": PAGE, "value": PAGE},
}
REGIONS = Choice(
    name="region",
    label="Region",
    about="One region, several, or all.",
    query="label_values(fleetd_resources, region)",
)
REGION = Choice(
    name="region",
    label="Region",
    about="The region that is looked at.",
    query="label_values(fleetd_resources, region)",
    many=False,
)


def board(
    uid: str,
    title: str,
    about: str,
    *,
    choices: tuple[Choice, ...],
    rows: tuple[Row, ...],
    since: str = "now-6h",
) -> Board:
    return Board(
        uid=uid,
        title=title,
        about=about,
        tags=(TAG,),
        variables=(DATASOURCE, PAGE_VARIABLE, *(one.json() for one in choices)),
        links=(tag_link("fleetd's dashboards", TAG), board_link("fleetd's page", "${page}")),
        rows=rows,
        since=since,
    )


def page(title: str, *parts: str, **asked: str) -> Link:
    """To a view of fleetd's page: `page("…", "thing", "cluster", NAME)`."""
    rest = "&".join(f"{key}={value}" for key, value in asked.items())
    return Link(title, f"${{page}}/#/{'/'.join(parts)}{'?' if rest else ''}{rest}")


def onward(title: str, uid: str, **chosen: str) -> Link:
    """To another dashboard, with the same time, source and page."""
    kept = ["${datasource:queryparam}", "${page:queryparam}", "${__url_time_range}"]
    return Link(title, f"/d/{uid}?{'&'.join([*_chosen(chosen), *kept])}")


def _chosen(chosen: dict[str, str]) -> list[str]:
    return [f"var-{name}={value}" for name, value in chosen.items()]


def cell(label: str) -> str:
    """In the link of a table: the value of a label in the same row."""
    return f"${{__data.fields.{label}:percentencode}}"


def line(label: str) -> str:
    """In the link of a line: the value of its label."""
    return f"${{__field.labels.{label}:percentencode}}"


def counted(condition: str) -> str:
    """How many there are; none is 0 and not nothing."""
    return f"count({condition}) or vector(0)"


def worst(expr: str, rank: str, by: str, most: int = LINES) -> str:
    """Only the lines that rank highest over the whole time shown. `rank` looks at SPAN, so that
    it is the same at every point of a graph: otherwise each point would have its own ten."""
    return f"({expr}) and on ({by}) topk({most}, {rank})"


SPAN = "[$__range] @ end()"
"""The whole time shown, seen from its end."""


def rates(metric: str, by: str, match: str) -> str:
    """Per second, of those where the counter grew most."""
    chosen = f"{metric}{{{match}}}"
    return worst(
        f"sum by ({by}) (rate({chosen}[$__rate_interval]))",
        f"sum by ({by}) (increase({chosen}{SPAN}))",
        by,
    )


def seconds(metric: str, by: str = "", match: str = "") -> tuple[Query, ...]:
    """How long it took: half, and all but one of a hundred; of a histogram in seconds."""
    group = f"le, {by}" if by else "le"
    inner = f"sum by ({group}) (rate({metric}_bucket{{{match}}}[$__rate_interval]))"
    name = f"{{{{{by}}}}} " if by else ""
    return tuple(
        Query(f"histogram_quantile({share}, {inner})", f"{name}{words}")
        for share, words in ((0.5, "half"), (0.99, "all but 1%"))
    )
