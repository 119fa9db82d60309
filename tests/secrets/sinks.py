"""Every way in which fleetd lets text out, as a careless programmer would use it."""

import asyncio
import contextlib
import io
import json
import logging
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import click
import structlog
from click.testing import CliRunner

from fleetd import clock, secrets
from fleetd.cli import ending, main, output
from fleetd.cli.frame import Frame
from fleetd.settings import Address, LogFormat, LogLevel, LogSettings
from fleetd.store import runner, sqlite
from fleetd.store.base import Intent
from fleetd.surface import http, log
from fleetd.surface.panel import Unready
from fleetd.vocabulary import Event, Failed, Observation, PlanId, StepId
from tests.secrets.canary import Sink
from tests.surface import panels
from topology.problem import Problem
from topology.resource import Ref


@contextlib.contextmanager
def logs(form: LogFormat) -> Generator[io.StringIO]:
    """Everything that is logged while inside, at DEBUG; puts the old set-up back."""
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    hooks = (sys.excepthook, threading.excepthook, sys.unraisablehook)
    stream = io.StringIO()
    settings = LogSettings(format=form, level=LogLevel.DEBUG)
    log.set_up(settings, now=lambda: panels.NOW, stream=stream)
    try:
        yield stream
    finally:
        logging.captureWarnings(False)
        root.handlers[:], level = before
        root.setLevel(level)
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        structlog.reset_defaults()


def _log(form: LogFormat) -> Callable[[str], str]:
    def write(text: str) -> str:
        with logs(form) as stream:
            logger = structlog.stdlib.get_logger("canary")
            with structlog.contextvars.bound_contextvars(ref=text):
                logger.debug("told", value=text, inside={"a": [text], text: 1}, shown=repr(text))
            logger.info(text)
            logging.getLogger("other").warning("told %s", text, extra={"more": text})
            logger.error("failed", answer=json.dumps({"token": text}), exc_info=_error(text))
            return stream.getvalue()

    return write


def _error(text: str) -> ValueError:
    """An error with a cause, a note and a group, all telling."""
    group = ExceptionGroup("several", [ValueError(text), OSError(5, text)])
    group.__context__ = KeyError(text)
    error = ValueError(f"told {text}")
    error.__cause__ = group
    error.add_note(text)
    return error


def _excepthook(text: str) -> str:
    with logs(LogFormat.JSON), contextlib.redirect_stderr(io.StringIO()) as stream:
        error = _error(text)
        sys.excepthook(ValueError, error, error.__traceback__)
        return stream.getvalue()


def _thread(text: str) -> str:
    with logs(LogFormat.JSON), contextlib.redirect_stderr(io.StringIO()) as stream:
        error = _error(text)
        threading.excepthook(threading.ExceptHookArgs((ValueError, error, None, None)))
        return stream.getvalue()


def _event(text: str) -> str:
    told = Event(at=panels.NOW, ref=Ref("cluster", "hv"), reason="Failed", message=f"got {text}")
    return repr(secrets.clean(told)) + secrets.clean(told).message


async def _get(text: str, paths: tuple[str, ...]) -> str:
    panel = panels.small(text)
    panel.missing = [Unready("store", text)]
    # As a label value it must be a region name, which is the most that can reach a metric.
    panel.plans[text] = panel.plans["eu-1"]
    async with (
        http.serving(panel, Address("127.0.0.1", 0)) as server,
        aiohttp.ClientSession() as session,
    ):
        bodies: list[str] = []
        for path in paths:
            async with session.get(f"{server.url}{path}") as answer:
                bodies.append(await answer.text())
        return "\n".join(bodies)


def _http(*paths: str) -> Callable[[str], str]:
    return lambda text: asyncio.run(_get(text, paths))


