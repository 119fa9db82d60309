"""How people name things: `cluster hv`, `cluster/hv`, `Clusters hv`. The daemon knows the kinds."""

import difflib
from collections.abc import Iterable
from urllib.parse import quote

import click

from fleetd.cli.client import Client
from fleetd.cli.ending import Exit, Stop

ORPHANS = "orphans"
"""Not a kind: what no document names any more."""


def split(kind: str, name: str | None) -> tuple[str, str | None]:
    """KIND NAME or KIND/NAME, as words; nothing is looked up."""
    left, slash, right = kind.partition("/")
    if not slash:
        return kind, name
    if not left or not right:
        raise click.UsageError(f"{kind} lacks a {'name' if left else 'kind'}; write KIND/NAME")
    if name is not None:
        raise click.UsageError(f"write {left} NAME or KIND/NAME, not both")
    return left, right


def one(asked: Client, kind: str, name: str | None) -> tuple[str, str]:
    """Kind and name of one thing."""
    kind, name = split(kind, name)
    if name is None:
        raise click.UsageError(f"which {kind}? write {kind} NAME, or {kind}/NAME")
    return known_kind(asked, kind), name


def about(asked: Client, given: str) -> str:
    """KIND/NAME of something that may be gone by now, whatever form its kind was given in."""
    kind, name = split(given, None)
    return f"{meant(kind, _kinds(asked)) or kind.lower()}/{name}"


def path(kind: str, name: str) -> str:
    """Of its page, whatever signs are in the name."""
    return f"/resources/{quote(kind, safe='')}/{quote(name, safe='')}"


def known_kind(asked: Client, given: str) -> str:
    """The kind that is meant; ends the program if there is none like it."""
    kinds = _kinds(asked)
    found = meant(given, kinds)
    if found is not None:
        return found
    close = difflib.get_close_matches(given.lower(), [*kinds, *map(plural, kinds)], n=1)
    guess = f"; did you mean {meant(close[0], kinds)}?" if close else ""
    raise Stop(Exit.BAD, f"there is no kind {given}{guess or '; `fleetctl tree` shows what is'}")


def _kinds(asked: Client) -> list[str]:
    return [item["kind"] for item in asked.get("/kinds")["items"]]


def meant(given: str, kinds: Iterable[str]) -> str | None:
    """`Server`, `servers` and `policies` as a kind that exists."""
    low = given.lower()
    by_word = {plural(kind): kind for kind in kinds} | {kind: kind for kind in kinds}
    return by_word.get(low)


def plural(kind: str) -> str:
    if kind.endswith("y") and kind[-2:-1] not in "aeiou":
        return f"{kind[:-1]}ies"
    return kind if kind.endswith("s") else f"{kind}s"
