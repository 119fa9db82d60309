"""
What a Grafana dashboard is made of: panels, variables, links, and their JSON.

It knows Grafana and nothing of fleetd. The one rule: whatever a reader of a panel needs is asked
for by its type, so that a panel without a description or a unit cannot be written. Ids and places
follow from the order; the same code makes the same bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

SOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
SCHEMA_VERSION = 42
"""Of the dashboards of Grafana 13; an older Grafana reads what it knows, a newer one migrates."""
WIDTH = 24
REFRESH = ("10s", "30s", "1m", "5m", "15m")
PAGE_ROWS = 20

Steps = Sequence[tuple[float | None, str]]
"""Where a colour begins."""
PLAIN: Steps = ((None, "text"),)
NONE_IS_GOOD: Steps = ((None, "green"), (1, "orange"))
NONE_OR_BAD: Steps = ((None, "green"), (1, "red"))
ONE_IS_GOOD: Steps = ((None, "red"), (1, "green"))


@dataclass(frozen=True, slots=True)
class Link:
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Query:
    expr: str
    name: str = ""
    """In a graph what a line is called, in a table what a column is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """How a column of a table looks that is not just text or a count."""

    unit: str = "short"
    steps: Steps = PLAIN
    link: Link | None = None
    words: Mapping[str, str] | None = None
    """Text for values."""


@dataclass(frozen=True, kw_only=True)
class Panel:
    title: str
    about: str
    unit: str
    queries: tuple[Query, ...]
    width: int
    height: int
    links: tuple[Link, ...] = ()
    """From the panel as a whole."""
    each: Link | None = None
    """From one line of it; its labels can be named."""

    type = ""
    instant = False

    def json(self, number: int, x: int, y: int) -> Json:
        return {
            "id": number,
            "type": self.type,
            "title": self.title,
            "description": self.about,
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [
                self._target(one, chr(ord("A") + at)) for at, one in enumerate(self.queries)
            ],
            "fieldConfig": {"defaults": self._defaults(), "overrides": self._overrides()},
            "options": self._options(),
            "links": [_panel_link(one) for one in self.links],
        }

    def _target(self, query: Query, letter: str) -> Json:
        kind = {"instant": True, "range": False} if self.instant else {"range": True}
        made: Json = {"refId": letter, "datasource": SOURCE, "editorMode": "code", **kind}
        return {**made, "expr": query.expr, "legendFormat": query.name or "__auto"}

    def _defaults(self) -> Json:
        return {"unit": self.unit}

    def _each(self) -> list[Json]:
        return [_data_link(self.each)] if self.each is not None else []

    def _overrides(self) -> list[Json]:
        return []

    def _options(self) -> Json:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Stat(Panel):
    """One figure, as it is now, with its recent course behind it."""

    steps: Steps
    width: int = 4
    height: int = 4

    type = "stat"

    def _defaults(self) -> Json:
        return {"unit": self.unit, "color": {"mode": "thresholds"}, "thresholds": _at(self.steps)}

    def _options(self) -> Json:
        return {
            "colorMode": "value",
            "graphMode": "area",
            "justifyMode": "auto",
            "orientation": "auto",
            "percentChangeColorMode": "standard",
            "reduceOptions": _LAST,
            "showPercentChange": False,
            "textMode": "auto",
            "wideLayout": True,
        }


@dataclass(frozen=True, kw_only=True)
class Word(Stat):
    """The name of a series instead of its value."""

    type = "stat"
    instant = True

    def _options(self) -> Json:
        return {**super()._options(), "graphMode": "none", "textMode": "name"}


@dataclass(frozen=True, kw_only=True)
class Graph(Panel):
    """Lines over time, few enough to be told apart."""

    stacked: bool = False
    steps: Steps | None = None
    """Drawn as a line where it begins."""
    width: int = 12
    height: int = 8

    type = "timeseries"

    def _defaults(self) -> Json:
        custom: Json = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 20 if self.stacked else 0,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"group": "A", "mode": "normal" if self.stacked else "none"},
            "thresholdsStyle": {"mode": "dashed" if self.steps else "off"},
        }
        found: Json = {"unit": self.unit, "min": 0, "custom": custom, "links": self._each()}
        return found | ({"thresholds": _at(self.steps)} if self.steps else {})

    def _options(self) -> Json:
        return {
            "legend": {
                "calcs": ["lastNotNull", "max"],
                "displayMode": "table",
                "placement": "right",
                "showLegend": True,
            },
            "tooltip": {"hideZeros": True, "mode": "multi", "sort": "desc"},
        }


@dataclass(frozen=True, kw_only=True)
class Timeline(Panel):
    """What state each of a few things was in, and when."""

    words: Mapping[str, tuple[str, str]]
    """Text and colour for values."""
    width: int = 24
    height: int = 10

    type = "state-timeline"

    def _defaults(self) -> Json:
        options = {
            value: {"text": text, "color": color, "index": at}
            for at, (value, (text, color)) in enumerate(self.words.items())
        }
        return {
            "unit": self.unit,
            "custom": {"fillOpacity": 70, "lineWidth": 0},
            "mappings": [{"type": "value", "options": options}],
            "links": self._each(),
        }

    def _options(self) -> Json:
        return {
            "alignValue": "left",
            "legend": _NO_LEGEND,
            "mergeValues": True,
            "perPage": PAGE_ROWS,
            "rowHeight": 0.9,
            "showValue": "never",
            "tooltip": {"mode": "single", "sort": "none"},
        }


