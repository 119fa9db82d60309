"""
The toy driver for a real daemon: `fleetd serve --drivers tests.toy.remote`.

It serves every driver name that the catalogue uses, and speaks to the world at the port that the
variable TOY_WORLD names.
"""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from fleetd.clock import Clock
from fleetd.tools import MakeDriver, Tools
from fleetd.vocabulary import Driver
from tests.toy.driver import ToyDriver
from topology import catalogue_load
from topology.resource import Ref

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Remote:
    """A wire over TCP, with a connection per call under way."""

    port: int
    idle: list[Connection] = field(default_factory=list[Connection])

    async def read(self, ref: Ref) -> dict[str, Any]:
        return (await self._ask({"op": "read", "ref": ref}))["facts"]

    async def write(self, ref: Ref, verb: str, args: Mapping[str, Any], step: str) -> str:
        request = {"op": "write", "ref": ref, "verb": verb, "args": dict(args), "step": step}
        return (await self._ask(request))["effect"]

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        connection = (
            self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port)
        )
        reader, writer = connection
        writer.write(json.dumps(request).encode() + b"\n")
        line = await reader.readline()
        if not line:
            raise ConnectionError("the world hung up")
        self.idle.append(connection)
        answer: dict[str, Any] = json.loads(line)
        if "silent" in answer:
            raise ConnectionError(answer["silent"])
        return answer


def _make(tools: Tools) -> Driver:
    # Asked when a driver is made, not when this module is imported.
    wire = Remote(int(os.environ["TOY_WORLD"]))
    return ToyDriver(wire, cast("Clock", tools.clock), pace=float(os.environ.get("TOY_PACE", "1")))


def _names() -> list[str]:
    components, _ = catalogue_load.load()
    named = {component.spec.driver for component in components.values()}
    return sorted({*named, "toy", "adopted", "ironcore", "ironic"})


DRIVERS: Mapping[str, MakeDriver] = dict.fromkeys(_names(), _make)
