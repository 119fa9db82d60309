"""
`fleetctl apply`: check documents, show what they would do, ask, and hand them to the daemon.

What is shown is what is applied: a plan has an id, and the daemon refuses it when the world has
moved since it was made.
"""

import contextlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
from rich.text import Text

from fleetd import clock
from fleetd.cli import asking, client, difference, output, planning, reading, watching
from fleetd.cli.client import Client, Refusal
from fleetd.cli.ending import Exit, Stop
from fleetd.cli.frame import Frame
from topology import load

BODY_MAX = 1000 * 1000
"""Bytes. The daemon takes 1 MiB; the rest is for the frame around the documents."""
TRIES = 3
"""With --yes: how often a plan is made anew because the world moved under it."""
CALM = 2
"""Looks in a row that find nothing left, with --wait."""
_PERSON = {"NeedsApproval", "StepFailed", "Overdue", "Paused", "NoDriver", "NothingToDo"}
"""Holds that no time ends."""

Draft = dict[str, Any]


def draft(frame: Frame, asked: Client, paths: tuple[Path, ...], *, prune: bool) -> Draft:
    """The daemon's plan for these documents. Ends the program with all problems if there are."""
    bundle = load.load(paths or frame.documents)
    if bundle.problems:
        reading.refuse(frame, bundle.problems)
        raise Stop(Exit.BAD)
    folders = {item.file: str(item.folder.absolute()) for item in bundle.items}
    sent = [
        {"file": file, "folder": folders[file], "text": data.decode()}
        for file, data in bundle.sources.items()
        if file in folders
    ]
    if not sent and not prune:
        raise click.UsageError("no documents are given; name files or folders")
    size = len(json.dumps(sent))
    if size > BODY_MAX:
        raise Stop(
            Exit.BAD,
            f"these documents are {size / 1e6:.1f} MB, and a request may have 1 MB; put them into "
            "a folder that the daemon reads (fleetd serve --documents)",
        )
    try:
        with output.working("planning"):
            return asked.post("/plans", client.PLANNING, documents=sent, prune=prune)
    except Refusal as refusal:
        problems = refusal.told.get("problems")
        if refusal.problem != "documents-bad" or not problems:
            raise
        reading.refuse(frame, tuple(reading.problem(one) for one in problems))
        raise Stop(Exit.BAD) from None


def run(
    frame: Frame,
    paths: tuple[Path, ...],
    *,
    plan: str | None,
    prune: bool,
    consent: str,
    yes: bool,
    wait: bool,
) -> None:
    if not paths and not frame.documents and plan is None and not prune:
        raise click.UsageError("no documents are given; name files or folders")
    if plan is not None and (paths or prune):
        raise click.UsageError("--plan has its documents already; leave out the paths and --prune")
    if not yes and not asking.possible():
        raise click.UsageError(
            "this asks before it hands anything over, and there is no terminal to ask on; look at "
            "`fleetctl plan PATH`, then add --yes or --plan ID --yes"
        )
    asked = client.of(frame)
    if plan is not None:
        path = f"/plans/{quote(plan, safe='')}/apply"
        told = asked.post(path, client.PLANNING, consent=consent)
    else:
        told = _by_plan(frame, asked, paths, prune=prune, consent=consent, yes=yes)
    if told is None:
        return
    if wait and told["resources"]:
        _wait(asked, set(told["resources"]))
    if frame.machine:
        output.data(frame, told)
    else:
        count = reading.count(len(told["documents"]), "document")
        things = reading.count(len(told["resources"]), "resource")
        away = f", took {len(told['pruned'])} away" if told["pruned"] else ""
        output.line(Text(f"applied {count}{away}, plan {told['plan']}: {things} concerned"))