@dataclass(frozen=True, kw_only=True)
class Table(Panel):
    """One row for each thing: its labels, and a column for each query."""

    labels: tuple[str, ...]
    columns: Mapping[str, Column]
    sort: str
    worst_is_low: bool = False
    width: int = 24
    height: int = 10

    type = "table"
    instant = True

    def json(self, number: int, x: int, y: int) -> Json:
        found = super().json(number, x, y)
        letters = [target["refId"] for target in found["targets"]]
        values = ["Value"] if len(letters) == 1 else [f"Value #{letter}" for letter in letters]
        names = [query.name for query in self.queries]
        order = [*self.labels, *values]
        organize = {
            "excludeByName": {"Time": True},
            "indexByName": {name: at for at, name in enumerate(order)},
            "renameByName": dict(zip(values, names, strict=True)),
        }
        moves: list[Json] = [
            {"id": "merge", "options": {}},
            {"id": "organize", "options": organize},
        ]
        return {**found, "transformations": moves}

    def _target(self, query: Query, letter: str) -> Json:
        return {**super()._target(query, letter), "format": "table"}

    def _defaults(self) -> Json:
        cell = {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False}
        return {"unit": self.unit, "custom": {**cell, "filterable": True}}

    def _overrides(self) -> list[Json]:
        return [
            {"matcher": {"id": "byName", "options": name}, "properties": _look(column)}
            for name, column in self.columns.items()
        ]

    def _options(self) -> Json:
        order = {"displayName": self.sort, "desc": not self.worst_is_low}
        return {
            "cellHeight": "sm",
            "enablePagination": True,
            "frameIndex": 0,
            "showHeader": True,
            "sortBy": [order],
        }


@dataclass(frozen=True, slots=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A variable: what one can choose, by a query for the values of a label."""

    name: str
    label: str
    about: str
    query: str
    many: bool = True
    """Several at once, or all."""

    def json(self) -> Json:
        made: Json = {
            "name": self.name,
            "label": self.label,
            "description": self.about,
            "type": "query",
            "datasource": SOURCE,
            "query": {"query": self.query, "refId": self.name},
            "refresh": 2,
            "sort": 1,
            "multi": self.many,
            "includeAll": self.many,
        }
        # All as one pattern: a list of a thousand names would be a query of its own size.
        return made | ({"allValue": ".*", "current": _ALL} if self.many else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    uid: str
    title: str
    about: str
    tags: tuple[str, ...]
    variables: tuple[Json, ...]
    links: tuple[Json, ...]
    rows: tuple[Row, ...]
    since: str = "now-6h"

    def json(self) -> Json:
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.about,
            "tags": [*self.tags],
            "schemaVersion": SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "time": {"from": self.since, "to": "now"},
            "timepicker": {"refresh_intervals": [*REFRESH]},
            "timezone": "browser",
            "annotations": {"list": []},
            "templating": {"list": [*self.variables]},
            "links": [*self.links],
            "panels": _laid_out(self.rows),
        }


def _laid_out(rows: Sequence[Row]) -> list[Json]:
    """From left to right, and down where the line is full."""
    made: list[Json] = []
    y = 0
    for row in rows:
        title = {"type": "row", "title": row.title, "collapsed": False, "panels": list[Json]()}
        made.append({**title, "id": len(made) + 1, "gridPos": {"x": 0, "y": y, "w": WIDTH, "h": 1}})
        y, x, tall = y + 1, 0, 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, tall = 0, y + tall, 0
            made.append(panel.json(len(made) + 1, x, y))
            x, tall = x + panel.width, max(tall, panel.height)
        y += tall
    return made


_LAST: Json = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_NO_LEGEND: Json = {
    "calcs": list[str](),
    "displayMode": "list",
    "placement": "bottom",
    "showLegend": False,
}
_ALL: Json = {"text": "All", "value": "$__all"}


def _at(steps: Steps) -> Json:
    return {
        "mode": "absolute",
        "steps": [{"value": value, "color": color} for value, color in steps],
    }


def _look(column: Column) -> list[Json]:
    found: list[Json] = [{"id": "unit", "value": column.unit}]
    if column.steps is not PLAIN:
        found.append({"id": "thresholds", "value": _at(column.steps)})
        found.append({"id": "custom.cellOptions", "value": {"type": "color-text"}})
    if column.words is not None:
        options = {value: {"text": text} for value, text in column.words.items()}
        found.append({"id": "mappings", "value": [{"type": "value", "options": options}]})
    if column.link is not None:
        found.append({"id": "links", "value": [_data_link(column.link)]})
    return found


def _data_link(link: Link) -> Json:
    return {"title": link.title, "url": link.url, "targetBlank": _abroad(link)}


def _panel_link(link: Link) -> Json:
    return {**board_link(link.title, link.url), "targetBlank": _abroad(link)}


def _abroad(link: Link) -> bool:
    return not link.url.startswith("/")


def board_link(title: str, url: str, tooltip: str = "") -> Json:
    """At the top of a dashboard or a panel."""
    return {
        "type": "link",
        "title": title,
        "url": url,
        "tooltip": tooltip or title,
        "icon": "external link",
        "tags": list[str](),
        "asDropdown": False,
        "includeVars": False,
        "keepTime": False,
        "targetBlank": True,
    }


def tag_link(title: str, tag: str) -> Json:
    """A menu of all dashboards with a tag; what was chosen here is chosen there."""
    return {
        **board_link(title, "", "all of them, with what is chosen here"),
        "type": "dashboards",
        "tags": [tag],
        "asDropdown": True,
        "targetBlank": False,
        "includeVars": True,
        "keepTime": True,
    }
