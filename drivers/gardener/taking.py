"""
A Shoot that others made under a name that a document has: what fleetd would change in it, in words.

Pure. It is looked at and left alone until the document says `takeOver`; then it is written with
force, for its fields belong to whoever made it. What others added and the document does not name
stays: a pool of theirs is nobody's to delete.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from drivers.gardener import offers
from fleetd.kube import facts
from topology.resource import Facts

MOST = 20
"""Differences that are told; who has more reads the Shoot."""
_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


def foreign(part: Mapping[str, Any] | None) -> bool:
    """Whether it is there and fleetd never wrote it."""
    return part is not None and not part["made"]


def report(wanted: Facts, live: Facts) -> list[str]:
    """What would become different, `path: old -> new`, and what would stay though nobody asked
    for it."""
    spec: Facts = wanted["spec"]
    found = [
        f"{path.removeprefix('spec.')}: {_shown(_at(live, path))} -> {_shown(_at(wanted, path))}"
        for key in spec
        for path in facts.differences({"spec": {key: spec[key]}}, live)
    ]
    return [*found, *_more(spec, live.get("spec") or {})][:MOST]


def _more(wanted: Facts, live: Facts) -> Iterator[str]:
    mine = {worker["name"] for worker in offers.workers(wanted)}
    for worker in offers.workers(live):
        if worker["name"] not in mine:
            yield f"pool {worker['name']} stays, though the document does not name it"


def _at(obj: Facts, path: str) -> Any:  # noqa: ANN401
    value: Any = obj
    for name, member in _STEP.findall(path):
        if name:
            value = cast("Facts", value).get(name) if isinstance(value, Mapping) else None
        else:
            value = _member(value, member)
    return value


def _member(value: object, name: str) -> Any:  # noqa: ANN401
    if not isinstance(value, list):
        return None
    several = cast("Sequence[Any]", value)
    if name.isdigit():
        return several[int(name)] if int(name) < len(several) else None
    for one in several:
        if isinstance(one, Mapping) and cast("Facts", one).get("name") == name:
            return cast("Any", one)
    return None


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    return value if isinstance(value, str) else json.dumps(value, default=str)