def _by_plan(
    frame: Frame, asked: Client, paths: tuple[Path, ...], *, prune: bool, consent: str, yes: bool
) -> Draft | None:
    for tries in range(1, TRIES + 1):
        made = draft(frame, asked, paths, prune=prune)
        if not yes:
            # To stderr: the answer is what becomes of it.
            with contextlib.redirect_stdout(sys.stderr):
                show(made, wide=frame.output == "wide")
        agreed = consent or _consent(made, yes=yes)
        if not yes and not made["owned"] and not asking.confirm("Hand these documents over?"):
            raise Stop(Exit.BAD, "nothing is applied")
        try:
            return asked.post(f"/plans/{made['id']}/apply", client.PLANNING, consent=agreed)
        except Refusal as refusal:
            if refusal.problem != "plan-stale" or not yes or tries == TRIES:
                raise
    return None


def _consent(made: Draft, *, yes: bool) -> str:
    """Much at once is not agreed to with a single key."""
    if made["consent"] is None or yes:
        return ""
    wanted = made["consent"]["id"]
    if asking.word(f"To consent, type {wanted}") != wanted:
        raise Stop(Exit.BAD, "nothing is applied")
    return wanted


def show(made: Draft, *, wide: bool) -> None:
    console = output.answers()
    if not made["text"] and not made["pruned"]:
        console.print("No difference: what should exist stays as it is.")
        if made["fresh"]:
            names = ", ".join(made["fresh"])
            output.line(Text(f"New, or with other words: {names}. Plan {made['id']}", style="bold"))
        return
    difference.lines(made["text"])
    console.print()
    if made["waves"]:
        planning.show_waves(made["waves"], wide=wide)
        console.print()
    for one in made["owned"]:
        text = f"! {one['document']} belongs to {one['file']}, which the daemon reads: change it "
        output.line(Text(text + "there; `apply` refuses it", style="yellow"))
    if made["consent"]:
        consent = made["consent"]
        text = f"! {consent['why']}; `apply` needs --consent {consent['id']}"
        output.line(Text(text, style="bold red"))
    output.line(Text(f"plan {made['id']}: {difference.counts(made['change'])}", style="bold"))


def _wait(asked: Client, refs: set[str]) -> None:
    """Until all of it is Ready and nothing is left to do about it, or only a person can move the
    rest. Twice in a row: what was just looked at is planned a moment later."""
    with output.working("waiting") as progress:
        last, calm, patience, known = "", 0, watching.Patience(good=True), False
        while True:
            found = patience.look(lambda: _nodes(asked))
            # A daemon that has just started knows nothing yet; that is not the end of it.
            if found is None or (known and not found):
                clock.block(watching.POLL)
                continue
            known = known or bool(found)
            nodes = [node for node in found if node["id"] in refs]
            left = [node for node in nodes if not _is_done(node)]
            calm = 0 if left else calm + 1
            if calm == CALM:
                return
            text = f"{len(nodes) - len(left):,} of {len(nodes):,} Ready"
            progress(text)
            if text != last and not output.complaints().is_terminal:
                click.echo(f"waiting: {text}", err=True)
            last = text
            stuck = _stuck(left)
            if stuck:
                raise Stop(Exit.BAD, "\n".join(_reasons(asked, stuck)))
            clock.block(watching.POLL)


def _nodes(asked: Client) -> list[Draft]:
    names = [region["name"] for region in asked.get("/regions")["items"]]
    return [node for name in names for node in asked.get(f"/topology/{name}")["nodes"]]


def _is_done(node: Draft) -> bool:
    """What serves in its old form is Ready too, and then there is a step for it."""
    return bool(node["current"]) and node["ready"]["status"] == "True" and not node["plan"]


def _stuck(left: list[Draft]) -> list[Draft]:
    """What waits for a person, once nothing else moves any more."""
    said = Counter((node["plan"] or {"state": "none"})["state"] for node in left)
    if not left or said["held"] < len(left):
        return []
    return [node for node in left if node["plan"]["reason"] in _PERSON]


def _reasons(asked: Client, stuck: list[Draft]) -> list[str]:
    told = [
        asked.get(f"/resources/{node['kind']}/{node['name']}")["why"]["paragraph"]
        for node in stuck[:3]
    ]
    more = [f"... and {len(stuck) - 3:,} more"] if len(stuck) > 3 else []
    return ["a person is needed:", *told, *more]
