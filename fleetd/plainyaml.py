"""
YAML from others (kubeconfigs, clouds.yaml, patches): safe, and by libyaml where it is built in.

Not for documents of ours: those keep their positions and have limits (`topology.yamltree`). The one
rule: whatever was written to bring the reader down (nested without end, or a few lines that unfold
to gigabytes) is an `Error` like any other text that is no YAML. libyaml's loader goes down one
frame of C for each level, and would take the process with it.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

import msgspec
import yaml

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Error = yaml.YAMLError

DEPTH_MAX = 100
"""Levels. A kubeconfig has six, a definition of Kubernetes some thirty."""
NODES_MAX = 1_000_000
"""With all that its aliases stand for."""
_OPENERS = "[{:-?"
"""Without one of these nothing gets a level deeper."""


def load(text: str | bytes) -> Any:  # noqa: ANN401 - whatever it holds
    """Raises `Error`."""
    if text[:1] in ("{", b"{"):
        try:
            return msgspec.json.decode(text)  # it is YAML too, and much quicker to read so
        except RecursionError:
            raise Error("it is nested too deeply") from None
        except ValueError:
            pass
    plain = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    if "*" in plain or sum(map(plain.count, _OPENERS)) > DEPTH_MAX:
        _measure(text)
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - both are safe loaders
    except (ValueError, OverflowError) as cause:
        # A date in a thirteenth month, a number with a million digits: said without the value.
        raise Error(f"a value in it cannot be read ({type(cause).__name__})") from None


def _measure(text: str | bytes) -> None:
    """By its events, which come one after the other however deep it is."""
    begun: list[tuple[str, int]] = []
    """What is not closed yet: its anchor, and the nodes before it."""
    known: dict[str, int] = {}
    nodes = 0
    parse = cast("Callable[..., Iterable[object]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]
    for event in parse(text, Loader=_Loader):
        anchor = str(getattr(event, "anchor", "") or "")
        match type(event).__name__:
            case "MappingStartEvent" | "SequenceStartEvent":
                begun.append((anchor, nodes))
                nodes += 1
            case "MappingEndEvent" | "SequenceEndEvent":
                anchor, before = begun.pop()
                known[anchor] = nodes - before
            case "ScalarEvent":
                nodes += 1
                known[anchor] = 1
            case "AliasEvent":
                if any(anchor == outer for outer, _ in begun):
                    raise Error("it holds itself")
                nodes += known.get(anchor, 0)
            case _:
                continue
        if len(begun) > DEPTH_MAX:
            raise Error("it is nested too deeply")
        if nodes > NODES_MAX:
            raise Error("it is too large with all that its aliases stand for")
