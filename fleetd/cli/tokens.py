"""`fleetctl token new`: a token for stdout, its entry for the access file."""

import os
from datetime import timedelta
from pathlib import Path

import click

from fleetd import clock, errors
from fleetd.cli.ending import Exit, Stop
from fleetd.daemon.access import rules, tokens


def new(name: str, *, role: str, regions: tuple[str, ...], days: int, into: Path | None) -> None:
    made = tokens.new()
    entry = _entry(name, made, role, regions, days)
    if into is None:
        click.echo(f"add this to the access file (access.file):\n{entry}", err=True)
    else:
        _append(into, entry)
    click.echo(made)


def _entry(name: str, made: str, role: str, regions: tuple[str, ...], days: int) -> str:
    ends = clock.SystemClock().now() + timedelta(days=days)
    lines = [
        "[[tokens]]",
        f"name = {_quoted(name)}",
        f'sha256 = "{tokens.digest(made)}"',
        f'role = "{role}"',
        *([f"regions = [{', '.join(map(_quoted, regions))}]"] if regions else []),
        f"expires = {ends:%Y-%m-%dT%H:%M:%SZ}",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    if not text.isprintable() or not text or set(text) & set('"\\'):
        raise Stop(Exit.USAGE, f"{text!a} cannot be a name")
    return f'"{text}"'


def _append(path: Path, entry: str) -> None:
    """As a new file that takes the old one's place: a daemon never reads half of it."""
    before = path.read_text("utf-8") if path.exists() else ""
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.touch(mode=0o600)
        fresh.write_text(f"{before.rstrip()}\n\n{entry}".lstrip(), "utf-8")
        rules.read(fresh)
        if path.exists():
            os.chmod(fresh, path.stat().st_mode & 0o644)  # noqa: PTH101
        fresh.replace(path)
    except errors.SettingsError as wrong:
        fresh.unlink()
        raise Stop(Exit.BAD, str(wrong).replace(str(fresh), str(path))) from None
