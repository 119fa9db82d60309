"""
A small world for Ceph: a storage cluster and an arbiter cluster with machines, and the operators
installed as if their charts were there. Drivers reach it as they reach everything.
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivers.ceph.driver import CephDriver
from fleetd.clock import LoopClock
from fleetd.gate import Gates
from fleetd.kube.clusters import Clusters
from fleetd.net import Ways
from fleetd.polls import Polls
from fleetd.secrets import Secret
from fleetd.sim import loop
from fleetd.sim.controllers import arbiter, rook, rook_ceph, workloads
from fleetd.sim.controllers.rook_ceph import Ceph
from fleetd.sim.faults import Climate, Plight
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.truth import Machine
from fleetd.sim.world import World
from fleetd.tools import Rules, Tools
from fleetd.vocabulary import Condition, Failed, Observation, Step, Truth
from tests import defaults
from topology import catalogue_load, load
from topology import compile as compiler
from topology.examples import large
from topology.resource import Ref, Resource, Topology

START = datetime(2026, 3, 3, 21, 0, tzinfo=UTC)
COMPONENTS, _ = catalogue_load.load()
EXAMPLES = Path(large.__file__).parent
ONE_ZONE = compiler.compile(load.load([EXAMPLES / "minimal"]).items, COMPONENTS)
TWO_ZONES = compiler.compile(load.load([EXAMPLES / "two-zones"]).items, COMPONENTS)
SPACE = "rook-ceph"
CEPH_CLUSTER = ("ceph.rook.io", "CephCluster")
NODE = ("", "Node")


class NoSecrets:
    async def read(self, access: Any, want: Resource) -> Secret:
        raise AssertionError("no document's secret is read here")

    def provide(self, kind: str, reader: Any) -> None:
        del kind, reader


@dataclass
class Fleet:
    known: Topology

    def topology(self) -> Topology:
        return self.known

    everything = topology

    def ready(self, ref: Ref) -> Condition | None:
        del ref
        return None


@dataclass
class Stage:
    world: World
    st: Cluster
    arb: Cluster
    climate: Climate
    ledger: Ledger
    tools: Tools
    driver: CephDriver
    topology: Topology

    def want(self, kind: str, name: str = "st") -> Resource:
        return self.topology.resources[Ref(kind, name)]

    def host(self, cluster: Cluster, name: str, zone: str = "a", rack: str = "r1") -> Machine:
        """A machine that is on, with its Node."""
        machine = Machine(
            name=name,
            address=f"192.0.2.{len(self.world.truth.machines) + 1}",
            uuid=self.world.uid(name),
            user="u",
            password="p",
            region="eu-1",
            zone=zone,
            rack=rack,
            size="std-64c",
            on=True,
            node=f"{cluster.name}/{name}",
        )
        self.world.truth.machines[name] = machine
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        cluster.create(body, manager="t")
        self.beat(cluster, name, ready=True)
        return machine

    def beat(self, cluster: Cluster, name: str, *, ready: bool) -> None:
        said = {"type": "Ready", "status": "True" if ready else "Unknown", "reason": "Kubelet"}
        cluster.set_status(NODE, name, "", {"conditions": [said]}, manager="t")

    def lose(self, *names: str) -> None:
        """Power goes; the Nodes fall silent."""
        for name in names:
            self.world.truth.power(self.world.truth.machines[name], on=False)
            self.beat(self.st, name, ready=False)

    def mend(self, *names: str) -> None:
        for name in names:
            self.world.truth.power(self.world.truth.machines[name], on=True)
            self.beat(self.st, name, ready=True)

    def cordon(self, name: str, *, on: bool = True) -> None:
        def change(live: dict[str, Any]) -> None:
            live.setdefault("spec", {})["unschedulable"] = on

        self.st.edit(NODE, name, "", change, manager="t")

    def cut(self) -> None:
        """From now on nobody gets an answer, and nobody remembers the last one."""
        for cluster in (self.st, self.arb):
            self.climate.plights[cluster.name] = Plight.UNREACHABLE
            cluster.end_watches()
            backend = f"cluster:{cluster.name}"
            known = self.tools.clusters.kubeconfig(backend)
            self.tools.clusters.drop(backend)
            self.tools.clusters.put(backend, known)

    @contextmanager
    def astray(self) -> Generator[None]:
        """While it lasts, no kubeconfig leads anywhere."""
        before = self.world.address

        def nowhere(name: str) -> str:
            return f"https://not-{name}.sim"

        self.world.address = nowhere
        yield
        self.world.address = before

    def status(self) -> dict[str, Any]:
        live = self.st.get(CEPH_CLUSTER, "rook-ceph", SPACE) or {}
        return live.get("status") or {}

    def ceph(self) -> Ceph:
        found = rook_ceph.find(self.world, "st")
        assert found is not None
        return found

    async def observe(self, kind: str, name: str = "st") -> Observation:
        return await self.driver.observe(self.want(kind, name))

    async def reason(self, kind: str, name: str = "st") -> str:
        seen = await self.observe(kind, name)
        judged = self.driver.judge(self.want(kind, name), seen)
        return judged[0].reason if judged else seen.error or "Absent"

    async def road(self, kind: str, name: str = "st", rounds: int = 200) -> str:
        """Follow the proposals until it is Ready; the last reason."""
        resource, reason = self.want(kind, name), ""
        for _ in range(rounds):
            seen = await self.driver.observe(resource)
            judged = self.driver.judge(resource, seen)
            reason = judged[0].reason if judged else seen.error or "Absent"
            steps = self.driver.propose(resource, seen)
            if not steps and judged and judged[0].truth is Truth.TRUE:
                return "Ready"
            await self.carry_out(steps)
            await asyncio.sleep(5)
        return reason

    async def carry_out(self, steps: Sequence[Step]) -> None:
        for step in steps:
            outcome = await self.driver.apply(step)
            assert not isinstance(outcome, Failed), outcome

    async def bring_up(self, *kinds: str) -> None:
        for kind in kinds:
            assert await self.road(kind, "arb" if kind == "arbiter" else "st") == "Ready"


@asynccontextmanager
async def stage(topology: Topology = ONE_ZONE, seed: int = 1) -> AsyncGenerator[Stage]:
    """With one zone four hosts, with two zones three in each; rook-ceph is there."""
    world = World(seed, START)
    st, arb = world.add_cluster("st"), world.add_cluster("arb")
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
    for cluster in (st, arb):
        text = json.dumps(cluster.kubeconfig(world.address(cluster.name), cluster.admin_token()))
        clusters.put(f"cluster:{cluster.name}", Secret(text))
        workloads.run(world, cluster)
    tools = Tools(
        clock=clock,
        clusters=clusters,
        net=Ways(net, gates, clock),
        polls=Polls(clock),
        secrets=NoSecrets(),
        rules=rules,
        fleet=Fleet(topology),
    )
    made = Stage(world, st, arb, climate, ledger, tools, CephDriver(tools), topology)
    for number in range(4 if topology is ONE_ZONE else 6):
        zone = "a" if topology is ONE_ZONE or number < 3 else "b"
        made.host(st, f"s{number + 1}", zone, f"r{number + 1}")
    made.host(arb, "w1", "c")
    st.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, manager="t")
    for chart in (*rook.CHARTS.values(), *arbiter.CHARTS.values()):
        for definition in chart.definitions:
            st.serve(definition)
        for make in chart.controllers:
            make(world, st).start()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(clusters.run(), name="clusters")
        await asyncio.sleep(0)
        try:
            yield made
        finally:
            task.cancel()
    assert world.failures == []


def play(act: Callable[[Stage], Coroutine[Any, Any, None]], topology: Topology = ONE_ZONE) -> None:
    """Run one act on a fresh stage, in virtual time."""

    async def run() -> None:
        async with stage(topology) as made:
            await act(made)

    loop.run(run())
