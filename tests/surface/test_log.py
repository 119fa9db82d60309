"""Log lines: for people, for machines, from others; what is in them and what is not."""

import io
import json
import logging
import warnings

import pytest
import structlog

from fleetd.settings import LogFormat, LogLevel, LogSettings
from fleetd.surface import log
from tests.secrets import sinks
from tests.surface import panels


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(form: LogFormat, stream: io.StringIO, level: LogLevel = LogLevel.INFO) -> str:
    with sinks.logs(form):
        log.set_up(LogSettings(format=form, level=level), now=lambda: panels.NOW, stream=stream)
        logger = structlog.stdlib.get_logger("fleetd.executor")
        with structlog.contextvars.bound_contextvars(ref="cluster/hv", plan="p1", step="s1"):
            logger.info("step ended", verb="create", outcome="Done")
        logger.debug("detail")
        return stream.getvalue()


def test_json_for_machines() -> None:
    """Off a terminal a line is one JSON object with the bound ref, plan and step."""
    lines = written(LogFormat.AUTO, io.StringIO()).splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "timestamp": "2026-03-01T12:00:00.000Z",
            "level": "info",
            "logger": "fleetd.executor",
            "event": "step ended",
            "ref": "cluster/hv",
            "plan": "p1",
            "step": "s1",
            "verb": "create",
            "outcome": "Done",
        }
    ]


def test_text_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a line is aligned text; without colours when NO_COLOR is set."""
    monkeypatch.setenv("NO_COLOR", "1")
    text = written(LogFormat.AUTO, Terminal())
    assert text == (
        "12:00:00 [info] step ended       ref=cluster/hv verb=create outcome=Done plan=p1 step=s1\n"
    )


def test_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal there are colours; forced off one there are none."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[" in written(LogFormat.AUTO, Terminal())
    assert "\x1b[" not in written(LogFormat.HUMAN, io.StringIO())


def test_the_level_decides() -> None:
    """Debug lines come only at debug, info lines not at error."""
    assert len(written(LogFormat.JSON, io.StringIO(), LogLevel.DEBUG).splitlines()) == 2
    assert written(LogFormat.JSON, io.StringIO(), LogLevel.ERROR) == ""


def test_others_take_the_same_road() -> None:
    """Lines of libraries, and warnings, come out in the same shape; access logs do not."""
    with sinks.logs(LogFormat.JSON) as stream:
        logging.getLogger("aiohttp.server").error("broken", extra={"peer": "x"})
        logging.getLogger("aiohttp.access").info("GET / 200")
        logging.getLogger("asyncio").debug("selector")
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("old", DeprecationWarning, stacklevel=1)
        found = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [one["logger"] for one in found] == ["aiohttp.server", "py.warnings"]
    assert (found[0]["event"], found[0]["peer"]) == ("broken", "x")


def test_a_traceback_is_one_line_of_json() -> None:
    """An error is logged once with its chain, as one field, without local variables."""
    with sinks.logs(LogFormat.JSON) as stream:
        error = ValueError("outer")
        error.__cause__ = KeyError("inner")
        structlog.stdlib.get_logger("x").error("failed", exc_info=error)
        found = json.loads(stream.getvalue())
    assert "KeyError: 'inner'" in found["exception"]
    assert "ValueError: outer" in found["exception"]
    assert "locals" not in found["exception"]
