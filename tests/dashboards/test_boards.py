"""Dashboards as data: current, complete, laid out, and connected with each other and the page."""

import itertools
import re
from pathlib import Path

import pytest
import yaml

from dashboards.source import __main__ as source
from dashboards.source import fleet
from dashboards.source.model import WIDTH
from fleetd import settings
from fleetd.plan.incidents import Severity
from fleetd.surface import ledger
from fleetd.surface.families import OUTCOMES, RESULTS, STATES
from fleetd.vocabulary import HoldReason
from tests.dashboards import boards
from tests.dashboards.boards import BOARDS, Asked
from tests.tidy import files

ASKED = boards.asked()
BUILT_IN = {"__rate_interval", "__range", "__url_time_range", "__all"}
VALUES = {
    "fleetd_resources": {"state": {*STATES.values()}},
    "fleetd_pool_servers": {"state": {"free", "used", "unavailable"}},
    "fleetd_holds": {"reason": {one.value for one in HoldReason}},
    "fleetd_credentials": {"state": {*ledger.STATES}},
    "fleetd_incidents": {"severity": {one.value for one in Severity}},
    "fleetd_steps_total": {"outcome": {*OUTCOMES}},
    "fleetd_looks_total": {"result": {*RESULTS}},
}
"""What a label can be, of metrics whose values are named in a query."""


def test_the_dashboards_are_what_the_code_makes() -> None:
    """Whoever changes the code writes the files anew; nobody edits them by hand."""
    assert source.main(["--check"]) == 0
    assert len(BOARDS) == 6


