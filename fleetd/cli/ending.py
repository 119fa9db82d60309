"""
How the programs end: one place for exit codes, interrupts, broken pipes and last words.

0 good, 1 the answer is bad, 2 wrong usage, 3 there is something to do, 4 cannot reach the daemon,
5 not allowed, 130 interrupted. Complaints go to stderr.
"""

import enum
import io
import os
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


class Stop(Exception):
    """End with this code; the message, if any, goes to stderr."""

    def __init__(self, code: Exit, message: str = "") -> None:
        super().__init__(message)
        self.code = code


class ReaderGone(Exception):
    """The reader of stdout has left (`| head`). Not an OSError: click would end with 1 for one,
    which says that the answer is bad."""


class Program(click.Group):
    """The root of a program's commands."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 -- click's own
        try:
            return super().invoke(ctx)
        except BrokenPipeError as cause:
            raise ReaderGone from cause


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
        return _say(name, str(stop), stop.code)
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


def _say(name: str, message: str, code: int) -> int:
    for line in secrets.scrub(message).splitlines():
        click.echo(f"{name}: {line}", err=True)
    return code


def _usage(name: str, wrong: click.UsageError) -> None:
    path = wrong.ctx.command_path if wrong.ctx else name
    click.echo(f"{path}: {secrets.scrub(wrong.format_message())}", err=True)
    click.echo(f"Try `{path} --help`.", err=True)
