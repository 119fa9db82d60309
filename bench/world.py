"""
The world that the benchmarks look at: what a driver would see of each thing, and a driver for it.

The facts of a server are what metal-operator shows of one (`Server.status`, the fields a driver
reads), decoded from JSON anew for each look, so that no two share a string. That is how they come
from a wire, and it is what memory is made of. Everything else shows a state and a version.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import msgspec

from fleetd.tools import MakeDriver, Tools
from fleetd.vocabulary import (
    READY,
    Clock,
    Condition,
    Done,
    Driver,
    Observation,
    Outcome,
    Step,
    Truth,
    make_step,
)
from topology import catalogue_load, compile  # noqa: A004
from topology.documents.region import Provider
from topology.resource import Facts, Ref, Resource

SERVER = "server"
BIOS = "2.19.1"
"""The version that servers should have."""
ABSENT: Facts = {}


def facts_of(want: Resource, *, power: str = "On", bios: str = BIOS) -> Facts:
    """What a far side answers that has the thing and runs it."""
    if want.ref.kind == SERVER:
        return server_facts(want.ref.name, str(want.spec.get("bmc", "")), power, bios)
    return thing_facts(want.ref.name)


def thing_facts(name: str) -> Facts:
    return msgspec.json.decode(_THING % name.encode())


def server_facts(name: str, bmc: str, power: str = "On", bios: str = BIOS) -> Facts:
    number = zlib.crc32(name.encode())
    mac = b"52:54:%02x:%02x:%02x" % (number >> 16 & 255, number >> 8 & 255, number & 255)
    known = name.encode()
    return msgspec.json.decode(
        _SERVER % (power.encode(), bios.encode(), known, number, bmc.encode(), mac, mac, known)
    )


_THING = b'{"state":"Running","name":"%s","version":"1.33.4","replicas":3}'
_SERVER = (
    b'{"state":"Reserved","powerState":"%s","indicatorLED":"Off","biosVersion":"%s",'
    b'"manufacturer":"Contoso","model":"R760","serialNumber":"SN-%s",'
    b'"systemUUID":"9f0c4c1e-0b5a-4d57-9d7e-0000%08x","bmc":"%s",'
    b'"networkInterfaces":[{"name":"eth0","macAddress":"%s:01","carrierStatus":"up"},'
    b'{"name":"eth1","macAddress":"%s:02","carrierStatus":"up"}],'
    b'"serverClaimRef":{"namespace":"default","name":"node-%s"}}'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchDriver:
    """Proposes to create what is not there, to power on what is off, and to flash what is old,
    which takes the server down; what is old serves all the same."""

    kind: str
    clock: Clock | None = None
    world: Mapping[Ref, Facts] = field(default_factory=dict[Ref, Facts])
    """What is not as `facts_of` says."""

    def check(self, want: Resource) -> Sequence[str]:  # noqa: ARG002 - the Driver protocol
        return ()

    async def observe(self, want: Resource) -> Observation:
        assert self.clock is not None
        facts = self.world.get(want.ref)
        return Observation(
            ref=want.ref, at=self.clock.now(), facts=facts_of(want) if facts is None else facts
        )

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is None:
            return ()
        if not seen.facts:
            return (self._step(want, "create", "it is not there"),)
        if seen.facts.get("powerState", "On") != "On":
            return (self._step(want, "power_on", "it is off"),)
        if seen.facts.get("biosVersion", BIOS) != BIOS:
            return (self._step(want, "flash", f"its BIOS is not {BIOS}", frozenset({want.ref})),)
        return ()

    async def apply(self, step: Step) -> Outcome:  # noqa: ARG002 - the Driver protocol
        return Done()

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        on = bool(seen.facts) and seen.facts.get("powerState", "On") == "On"
        return (
            Condition(
                type=READY,
                truth=Truth.TRUE if on else Truth.FALSE,
                reason="Running" if on else "Off",
                message="it runs" if on else "it is powered off",
                generation=want.generation,
                since=seen.at,
                reason_since=seen.at,
            ),
        )

    def _step(
        self, want: Resource, verb: str, why: str, disrupts: frozenset[Ref] = frozenset()
    ) -> Step:
        args: dict[str, Any] = {"name": want.ref.name, "bmc": want.spec.get("bmc", "")}
        deadline = timedelta(minutes=5)
        return make_step(want, verb, args, why=why, deadline=deadline, disrupts=disrupts)


def _maker(name: str) -> MakeDriver:
    def make(tools: Tools) -> Driver:
        return BenchDriver(kind=name, clock=tools.clock)

    return make


def _names() -> set[str]:
    components, _ = catalogue_load.load(())
    return {component.spec.driver for component in components.values()}


DRIVERS: dict[str, MakeDriver] = {
    name: _maker(name) for name in sorted({*_names(), compile.ADOPTED, *Provider})
}
"""For a daemon: `--driver bench.world`."""
