"""Alert rules ask for what exists, say what is wrong, and lead to a runbook that works."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from fleetd.cli import daemon, main
from fleetd.surface import families, ledger
from fleetd.vocabulary import HoldReason
from tests.tidy import alerts
from tests.tidy.test_documents import FENCE

RULES = alerts.rules()
BOOKS = sorted(alerts.RUNBOOKS.glob("*.md"))
PROGRAMS = {"fleetctl": main.fleetctl, "fleetd": daemon.fleetd_command}
CHOICES = {
    ("fleetd_holds", "reason"): {one.value for one in HoldReason},
    ("fleetd_steps_total", "outcome"): set(families.OUTCOMES),
    ("fleetd_credentials", "state"): set(ledger.STATES),
    ("fleetd_pool_servers", "state"): {"free", "used", "unavailable"},
    ("fleetd_incidents", "severity"): {"critical", "warning"},
}


def called(rule: dict[str, Any]) -> str:
    return rule.get("alert") or rule["record"]


@pytest.mark.parametrize("rule", RULES, ids=called)
def test_a_rule_asks_for_what_exists(rule: dict[str, Any]) -> None:
    """Metrics that fleetd serves, with their labels and values that they can have, and series
    that other rules record."""
    recorded = {one["record"] for one in RULES if "record" in one}
    strange = [
        name
        for name in alerts.names(rule["expr"])
        if name not in recorded and alerts.family(name) is None
    ]
    wrong = [
        one
        for one in alerts.chosen(rule["expr"])
        if (found := alerts.family(one.metric)) is not None
        and (
            one.label not in found.labels
            or not set(one.values) <= CHOICES.get((one.metric, one.label), set(one.values))
        )
    ]

    assert (strange, wrong) == ([], [])


@pytest.mark.parametrize("rule", alerts.alerts().values(), ids=called)
def test_an_alert_says_what_is_wrong_and_where_to_read_on(rule: dict[str, Any]) -> None:
    """Severity, summary, description, and the runbook that has its name."""
    said = rule["annotations"]
    watchdog = rule["alert"] == alerts.WATCHDOG

    assert set(said) == {"summary", "description", "runbook_url"}
    assert rule["labels"]["severity"] in (["none"] if watchdog else alerts.SEVERITIES)
    assert said["runbook_url"] == f"{{{{ $externalLabels.runbooks }}}}/{rule['alert']}.md"
    assert said["description"].endswith(".")
    assert len(said["summary"]) < 80


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    """By name; each says what it means, what to look at and what to do."""
    wanted = {name for name, _ in alerts.alerts()}
    parts = ["## What it means", "## What to look at", "## What to do"]

    assert {book.stem for book in BOOKS} == wanted
    for book in BOOKS:
        text = book.read_text("utf-8")
        assert text.startswith(f"# {book.stem}\n")
        assert [line for line in text.splitlines() if line.startswith("##")] == parts


def test_every_alert_is_tested_firing_and_not() -> None:
    """Each severity of it, by promtool; the dead man's switch fires always."""
    checks = list(alerts.checks())
    lacking = [
        (name, severity, fires)
        for name, severity in alerts.alerts()
        for fires in (True, False)
        if not any(about == name and (severity in told) is fires for about, told in checks)
    ]

    assert lacking == [(alerts.WATCHDOG, "none", False)]
    assert alerts.alerts()[alerts.WATCHDOG, "none"]["expr"] == "vector(1)"


def parse(words: list[str]) -> None:
    """As the program itself does, without doing it. Raises what click raises."""
    name, *rest = words
    command: click.Command = PROGRAMS[name]
    while isinstance(command, click.Group):
        name, *rest = rest
        found = command.get_command(click.Context(command), name)
        if found is None:
            raise click.UsageError(f"there is no {name}")
        command = found
    command.make_context(name, rest)


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_the_commands_of_a_runbook_are_real(book: Path) -> None:
    """The programs' own parsers take each in a shell block, with options and arguments; a word in
    the text may be a command alone."""
    text = book.read_text("utf-8")
    found = [
        shlex.split(line, comments=True)
        for block in FENCE.findall(text)
        for line in block.splitlines()
    ]
    named = [line.split() for line in re.findall(r"`(fleet(?:ctl|d) [^`]*)`", text)]

    assert found
    for words in found:
        parse(words)
    for program, name, *rest in named:
        assert name in PROGRAMS[program].commands
        assert not rest


def test_a_command_that_does_not_exist_is_found() -> None:
    """Unknown commands, options, and arguments that lack or are too many."""
    for line in (
        "fleetctl disasters",
        "fleetctl credentials --zone a",
        "fleetctl pause region eu-1",
        "fleetctl approve",
        "fleetctl approve a b",
        "fleetctl audit check",
        "fleetd doctor --conf x",
    ):
        with pytest.raises(click.UsageError):
            parse(shlex.split(line))
