"""
`fleetd`: serve, show its settings, and look what is wrong.

Every setting is a flag of both commands; the flags are made from `fleetd.settings`. Nothing of
the engine is imported before it is needed, so `--help` answers at once.
"""

import enum
import json
import os
import typing
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import click

import fleetd
from fleetd import clock, errors, settings
from fleetd.cli import ending, frame, sources, values
from fleetd.cli.schema import FIELDS, Field

GROUPS = {
    "": "What to run",
    "log": "Logs",
    "observe": "Looking",
    "execute": "Acting",
    "breaker": "Backends that do not answer",
    "backoff": "Things that fail",
    "retention": "History",
    "metrics": "Metrics",
    "network": "The ways to BMCs, OpenBao and OpenStack",
    "access": "Who may do what",
    "tls": "Encryption",
}


METAVARS = {int: "NUMBER", float: "NUMBER", timedelta: "DURATION", Path: "FILE", str: "TEXT"}


class _Command(click.Command):
    """Shows options in the groups of the settings, and takes several values after one flag
    (`--documents a b`): these commands have no arguments that it could swallow."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, frame.spread(args, _lists()))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                field = _field_of(parameter)
                section = field.name.rpartition(".")[0] if field else "general"
                rows.setdefault(section, []).append(record)
        titles = {**GROUPS, **{one: one.capitalize() for one in rows if one not in GROUPS}}
        for section, title in titles.items():
            if section in rows:
                with formatter.section(title):
                    formatter.write_dl(rows[section])


def _lists() -> frozenset[str]:
    return frozenset(field.flag for field in FIELDS.values() if field.is_list)


def _field_of(parameter: click.Parameter) -> Field | None:
    return FIELDS.get((parameter.name or "").replace("__", "."))


def _with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command every setting as a flag."""
    for field in reversed(FIELDS.values()):
        command = _option(field)(command)
    return click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        envvar=sources.CONFIG,
        help="TOML file with settings; weaker than flags and FLEETD_ variables.",
    )(command)


def _option(field: Field) -> Callable[[Callable[..., None]], Callable[..., None]]:
    default = values.show(field.default)
    shown = f"  [default: {default}]" if default else ""
    return click.option(
        field.flag,
        field.name.replace(".", "__"),
        multiple=field.is_list,
        default=None,
        metavar=_metavar(field),
        help=field.summary + shown,
    )


def _metavar(field: Field) -> str:
    by_name = {
        "documents": "DIR...",
        "catalogue": "DIR...",
        "state": "DIR",
        "listen": "HOST:PORT",
        "drivers": "MODULE...",
        "consents": "ID...",
        "metrics.token": "file:PATH|env:NAME",
        "network.proxy": "URL",
        "network.direct": "HOST...",
    }
    if field.name in by_name:
        return by_name[field.name]
    kinds = set(typing.get_args(field.kind)) - {type(None)} or {field.kind}
    (kind,) = kinds
    if issubclass(kind, enum.Enum):
        return "|".join(one.value for one in kind)
    return METAVARS[kind]


def _load(config: Path | None, given: dict[str, Any]) -> sources.Loaded:
    flags = {
        name.replace("__", "."): value for name, value in given.items() if value not in {None, ()}
    }
    return sources.load(flags, os.environ, config)


@click.group(
    cls=ending.Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `fleetctl validate DIR` on your documents, then `fleetd serve`.",
)
@click.version_option(fleetd.__version__, prog_name="fleetd", message="%(prog)s %(version)s")
def fleetd_command() -> None:
    """The daemon that runs a CobaltCore cloud as one thing.

    It reads the documents of all regions, looks at the world, plans what is to be done, does it in
    order, and can always say what it does not do and why.
    """


@fleetd_command.command(cls=_Command)
@_with_settings
def serve(config: Path | None, **given: Any) -> None:  # noqa: ANN401 -- one per setting
    """Run until SIGTERM or Ctrl-C.

    Each option can also be a variable (--observe-interval is FLEETD_OBSERVE_INTERVAL) or a key in
    the file of --config (interval in [observe]). A flag is stronger than a variable, a variable
    stronger than the file. `fleetd config` shows what came out, and where each value is from.

    \b
    Example:
      fleetd serve --documents fleet/ --state ./state --listen 127.0.0.1:8440
    """  # noqa: D301 -- click wants the sign itself
    loaded = _load(config, given)
    if not loaded.settings.documents:
        raise errors.SettingsError(
            "no documents are given; use --documents DIR, FLEETD_DOCUMENTS or documents in --config"
        )
    # Imported late: the engine and its clients take a second to load.
    from fleetd import app  # noqa: PLC0415
    from fleetd.surface import log  # noqa: PLC0415

    log.set_up(loaded.settings.log, now=clock.SystemClock().now)
    ending.leave(app.serve(loaded.settings))