def test_a_file_that_differs_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--write` makes them whole again, and takes away what no code makes."""
    monkeypatch.setattr(source, "FOLDER", tmp_path)
    (tmp_path / "old.json").write_text("{}", "utf-8")

    assert source.main(["--check"]) == 1
    assert "is not current" in capsys.readouterr().err
    assert source.main(["--write"]) == 0
    assert source.main(["--check"]) == 0
    assert not (tmp_path / "old.json").exists()


def test_names_are_used_once() -> None:
    """The uid is the file's name and stays; ids and titles tell panels of a dashboard apart."""
    for uid, board in BOARDS.items():
        every = board["panels"]
        ids, titles = [one["id"] for one in every], [one["title"] for one in boards.panels(board)]

        assert board["uid"] == uid
        assert len({*ids}) == len(ids)
        assert len({*titles}) == len(titles), uid
    assert len({board["title"] for board in BOARDS.values()}) == len(BOARDS)


def test_a_panel_says_what_it_shows() -> None:
    """Each has a description in whole sentences, a unit, and something to ask for."""
    for uid, board in BOARDS.items():
        for panel in boards.panels(board):
            place = f"{uid}, {panel['title']}"

            assert panel["description"].endswith("."), place
            assert len(panel["description"]) > 20, place
            assert panel["fieldConfig"]["defaults"]["unit"], place
            assert panel["targets"], place


def test_what_is_counted_has_colours() -> None:
    """A single figure has thresholds, or says by one colour that none of its values is bad."""
    for board in BOARDS.values():
        for panel in boards.panels(board):
            if panel["type"] == "stat":
                steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
                bounds = [step["value"] for step in steps[1:]]

                assert steps[0]["value"] is None
                assert bounds == sorted(bounds), panel["title"]


def test_panels_do_not_overlap() -> None:
    """Each cell of the grid belongs to one panel, and all are within its width."""
    for uid, board in BOARDS.items():
        cells = [
            (x, y)
            for one in board["panels"]
            for x, y in itertools.product(
                range(one["gridPos"]["x"], one["gridPos"]["x"] + one["gridPos"]["w"]),
                range(one["gridPos"]["y"], one["gridPos"]["y"] + one["gridPos"]["h"]),
            )
        ]

        assert len({*cells}) == len(cells), uid
        assert max(x for x, _ in cells) < WIDTH


@pytest.mark.parametrize("one", ASKED, ids=lambda one: one.place)
def test_a_query_asks_for_what_there_is(one: Asked) -> None:
    """Its metrics are declared, with the labels it names; a counter is seen by its rate only."""
    assert one.names, one.expr
    for name in one.names:
        kind = boards.declared(name)[0]
        bare = re.findall(rf"(?<!rate\()(?<!increase\()\b{name}\b", one.expr)

        assert kind != "counter" or not bare, one.expr
    for name, label, value in one.matchers():
        assert label in {*boards.declared(name)[1], *boards.OF_THE_TARGET}, one.expr
        known = VALUES.get(name, {}).get(label)
        assert known is None or {*value.split("|")} <= known, one.expr
    assert one.groups() <= one.labels, one.expr


@pytest.mark.parametrize("uid", BOARDS)
def test_a_variable_asks_for_what_there_is(uid: str) -> None:
    """The label whose values are wanted belongs to the metric, and what it builds on stands before
    it."""
    before = {"datasource", "page"}
    for name, (series, label) in boards.choices(BOARDS[uid]).items():
        one = Asked(f"{uid}, ${name}", series, {})

        assert label in one.labels
        assert {found for _, found, _ in one.matchers()} <= one.labels
        assert _named(series) <= before
        before.add(name)


@pytest.mark.parametrize("uid", BOARDS)
def test_every_variable_that_is_used_exists(uid: str) -> None:
    """In queries and links; and every one that can be chosen changes something."""
    board = BOARDS[uid]
    texts = [target["expr"] for panel in boards.panels(board) for target in panel["targets"]]
    texts += [series for series, _ in boards.choices(board).values()]
    addresses = [url for _, url in boards.links(board)]
    used = {name for text in (*texts, *addresses) for name in _named(text)}

    assert used - BUILT_IN <= boards.variables(board)
    assert {*boards.choices(board)} <= {name for text in texts for name in _named(text)}


def _named(text: str) -> set[str]:
    """Variables in it; what stands for a field of the row is none."""
    found = re.findall(r"\$\{(\w+)[^}]*\}|\$(\w+)", text)
    return {name for pair in found for name in pair if name} - {"__data", "__field"}


# Links.

PAGE = Path("fleetd/page")
MAIN = files.text(PAGE / "main.js")


def _views() -> dict[str, set[str]]:
    """Views of the page: what each can be asked for, read from its source."""
    homes = dict(re.findall(r"import \{ (\w+) \} from \"\./(views/\w+\.js)\";", MAIN))
    table = re.search(r"const VIEWS = \{(.*?)\};", MAIN, re.DOTALL)
    assert table
    found: dict[str, set[str]] = {}
    for name, view in re.findall(r'(""|\w+): (\w+)', table[1]):
        text = files.text(PAGE / homes[view])
        asks = {*re.findall(r"here\.query\.(\w+)", text)}
        for group in re.findall(r"const \{ ([^}]*) \} = here\.query", text):
            asks |= {word.strip() for word in group.split(",")}
        found[name.strip('"')] = asks
    return found


VIEWS = _views()
PARTS = {"region": 1, "thing": 2}
"""What stands after the view in an address."""


@pytest.mark.parametrize("uid", BOARDS)
def test_a_link_leads_somewhere(uid: str) -> None:
    """To a view of the page that takes what it is asked, or to a dashboard that has the
    variable."""
    for title, url in boards.links(BOARDS[uid]):
        if url.startswith("/d/"):
            target, _, rest = url.removeprefix("/d/").partition("?")
            chosen = set(re.findall(r"var-(\w+)=", rest))

            assert chosen <= boards.variables(BOARDS[target]), f"{title}: {url}"
            continue
        assert url.startswith("${page}/#/"), f"{title}: {url}"
        path, _, rest = url.removeprefix("${page}/#/").partition("?")
        view, *parts = path.split("/")
        keys = {pair.partition("=")[0] for pair in rest.split("&") if pair}

        assert view in VIEWS, f"{title}: {url}"
        assert len(parts) == PARTS.get(view, 0), f"{title}: {url}"
        assert keys <= VIEWS[view], f"{title}: {url}"


@pytest.mark.parametrize("uid", BOARDS)
def test_a_link_names_labels_that_its_series_have(uid: str) -> None:
    """`${__data.fields.x}` and `${__field.labels.x}`: x is what the query groups by, or has."""
    for panel in boards.panels(BOARDS[uid]):
        asked = [Asked(uid, target["expr"], panel) for target in panel["targets"]]
        kept = set(asked[0].labels).intersection(*(one.groups() or one.labels for one in asked))
        urls = [url for title, url in boards.links(BOARDS[uid]) if title == panel["title"]]
        for url in urls:
            used = re.findall(r"\$\{__(?:data\.fields|field\.labels)\.(\w+)", url)

            assert {*used} <= kept, f"{panel['title']}: {url}"


def test_every_dashboard_is_reached_from_the_first() -> None:
    """By links of panels; the menu of dashboards has them all as well."""
    reached, left = set[str](), ["fleetd-overview"]
    while left:
        uid = left.pop()
        if uid not in reached:
            reached.add(uid)
            urls = [url for _, url in boards.links(BOARDS[uid]) if url.startswith("/d/")]
            left += [url.removeprefix("/d/").partition("?")[0] for url in urls]
    menus = {uid: board["links"][0]["tags"] for uid, board in BOARDS.items()}

    assert reached == {*BOARDS}
    assert menus == {uid: board["tags"] for uid, board in BOARDS.items()}


def test_a_panel_about_the_fleet_leads_to_the_page() -> None:
    """Whoever sees a figure that is odd is one click away from the things behind it."""
    without = [
        f"{uid}, {panel['title']}"
        for uid, board in BOARDS.items()
        if uid != "fleetd-self"
        for panel in boards.panels(board)
        if not any(
            url.startswith("${page}/#/")
            for title, url in boards.links(board)
            if title == panel["title"]
        )
    ]

    assert without == []


def test_the_provisioning_fits_the_dashboards() -> None:
    """The data source is of the type that the dashboards ask for; the README names the folder and
    the address that stand in the files."""
    given = {
        name: yaml.safe_load(files.text(Path(f"deploy/grafana/{name}.yaml")))
        for name in ("datasource", "dashboards")
    }
    types = {one["query"] for one in BOARDS["fleetd-region"]["templating"]["list"][:1]}
    readme = files.text(Path("dashboards/README.md"))

    assert {one["type"] for one in given["datasource"]["datasources"]} == types
    assert given["dashboards"]["providers"][0]["options"]["path"] in readme
    assert fleet.PAGE in readme
    assert f"http://{settings.LISTEN}" == fleet.PAGE
