"""
A region for the drivers of garden and metal: the minimal example, furnished and nothing more.

Drivers reach it as they reach everything: through the network, with the secrets that the world
has made. `Region.road` follows a driver's proposals, as the engine would.
"""

import asyncio
import copy
import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fleetd.clock import LoopClock
from fleetd.gate import Gates
from fleetd.kube.clusters import Clusters
from fleetd.net import Ways
from fleetd.polls import Polls
from fleetd.sim import build, keys
from fleetd.sim.faults import Climate, Plight
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.sites import garden, metal
from fleetd.sim.world import World
from fleetd.tools import Rules, Tools
from fleetd.vocabulary import Condition, Driver, Failed, Observation, Step, Truth
from tests import defaults
from tests.conformance.driver import suite
from topology import catalogue_load, load
from topology import compile as compiler
from topology.examples import large
from topology.resource import Ref, Resource, Topology

COMPONENTS, _ = catalogue_load.load()
EXAMPLES = Path(large.__file__).parent


def topology(name: str = "minimal") -> Topology:
    return compiler.compile(load.load([EXAMPLES / name]).items, COMPONENTS)


MINIMAL = topology()


def want(kind: str, name: str = "eu-1", known: Topology = MINIMAL) -> Resource:
    return known.resources[Ref(kind, name)]


def changed(resource: Resource, **spec: Any) -> Resource:
    """The same with another spec, and so of another generation."""
    given = {**resource.spec, **spec}
    return replace(resource, spec=given, generation=compiler.fingerprint(resource.driver, given))


EVERYTHING = {
    "purpose": "testing",
    "dns": {"domain": "hv.eu-1.example"},
    "exposureClass": "internal",
    "failureTolerance": "node",
    "hibernation": {
        "enabled": False,
        "schedules": [{"start": "0 20 * * 1-5", "end": "0 7 * * 1-5", "zone": "Europe/Berlin"}],
    },
    "authentication": {
        "issuers": [
            {
                "url": "https://sso.example",
                "audiences": ["fleet", "ops"],
                "userClaim": "sub",
                "groupsClaim": "groups",
                "prefix": "sso:",
            }
        ]
    },
}
"""Of a Cluster, all that most leave out."""


def everything() -> Resource:
    """A cluster that says all that can be said."""
    cluster = want("cluster", "hv")
    pools = [
        {**one, "sysctls": {"net.core.somaxconn": "4096"}, "taints": ["a=b:NoSchedule"]}
        for one in cluster.spec["workers"]
    ]
    garden = {**cluster.spec["garden"], "ownProfile": True}
    return changed(cluster, **EVERYTHING, workers=pools, garden=garden)


@dataclass
class Fleet:
    """What the daemon would think."""

    known: Topology = MINIMAL
    thought: dict[Ref, Condition] = field(default_factory=dict[Ref, Condition])

    def topology(self) -> Topology:
        return self.known

    everything = topology

    def ready(self, ref: Ref) -> Condition | None:
        return self.thought.get(ref)

    def put(self, resource: Resource) -> None:
        """As if a document had changed."""
        self.known = replace(self.known, resources={**self.known.resources, resource.ref: resource})


@dataclass
class Region:
    world: World
    climate: Climate
    ledger: Ledger
    tools: Tools
    fleet: Fleet
    gates: Gates

    @property
    def garden(self) -> Cluster:
        return self.world.clusters["garden-eu-1"]

    @property
    def metal(self) -> Cluster:
        return self.world.clusters["metal-eu-1"]

    def cut(self, *backends: str) -> None:
        for backend in backends or ("garden-eu-1", "metal-eu-1"):
            self.climate.plights[backend] = Plight.UNREACHABLE
            self.world.clusters[backend].end_watches()

    def state(self) -> object:
        """All that lasts in the garden and the metal API, times and versions left out."""
        return [
            (cluster.name, _lasting(obj))
            for cluster in (self.garden, self.metal)
            for gk in sorted(cluster.store.tables)
            for obj in cluster.list(gk)
        ]

    async def reason(self, driver: Driver, resource: Resource) -> str:
        seen = await driver.observe(resource)
        judged = driver.judge(resource, seen)
        return judged[0].reason if judged else seen.error or "Absent"

    async def road(self, driver: Driver, resource: Resource, *, seconds: float = 7200) -> str:
        """Follow the proposals until it is Ready; otherwise the last reason."""
        until = asyncio.get_running_loop().time() + seconds
        reason = ""
        while asyncio.get_running_loop().time() < until:
            seen = await driver.observe(resource)
            judged = driver.judge(resource, seen)
            reason = judged[0].reason if judged else seen.error or "Absent"
            steps = driver.propose(resource, seen)
            if not steps and judged and judged[0].truth is Truth.TRUE:
                return "Ready"
            await self.carry_out(driver, steps)
            await asyncio.sleep(10)
        return reason

    async def carry_out(self, driver: Driver, steps: Sequence[Step]) -> None:
        for step in steps:
            outcome = await driver.apply(step)
            assert not isinstance(outcome, Failed), outcome

    async def see(self, driver: Driver, resource: Resource) -> Observation:
        return await driver.observe(resource)

    def bench(self, driver: Driver, resource: Resource, bad: Resource, wait: float) -> suite.Bench:
        async def settle() -> None:
            await asyncio.sleep(wait)

        return suite.Bench(
            driver=driver,
            want=resource,
            bad=bad,
            settle=settle,
            cut=self._cut_for_good,
            writes=lambda: len(self.ledger.deeds),
            state=self.state,
        )

    def _cut_for_good(self) -> None:
        """Caches may speak for a server that was lost a moment ago; these were lost before."""
        self.cut()
        for backend in ("garden:eu-1", "metal:eu-1", "cluster:hv"):
            self.tools.clusters.drop(backend)


def _lasting(obj: Any) -> Any:
    made = copy.deepcopy(obj)
    for name in ("managedFields", "resourceVersion"):
        made["metadata"].pop(name, None)
    return made


@asynccontextmanager
async def region(known: Topology = MINIMAL, seed: int = 1) -> AsyncGenerator[Region]:
    world = World(seed, build.START)
    metal.furnish(world, known)
    garden.furnish(world, known)
    ledger = Ledger()
    climate = Climate(world, ledger)
    net = SimNetwork(world, climate)
    fleet = Fleet(known)
    rules = Rules()
    rules.take(COMPONENTS)
    clock = LoopClock(build.START)
    gates = Gates(defaults.LIMITS, clock)
    clusters = Clusters(
        net.kube, gates=gates, clock=clock, rng=random.Random(1), wake=lambda _: None
    )
    tools = Tools(
        clock=clock,
        clusters=clusters,
        net=Ways(net, gates, clock),
        polls=Polls(clock),
        secrets=keys.Keys(world, known),
        rules=rules,
        fleet=fleet,
    )
    made = Region(world, climate, ledger, tools, fleet, gates)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(clusters.run(), name="clusters")
        await asyncio.sleep(0)
        try:
            yield made
        finally:
            task.cancel()
    assert world.failures == []


Play = Callable[[Region], Coroutine[Any, Any, None]]


async def play(act: Play, known: Topology = MINIMAL) -> None:
    async with region(known) as place:
        await act(place)
