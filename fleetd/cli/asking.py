"""Questions to the person at the terminal. Without a terminal nobody is asked."""

import sys

import click


def possible() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()  # pyright: ignore[reportUnnecessaryComparison]


def confirm(question: str) -> bool:
    """On stderr: what goes to stdout is the answer."""
    return click.confirm(question, default=False, err=True)


def word(question: str) -> str:
    return str(click.prompt(question, default="", show_default=False, err=True)).strip()
