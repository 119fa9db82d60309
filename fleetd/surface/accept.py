"""
What a caller would like to get: `Accept` and `Accept-Encoding`, with their weights.

A wish that is not understood is none: it wants nothing, and takes nothing away from the others.
"""

import re
from collections.abc import Iterator, Mapping

_WEIGHT = re.compile(r"0(?:\.\d{0,3})?|1(?:\.0{0,3})?", re.ASCII)


def gzip(given: str) -> bool:
    """Whether an answer may be packed, and as it is would not be liked better."""
    told = dict(_pieces(given))
    weight = told.get("gzip", told.get("x-gzip", told.get("*", 0.0)))
    return weight > 0 and weight >= told.get("identity", 0.0)


def openmetrics(given: str) -> bool:
    """Whether metrics are asked for in that form by its name, and no less than as text."""
    told = dict(_pieces(given))
    weight = told.get("application/openmetrics-text", 0.0)
    return weight > 0 and weight >= _of_type("text/plain", told)


def _of_type(type_: str, told: Mapping[str, float]) -> float:
    """What is told of it most exactly."""
    for name in (type_, f"{type_.partition('/')[0]}/*", "*/*"):
        if name in told:
            return told[name]
    return 0.0


def _pieces(given: str) -> Iterator[tuple[str, float]]:
    """Name and weight of each, the best of one name last."""
    found: list[tuple[float, str]] = []
    for piece in given.lower().split(","):
        name, *parameters = (part.strip(" \t") for part in piece.split(";"))
        weights = [
            value for key, _, value in (one.partition("=") for one in parameters) if key == "q"
        ]
        if name and all(_WEIGHT.fullmatch(one) for one in weights):
            found.append((float(weights[0]) if weights else 1.0, name))
    return ((name, weight) for weight, name in sorted(found))
