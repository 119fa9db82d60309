"""The versions that fleetd says it speaks are those of all that stands in its worlds."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, cast

from fleetd.kube import versions
from fleetd.sim import controllers
from fleetd.sim.kube.definitions import Definition


def _definitions() -> Iterator[Definition]:
    for module in pkgutil.iter_modules(controllers.__path__):
        for value in vars(
            importlib.import_module(f"{controllers.__name__}.{module.name}")
        ).values():
            several = cast("list[Any]", value) if isinstance(value, list | tuple) else [value]
            yield from (one for one in several if isinstance(one, Definition))


def test_what_is_spoken_is_what_is_served() -> None:
    """Of every kind that the simulated operators bring, whose versions are those of the real
    definitions, the best is the one that they prefer."""
    found = {
        f"{one.group}/{one.kind}": (spoken[0], one.version)
        for one in _definitions()
        if (spoken := versions.spoken(one.group, one.kind))
    }

    assert len(found) > 50
    assert {name: pair for name, pair in found.items() if pair[0] != pair[1]} == {}
