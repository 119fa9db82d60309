"""The dashboards against the types that Grafana itself publishes."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from dashboards.source.__main__ import FOLDER
from tests.real import grafana

pytestmark = pytest.mark.real

BOARDS = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}
Damage = Callable[[dict[str, Any]], None]


@pytest.mark.parametrize("name", BOARDS)
def test_grafana_knows_everything_in_a_dashboard(name: str) -> None:
    """No key that it does not have, no value out of range, no option of another panel."""
    assert [*grafana.complaints(BOARDS[name])] == []


def _panel(board: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(panel for panel in board["panels"] if panel["type"] == kind)


def _mistyped(board: dict[str, Any]) -> None:
    board["tiemzone"] = board.pop("timezone")


def _out_of_range(board: dict[str, Any]) -> None:
    board["templating"]["list"][2]["refresh"] = 7


def _panel_key(board: dict[str, Any]) -> None:
    _panel(board, "timeseries")["descripton"] = "x"


def _wrong_option(board: dict[str, Any]) -> None:
    _panel(board, "timeseries")["options"]["tooltip"]["mode"] = "all"


def _foreign_option(board: dict[str, Any]) -> None:
    _panel(board, "stat")["options"]["showHeader"] = True


def _wrong_drawing(board: dict[str, Any]) -> None:
    _panel(board, "timeseries")["fieldConfig"]["defaults"]["custom"]["drawStyle"] = "curve"


def _wrong_override(board: dict[str, Any]) -> None:
    change = _panel(board, "table")["fieldConfig"]["overrides"][0]["properties"]
    change.append({"id": "custom.cellOptions", "value": {"type": "colour-text"}})


def _wrong_steps(board: dict[str, Any]) -> None:
    _panel(board, "stat")["fieldConfig"]["defaults"]["thresholds"]["mode"] = "relative"


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        (_mistyped, "tiemzone"),
        (_out_of_range, "templating/list/2/refresh"),
        (_panel_key, "descripton"),
        (_wrong_option, "tooltip/mode"),
        (_foreign_option, "showHeader"),
        (_wrong_drawing, "drawStyle"),
        (_wrong_override, "cellOptions"),
        (_wrong_steps, "thresholds/mode"),
    ],
)
def test_a_mistake_is_found(damage: Damage, word: str) -> None:
    """A mistyped key, a value out of range, a wrong option, drawing or override: each by name."""
    board = copy.deepcopy(BOARDS["fleetd-overview"])
    damage(board)

    found = [*grafana.complaints(board)]

    assert found
    assert all(word in one for one in found)