async def _tell_ledger(text: str) -> str:
    """A driver that takes a value for a version, asked over HTTP and by fleetctl."""
    flow = panels.resource("credentialflow", "exporter")
    target = {"cluster": "cp", "namespace": "billing", "secret": "exporter"}
    spec: dict[str, Any] = {
        "path": "billing/exporter",
        "source": {"generate": {}},
        "targets": [target],
    }
    told = {"version": text, "stillOld": [text], "seen": {text: 1}, "value": text}
    facts = {"observed": {"credentials": {"exporter": told}, "uses": {"exporter": text}}}
    panel = panels.FakePanel(
        want=panels.topology(replace(flow, spec=spec)),
        looked={flow.ref: Observation(ref=flow.ref, at=panels.NOW, facts=facts)},
    )
    async with (
        http.serving(panel, Address("127.0.0.1", 0)) as server,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(f"{server.url}/api/v1/credentials") as answer:
            said = [await answer.text()]
        for form in ("text", "wide", "json", "yaml"):
            args = ["--server", server.url, "credentials", "-o", form]
            ran = await asyncio.to_thread(CliRunner().invoke, main.fleetctl, args)
            said.append(ran.output)
    return "\n".join(said)


def _ledger(text: str) -> str:
    return asyncio.run(_tell_ledger(text))


def _cli(*, form: str) -> Callable[[str], str]:
    @click.command()
    @click.argument("text")
    def tell(text: str) -> None:
        output.data(Frame(output=form), {"told": text, "more": [{"in": repr(text)}]})
        output.lines([f"told {text}"])
        output.problems([Problem(file="f.yaml", code="told", message=f"is {text}")])

    def write(text: str) -> str:
        result = CliRunner().invoke(tell, ["--", text])
        return result.output

    return write


def _last_words(text: str) -> str:
    @click.command()
    def fail() -> None:
        raise ending.Stop(ending.Exit.BAD, f"told {text}")

    before = (sys.argv, sys.excepthook, threading.excepthook, sys.unraisablehook)
    sys.argv = ["fleetctl"]
    try:
        with contextlib.redirect_stderr(io.StringIO()) as stream, contextlib.suppress(SystemExit):
            ending.run(fail, "fleetctl")
        return stream.getvalue()
    finally:
        sys.argv, sys.excepthook, threading.excepthook, sys.unraisablehook = before


async def _keep(text: str, folder: Path) -> None:
    """What the engine keeps of a step that failed, and of what it says about it."""
    ref = Ref("cluster", "hv")
    kept = sqlite.SqliteStore(folder, runner.ThreadRunner(clock.SystemClock()))
    await kept.open()
    try:
        seq = await kept.intend(
            Intent(
                step=StepId("s1"),
                ref=ref,
                verb="create",
                args={},
                generation=1,
                plan=PlanId("p1"),
                at=panels.NOW,
            )
        )
        failed = Failed("Refused", f"got {text}", retry=False)
        await kept.conclude(seq, secrets.clean_ending(failed), panels.NOW)
        told = Event(at=panels.NOW, ref=ref, reason="Refused", message=f"got {text}")
        await kept.record([secrets.clean(told)])
    finally:
        await kept.close()


def _store(text: str) -> bytes:
    with TemporaryDirectory() as folder:
        asyncio.run(_keep(text, Path(folder) / "state"))
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        return b"\n".join(path.read_bytes() for path in files)


SINKS = (
    Sink("log for people", _log(LogFormat.HUMAN)),
    Sink("log for machines", _log(LogFormat.JSON)),
    Sink("traceback of the program", _excepthook),
    Sink("traceback of a thread", _thread),
    Sink("event", _event),
    Sink("store on disk", _store),
    Sink("/metrics", _http("/metrics")),
    Sink("/readyz", _http("/readyz")),
    Sink(
        "/api/v1",
        _http(
            "/api/v1/regions",
            "/api/v1/resources",
            "/api/v1/resources/cluster/hv",
            "/api/v1/topology/eu-1",
            "/api/v1/plan",
            "/api/v1/events",
            "/api/v1/documents",
        ),
    ),
    Sink("ledger of credentials", _ledger),
    Sink("fleetctl -o json", _cli(form="json")),
    Sink("fleetctl -o yaml", _cli(form="yaml")),
    Sink("fleetctl's last words", _last_words),
)
