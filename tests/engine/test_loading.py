"""Drivers by the names of their modules: what is loaded, and what is refused in a sentence."""

import sys
import types
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from fleetd import errors
from fleetd.daemon.keeper import Keeper
from fleetd.engine import loading
from fleetd.settings import DRIVERS

TOOLS: Any = types.SimpleNamespace(
    secrets=Keeper(None, {}, Path())  # pyright: ignore[reportArgumentType] - no cluster is asked
)
"""All that a driver uses while it is made."""


class Made:
    def __init__(self, tools: Any) -> None:
        self.tools = tools


@pytest.fixture
def modules() -> Generator[dict[str, types.ModuleType]]:
    """Modules that exist for one test."""
    made = {name: types.ModuleType(name) for name in ("toys.one", "toys.two", "toys")}
    sys.modules.update(made)
    yield made
    for name in made:
        del sys.modules[name]


def test_a_single_driver_is_called_as_its_module(modules: Any) -> None:
    """DRIVER serves the name of the module, and is made with the tools."""
    modules["toys.one"].DRIVER = Made
    found: Any = loading.load(["toys.one"], TOOLS)
    assert list(found) == ["one"]
    assert found["one"].tools is TOOLS


def test_several_drivers_of_one_module(modules: Any) -> None:
    """DRIVERS names them, and those of other modules stand beside them."""
    modules["toys.one"].DRIVERS = {"a": Made, "b": Made}
    modules["toys.two"].DRIVER = Made
    assert list(loading.load(["toys.one", "toys.two"], TOOLS)) == ["a", "b", "two"]


def test_a_module_without_drivers_is_refused(modules: Any) -> None:
    """By its name, with what to do."""
    assert "toys.two" in modules
    with pytest.raises(errors.SettingsError, match=r"toys\.two has neither DRIVER nor DRIVERS"):
        loading.load(["toys.two"], TOOLS)


@pytest.mark.parametrize("name", ["no_such_driver", "drivers.no_such"])
def test_what_cannot_be_imported_is_refused(name: str) -> None:
    """By its name, with what to check."""
    with pytest.raises(errors.SettingsError, match=f"drivers: {name} cannot be imported.*check"):
        loading.load([name], TOOLS)


def test_the_drivers_that_come_with_fleetd_load() -> None:
    """Each of them, and none takes a name of another."""
    names = [name for module in DRIVERS for name in loading.load([module], TOOLS)]
    assert len(names) == len(set(names))
    assert set(names) == set(loading.load(DRIVERS, TOOLS))
