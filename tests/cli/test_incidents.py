"""`fleetctl incidents` against a daemon's HTTP interface."""

from dataclasses import replace
from datetime import timedelta

from fleetd.plan.incidents import Cause, Incident, Report, Severity
from tests.cli import programs
from tests.cli.programs import fleetctl
from tests.surface import panels
from topology.resource import Ref

RACK = Incident(
    id="0a1b",
    region="eu-1",
    severity=Severity.CRITICAL,
    cause=Cause(
        ref=Ref("rack", "a3"),
        reason="PowerOff",
        message="none of its servers is Ready; power or network?",
        since=panels.NOW - timedelta(minutes=12),
    ),
    affected=(Ref("server", "b"), Ref("cloud", "prod")),
    total=1007,
    more=True,
    advice="Look at the rack's power.",
)
SERVER = replace(
    RACK,
    id="2c3d",
    severity=Severity.WARNING,
    cause=Cause(ref=Ref("server", "a"), reason="NoAnswer", message="no route", since=panels.NOW),
    affected=(),
    total=0,
    more=False,
    advice="",
)


def _panel(report: Report) -> panels.FakePanel:
    panel = panels.small()
    panel.failures = report
    return panel


def test_each_failure_is_a_line() -> None:
    """Cause, severity, age, region, how many it affects, and what is wrong; the worst first."""
    with programs.daemon(_panel(Report(items=(RACK, SERVER), left=3))) as url:
        ran = fleetctl("--server", url, "incidents")
    title, first, second, *rest = ran.out.splitlines()

    assert ran.code == 0
    assert title.split() == ["CAUSE", "SEVERITY", "AGE", "REGION", "AFFECTS", "WHAT"]
    assert first.split()[:6] == ["rack/a3", "critical", "12m", "eu-1", "1,007+", "PowerOff:"]
    assert first.endswith("PowerOff: none of its servers is Ready; power or network?")
    assert second.split() == [
        *("server/a", "warning", "0s", "eu-1", "0", "NoAnswer:", "no", "route")
    ]
    assert "3 more things are in trouble" in "\n".join([*rest, ran.err])


def test_wide_says_what_to_do_and_what_suffers() -> None:
    """The names that are told, how many more there are, and the advice."""
    with programs.daemon(_panel(Report(items=(RACK,)))) as url:
        ran = fleetctl("--server", url, "incidents", "-o", "wide")
    lines = ran.out.splitlines()

    assert lines[1].endswith("Look at the rack's power.  server/b")
    assert [line.strip() for line in lines[2:]] == ["cloud/prod", "and 1,005 more"]


def test_programs_get_what_the_daemon_says() -> None:
    """`-o json` has every field, of one region if it is named; one that is none is an error."""
    with programs.daemon(_panel(Report(items=(RACK,), left=1))) as url:
        every = fleetctl("--server", url, "incidents", "-o", "json")
        here = fleetctl("--server", url, "incidents", "--region", "eu-1", "-o", "json")
        nowhere = fleetctl("--server", url, "incidents", "--region", "nope")

    assert every.json == here.json
    assert every.json["left"] == 1
    assert every.json["items"][0]["cause"]["reason"] == "PowerOff"
    assert every.json["items"][0]["affectedTotal"] == 1007
    assert (nowhere.code, nowhere.out) == (1, "")
    assert "no document names a region nope" in nowhere.err


def test_when_nothing_is_wrong_it_says_so() -> None:
    """A sentence, not an empty answer."""
    with programs.daemon(_panel(Report())) as url:
        ran = fleetctl("--server", url, "incidents")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "No incidents: nothing is wrong that has a cause of its own.\n"
