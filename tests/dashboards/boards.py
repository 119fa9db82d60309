"""The dashboards as they are committed, and what is in them: panels, queries, links, names."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from dashboards.source.__main__ import FOLDER
from fleetd.surface import families

BOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))
}
FALLBACK = " or vector(0)"
OF_THE_TARGET = {"instance", "job"}
"""Labels that Prometheus itself puts on every series."""
METRIC = re.compile(r"\b((?:fleetd|process|scrape)_\w+|\w+:\w+:\w+|ALERTS)\b(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
_GROUP = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
_LABEL_VALUES = re.compile(r"label_values\((.*), (\w+)\)")
RULES = FOLDER.parent / "rules"
RECORDED = {
    rule["record"]
    for path in sorted(RULES.glob("*.yaml"))
    for group in yaml.safe_load(path.read_text("utf-8"))["groups"]
    for rule in group["rules"]
    if "record" in rule
}
"""What the recording rules make; each is named after the label that it has."""
_DECLARED = {one.name: one for one in families.ALL}
_FOREIGN = {
    "process_start_time_seconds": "gauge",
    "process_resident_memory_bytes": "gauge",
    "process_cpu_seconds_total": "counter",
    "process_open_fds": "gauge",
    "process_max_fds": "gauge",
    "scrape_duration_seconds": "gauge",
}
"""What prometheus_client and Prometheus add: names and types, without labels of their own."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One expression, and where it stands."""

    place: str
    expr: str
    panel: dict[str, Any]

    @property
    def names(self) -> set[str]:
        return {found[1] for found in METRIC.finditer(self.expr)}

    @property
    def labels(self) -> set[str]:
        """All labels that the metrics in it have."""
        known = {label for name in self.names for label in declared(name)[1]}
        return known | OF_THE_TARGET | ({"le"} if "_bucket" in self.expr else set())

    def matchers(self) -> Iterator[tuple[str, str, str]]:
        """Metric, label, value."""
        for found in METRIC.finditer(self.expr):
            for label, value in _MATCHER.findall(found[2] or ""):
                yield found[1], label, value

    def groups(self) -> set[str]:
        return {
            label.strip() for group in _GROUP.findall(self.expr) for label in group.split(",")
        } - {""}


def declared(name: str) -> tuple[str, tuple[str, ...]]:
    """Type and labels of a metric; of a part of a histogram, those of the whole. KeyError if there
    is no such metric."""
    if name in _FOREIGN:
        return _FOREIGN[name], ()
    if name == "ALERTS":
        return "gauge", ("alertname", "alertstate", "severity", "region")
    if name in RECORDED:
        return "gauge", (name.partition(":")[0],)
    if name in _DECLARED:
        return _DECLARED[name].type, _DECLARED[name].labels
    whole = _DECLARED[re.sub(r"_(bucket|sum|count)$", "", name)]
    if whole.type != "histogram":
        raise KeyError(name)
    return "counter", whole.labels


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in board["panels"] if one["type"] != "row"]


def asked() -> list[Asked]:
    """Every expression of every panel."""
    return [
        Asked(f"{uid}, {panel['title']}, {target['refId']}", target["expr"], panel)
        for uid, board in BOARDS.items()
        for panel in panels(board)
        for target in panel["targets"]
    ]


def choices(board: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Variables that are asked for: the series, and the label whose values are wanted."""
    found: dict[str, tuple[str, str]] = {}
    for one in board["templating"]["list"]:
        if one["type"] == "query":
            whole = _LABEL_VALUES.fullmatch(one["query"]["query"])
            assert whole, one["query"]
            found[one["name"]] = whole[1], whole[2]
    return found


def variables(board: dict[str, Any]) -> set[str]:
    return {one["name"] for one in board["templating"]["list"]}


def links(board: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Title of the panel and address, of all its links."""
    for panel in panels(board):
        config = panel["fieldConfig"]
        changed = [one for change in config["overrides"] for one in change["properties"]]
        inner = [link for one in changed if one["id"] == "links" for link in one["value"]]
        for link in (*panel["links"], *config["defaults"].get("links", ()), *inner):
            yield panel["title"], link["url"]
