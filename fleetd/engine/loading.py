"""Drivers by the names of their modules: fleetd itself names none."""

import importlib
from collections.abc import Mapping, Sequence

from fleetd import errors
from fleetd.tools import MakeDriver, Tools
from fleetd.vocabulary import Driver


def load(modules: Sequence[str], tools: Tools) -> dict[str, Driver]:
    """The drivers of these modules, made. Each module has a DRIVER or DRIVERS."""
    makers: dict[str, MakeDriver] = {}
    for name in modules:
        try:
            module = importlib.import_module(name)
        except ImportError as cause:
            raise errors.SettingsError(
                f"drivers: {name} cannot be imported ({cause}); check the name and the path"
            ) from cause
        found: Mapping[str, MakeDriver] | None = getattr(module, "DRIVERS", None)
        single: MakeDriver | None = getattr(module, "DRIVER", None)
        if found is None and single is None:
            raise errors.SettingsError(
                f"drivers: {name} has neither DRIVER nor DRIVERS; name the module of a driver"
            )
        makers.update(found or {name.rpartition(".")[2]: single} if single else found or {})
    return {name: make(tools) for name, make in makers.items()}
