"""
`fleetctl`: the operator's command. Here are its words; what they do is in the modules beside.

Each command imports what it needs when it runs, so that `--help` and completion answer at once.
"""

import importlib
import os
from pathlib import Path
from typing import Any

import click
from click import shell_completion

import fleetd
from fleetd import clock
from fleetd.cli import ending, frame
from fleetd.cli.frame import OUTPUTS, Frame

_CATALOGUE = click.option(
    "--catalogue",
    multiple=True,
    type=frame.PATHS,
    metavar="DIR",
    help="Your own components, beside those that fleetd brings.",
)


class _Group(ending.Program):
    """Commands in the order in which one meets them, and `--documents a b` before them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, frame.spread(args, {"--documents"}, stop=self.commands))

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


def _call(module: str, *args: Any, **given: Any) -> None:  # noqa: ANN401 -- passed through
    importlib.import_module(f"fleetd.cli.{module}").run(*args, **given)


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 good, 1 the answer is bad, 2 wrong usage, 3 there is something to do "
    "(--exit-code), 4 cannot reach the daemon, 5 not allowed, 130 interrupted.",
)
@frame.options
@click.version_option(fleetd.__version__, prog_name="fleetctl", message="%(prog)s %(version)s")
@click.pass_context
def fleetctl(ctx: click.Context, **given: Any) -> None:  # noqa: ANN401 -- the global options
    """Check, see and plan a fleet of CobaltCore regions.

    \b
    Without a daemon:
      fleetctl validate fleet/            are the documents good?
      fleetctl render fleet/ -o mermaid   what do they become?
      fleetctl plan --offline fleet/      what would be done, and in which order?
    With one:
      fleetctl tree                       how is it, and since when?
      fleetctl diff fleet/                what would these documents change?

    The options below may stand before or after the command.
    """  # noqa: D301 -- click wants the sign itself
    given["server"] = given["server"] or os.environ.get(frame.VARIABLE)
    ctx.obj = given


@fleetctl.command()
@click.argument("paths", nargs=-1, type=frame.PATHS, metavar="PATH...")
@_CATALOGUE
@frame.framed("text", "wide", "json", "yaml")
def validate(within: Frame, paths: tuple[Path, ...], catalogue: tuple[Path, ...]) -> None:
    """Check documents and catalogue; needs no daemon.

    Complains about everything at once, as FILE:LINE:COL: KIND/NAME: FIELD: what is wrong; what to
    do. Ends with 1 if there is a complaint.
    """
    _call("validate", within, paths, catalogue)


@fleetctl.command()
@click.argument("paths", nargs=-1, type=frame.PATHS, metavar="PATH...")
@_CATALOGUE
@frame.framed(*OUTPUTS, *frame.DRAWINGS)
def render(within: Frame, paths: tuple[Path, ...], catalogue: tuple[Path, ...]) -> None:
    """Show the resources and edges that documents become.

    As a tree, as data (-o json, -o yaml), or to draw (-o dot, -o mermaid).
    """
    _call("render", within, paths, catalogue)


@fleetctl.command()
@click.argument("paths", nargs=-1, type=frame.PATHS, metavar="[PATH...]")
@_CATALOGUE
@click.option("--region", help="Only this region.")
@click.option("--exit-code", is_flag=True, help="End with 3 if there is something to do.")
@frame.framed(*OUTPUTS)
def plan(within: Frame, **given: Any) -> None:  # noqa: ANN401 -- passed through
    """Show what would be done, in order, and what is held and why.

    With --offline the plan is for an empty world: everything has to be made. Without it the daemon
    is asked for its current plan.
    """
    _call("planning", within, **given)


@fleetctl.command()
@click.argument("paths", nargs=-1, type=frame.PATHS, metavar="PATH...")
@click.option(
    "--against",
    multiple=True,
    type=frame.PATHS,
    metavar="OLD",
    help="Compare with these documents instead of the daemon's; may be given several times.",
)
@_CATALOGUE
@click.option("--exit-code", is_flag=True, help="End with 3 if there is a difference.")
@frame.framed(*OUTPUTS)
def diff(within: Frame, paths: tuple[Path, ...], **given: Any) -> None:  # noqa: ANN401
    """Compare documents with what the daemon has, or with older documents.

    Says for each change whether it happens in place, rolls nodes or replaces something. What
    disappears becomes an orphan; nothing is deleted because a document became shorter.
    """
    _call("difference", within, paths, **given)


@fleetctl.command()
@click.argument("name", required=False)
@_CATALOGUE
@frame.framed(*OUTPUTS)
def tree(within: Frame, name: str | None, catalogue: tuple[Path, ...]) -> None:
    """Show a region, or all, as a tree with state, age and reason.

    With --offline --documents DIR the tree comes from files and has no states.
    """
    _call("tree", within, name=name, catalogue=catalogue, now=clock.SystemClock().now())


@fleetctl.command()
@click.argument("kind")
@click.argument("name", required=False)
@click.option("--region", help="Only this region.")
@frame.framed(*OUTPUTS, offline=False)
def get(within: Frame, kind: str, name: str | None, region: str | None) -> None:
    """List things of one kind with their state, or show one."""
    now = clock.SystemClock().now()
    _call("listing", within, kind=kind.lower(), name=name, region=region, now=now)


@fleetctl.command()
@click.option("--for", "about", metavar="KIND/NAME", help="Only about this thing.")
@click.option("--since", metavar="DURATION", help="Only the last 45s, 30m, 2h, 1d ...")
@click.option("-w", "--watch", is_flag=True, help="Go on and show what happens, until Ctrl-C.")
@frame.framed(*OUTPUTS, offline=False)
def events(within: Frame, about: str | None, since: str | None, *, watch: bool) -> None:
    """Show what happened, oldest first."""
    now = clock.SystemClock().now()
    _call("events", within, about=about, since=since, watch=watch, now=now)


@fleetctl.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for a shell.

    \b
    bash:  eval "$(fleetctl completion bash)"     in ~/.bashrc
    zsh:   eval "$(fleetctl completion zsh)"      in ~/.zshrc
    fish:  fleetctl completion fish | source      in config.fish
    """  # noqa: D301 -- click wants the sign itself
    kind = shell_completion.get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    # source_vars only: the base class asks bash for its version, and bash need not be here.
    made = kind(fleetctl, {}, "fleetctl", "_FLEETCTL_COMPLETE")
    click.echo(made.source_template % made.source_vars())


def main() -> None:
    ending.run(fleetctl, "fleetctl")


if __name__ == "__main__":
    main()
