"""The alert rules as data: what they ask for, and which runbook belongs to each."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fleetd.surface import families
from tests.tidy import files

RULES = files.ROOT / "dashboards" / "rules"
RUNBOOKS = files.ROOT / "docs" / "runbooks"
TESTS = RULES / "tests"
WATCHDOG = "FleetdWatchdog"
SEVERITIES = ("critical", "warning")
WORDS = frozenset(
    {"absent", "avg_over_time", "changes", "histogram_quantile", "increase", "max_over_time"}
    | {"rate", "time", "vector"}
    | {"and", "avg", "bool", "by", "max", "on", "or", "sum", "unless", "up"}
)
"""Of PromQL, what the rules may use; and `up`, which Prometheus makes itself."""
_TEXT = re.compile(r'"[^"]*"')
_BESIDE = re.compile(r"\b(?:by|on)\s*\([^)]*\)|\[[^\]]*\]|\{[^}]*\}")
_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_CHOSEN = re.compile(r"([a-zA-Z_:][\w:]*)\s*\{([^}]*)\}")
_MATCH = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')
_PART = re.compile(r"_(?:bucket|sum|count)$")


class Chosen(NamedTuple):
    metric: str
    label: str
    values: tuple[str, ...]


def rules() -> list[dict[str, Any]]:
    """All of them, with the file of each."""
    return [
        {**rule, "file": path.name}
        for path in sorted(RULES.glob("*.yaml"))
        for group in _load(path)["groups"]
        for rule in group["rules"]
    ]


def alerts() -> dict[tuple[str, str], dict[str, Any]]:
    """By name and severity."""
    return {
        (rule["alert"], rule["labels"]["severity"]): rule for rule in rules() if "alert" in rule
    }


def checks() -> Iterator[tuple[str, frozenset[str]]]:
    """Of each check in the tests: the alert, and the severities that fire."""
    for path in sorted(TESTS.glob("*.yaml")):
        for test in _load(path)["tests"]:
            for check in test["alert_rule_test"]:
                fires = {one["exp_labels"]["severity"] for one in check["exp_alerts"]}
                yield check["alertname"], frozenset(fires)


def names(expression: str) -> set[str]:
    """Metrics and recorded series that an expression asks for."""
    bare = _BESIDE.sub(" ", _TEXT.sub('""', expression))
    return {one for one in _NAME.findall(bare) if one not in WORDS}


def chosen(expression: str) -> list[Chosen]:
    """What is chosen of a metric, by label."""
    return [
        Chosen(metric, label, tuple(values.split("|")))
        for metric, inside in _CHOSEN.findall(expression)
        for label, values in _MATCH.findall(inside)
    ]


def family(name: str) -> families.Declared | None:
    """Of a series; a histogram has several."""
    known = {one.name: one for one in families.ALL}
    found = known.get(_PART.sub("", name))
    return known.get(name) or (found if found is not None and found.type == "histogram" else None)


def _load(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))