@fleetd_command.command(name="config", cls=_Command)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "toml"]),
    default="text",
    help="Shape of the answer; toml can be given back with --config.",
)
@_with_settings
def config_command(config: Path | None, output: str, **given: Any) -> None:  # noqa: ANN401
    """Print the settings that `serve` would use, and where each comes from.

    Takes the same options as `serve`. Something secret is only ever named in settings, so nothing
    has to be hidden here.
    """
    loaded = _load(config, given)
    found = {name: _get(loaded.settings, name) for name in FIELDS}
    if output == "json":
        answer = {
            name: {"value": values.show_plain(value), "source": loaded.sources[name]}
            for name, value in found.items()
        }
        click.echo(json.dumps({"settings": answer}, indent=2))
    elif output == "toml":
        click.echo(_toml(found, loaded.sources), nl=False)
    else:
        _text(found, loaded.sources)


@fleetd_command.command(name="doctor", cls=_Command)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Shape of the answer.",
)
@_with_settings
def doctor_command(config: Path | None, output: str, **given: Any) -> None:  # noqa: ANN401
    """Look at this host, the settings, the documents and every far side, and say what is wrong.

    Takes the same options as `serve` and changes nothing. Ends with 1 if something is bad.

    \b
    Example:
      fleetd doctor --config /etc/fleetd/fleetd.toml
    """  # noqa: D301 -- click wants the sign itself
    loaded = _load(config, given)
    from fleetd import app  # noqa: PLC0415 -- late, as in serve

    found = app.examine(loaded.settings)
    if output == "json":
        click.echo(json.dumps({"findings": [one._asdict() for one in found]}, indent=2))
    else:
        for one in found:
            click.echo(_finding(one))
    bad = sum(one.level == "bad" for one in found)
    if output == "text":
        click.echo(f"{bad} bad" if bad else "nothing is wrong")
    ending.leave(1 if bad else 0)


def _finding(one: Any) -> str:  # noqa: ANN401 -- its module is imported late
    colours = {"ok": "green", "note": "yellow", "bad": "red"}
    sign = click.style(f"{one.level.value:<5}", fg=colours[one.level.value], bold=True)
    advice = f"; {one.advice}" if one.advice else ""
    return f"{sign}{one.what}: {one.message}{advice}"


def _get(tree: settings.Settings, name: str) -> object:
    value: object = tree
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _anywhere(value: object) -> object:
    """Paths that mean the same in whatever folder the file is put."""
    match value:
        case Path():
            return value.absolute()
        case tuple() if not isinstance(value, settings.Address):
            return tuple(_anywhere(one) for one in cast("tuple[object, ...]", value))
        case _:
            return value


def _toml(found: dict[str, object], where: Any) -> str:  # noqa: ANN401
    lines: list[str] = []
    table = ""
    for name, value in found.items():
        section, _, key = name.rpartition(".")
        if section != table:
            lines += ["", f"[{section}]"]
            table = section
        plain = values.show_plain(_anywhere(value))
        # JSON's text, numbers and lists of text are TOML's too.
        text = (
            f"{key} = {json.dumps(plain, ensure_ascii=False)}"
            if plain is not None
            else (f"# {key} is not set")
        )
        lines.append(f"{text}  # {where[name]}" if plain is not None else text)
    return "\n".join(lines) + "\n"


def _text(found: dict[str, object], where: Any) -> None:  # noqa: ANN401
    shown = {name: values.show(value) or "-" for name, value in found.items()}
    wide = max(len(name) for name in shown)
    middle = min(max(len(text) for text in shown.values()), 40)
    for name, text in shown.items():
        source = where[name]
        line = f"{name:<{wide}}  {text:<{middle}}  "
        click.echo(line + click.style(source, dim=source == "default", bold=source != "default"))


def main() -> None:
    ending.run(fleetd_command, "fleetd")
