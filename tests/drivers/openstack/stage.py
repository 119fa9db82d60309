"""
A small world for the OpenStack drivers: the minimal example's cloud, without what is below it.

Clusters cp and hv, the operators running, a database, a cache and a secret store that are Ready;
hosts are Nodes with a machine each. Drivers reach it as they reach everything: through the
network, with the credentials that the world has made.
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivers.openstack.controlplane import ControlPlaneDriver
from drivers.openstack.driver import OpenStackDriver
from fleetd.clock import LoopClock
from fleetd.gate import Gates
from fleetd.kube import facts
from fleetd.kube.clusters import Clusters
from fleetd.net import Ways
from fleetd.polls import Polls
from fleetd.secrets import Secret
from fleetd.sim.chart import Chart
from fleetd.sim.controllers import (
    c5c3,
    hypervisor,
    korc,
    novacompute,
    osservices,
    osservices_exposed,
)
from fleetd.sim.faults import Climate, Plight
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.services.openstack import Cloud
from fleetd.sim.sites import openstack
from fleetd.sim.truth import Machine
from fleetd.sim.world import World
from fleetd.tools import Rules, Tools
from fleetd.vocabulary import Condition, Driver, Failed, Step, Truth
from tests import defaults
from topology import catalogue_load, load
from topology import compile as compiler
from topology.examples import large
from topology.resource import Ref, Resource, Topology

START = datetime(2026, 3, 3, 21, 0, tzinfo=UTC)
COMPONENTS, _ = catalogue_load.load()
EXAMPLE = Path(large.__file__).parent / "minimal"
TOPOLOGY = compiler.compile(load.load([EXAMPLE]).items, COMPONENTS)
SPACE = "openstack-cp"

_OTHERS = (
    Definition(group="k8s.mariadb.com", kind="MariaDB", plural="mariadbs", versions=("v1alpha1",)),
    Definition(group="memcached.c5c3.io", kind="Memcached", plural="memcacheds"),
    Definition(
        group="external-secrets.io",
        kind="ClusterSecretStore",
        plural="clustersecretstores",
        namespaced=False,
    ),
)


def want(kind: str, name: str = "prod") -> Resource:
    return TOPOLOGY.resources[Ref(kind, name)]


@dataclass
class Fleet:
    """What the daemon would think; tests set it."""

    thought: dict[Ref, Condition] = field(default_factory=dict[Ref, Condition])
    known: Topology = TOPOLOGY

    def topology(self) -> Topology:
        return self.known

    everything = topology

    def ready(self, ref: Ref) -> Condition | None:
        return self.thought.get(ref)


class NoSecrets:
    async def read(self, access: Any, want: Resource) -> Secret:
        raise AssertionError("no document's secret is read here")

    def provide(self, kind: str, reader: Any) -> None:
        del kind, reader


@dataclass
class Stage:
    world: World
    cp: Cluster
    hv: Cluster
    cloud: Cloud
    climate: Climate
    tools: Tools
    fleet: Fleet

    def install(self, cluster: Cluster, *charts: Chart) -> None:
        """As if the charts were there and their pods ready."""
        for chart in charts:
            for definition in chart.definitions:
                cluster.serve(definition)
            for make in chart.controllers:
                make(self.world, cluster).start()

    def healthy(self, cluster: Cluster, kind: str, name: str, space: str, *flags: str) -> None:
        """Something that is not played here, in good health."""
        gk = next(one.gk for one in _OTHERS if one.kind == kind)
        version = next(one.api_version() for one in _OTHERS if one.kind == kind)
        metadata = {"name": name, **({"namespace": space} if space else {})}
        if cluster.get(gk, name, space) is None:
            cluster.create({"apiVersion": version, "kind": kind, "metadata": metadata}, manager="t")
        said = [{"type": flag, "status": "True", "reason": "Ready"} for flag in flags]
        cluster.set_status(gk, name, space, {"conditions": said}, manager="t")

    def deploy(self, *names: str) -> None:
        """Deployments of the control plane whose pods work."""
        for name in names:
            body = {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": SPACE},
                "spec": {"replicas": 1},
            }
            self.cp.apply(body, manager="t")
            self.cp.set_status(
                ("apps", "Deployment"), name, SPACE, {"readyReplicas": 1}, manager="t"
            )

    def host(self, name: str, zone: str = "a") -> None:
        """A Node of hv that is Ready, with the machine below it."""
        self.world.truth.machines[name] = Machine(
            name=name,
            address="192.0.2.1",
            uuid=name,
            user="u",
            password="p",
            region="eu-1",
            zone=zone,
            rack="r1",
            size="std-64c",
            on=True,
            node=f"hv/{name}",
        )
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/region": "eu-1"}
        if zone:
            labels["topology.kubernetes.io/zone"] = zone
        self.hv.create(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
            },
            manager="t",
        )
        ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
        self.hv.set_status(("", "Node"), name, "", {"conditions": ready}, manager="t")

    def condition(self, cluster: Cluster, gk: tuple[str, str], name: str, kind: str) -> str:
        """`status/reason` of a condition; empty if there is none."""
        space = SPACE if cluster is self.cp else ""
        live = cluster.get(gk, name, space) or {}
        one = facts.condition(live, kind)
        return f"{one['status']}/{one['reason']}" if one else ""

    def cut(self, cluster: str) -> None:
        """From now on this cluster does not answer, and nobody remembers its last answer."""
        self.climate.plights[cluster] = Plight.UNREACHABLE
        self.world.clusters[cluster].end_watches()
        clusters, backend = self.tools.clusters, f"cluster:{cluster}"
        known = clusters.kubeconfig(backend)
        clusters.drop(backend)
        clusters.put(backend, known)

    def spec_of_everything(self, cluster: Cluster) -> object:
        """All that was written by hand or by drivers; not what controllers report."""
        return [
            (gk, row["metadata"]["name"], row.get("spec"), row["metadata"].get("labels"))
            for gk in sorted(cluster.store.tables)
            for row in cluster.list(gk)
            if gk != ("", "Event")
        ]

    async def control_plane(self, *, register: bool = True) -> None:
        """A cloud whose control plane is Ready and whose services are registered."""
        self.install(self.cp, *c5c3.CHARTS.values(), *osservices.CHARTS.values())
        self.install(self.cp, *korc.CHARTS.values())
        self.deploy("nova-api", "nova-scheduler", "nova-conductor", "neutron-server")
        self.deploy("cinder-api", "cinder-scheduler", "cinder-volume")
        assert await self.road(ControlPlaneDriver(self.tools), want("controlplane")) == "Ready"
        if not register:
            return
        self.install(self.cp, *osservices_exposed.CHARTS.values())
        driver = OpenStackDriver(self.tools)
        for kind in ("nova", "neutron", "cinder"):
            await self.road(driver, want(kind))

    async def prerequisites(self) -> None:
        driver = OpenStackDriver(self.tools)
        await self.road(driver, want("smoke-test"))
        await self.road(driver, want("aggregates"))

    def hypervisors(self) -> None:
        self.install(self.hv, *novacompute.CHARTS.values(), *hypervisor.CHARTS.values())

    async def road(self, driver: Driver, resource: Resource, rounds: int = 200) -> str:
        """Follow the proposals until it is Ready; the last reason."""
        reason = ""
        for _ in range(rounds):
            seen = await driver.observe(resource)
            judged = driver.judge(resource, seen)
            reason = judged[0].reason if judged else seen.error or "Absent"
            steps = driver.propose(resource, seen)
            if not steps and judged and judged[0].truth is Truth.TRUE:
                return "Ready"
            await self.carry_out(driver, steps)
            await asyncio.sleep(5)
        return reason

    async def carry_out(self, driver: Driver, steps: Sequence[Step]) -> None:
        for step in steps:
            outcome = await driver.apply(step)
            assert not isinstance(outcome, Failed), outcome


@asynccontextmanager
async def stage(seed: int = 1) -> AsyncGenerator[Stage]:
    world = World(seed, START)
    cp, hv = world.add_cluster("cp"), world.add_cluster("hv")
    cloud = openstack.add(world, "prod", "cp", ("hv",))
    climate = Climate(world, Ledger())
    net = SimNetwork(world, climate)
    fleet = Fleet()
    rules = Rules()
    rules.take(COMPONENTS)
    clock = LoopClock(START)
    gates = Gates(defaults.LIMITS, clock)
    clusters = Clusters(
        net.kube, gates=gates, clock=clock, rng=random.Random(1), wake=lambda _: None
    )
    for cluster in (cp, hv):
        text = json.dumps(cluster.kubeconfig(world.address(cluster.name), cluster.admin_token()))
        clusters.put(f"cluster:{cluster.name}", Secret(text))
    tools = Tools(
        clock=clock,
        clusters=clusters,
        net=Ways(net, gates, clock),
        polls=Polls(clock),
        secrets=NoSecrets(),
        rules=rules,
        fleet=fleet,
    )
    made = Stage(world=world, cp=cp, hv=hv, cloud=cloud, climate=climate, tools=tools, fleet=fleet)
    for definition in _OTHERS:
        cp.serve(definition)
    cp.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, manager="t")
    made.healthy(cp, "MariaDB", "openstack-db", SPACE, "Ready")
    made.healthy(cp, "Memcached", "openstack-memcached", SPACE, "Ready", "Available")
    made.healthy(cp, "ClusterSecretStore", "openbao-cluster-store", "", "Ready")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(clusters.run(), name="clusters")
        await asyncio.sleep(0)
        try:
            yield made
        finally:
            task.cancel()
    assert world.failures == []
