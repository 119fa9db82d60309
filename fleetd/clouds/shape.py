"""Reading nested objects that came over a wire: what is not there is empty. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from topology.resource import Facts


def part(value: Mapping[str, Any] | None, *names: str) -> Facts:
    """The mapping at this path; empty if there is none."""
    found: Any = value or {}
    for name in names:
        found = cast("Facts", found).get(name) if isinstance(found, Mapping) else None
    return cast("Facts", found) if isinstance(found, Mapping) else {}


def members(value: Mapping[str, Any] | None, *names: str) -> Sequence[Facts]:
    """The list of mappings at this path; empty if there is none."""
    found: Any = part(value, *names[:-1]).get(names[-1])
    return cast("Sequence[Facts]", found) if isinstance(found, list) else ()


def condition(obj: Mapping[str, Any], kind: str) -> Facts:
    """One condition of an object; empty if it has none of this type."""
    held = members(obj, "status", "conditions")
    none: Facts = {}
    return next((one for one in held if one.get("type") == kind), none)
