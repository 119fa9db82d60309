"""
A small world for what Flux carries out: the minimal example's clusters with nodes and nothing on
them, its Git repository, and drivers that reach it as they reach everything.

`follow` does what the engine would: look, propose, apply, wait, until the driver is content.
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from drivers.flux.driver import FluxDriver
from drivers.greenhouse.driver import GreenhouseDriver
from drivers.kubernetes.driver import KubernetesDriver
from fleetd.clock import LoopClock
from fleetd.gate import Gates
from fleetd.kube.clusters import Clusters
from fleetd.net import Ways
from fleetd.polls import Polls
from fleetd.secrets import Secret
from fleetd.sim.controllers import workloads
from fleetd.sim.faults import Climate, Plight
from fleetd.sim.keys import Keys
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.sites import git
from fleetd.sim.world import World
from fleetd.tools import Rules, Tools
from fleetd.vocabulary import Condition, Driver, Failed, Observation, Step, Truth
from tests import defaults
from tests.conformance.driver import suite
from topology import catalogue_load, load
from topology import compile as compiler
from topology.examples import large
from topology.resource import Ref, Resource, Topology

START = datetime(2026, 3, 3, 21, 0, tzinfo=UTC)
COMPONENTS, _ = catalogue_load.load()
EXAMPLE = Path(large.__file__).parent / "minimal"
TOPOLOGY = compiler.compile(load.load([EXAMPLE]).items, COMPONENTS)
CLUSTERS = ("mgmt", "cp", "hv", "st")
SYSTEM = "flux-system"
KUSTOMIZATION = ("kustomize.toolkit.fluxcd.io", "Kustomization")
RELEASE = ("helm.toolkit.fluxcd.io", "HelmRelease")
SOURCE = ("source.toolkit.fluxcd.io", "GitRepository")
SECRET = ("", "Secret")


def want(kind: str, name: str = "hv") -> Resource:
    return TOPOLOGY.resources[Ref(kind, name)]


def retired(one: Resource) -> Resource:
    return replace(one, absent=True)


class Fleet:
    def topology(self) -> Topology:
        return TOPOLOGY

    everything = topology

    def ready(self, ref: Ref) -> Condition | None:
        del ref
        return None


@dataclass
class Stage:
    world: World
    climate: Climate
    ledger: Ledger
    tools: Tools
    drivers: dict[str, Driver]

    def cluster(self, name: str) -> Cluster:
        return self.world.clusters[name]

    @property
    def mgmt(self) -> Cluster:
        return self.world.clusters["mgmt"]

    @property
    def site(self) -> git.GitSite:
        return git.of(self.world, "eu-1")

    def admit(self, name: str, *, hours: float = 24.0) -> None:
        """A kubeconfig for a cluster, as the access driver would have minted one."""
        there = self.world.clusters[name]
        until = self.tools.clock.now() + timedelta(hours=hours)
        token = there.token("fleetd", ("system:masters",), expires=until)
        text = json.dumps(there.kubeconfig(self.world.address(name), token))
        self.tools.clusters.put(f"cluster:{name}", Secret(text), expires=until)

    def driver(self, one: Resource) -> Driver:
        return self.drivers[one.driver]

    async def look(self, one: Resource) -> Observation:
        return await self.driver(one).observe(one)

    async def proposed(self, one: Resource) -> Sequence[Step]:
        return self.driver(one).propose(one, await self.look(one))

    async def ready(self, one: Resource) -> Condition | None:
        """What is thought of it now."""
        judged = self.driver(one).judge(one, await self.look(one))
        return judged[0] if judged else None

    async def do(self, one: Resource) -> list[Step]:
        """Carry out what is proposed now."""
        steps = list(await self.proposed(one))
        for step in steps:
            done = await self.driver(one).apply(step)
            assert not isinstance(done, Failed), f"{step.why}: {done}"
        return steps

    async def follow(self, *wanted: Resource, minutes: float = 60.0) -> None:
        """Until all are Ready and nothing is proposed any more."""
        for one in wanted:
            for _ in range(int(minutes * 6)):
                steps = await self.do(one)
                judged = await self.ready(one)
                if not steps and judged is not None and judged.truth is Truth.TRUE:
                    break
                await asyncio.sleep(10)
            else:
                raise AssertionError(f"{one.ref} is not Ready: {await self.ready(one)}")

    async def flux(self, *clusters: str) -> None:
        """Flux, its source, and the way into these clusters."""
        targets = [want("flux-target", name) for name in clusters]
        await self.follow(want("flux", "mgmt"), want("flux-source", "mgmt"), *targets)

    def state(self) -> Any:
        """All objects that fleetd made, without what moves by itself."""
        found: dict[str, Any] = {}
        for name, cluster in self.world.clusters.items():
            for gk, table in cluster.store.tables.items():
                for row in table.all(""):
                    metadata = row.obj["metadata"]
                    labels: dict[str, str] = metadata.get("labels") or {}
                    if labels.get("app.kubernetes.io/managed-by") == "fleetd":
                        key = (name, *gk, metadata.get("namespace", ""), metadata["name"])
                        parts = {
                            k: v for k, v in row.obj.items() if k not in ("metadata", "status")
                        }
                        found["/".join(key)] = (parts, labels, metadata.get("annotations"))
        return found

    def writes(self) -> int:
        return len(self.ledger.deeds)

    def cut(self, name: str = "mgmt") -> None:
        """From now on nobody gets an answer there, and nobody remembers the last one."""
        self.climate.plights[name] = Plight.UNREACHABLE
        self.world.clusters[name].end_watches()
        clusters, backend = self.tools.clusters, f"cluster:{name}"
        known, until = clusters.kubeconfig(backend), clusters.expires(backend)
        clusters.drop(backend)
        clusters.put(backend, known, expires=until)


def node(cluster: Cluster, name: str, *, ready: bool = True) -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    cluster.apply(body, manager="kubelet")
    said = [{"type": "Ready", "status": "True" if ready else "False"}]
    cluster.set_status(("", "Node"), name, "", {"conditions": said}, manager="kubelet")


def bench(stage: Stage, one: Resource, bad: Resource, *, cut: str = "mgmt") -> suite.Bench:
    async def settle() -> None:
        await asyncio.sleep(120)

    return suite.Bench(
        driver=stage.driver(one),
        want=one,
        bad=bad,
        settle=settle,
        cut=lambda: stage.cut(cut),
        writes=stage.writes,
        state=stage.state,
    )


@asynccontextmanager
async def opened(*names: str, seed: int = 1) -> AsyncGenerator[Stage]:
    """To be used in the virtual loop."""
    world = World(seed, START)
    for name in names or CLUSTERS:
        cluster = world.add_cluster(name)
        for number in range(3):
            node(cluster, f"{name}-{number}")
        workloads.run(world, cluster)
    git.furnish(world, TOPOLOGY)
    ledger = Ledger()
    climate = Climate(world, ledger)
    clock = LoopClock(START)
    net = SimNetwork(world, climate)
    gates = Gates(defaults.LIMITS, clock)
    clusters = Clusters(
        net.kube, gates=gates, clock=clock, rng=random.Random(seed), wake=lambda _: None
    )
    rules = Rules()
    rules.take(COMPONENTS)
    keys = _keys(world)
    tools = Tools(
        clock=clock,
        clusters=clusters,
        net=Ways(net, gates, clock),
        polls=Polls(clock),
        secrets=keys,
        rules=rules,
        fleet=Fleet(),
    )
    made: dict[str, Driver] = {
        "flux": FluxDriver(tools),
        "kubernetes": KubernetesDriver(tools),
        "greenhouse": GreenhouseDriver(tools),
    }
    stage = Stage(world, climate, ledger, tools, made)
    for name in world.clusters:
        stage.admit(name)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(clusters.run(), name="clusters")
        try:
            await asyncio.sleep(0)
            yield stage
            assert world.failures == []
        finally:
            watching.cancel()


def _keys(world: World) -> Keys:
    """The secrets of the example's documents; garden and metal are not played here."""
    region = TOPOLOGY.resources[Ref("flux-source", "mgmt")]
    only = Topology(digest="", resources={region.ref: region}, edges=())
    return Keys(world, only)
