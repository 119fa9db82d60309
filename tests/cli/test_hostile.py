"""What comes from far away steers no terminal, and a program gets one document whatever happens."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fleetd.cli.ending import as_json, plain
from fleetd.vocabulary import Truth
from tests.cli import programs
from tests.cli.programs import MINIMAL, fleetctl
from tests.surface import panels
from tests.surface.test_audit import written
from topology.resource import Ref

HOSTILE = "a\x1b]0;owned\x07b\x1b[2Jc\x9b31md\u202ee\rf [/bold] :warning: [red]g"
"""A title, a cleared screen, a colour, a direction, a line written over, markup and emoji."""
HARMLESS = "[/bold] :warning: [red]g"


def hostile() -> panels.FakePanel:
    panel = panels.small()
    ref = Ref("cluster", "hv")
    bad = panels.ready(Truth.FALSE, "Broken", HOSTILE)
    panel.judged[ref] = replace(bad, served=True)
    plan = panel.plans["eu-1"]
    waits = tuple(replace(wait, message=HOSTILE) for wait in plan.waits)
    panel.plans["eu-1"] = replace(plan, waits=waits, steps=())
    panel.history = [
        replace(one, event=replace(one.event, message=HOSTILE)) for one in panel.history
    ]
    return panel


@pytest.mark.parametrize(
    "args",
    [
        ("tree",),
        ("plan",),
        ("plan", "-o", "wide"),
        ("get", "cluster"),
        ("get", "cluster", "-o", "wide"),
        ("describe", "cluster", "hv"),
        ("why", "cluster", "hv"),
        ("why", "cluster", "hv", "-o", "wide"),
        ("events",),
    ],
)
def test_no_sign_reaches_the_terminal_that_would_steer_it(args: tuple[str, ...]) -> None:
    """Escape sequences, directions and carriage returns are shown as a sign; brackets and colons
    are text, not markup."""
    with programs.daemon(hostile()) as url:
        ran = fleetctl("--server", url, *args)
    assert (ran.code, ran.err) == (0, "")
    assert HARMLESS in ran.out
    assert not set(ran.out) & set("\x1b\x07\x9b\u202e\r")


@pytest.mark.parametrize("shape", ["json", "yaml"])
def test_a_program_gets_every_sign_escaped(shape: str) -> None:
    """As data nothing is lost, and nothing is raw either."""
    with programs.daemon(hostile()) as url:
        ran = fleetctl("--server", url, "get", "cluster", "hv", "-o", shape)
    read = json.loads if shape == "json" else yaml.safe_load
    assert read(ran.out)["ready"]["message"] == HOSTILE
    assert not set(ran.out) & set("\x1b\x07\x9b\u202e\r")


def test_a_complaint_does_not_steer_the_terminal() -> None:
    """What a person gave is shown again without what would steer, on stderr too."""
    with programs.daemon(panels.small()) as url:
        bad = fleetctl("--server", url, "get", "cluster", "x\x1b[2J")
        usage = fleetctl("--server", url, "events", "--for", "x\x1b[2J")
    assert (bad.code, usage.code) == (1, 2)
    assert "\x1b" not in bad.err + usage.err


@pytest.mark.parametrize(
    ("args", "code", "word"),
    [
        (("get", "cluster", "nope", "-o", "json"), 1, "not-found"),
        (("get", "nope", "-ojson"), 1, "bad-answer"),
        (("tree", "nope", "--output=json"), 1, "bad-answer"),
        (("-o", "json", "why", "cluster"), 2, "wrong-usage"),
        (("events", "--nonsense", "--output", "json"), 2, "wrong-usage"),
        (("get", "cluster", "-wojson"), 2, "wrong-usage"),
        (("tree", "-o", "json", "--server", "http://127.0.0.1:1"), 4, "unreachable"),
    ],
)
def test_an_error_is_one_document_too(args: tuple[str, ...], code: int, word: str) -> None:
    """With -o json stdout is one document: the answer or what went wrong; stderr says it too."""
    with programs.daemon(panels.small()) as url:
        ran = fleetctl(*args, env={"FLEETCTL_SERVER": url})
    assert ran.code == code
    error = ran.json["error"]
    assert (error["code"], error["exit"]) == (word, code)
    assert error["message"].splitlines()[0] in ran.err


def test_an_answer_stays_the_only_document() -> None:
    """What ends with a code after its answer adds nothing to it; a person's words are no JSON."""
    with programs.daemon(panels.small()) as url:
        env = {"FLEETCTL_SERVER": url}
        todo = fleetctl("plan", "--exit-code", "-o", "json", env=env)
        told = fleetctl("get", "nope", "-o", "wide", env=env)
        late = fleetctl("tree", "-o", "json", "-o", "text", "nope", env=env)
    assert (todo.code, list(todo.json)) == (3, ["plans"])
    assert (told.out, late.out) == ("", "")
    assert "error" not in fleetctl("validate", MINIMAL, "-o", "json").json


def test_plain() -> None:
    """Only what steers or hides is taken out; letters of every script stay."""
    assert plain("Grüße, 東京\tמ ● ─\n") == "Grüße, 東京\tמ ● ─\n"
    assert plain("\x00\x1b\x85\u2066\ufeff") == "\ufffd" * 5
    assert json.loads(as_json({"a": HOSTILE}, every=True)) == {"a": HOSTILE}


def test_a_verified_audit_is_data_too(tmp_path: Path) -> None:
    """`audit verify -o json` answers both ways as a document."""
    asyncio.run(written(tmp_path))
    good = fleetctl("audit", "verify", str(tmp_path), "-o", "json")
    bad = fleetctl("audit", "verify", str(tmp_path), "--head", "0" * 64, "-o", "json")
    assert (good.code, good.json["good"]) == (0, True)
    assert (bad.code, bad.json["error"]["exit"]) == (1, 1)
