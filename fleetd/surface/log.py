"""
Logs: one line per change, for a person on a terminal and as JSON everywhere else.

A line is a constant event and fields. `ref`, `plan` and `step` are bound once per piece of work
(`structlog.contextvars.bound_contextvars`) and appear by themselves. What other libraries log
through the standard library takes the same road. Values pass `secrets.scrub_deep` before they
are rendered, and the finished line passes `secrets.scrub`, so that nothing rides around either.
"""

import logging
import os
import sys
from collections.abc import Callable, MutableMapping, Sequence
from datetime import datetime
from typing import IO, Any

import structlog

from fleetd import secrets
from fleetd.settings import LogFormat, LogLevel, LogSettings

Entry = MutableMapping[str, Any]

_LEVELS = {
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.INFO: logging.INFO,
    LogLevel.ERROR: logging.ERROR,
}

QUIET = ("aiohttp.access", "asyncio", "kubernetes_asyncio", "urllib3", "keystoneauth", "stevedore")
"""Libraries that tell each request at info or debug. They are heard from warning on."""


def set_up(
    settings: LogSettings, *, now: Callable[[], datetime], stream: IO[str] | None = None
) -> None:
    """Send every log line of this process to `stream` (stderr), and tracebacks with them."""
    out = stream or sys.stderr
    human = settings.format is LogFormat.HUMAN or (
        settings.format is LogFormat.AUTO and out.isatty()
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        _stamp(now),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        _Scrubbed(
            foreign_pre_chain=shared,
            processors=_for_people(colours=_colours(out)) if human else _for_machines(),
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[settings.level])
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    secrets.guard_tracebacks()


class _Scrubbed(structlog.stdlib.ProcessorFormatter):
    """The last hand that touches a line. Scrubs the finished text: what a renderer made of an
    object is covered as well as what was a string from the start."""

    def format(self, record: logging.LogRecord) -> str:
        return secrets.scrub(super().format(record))


def _for_people(*, colours: bool) -> Sequence[structlog.typing.Processor]:
    return [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        _briefly,
        _scrub,
        structlog.dev.ConsoleRenderer(
            colors=colours,
            pad_event_to=16,
            pad_level=False,
            sort_keys=False,
            # The default shows local variables, and a local variable may be a secret.
            exception_formatter=structlog.dev.plain_traceback,
        ),
    ]


def _for_machines() -> Sequence[structlog.typing.Processor]:
    return [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        structlog.processors.StackInfoRenderer(),
        _in_order,
        _scrub,
        structlog.processors.JSONRenderer(default=str, ensure_ascii=False),
    ]


_FIRST = ("timestamp", "level", "logger", "event", "ref", "plan", "step")


def _in_order(_logger: object, _name: str, entry: Entry) -> Entry:
    """What every line has first, then the rest as it was given."""
    first = {key: entry[key] for key in _FIRST if key in entry}
    return first | {key: value for key, value in entry.items() if key not in first}


def _scrub(_logger: object, _name: str, entry: Entry) -> Entry:
    """Before values are encoded. `exc_info` stays: the renderer still needs it, and what it makes
    of it is scrubbed as text."""
    if not secrets.REGISTRY:
        return entry
    return {
        key: value if key == "exc_info" else secrets.scrub_deep(value)
        for key, value in entry.items()
    }


def _stamp(now: Callable[[], datetime]) -> structlog.typing.Processor:
    def stamp(_logger: object, _name: str, entry: Entry) -> Entry:
        entry["timestamp"] = now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return entry

    return stamp


def _briefly(_logger: object, _name: str, entry: Entry) -> Entry:
    """A person who watches knows the day and the program, and reads what it is about first. Ids
    are for looking up: their beginning is enough, at the end."""
    stamp = entry.pop("timestamp", "")
    logger = entry.pop("logger", "")
    ids = {key: str(entry.pop(key))[:8] for key in ("plan", "step") if key in entry}
    first: Entry = {"timestamp": str(stamp)[11:19]}
    if "ref" in entry:
        first["ref"] = entry.pop("ref")
    if not str(logger).startswith("fleetd"):
        ids["logger"] = str(logger)
    return {**first, **entry, **ids}


def _colours(out: IO[str]) -> bool:
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
