"""
How answers and complaints are written: answers to stdout, everything else to stderr.

Colours only on a terminal and never with NO_COLOR (rich sees to both). `-o json` is one JSON
document and nothing else. Everything passes `secrets.scrub`, and nothing that a name or a message
holds steers the terminal: see `plain`.
"""

import contextlib
import sys
import textwrap
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Any

import click
import yaml
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from fleetd import secrets
from fleetd.cli import ending
from fleetd.cli.ending import plain
from fleetd.cli.frame import Frame
from topology.problem import Problem

PATIENCE = 5.0
"""Seconds of silence that nobody minds. After that work shows itself."""


class _Console(Console):
    """What it is given is text: no markup, no emoji, no sign that steers the terminal. Only what
    rich itself adds (colours, the cursor of a live answer) goes out as it is."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 -- passed through
        super().__init__(markup=False, emoji=False, highlight=False, **given)

    def render_str(self, text: str, **given: Any) -> Text:  # noqa: ANN401 -- passed through
        """Before a table is laid out: a sign that steers has no width, and what stands for it has
        one."""
        return super().render_str(plain(text), **given)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(plain(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """The reader has left (`| head`): `ending` knows what to do. rich would end with 1, which
        says that the answer is bad."""
        raise BrokenPipeError


def answers() -> Console:
    """The console of stdout. Off a terminal lines are as long as they are: a pipe has no edge."""
    if sys.stdout.isatty():
        return _Console(soft_wrap=False)
    return _Console(soft_wrap=True, width=10_000, color_system=None)


def width() -> int:
    """Columns to lay out for: those of the terminal, or what reads well in a file."""
    return answers().width if sys.stdout.isatty() else 100


def folded(line: str) -> list[str]:
    """A line as a terminal shows it best: broken between words, the rest of it set in. Elsewhere
    it stays one line."""
    if not sys.stdout.isatty():
        return [line]
    return textwrap.wrap(
        line, width(), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    ) or [line]


def folded_text(text: Text) -> list[Text]:
    """The same for a line with colours; what is broken off stands below, further in."""
    if not on_terminal() or len(text) <= width():
        return [text]
    console = answers()
    first, *others = text.wrap(console, width())
    lead = " " * (len(text.plain) - len(text.plain.lstrip()) + 4)
    rest = Text(" ").join(others).wrap(console, width() - len(lead))
    return [first, *(Text(lead).append_text(part) for part in rest)]


def table(shown: Table) -> None:
    """A table without the spaces that a table leaves at the ends of its lines."""
    console = answers()
    with console.capture() as captured:
        console.print(shown)
    for line in captured.get().splitlines():
        console.file.write(f"{secrets.scrub(line.rstrip())}\n")


def scrubbed(text: Text) -> Text:
    """The same text, or without its colours what may be shown of it."""
    clean = secrets.scrub(text.plain)
    return text if clean == text.plain else Text(clean)


def line(text: Text) -> None:
    """One line of an answer, with its colours."""
    answers().print(scrubbed(text))


def complaints() -> Console:
    return _Console(stderr=True, soft_wrap=True)


def data(frame: Frame, shape: object) -> None:
    """An answer for programs."""
    shape = secrets.scrub_deep(shape) if secrets.REGISTRY else shape
    # Whoever reads another encoding gets escapes, so that nothing is lost on the way.
    every = (sys.stdout.encoding or "").lower().startswith("utf")
    if frame.output == "yaml":
        text = yaml.safe_dump(shape, sort_keys=False, allow_unicode=every, width=100)
        if plain(text) != text:
            text = yaml.safe_dump(shape, sort_keys=False, allow_unicode=False, width=100)
    else:
        text = ending.as_json(shape, every=every)
    ending.answered()
    click.echo(secrets.scrub(text), nl=False)


def lines(given: Iterable[str]) -> None:
    for line in given:
        click.echo(plain(secrets.scrub(line)))


def problems(found: Iterable[Problem], *, screenful: int = 200) -> None:
    """All of them, place first, as an editor or a tired person finds it. Only a terminal, where
    the first would be out of reach, gets no more than can be read."""
    console = complaints()
    every = list(found)
    shown = every[:screenful] if console.is_terminal else every
    for problem in shown:
        place, _, rest = secrets.scrub(str(problem)).partition(": ")
        console.print(Text(place, style="bold"), Text(f" {rest}"), sep=":")
    if len(every) > len(shown):
        rest = len(every) - len(shown)
        console.print(f"... and {rest} more; repair these first, or see all with 2>&1 | less")


def summary(text: str) -> None:
    """A last word on stderr about what was complained of."""
    complaints().print(Text(text, style="bold red"))


@contextlib.contextmanager
def working(what: str) -> Generator[Callable[[str], None]]:
    """Show that something takes its time: a spinner on a terminal, else one line, and either only
    after a moment. What is yielded takes words about how far it has come."""
    console = complaints()
    if console.is_terminal:
        with _spinner(console, what) as tell:
            yield tell
        return
    timer = threading.Timer(PATIENCE, lambda: click.echo(f"{what} ...", err=True))
    timer.daemon = True
    timer.start()
    try:
        yield lambda _text: None
    finally:
        timer.cancel()


@contextlib.contextmanager
def _spinner(console: Console, what: str) -> Generator[Callable[[str], None]]:
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        yield lambda text: progress.update(task, description=f"{what}: {text}")


def on_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()  # pyright: ignore[reportUnnecessaryComparison]
