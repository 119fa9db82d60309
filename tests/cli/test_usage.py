"""Usage: help, versions, wrong words, interrupts, broken pipes, colours, completion."""

import os
import pty
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

import fleetd
from fleetd.cli import examples, main
from tests.cli import programs
from tests.cli.programs import MINIMAL, ROOT


@pytest.mark.parametrize("program", ["fleetd", "fleetd.cli.main"])
def test_version_and_help(program: str) -> None:
    """Both programs tell their version and how they are used."""
    name = "fleetd" if program == "fleetd" else "fleetctl"
    assert programs.run(program, "--version").out == f"{name} {fleetd.__version__}\n"
    ran = programs.run(program, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"Usage: {name} ")


COMMANDS = (
    *("validate", "render", "plan", "apply", "diff", "tree", "get", "describe", "why", "events"),
    *("pause", "resume", "approve", "reject", "retire", "credentials", "rehearse", "completion"),
    "incidents",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    """Every command has help with its global options, in 80 columns."""
    ran = programs.fleetctl(command, "--help", env={"COLUMNS": "80"})
    assert ran.code == 0
    own, _, shown = ran.out.partition("\nExamples:\n")
    assert max(map(len, own.splitlines())) <= 80
    assert command == "completion" or f"  fleetctl {command} " in f"{shown} "


def test_examples_are_what_one_can_type() -> None:
    """Each line of each help is understood by the command that it names."""
    for words, lines in examples.EXAMPLES.items():
        assert any(line.startswith(f"fleetctl {words}") for line in lines)
        for line in lines:
            typed = shlex.split(line.partition(" > ")[0])[1:]
            command: click.Command = main.fleetctl
            while isinstance(command, click.Group):
                found = command.get_command(click.Context(command), typed.pop(0))
                assert found is not None, line
                command = found
            command.make_context("fleetctl", typed)


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("validate",),
        ("validate", MINIMAL, "-o", "dot"),
        ("validate", MINIMAL, "-o", "xml"),
        ("validate", "--nonsense"),
        ("tree", "--offline"),
        ("tree", "--offline", "--server", "http://127.0.0.1:1"),
        ("get",),
        ("get", "server", "--offline"),
        ("--offline", "events"),
        ("events", "--watch", "-o", "json"),
        ("get", "server", "--watch", "-o", "yaml"),
        ("tree", "--watch", "-o", "json"),
        ("why",),
        ("why", "cluster"),
        ("pause", "all"),
        ("pause", "a", "b", "c", "--reason", "x"),
        ("retire", "cluster", "hv"),
        ("apply",),
        ("apply", MINIMAL),
        ("apply", MINIMAL, "--plan", "x", "--yes"),
        ("events", "--for", "hv"),
        ("events", "--for", "cluster/"),
        ("validate", ""),
        ("plan", "--offline", "--documents", ""),
        ("tree", "--server", "http://[::1"),
        ("tree", "--server", "http://.example"),
        ("tree", "--server", "http://127.0.0.1:99999"),
        ("tree", "--server", "http://127.0.0.1\n:1"),
        ("completion", "powershell"),
        (),
    ],
)
def test_wrong_usage(args: tuple[str, ...]) -> None:
    """Wrong usage is exit code 2, said on stderr; a program that asked for data gets it as such."""
    ran = programs.fleetctl(*args)
    said = yaml.safe_load(ran.out)["error"]["code"] if {"json", "yaml"} & {*args} else ran.out
    assert (ran.code, said) in {(2, ""), (2, "wrong-usage")}
    assert ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    """Each shell gets a script that calls back into fleetctl."""
    ran = programs.fleetctl("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert "_FLEETCTL_COMPLETE" in ran.out


def test_completion_answers() -> None:
    """The call back completes commands."""
    env = {"_FLEETCTL_COMPLETE": "bash_complete", "COMP_WORDS": "fleetctl va", "COMP_CWORD": "1"}
    ran = programs.run("fleetd.cli.main", env=env)
    assert ran.out == "plain,validate\n"


def start(*args: str, **more: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "fleetd.cli.main", *args]
    return subprocess.Popen(command, cwd=ROOT, **more)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownVariableType]


