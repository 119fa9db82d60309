"""Small ways into objects that may lack any part of what one looks for."""

from collections.abc import Mapping
from typing import Any

from fleetd.sim.kube.values import at


def part(obj: Mapping[str, Any] | None, path: str) -> dict[str, Any]:
    """The mapping at a dotted path; an empty one if there is none. Not to be changed."""
    found: Any = at(obj, path) if obj is not None else None
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def items_of(obj: Mapping[str, Any] | None, path: str) -> list[Any]:
    """The list at a dotted path; an empty one if there is none."""
    found: Any = at(obj, path) if obj is not None else None
    return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def labels_of(obj: Mapping[str, Any] | None) -> dict[str, str]:
    return part(obj, "metadata.labels")


def notes_of(obj: Mapping[str, Any] | None) -> dict[str, str]:
    return part(obj, "metadata.annotations")


def text_of(obj: Mapping[str, Any] | None, path: str) -> str:
    """What stands at a dotted path, as text; empty if nothing does."""
    found: Any = at(obj, path) if obj is not None else None
    return "" if found is None else str(found)
