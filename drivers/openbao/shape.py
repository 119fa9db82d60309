"""Reading what far sides send: parts that may be missing are empty."""

from collections.abc import Mapping
from typing import Any, cast


def inside(found: Mapping[str, Any] | None, *names: str) -> Mapping[str, Any]:
    """The mapping at the end of these names; empty where there is none."""
    here: Any = found
    for name in names:
        if not isinstance(here, Mapping):
            return {}
        here = cast("Mapping[str, Any]", here).get(name)
    return cast("Mapping[str, Any]", here) if isinstance(here, Mapping) else {}
