"""
Every chart that the simulated clusters know, by the name it is installed with.

Each operator's module brings its own as `CHARTS`. Modules are imported when the first chart is
asked for, because the controllers that install charts are among them.
"""

import importlib
from collections.abc import Mapping
from functools import lru_cache

from fleetd.sim.chart import Chart

MODULES = (
    "arbiter",
    "c5c3",
    "certmanager",
    "eso",
    "flux",
    "garage",
    "greenhouse",
    "hypervisor",
    "korc",
    "mariadb",
    "memcached",
    "novacompute",
    "openbaopods",
    "osservices",
    "osservices_exposed",
    "ovn",
    "prysm",
    "rabbitmq",
    "rook",
    "valkey",
)
"""Below `fleetd.sim.controllers`."""


@lru_cache
def everything() -> Mapping[str, Chart]:
    found: dict[str, Chart] = {}
    for name in MODULES:
        module = importlib.import_module(f"fleetd.sim.controllers.{name}")
        found.update(module.CHARTS)
    return found


def find(name: str) -> Chart | None:
    return everything().get(name)
