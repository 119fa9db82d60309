"""
The fields of `fleetd.settings`, flat: name, type, bounds, default and the text below each.

Read from the dataclasses themselves, so that a new setting has its flag, its variable, its help
and its line in `fleetd config` without being written down again.
"""

import ast
import dataclasses
import inspect
import itertools
import textwrap
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

from fleetd import settings


@dataclass(frozen=True)
class Field:
    name: str
    """Dotted: `observe.interval`."""
    kind: Any
    """Its type, without the bounds."""
    bounds: settings.Bounds | None
    default: object
    owner: type
    """The dataclass it stands in."""

    @property
    def flag(self) -> str:
        return "--" + self.name.replace(".", "-").replace("_", "-")

    @property
    def variable(self) -> str:
        return "FLEETD_" + self.name.replace(".", "_").upper()

    @property
    def is_list(self) -> bool:
        return typing.get_origin(self.kind) is tuple

    @cached_property
    def text(self) -> str:
        """Unit, default and why."""
        return _docstrings(self.owner).get(self.name.rpartition(".")[2], "")

    @property
    def summary(self) -> str:
        """The first sentence."""
        head, stop, _ = self.text.partition(". ")
        return head + "." if stop else self.text


def _fields(owner: type, prefix: str) -> Iterator[Field]:
    hints = typing.get_type_hints(owner, include_extras=True)
    for one in dataclasses.fields(owner):
        kind, name = hints[one.name], f"{prefix}{one.name}"
        if dataclasses.is_dataclass(kind):
            yield from _fields(typing.cast("type", kind), f"{name}.")
            continue
        bounds = None
        if typing.get_origin(kind) is Annotated:
            kind, bounds = typing.get_args(kind)
        yield Field(name=name, kind=kind, bounds=bounds, default=one.default, owner=owner)


def _docstrings(owner: type) -> dict[str, str]:
    """The text below each field. Empty where the source is not at hand (a frozen build)."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    except (OSError, SyntaxError):
        return {}
    found: dict[str, str] = {}
    body = typing.cast("ast.ClassDef", tree.body[0]).body
    for field, text in itertools.pairwise(body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(t))
            ):
                found[name] = " ".join(t.split())
            case _:
                pass
    return found


FIELDS = {field.name: field for field in _fields(settings.Settings, "")}