@pytest.mark.parametrize(
    "args",
    [
        ("render", "topology/examples/two-zones", "-o", "json"),
        ("plan", "--offline", "topology/examples/two-zones"),
        ("tree", "--offline", "--documents", "topology/examples/two-zones"),
    ],
)
def test_a_broken_pipe_is_quiet(args: tuple[str, ...]) -> None:
    """`fleetctl ... | head` ends without a word, and not as if the answer were bad."""
    process = start(*args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    assert programs.without_progress(process.stderr.read().decode()) == ""
    process.stderr.close()
    assert process.wait(120) == 0


def test_an_answer_that_cannot_be_written() -> None:
    """A full disk is one sentence, and a closed stream none."""
    with Path("/dev/full").open("wb") as full:
        process = start("validate", MINIMAL, stdout=full, stderr=subprocess.PIPE)
        _, err = process.communicate(timeout=120)
    said = programs.without_progress(err.decode())
    assert said == "fleetctl: cannot write the answer: No space left on device\n"
    assert process.returncode == 1
    shell = f"exec {sys.executable} -m fleetd.cli.main validate {MINIMAL} >&- 2>&-"
    assert subprocess.run(["/bin/sh", "-c", shell], cwd=programs.ROOT, check=False).returncode == 0


def test_a_password_in_the_address_of_the_daemon_is_not_repeated() -> None:
    """It is refused, because nothing is done with it."""
    ran = programs.fleetctl("tree", "--server", "http://me:k4n4ry@127.0.0.1:1")
    assert ran.code == 2
    assert "k4n4ry" not in ran.err


def test_a_difference_is_broken_between_words() -> None:
    """On a terminal no word is cut in two, and what belongs to a line is set in."""
    args = ("diff", "topology/examples/two-zones", "--against", MINIMAL)
    lines = on_terminal(*args, NO_COLOR="1").splitlines()
    assert "    storage cluster and move the data" in map(str.rstrip, lines)
    assert max(len(line) for line in lines if "\x1b" not in line) <= 80


def test_an_interrupt() -> None:
    """Ctrl-C ends with 130 and one word, not a traceback."""
    # A daemon that takes the connection and never answers: there is something to interrupt.
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        process = start(
            "tree",
            "--server",
            f"http://127.0.0.1:{silent.getsockname()[1]}",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        connection, _ = silent.accept()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        connection.close()
    assert (process.returncode, out, err) == (130, b"", b"\nfleetctl: interrupted\n")


def on_terminal(*args: str, **env: str) -> str:
    """What a terminal of 80 columns is sent."""
    leader, follower = pty.openpty()
    clean = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR"}}
    process = start(
        *args,
        stdout=follower,
        stderr=follower,
        env=clean | {"TERM": "xterm-256color", "COLUMNS": "80"} | env,
    )
    os.close(follower)
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    os.close(leader)
    assert process.wait(120) == 0
    return b"".join(parts).decode()


def test_colours_only_on_a_terminal() -> None:
    """Colours come on a terminal, and never with NO_COLOR or in a pipe."""
    args = ("tree", "--offline", "--documents", MINIMAL)
    assert "\x1b[1m" in on_terminal(*args)
    plain = on_terminal(*args, NO_COLOR="1")
    assert "\x1b[3" not in plain
    assert "\x1b[" not in programs.fleetctl(*args).out


def test_progress_shows_on_a_terminal() -> None:
    """Reading shows itself on a terminal, and never in the answer."""
    assert "reading documents" in on_terminal("validate", MINIMAL)
    assert "reading documents" not in programs.fleetctl("validate", MINIMAL).out
