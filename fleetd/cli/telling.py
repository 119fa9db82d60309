"""`fleetctl pause | resume | approve | reject`: what a person tells the daemon."""

from urllib.parse import quote

import click
from rich.text import Text

from fleetd.cli import client, naming, output
from fleetd.cli.client import Client
from fleetd.cli.frame import Frame

REASON_MAX = 300
"""Signs: it is shown in one line wherever the pause is."""


def scope(asked: Client | None, words: tuple[str, ...]) -> str:
    """`all`, `region eu-1`, `kind server`, `cluster hv`, `cluster/hv`, `kind:server` as a scope.
    Without a daemon to ask, the words are taken as they are."""
    match words:
        case ("all",):
            return "all"
        case (("region" | "kind") as what, name):
            return f"{what}:{_kind(asked, name) if what == 'kind' else name}"
        case (word,) if word.partition(":")[0] in {"region", "kind"} and word.partition(":")[2]:
            what, _, name = word.partition(":")
            return f"{what}:{_kind(asked, name) if what == 'kind' else name}"
        case (word,) if "/" in word:
            kind, name = naming.split(word, None)
            return f"{_kind(asked, kind)}/{name}"
        case (kind, name):
            return f"{_kind(asked, kind)}/{name}"
        case _:
            raise click.UsageError(
                "say what: all, region NAME, kind KIND, or KIND NAME of one thing"
            )


def _kind(asked: Client | None, given: str) -> str:
    return naming.known_kind(asked, given) if asked is not None else given.lower()


def pause(frame: Frame, *, words: tuple[str, ...], reason: str) -> None:
    if not reason.strip():
        raise click.UsageError("--reason is empty; others will read it and wonder")
    if len(reason) > REASON_MAX:
        raise click.UsageError(
            f"--reason has {len(reason):,} signs, and {REASON_MAX} are taken; say it shorter, or "
            "say where more is written"
        )
    asked = client.of(frame)
    told = asked.post("/pause", scope=scope(asked, words), reason=reason)
    said = told["pause"]
    _say(frame, told, f"paused {said['scope']}: {said['reason']}")
    if not frame.machine:
        output.line(Text(f"to go on: fleetctl resume {said['scope']}", style="dim"))


def resume(frame: Frame, *, words: tuple[str, ...]) -> None:
    asked = client.of(frame)
    # Not looked up: what was paused may be gone by now.
    told = asked.post("/resume", scope=scope(None, words))
    _say(frame, told, f"resumed {told['resumed']}")


def decide(frame: Frame, *, given: str, decision: str) -> None:
    asked = client.of(frame)
    told = asked.post(f"/approvals/{quote(given, safe='')}", decision=decision)
    about = ", ".join(told["about"])
    if decision == "approve":
        _say(frame, told, f"approved {given}: {about}")
    elif about:
        _say(frame, told, f"rejected {given}: {about} is paused")
    else:
        _say(frame, told, f"took the approval of {given} back")


def _say(frame: Frame, told: object, text: str) -> None:
    if frame.machine:
        output.data(frame, told)
    else:
        output.line(Text(text))
