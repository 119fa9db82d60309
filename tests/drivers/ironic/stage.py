"""
A region whose metal belongs to Ironic: three servers with their BMCs, an Ironic with no node yet,
and the driver. It reaches them as it reaches everything.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivers.ironic.driver import IronicDriver
from fleetd.clock import LoopClock
from fleetd.gate import Gates
from fleetd.kube.clusters import Clusters
from fleetd.net import Ways
from fleetd.polls import Polls
from fleetd.sim import loop
from fleetd.sim.faults import Climate, Plight
from fleetd.sim.keys import Keys
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.services.ironic import Ironic
from fleetd.sim.services.ironic_nodes import Node
from fleetd.sim.sites import ironic, metal
from fleetd.sim.truth import Machine
from fleetd.sim.world import World
from fleetd.tools import Rules, Tools
from fleetd.vocabulary import Condition, Failed, Observation, Step, Truth
from tests import defaults
from topology import catalogue_load, load
from topology import compile as compiler
from topology.resource import Ref, Resource, Topology

START = datetime(2026, 3, 3, 21, 0, tzinfo=UTC)
COMPONENTS, _ = catalogue_load.load()
TOPOLOGY = compiler.compile(load.load([Path(__file__).parent / "region.yaml"]).items, COMPONENTS)


@dataclass
class Fleet:
    known: Topology = TOPOLOGY

    def topology(self) -> Topology:
        return self.known

    everything = topology

    def ready(self, ref: Ref) -> Condition | None:
        del ref
        return None


@dataclass
class Stage:
    world: World
    service: Ironic
    climate: Climate
    ledger: Ledger
    tools: Tools
    driver: IronicDriver

    def want(self, name: str = "r1-s01") -> Resource:
        return TOPOLOGY.resources[Ref("server", name)]

    @property
    def api(self) -> Resource:
        return TOPOLOGY.resources[Ref("ironic", "eu-1")]

    def machine(self, name: str = "r1-s01") -> Machine:
        return self.world.truth.machines[name]

    def node(self, name: str = "r1-s01") -> Node:
        return self.service.nodes.find(name)

    def mishap(self, *, on: bool) -> None:
        """The conductor is lost, or another one takes over."""
        what = ("ironic", "eu-1", "conductor-lost")
        (self.world.mishaps.add if on else self.world.mishaps.discard)(what)
        for listener in self.world.listeners:
            listener(what)

    def cut(self) -> None:
        for name in self.world.services:
            self.climate.plights[name] = Plight.UNREACHABLE
        self.driver.forget("eu-1")

    def state(self) -> object:
        return [
            (node.name, node.driver_info, node.extra, node.provision_state, node.properties)
            for node in self.service.nodes.by_uuid.values()
        ]

    async def steps(self, name: str = "r1-s01") -> Sequence[Step]:
        want = self.want(name)
        return list(self.driver.propose(want, await self.driver.observe(want)))

    async def reason(self, resource: Resource | None = None) -> str:
        resource = resource or self.want()
        seen = await self.driver.observe(resource)
        judged = self.driver.judge(resource, seen)
        return judged[0].reason if judged else seen.error or "Absent"

    async def carry_out(self, steps: Sequence[Step]) -> None:
        for step in steps:
            outcome = await self.driver.apply(step)
            assert not isinstance(outcome, Failed), outcome

    async def road(self, name: str = "r1-s01", rounds: int = 100) -> list[str]:
        """Follow the proposals until it is Ready; every reason on the way."""
        want, reasons = self.want(name), [""]
        for _ in range(rounds):
            seen: Observation = await self.driver.observe(want)
            judged = self.driver.judge(want, seen)
            reason = judged[0].reason if judged else seen.error or "Absent"
            if reason != reasons[-1]:
                reasons.append(reason)
            steps = self.driver.propose(want, seen)
            if not steps and judged and judged[0].truth is Truth.TRUE:
                break
            await self.carry_out(steps)
            await asyncio.sleep(5)
        return reasons[1:]


def play(act: Callable[[Stage], Coroutine[Any, Any, None]], seed: int = 1) -> None:
    """Run one act on a fresh stage, in virtual time."""

    async def run() -> None:
        world = World(seed, START)
        metal.furnish(world, TOPOLOGY)
        ironic.furnish(world, TOPOLOGY)
        ledger = Ledger()
        climate = Climate(world, ledger)
        net = SimNetwork(world, climate)
        rules = Rules()
        rules.take(COMPONENTS)
        clock = LoopClock(START)
        gates = Gates(defaults.LIMITS, clock)
        clusters = Clusters(
            net.kube, gates=gates, clock=clock, rng=random.Random(1), wake=lambda _: None
        )
        keys = Keys(world, _metal_only())
        tools = Tools(
            clock=clock,
            clusters=clusters,
            net=Ways(net, gates, clock),
            polls=Polls(clock),
            secrets=keys,
            rules=rules,
            fleet=Fleet(),
        )
        service = world.services["ironic-eu-1"]
        assert isinstance(service, Ironic)
        await act(Stage(world, service, climate, ledger, tools, IronicDriver(tools)))
        assert world.failures == []

    loop.run(run())


def _metal_only() -> Topology:
    """There is no garden here to make a kubeconfig for."""
    kept = {
        ref: resource
        for ref, resource in TOPOLOGY.resources.items()
        if ref.kind in ("server", "serverpool", "ironic")
    }
    return Topology(digest="", resources=kept, edges=())
