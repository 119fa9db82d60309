"""
How the programs end: one place for exit codes, interrupts, broken pipes and last words.

0 good, 1 the answer is bad, 2 wrong usage, 3 there is something to do, 4 cannot reach the daemon,
5 not allowed, 130 interrupted. Complaints go to stderr; where a program asked for JSON or YAML and
got no answer yet, the complaint is the answer too, so that stdout is one document whatever happens.
"""

import enum
import io
import json
import os
import re
import sys
from typing import Any, NoReturn

import click

from fleetd import errors, secrets


class Exit(enum.IntEnum):
    GOOD = 0
    BAD = 1
    USAGE = 2
    TO_DO = 3
    UNREACHABLE = 4
    FORBIDDEN = 5
    INTERRUPTED = 130


_WORDS = {
    Exit.BAD: "bad-answer",
    Exit.USAGE: "wrong-usage",
    Exit.UNREACHABLE: "unreachable",
    Exit.FORBIDDEN: "not-allowed",
    Exit.INTERRUPTED: "interrupted",
}
"""What a program may go by, where the daemon gave no code of its own."""

_STEERING = re.compile(
    # Control characters but tab and line feed; marks that turn the direction of writing, hide, or
    # break lines where no line ends.
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
_SHAPE = re.compile(r"-[a-z]*o(json|yaml)")


class Stop(Exception):
    """End with this code; the message, if any, goes to stderr."""

    def __init__(self, code: Exit, message: str = "") -> None:
        super().__init__(message)
        self.code = code

    @property
    def word(self) -> str:
        """The same for a program."""
        return _WORDS.get(self.code, "bad-answer")


class _Told:
    """Whether stdout has its document already."""

    answered = False


def answered() -> None:
    _Told.answered = True


def plain(text: str) -> str:
    """The text, with a `\N{REPLACEMENT CHARACTER}` for each sign that a terminal would obey or that
    hides what is written: names and messages come from far away."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def as_json(shape: object, *, every: bool) -> str:
    """One document. What `plain` would take out is escaped, so that nothing is lost.
    `every`: the reader takes every sign; else all but ASCII is escaped."""
    text = json.dumps(shape, indent=2, ensure_ascii=not every, default=str) + "\n"
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class ReaderGone(Exception):
    """The reader of stdout has left (`| head`). Not an OSError: click would end with 1 for one,
    which says that the answer is bad."""


class Program(click.Group):
    """The root of a program's commands, and the groups in it."""

    group_class = type

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 -- click's own
        try:
            return super().invoke(ctx)
        except BrokenPipeError as cause:
            raise ReaderGone from cause

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each with its whole sentence, which click would cut."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        rows = [
            (name, one.get_short_help_str(limit=1000))
            for name, one in known.items()
            if one is not None and not one.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def leave(code: int | None) -> None:
    """End with a code that another part decided on."""
    if code:
        raise Stop(Exit(code))


def run(command: click.Command, name: str) -> NoReturn:
    """Run a program to its exit."""
    secrets.guard_tracebacks()
    for stream in ("stdout", "stderr"):
        if getattr(sys, stream) is None:
            # Closed by whoever started us (`>&-`): then nobody listens.
            setattr(sys, stream, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        there = getattr(sys, stream)
        if isinstance(there, io.TextIOWrapper):
            # A terminal that knows no `●` gets a `?`; that is no reason not to answer.
            there.reconfigure(errors="replace")
    sys.exit(_code(command, name))


def _code(command: click.Command, name: str) -> int:
    try:
        command.main(prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except Stop as stop:
        return _say(name, str(stop), stop.code, stop.word)
    except errors.SettingsError as wrong:
        return _say(name, str(wrong), Exit.USAGE)
    except errors.FleetError as wrong:
        return _say(name, str(wrong), Exit.BAD)
    except click.exceptions.NoArgsIsHelpError as wrong:
        wrong.show()
        return Exit.USAGE
    except click.UsageError as wrong:
        _usage(name, wrong)
        return Exit.USAGE
    except click.ClickException as wrong:
        return _say(name, wrong.format_message(), Exit.BAD)
    except (KeyboardInterrupt, click.Abort):
        return _say(name, "interrupted", Exit.INTERRUPTED)
    except (ReaderGone, BrokenPipeError):
        # Nobody is there to be told.
        _drop_output()
        return Exit.GOOD
    except OSError as cause:
        # Files are read where their errors are known; what is left is an answer that cannot be
        # written, e.g. to a full disk.
        _drop_output()
        return _say(name, f"cannot write the answer: {cause.strerror or cause}", Exit.BAD)
    return Exit.GOOD


def _drop_output() -> None:
    """The interpreter must not try to flush once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(name: str, message: str, code: Exit, word: str = "") -> int:
    for line in secrets.scrub(message).splitlines():
        click.echo(f"{name}: {plain(line)}", err=True)
    if message:
        _answer(message, code, word or _WORDS[code])
    return code


def _usage(name: str, wrong: click.UsageError) -> None:
    path = wrong.ctx.command_path if wrong.ctx else name
    message = wrong.format_message()
    click.echo(f"{path}: {plain(secrets.scrub(message))}", err=True)
    click.echo(f"Try `{path} --help`.", err=True)
    _answer(message, Exit.USAGE, _WORDS[Exit.USAGE])


def _answer(message: str, code: Exit, word: str) -> None:
    """To a program that waits for a document and got none."""
    shape = _asked_for(sys.argv[1:])
    if not shape or _Told.answered:
        return
    told = {"error": {"code": word, "message": secrets.scrub(message), "exit": int(code)}}
    # JSON is YAML as well.
    click.echo(as_json(told, every=False), nl=False)


def _asked_for(words: list[str]) -> str:
    """`json`, `yaml` or nothing. Read from the words themselves: what could not be parsed has no
    options yet."""
    found = ""
    for place, word in enumerate(words):
        if word == "--":
            break
        name, _, value = word.partition("=")
        if word in {"-o", "--output"}:
            value = words[place + 1] if place + 1 < len(words) else ""
        elif name != "--output":
            short = _SHAPE.fullmatch(word)
            if short is None:
                continue
            value = short[1]
        found = value.lower() if value.lower() in {"json", "yaml"} else ""
    return found
