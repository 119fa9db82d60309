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
from fleetd.cli import ending, examples, frame
from fleetd.cli.frame import OUTPUTS, Frame

_CATALOGUE = click.option(
    "--catalogue",
    multiple=True,
    type=frame.PATHS,
    metavar="DIR",
    help="Your own components, beside those that fleetd brings.",
)

_PRUNE = click.option(
    "--prune",
    is_flag=True,
    help="Take away what was applied earlier and is not among PATH; its things become orphans.",
)
_WATCH = click.option(
    "-w", "--watch", is_flag=True, help="Go on and show what changes, until Ctrl-C."
)


class _Command(click.Command):
    """One that ends its help with examples."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = examples.EXAMPLES.get(ctx.command_path.partition(" ")[2], ())
        if found:
            with formatter.section("Examples"):
                for line in found:
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class _Words(click.Group):
    """Of commands of two words."""

    command_class = _Command


class _Group(ending.Program):
    """Commands in the order in which one meets them, and `--documents a b` before them."""

    command_class = _Command
    group_class = _Words

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, frame.spread(args, {"--documents"}, stop=self.commands))

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


def _call(module: str, /, *args: Any, **given: Any) -> None:  # noqa: ANN401 -- passed through
    _call_as(module, "run", *args, **given)


def _call_as(module: str, word: str, /, *args: Any, **given: Any) -> None:  # noqa: ANN401
    getattr(importlib.import_module(f"fleetd.cli.{module}"), word)(*args, **given)


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
      fleetctl incidents                  what has failed, and what suffers from it?
      fleetctl why cluster hv             what does it wait for, down to the cause?
      fleetctl plan fleet/                what would these documents do?
      fleetctl apply fleet/               hand them over

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
@_PRUNE
@click.option("--exit-code", is_flag=True, help="End with 3 if there is something to do.")
@frame.framed(*OUTPUTS)
def plan(within: Frame, **given: Any) -> None:  # noqa: ANN401 -- passed through
    """Show what would be done, in order, and what is held and why.

    Without PATH: what the daemon is about to do. With PATH: what it would do if it had these
    documents too, against the world as it sees it; nothing is changed. The plan's id can be given
    to `apply --plan`. With --offline the plan is for an empty world: everything has to be made.
    """
    _call("planning", within, **given)


@fleetctl.command()
@click.argument("paths", nargs=-1, type=frame.PATHS, metavar="PATH...")
@click.option("--plan", metavar="ID", help="Apply this plan; refused if the world moved since.")
@_PRUNE
@click.option("--consent", metavar="ID", default="", help="Agree to a change of much at once.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--wait", is_flag=True, help="Until all is Ready, or a person is needed (exit 1).")
@frame.framed(*OUTPUTS, offline=False)
def apply(within: Frame, paths: tuple[Path, ...], **given: Any) -> None:  # noqa: ANN401
    """Check documents, show what they would do, ask, and hand them over.

    The daemon keeps them beside its state and reads them with its own; they hold from then on,
    over a restart too. A document that stands in a file the daemon reads is changed in that file.
    Nothing is deleted by it: what disappears from documents becomes an orphan (see `retire`).
    """
    _call("applying", within, paths, **given)


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
@_WATCH
@frame.framed(*OUTPUTS)
def tree(within: Frame, name: str | None, catalogue: tuple[Path, ...], *, watch: bool) -> None:
    """Show a region, or all, as a tree with state, age and reason.

    With --offline --documents DIR the tree comes from files and has no states.
    """
    _call("tree", within, name=name, catalogue=catalogue, watch=watch)


@fleetctl.command()
@click.argument("kind")
@click.argument("name", required=False)
@click.option("--region", help="Only this region.")
@_WATCH
@frame.framed(*OUTPUTS, offline=False)
def get(within: Frame, kind: str, name: str | None, region: str | None, *, watch: bool) -> None:
    """List things of one kind with their state, or show one.

    KIND may be plural. `get orphans` lists what exists though no document names it any more.
    """
    _call("listing", within, kind=kind, name=name, region=region, watch=watch)


@fleetctl.command()
@click.argument("kind")
@click.argument("name", required=False)
@frame.framed(*OUTPUTS, offline=False)
def describe(within: Frame, kind: str, name: str | None) -> None:
    """Show everything about one thing: KIND NAME, or KIND/NAME.

    What it is asked to be, what was seen of it, what is thought of that and planned about it, what
    it needs and who needs it with their states, its limits, its last events. -o wide cuts nothing.
    """
    _call("describe", within, kind=kind, name=name)


@fleetctl.command()
@click.argument("kind")
@click.argument("name", required=False)
@frame.framed(*OUTPUTS, offline=False)
def why(within: Frame, kind: str, name: str | None) -> None:
    """Say in one paragraph what a thing does or waits for, down to the cause.

    Follows what it needs to the first thing that waits for nobody, and says what is wrong with
    that, since when, and what to do where a person is needed. -o wide shows every link.
    """
    _call("why", within, kind=kind, name=name)


@fleetctl.command()
@click.option("--region", help="Only this region.")
@frame.framed(*OUTPUTS, offline=False)
def incidents(within: Frame, region: str | None) -> None:
    """List what has failed: each failure once, at its cause, the worst first.

    Says since when, and how many things are not Ready because of it; what only waits for others is
    none of its own. -o wide adds their names, and what to do where somebody wrote that down.
    """
    _call("incidents", within, region=region)


@fleetctl.command()
@click.option("--for", "about", metavar="KIND/NAME", help="Only about this thing.")
@click.option("--since", metavar="DURATION", help="Only the last 45s, 30m, 2h, 1d ...")
@_WATCH
@frame.framed(*OUTPUTS, offline=False)
def events(within: Frame, about: str | None, since: str | None, *, watch: bool) -> None:
    """Show what happened, oldest first."""
    _call("events", within, about=about, since=since, watch=watch)


@fleetctl.command()
@click.argument(
    "words", nargs=-1, required=True, metavar="all | region NAME | kind KIND | KIND NAME"
)
@click.option("--reason", required=True, help="Shown wherever the pause is shown.")
@frame.framed(*OUTPUTS, offline=False)
def pause(within: Frame, words: tuple[str, ...], reason: str) -> None:
    """Begin nothing new with a thing, a kind, a region or all, until `resume`.

    What is under way goes on. The pause holds over a restart of the daemon.
    """
    _call_as("telling", "pause", within, words=words, reason=reason)


@fleetctl.command()
@click.argument(
    "words", nargs=-1, required=True, metavar="all | region NAME | kind KIND | KIND NAME"
)
@frame.framed(*OUTPUTS, offline=False)
def resume(within: Frame, words: tuple[str, ...]) -> None:
    """End a pause; name it as it was named when it was made."""
    _call_as("telling", "resume", within, words=words)


@fleetctl.command()
@click.argument("given", metavar="ID")
@frame.framed(*OUTPUTS, offline=False)
def approve(within: Frame, given: str) -> None:
    """Let what waits for this id happen, once.

    `fleetctl plan` and `fleetctl why` show the id and what it is about.
    """
    _call_as("telling", "decide", within, given=given, decision="approve")


@fleetctl.command()
@click.argument("given", metavar="ID")
@frame.framed(*OUTPUTS, offline=False)
def reject(within: Frame, given: str) -> None:
    """Refuse what waits for this id: its thing is paused. Or take an approval back."""
    _call_as("telling", "decide", within, given=given, decision="reject")


@fleetctl.command()
@click.argument("kind")
@click.argument("name", required=False)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@frame.framed(*OUTPUTS, offline=False)
def retire(within: Frame, kind: str, name: str | None, *, yes: bool) -> None:
    """Have an orphan removed for good: shows what goes in which order, and asks.

    Only what no document names any more can be retired (`fleetctl get orphans`). With a document
    goes all that came from it; what stands on another thing goes first.
    """
    _call("retiring", within, kind=kind, name=name, yes=yes)


@fleetctl.command()
@click.option("--region", help="Only this region.")
@frame.framed(*OUTPUTS, offline=False)
def credentials(within: Frame, region: str | None) -> None:
    """Show the ledger of credentials: what, where, version, age, rotation, users. Never a value.

    -o wide says who rotates each and how, who uses it, and how it is proven to be in use.
    """
    _call("ledger", within, region=region)


def _list_faults(context: click.Context, _: click.Parameter, asked: bool) -> None:  # noqa: FBT001
    if asked:
        _call_as("rehearse", "list_faults")
        context.exit()


@fleetctl.command()
@click.argument("paths", nargs=-1, type=frame.PATHS, metavar="PATH...")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, other luck.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="TEXT",
    help="Something that goes wrong, e.g. 'at 12m: bmc r1-s01 unreachable for 20m'; repeatable.",
)
@click.option(
    "--list-faults",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_faults,
    help="Show what can go wrong, and exit.",
)
@click.option("--chaos", is_flag=True, help="Random faults, drawn from the seed, for an hour.")
@click.option(
    "--no-approvals",
    is_flag=True,
    help="Approve nothing: what needs an approval is held. Else it gets one, and that is told.",
)
@click.option(
    "--from",
    "before",
    multiple=True,
    type=frame.PATHS,
    metavar="OLD",
    help="Start from a fleet as these documents describe it, not from nothing.",
)
@_CATALOGUE
@frame.framed(*OUTPUTS)
def rehearse(within: Frame, paths: tuple[Path, ...], **given: Any) -> None:  # noqa: ANN401
    """Try documents on a simulated twin, in virtual time; needs no daemon.

    The real planner, executor and drivers run against simulated clusters, metal and services. Shows
    what happens when, what is held, and what is disrupted. The same seed gives the same output.
    Ends with 1 if the fleet does not converge.
    """
    _call("rehearse", within, paths, **given)


_AUDITED = click.argument(
    "place", type=frame.PATHS, default=Path("/var/lib/fleetd/audit"), metavar="[FOLDER|FILE]"
)


@fleetctl.group()
def audit() -> None:
    """What the daemon was told, by whom, and what came of it."""


@audit.command("list")
@_AUDITED
@frame.framed(*OUTPUTS)
def list_audit(within: Frame, place: Path) -> None:
    """List it, oldest first; on the daemon's machine, or of a copy."""
    _call_as("auditing", "show", within, place)


@audit.command("verify")
@_AUDITED
@click.option("--head", default="", metavar="DIGEST", help="A digest that must stand in it.")
@frame.framed(*OUTPUTS)
def verify_audit(within: Frame, place: Path, head: str) -> None:
    """Check that no line was changed, moved, removed or cut off; ends with 1 if one was."""
    _call_as("auditing", "verify", within, place, head)


@fleetctl.group()
def token() -> None:
    """Tokens that let a program in."""


@token.command("new")
@click.argument("name")
@click.option("--role", type=click.Choice(["viewer", "operator", "admin"]), default="viewer")
@click.option("--region", "regions", multiple=True, help="Only this region; repeatable.")
@click.option("--days", type=click.IntRange(1, 3650), default=90, show_default=True)
@click.option("--into", type=frame.PATHS, metavar="FILE", help="Append it to this access file.")
def new_token(name: str, **given: Any) -> None:  # noqa: ANN401 -- passed through
    """Make a token: it goes to stdout, once, and what the access file needs to stderr.

    The file holds a digest, from which nobody can make the token. To revoke it, take its entry
    out of the file; the daemon sees that within seconds.
    """
    _call_as("tokens", "new", name, **given)


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
