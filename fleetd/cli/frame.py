"""
What the commands of `fleetctl` share: options that stand before or after the command's name.

`fleetctl -o json tree` and `fleetctl tree -o json` mean the same; where both say something, the
one nearer to the end wins.
"""

import functools
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec

import click

SERVER = "http://127.0.0.1:8440"
VARIABLE = "FLEETCTL_SERVER"
TOKEN = "FLEETCTL_TOKEN"  # noqa: S105 -- the name of a variable
_SHARED = ("server", "documents", "offline", "output", "token_file", "ca_file")
OUTPUTS = ("text", "wide", "json", "yaml")
DRAWINGS = ("dot", "mermaid")
P = ParamSpec("P")


class _Documents(click.Path):
    """A path that is not empty: `"$DIR"` of a variable that is not set would mean `.`."""

    def convert(
        self,
        value: "str | os.PathLike[str]",
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 -- click's own
        if not os.fspath(value):
            self.fail("the path is empty; is a variable not set?", param, ctx)
        return super().convert(value, param, ctx)


PATHS = _Documents(path_type=Path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The global options, after both places were read."""

    server: str = SERVER
    documents: tuple[Path, ...] = ()
    offline: bool = False
    output: str = "text"
    token_file: Path | None = None
    ca_file: Path | None = None

    @property
    def machine(self) -> bool:
        """Whether a program reads the answer."""
        return self.output in {"json", "yaml"}


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the global options to a group or command."""
    for add in (
        click.option(
            "-o",
            "--output",
            type=click.Choice([*OUTPUTS, *DRAWINGS]),
            default=None,
            metavar="|".join(OUTPUTS),
            help="Shape of the answer (render also: dot, mermaid).",
        ),
        click.option(
            "--offline", is_flag=True, help="Work from documents alone, without a daemon."
        ),
        click.option(
            "--documents",
            multiple=True,
            type=PATHS,
            metavar="DIR",
            help="Documents to work from with --offline; may be given several times.",
        ),
        click.option(
            "--server",
            default=None,
            metavar="URL",
            help=f"Address of the daemon; {VARIABLE} sets it too.  [default: {SERVER}]",
        ),
        click.option(
            "--token-file",
            default=None,
            type=PATHS,
            metavar="FILE",
            help=f"File with the token that says who you are; {TOKEN} holds the token itself.",
        ),
        click.option(
            "--ca-file",
            default=None,
            type=PATHS,
            metavar="FILE",
            help="Authorities (PEM) to trust for https, instead of the system's.",
        ),
    ):
        command = add(command)
    return command


def framed(
    *outputs: str, offline: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the global options as one `Frame`, and refuse what it does not have: other
    outputs, and `--offline` where only a daemon has the answer."""

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        @click.pass_context
        def inner(ctx: click.Context, /, **given: Any) -> None:  # noqa: ANN401 -- click's values
            mine = {name: given.pop(name) for name in _SHARED}
            frame = merge(ctx.obj or {}, mine)
            if frame.output not in outputs:
                raise click.UsageError(
                    f"-o {frame.output} is not offered here; choose {', '.join(outputs)}"
                )
            if frame.offline and not offline:
                raise click.UsageError("only a daemon can answer this; leave out --offline")
            if frame.offline and mine["server"]:
                raise click.UsageError("--server and --offline exclude one another")
            command(frame, **given)

        return options(inner)

    return wrap


def merge(before: dict[str, Any], after: dict[str, Any]) -> Frame:
    def chosen(name: str, default: str) -> str:
        return after.get(name) or before.get(name) or default

    return Frame(
        server=chosen("server", SERVER),
        documents=tuple(after.get("documents") or before.get("documents") or ()),
        offline=bool(after.get("offline") or before.get("offline")),
        output=chosen("output", "text"),
        token_file=after.get("token_file") or before.get("token_file"),
        ca_file=after.get("ca_file") or before.get("ca_file"),
    )


def spread(
    args: list[str], lists: Collection[str], stop: Collection[str] = frozenset()
) -> list[str]:
    """`--documents a b` as `--documents a --documents b`: a flag of `lists` takes every word up to
    the next flag, or up to one of `stop`."""
    found: list[str] = []
    flag = ""
    for place, word in enumerate(args):
        if word == "--":
            return found + args[place:]
        if word.startswith("-") and word != "-":
            flag = word if word in lists else ""
            found.append(word)
        elif word in stop and not (flag and found[-1] == flag):
            return found + args[place:]
        elif flag and found[-1] != flag:
            found += [flag, word]
        else:
            found.append(word)
    return found
