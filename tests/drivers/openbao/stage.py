"""
A small world for secrets: an example's clusters with nodes, the garden that knows their addresses,
OpenBao before it is installed, External Secrets, and the two drivers that bring it all up.

`follow` does what the engine would: look, propose, apply, wait, until the driver is content. Helm
is played by `PlainHelm`: a release of OpenBao has its pods after half a minute.
"""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drivers.eso.driver import EsoDriver
from drivers.openbao.driver import OpenBaoDriver
from fleetd.clock import LoopClock
from fleetd.gate import Gates
from fleetd.kube.clusters import Clusters
from fleetd.net import Ways
from fleetd.polls import Polls
from fleetd.secrets import Secret
from fleetd.sim.controllers import eso, openbaopods, workloads
from fleetd.sim.controllers.base import Controller, Key
from fleetd.sim.faults import Climate, Plight
from fleetd.sim.keys import Keys
from fleetd.sim.kube.cluster import Cluster
from fleetd.sim.kube.definitions import Definition
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.services.openbao.service import OpenBao
from fleetd.sim.sites import openbao as site
from fleetd.sim.world import World
from fleetd.tools import Rules, Tools
from fleetd.vocabulary import Condition, Driver, Failed, Observation, Step, Truth
from tests import defaults
from topology import catalogue_load, load
from topology import compile as compiler
from topology.examples import large
from topology.resource import Ref, Resource, Topology

START = datetime(2026, 3, 3, 21, 0, tzinfo=UTC)
COMPONENTS, _ = catalogue_load.load()
EXAMPLES = Path(large.__file__).parent
SPACE = "shared-services"
RELEASE = ("helm.toolkit.fluxcd.io", "HelmRelease")
MARIADB = ("k8s.mariadb.com", "MariaDB")
GARDEN_KINDS = (
    Definition(group="core.gardener.cloud", kind="Shoot", plural="shoots", versions=("v1beta1",)),
)
OTHER_KINDS = (
    Definition(group=RELEASE[0], kind="HelmRelease", plural="helmreleases", versions=("v2",)),
    Definition(group=MARIADB[0], kind="MariaDB", plural="mariadbs", versions=("v1alpha1",)),
)


def compiled(example: str) -> Topology:
    return compiler.compile(load.load([EXAMPLES / example]).items, COMPONENTS)


MINIMAL = compiled("minimal")
TWO_ZONES = compiled("two-zones")


class PlainHelm(Controller):
    name = "plain-helm"
    watches = (RELEASE,)

    def reconcile(self, key: Key) -> float | None:
        started = (self.cluster.name, openbaopods.OpenBaoPods.name) in self.world.controllers
        if self.get(key) is None or started:
            return None
        pods = openbaopods.OpenBaoPods(self.world, self.cluster)
        self.world.after(30, pods.start)
        return None


@dataclass
class Fleet:
    known: Topology
    conditions: dict[Ref, Condition] = field(default_factory=dict[Ref, Condition])

    def topology(self) -> Topology:
        return self.known

    everything = topology

    def ready(self, ref: Ref) -> Condition | None:
        return self.conditions.get(ref)


@dataclass
class Stage:
    world: World
    climate: Climate
    ledger: Ledger
    tools: Tools
    fleet: Fleet
    drivers: dict[str, Driver]
    said: list[object] = field(default_factory=list[object])
    """Everything that drivers gave away: observations, steps, outcomes, conditions."""

    def want(self, kind: str, name: str = "mgmt") -> Resource:
        return self.fleet.known.resources[Ref(kind, name)]

    @property
    def bao(self) -> OpenBao:
        return next(one for one in self.world.services.values() if isinstance(one, OpenBao))

    @property
    def mgmt(self) -> Cluster:
        return self.world.clusters["mgmt"]

    def driver(self, one: Resource) -> Driver:
        return self.drivers[one.driver]

    def restart(self) -> None:
        """A new daemon: whatever drivers had in memory is gone."""
        self.drivers = {
            "openbao": OpenBaoDriver(self.tools),
            "eso": EsoDriver(self.tools),
        }

    async def look(self, one: Resource) -> Observation:
        seen = await self.driver(one).observe(one)
        self.said.append(seen)
        return seen

    async def facts(self, one: Resource) -> Any:
        seen = await self.look(one)
        assert seen.facts is not None, seen.error
        return seen.facts

    async def proposed(self, one: Resource) -> Sequence[Step]:
        steps = self.driver(one).propose(one, await self.look(one))
        self.said.extend(steps)
        return steps

    async def ready(self, one: Resource) -> Condition | None:
        """What is thought of it now; kept, as the daemon keeps it."""
        seen = await self.look(one)
        judged = self.driver(one).judge(one, seen) if seen.facts else ()
        self.said.extend(judged)
        if judged:
            before = self.fleet.conditions.get(one.ref)
            same = before is not None and before.truth is judged[0].truth
            kept = replace(judged[0], since=before.since) if same and before else judged[0]
            self.fleet.conditions[one.ref] = kept
        return judged[0] if judged else None

    async def do(self, one: Resource) -> list[Step]:
        """Carry out what is proposed now."""
        steps = list(await self.proposed(one))
        for step in steps:
            assert not step.destroys, f"needs approval: {step.why}"
            done = await self.driver(one).apply(step)
            self.said.append(done)
            assert not isinstance(done, Failed), f"{step.why}: {done}"
        return steps

    async def follow(self, *wanted: Resource, minutes: float = 30.0) -> None:
        """Until all are Ready and nothing is proposed any more."""
        for one in wanted:
            for _ in range(int(minutes * 12)):
                steps = await self.do(one)
                judged = await self.ready(one)
                if not steps and judged is not None and judged.truth is Truth.TRUE:
                    break
                await asyncio.sleep(5)
            else:
                raise AssertionError(f"{one.ref} is not Ready: {await self.ready(one)}")

    async def opened(self) -> None:
        """OpenBao, open and with its engines and policies."""
        kinds = ("openbao", "openbao-engines", "openbao-policies")
        await self.follow(*(self.want(kind) for kind in kinds))

    async def stored(self, *clusters: str) -> None:
        """And with the stores of these clusters."""
        await self.opened()
        for name in clusters:
            eso.ExternalSecrets(self.world, self.world.clusters[name]).start()
            await self.follow(self.want("openbao-auth", name), self.want("secret-store", name))

    def state(self) -> Any:
        """All that lasts: objects that somebody meant, and what OpenBao keeps."""
        found: dict[str, Any] = {}
        for name, cluster in self.world.clusters.items():
            for gk, table in cluster.store.tables.items():
                if gk == ("", "Event"):
                    continue
                for row in table.all(""):
                    metadata = row.obj["metadata"]
                    key = (name, *gk, metadata.get("namespace", ""), metadata["name"])
                    parts = {k: v for k, v in row.obj.items() if k not in ("metadata", "status")}
                    labels = (metadata.get("labels"), metadata.get("annotations"))
                    found["/".join(key)] = json.dumps([parts, labels], sort_keys=True)
        data = self.bao.data
        for path, mount in data.mounts.items():
            found[f"bao/{path}"] = repr([mount.type, mount.entries, _settled(mount.settings)])
        found["bao"] = repr([data.initialised, data.policies, data.shares])
        return found

    def writes(self) -> int:
        return len(self.ledger.deeds)

    def cut(self) -> None:
        """OpenBao and every cluster are out of reach."""
        for name in (*self.world.services, *self.world.clusters):
            self.climate.plights[name] = Plight.UNREACHABLE
        for name, cluster in self.world.clusters.items():
            cluster.end_watches()
            backend = _backend(name)
            self.tools.clusters.drop(backend)
            self.tools.clusters.put(backend, _kubeconfig(self.world, name))


def _settled(settings: dict[str, dict[str, Any]]) -> Any:
    """Without the reviewer's token, which is another one each time it is made."""
    return {
        key: {name: value for name, value in one.items() if name != "token_reviewer_jwt"}
        for key, one in settings.items()
    }


def _backend(name: str) -> str:
    head, _, region = name.partition("-")
    return f"garden:{region}" if head == "garden" else f"cluster:{name}"


def _kubeconfig(world: World, name: str) -> Secret:
    there = world.clusters[name]
    token = there.token("fleetd", ("system:masters",))
    return Secret(json.dumps(there.kubeconfig(world.address(name), token)))


def node(cluster: Cluster, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
    cluster.apply(body, manager="kubelet")
    said = [{"type": "Ready", "status": "True"}]
    cluster.set_status(("", "Node"), name, "", {"conditions": said}, manager="kubelet")


def authority(name: str) -> str:
    return f"-----BEGIN CERTIFICATE-----\nauthority of {name}\n-----END CERTIFICATE-----"


def _garden(world: World, region: Resource, clusters: Sequence[str]) -> None:
    """What the garden says of the clusters, as far as OpenBao is concerned."""
    garden = world.add_cluster(f"garden-{region.ref.name}")
    for definition in GARDEN_KINDS:
        garden.serve(definition)
    space = f"garden-{region.spec['garden']['project']}"
    where = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
    garden.apply(where, manager="test")
    for name in clusters:
        shoot = {
            "apiVersion": "core.gardener.cloud/v1beta1",
            "kind": "Shoot",
            "metadata": {"name": name, "namespace": space},
            "spec": {},
        }
        garden.apply(shoot, manager="test")
        told = [
            {"name": "internal", "url": "https://internal.invalid"},
            {"name": "external", "url": world.address(name)},
        ]
        gk = ("core.gardener.cloud", "Shoot")
        garden.set_status(gk, name, space, {"advertisedAddresses": told}, manager="test")
        published = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}.ca-cluster", "namespace": space},
            "data": {"ca.crt": authority(name)},
        }
        garden.apply(published, manager="test")


@asynccontextmanager
async def opened(topology: Topology = MINIMAL, seed: int = 1) -> AsyncGenerator[Stage]:
    """To be used in the virtual loop."""
    world = World(seed, START)
    region = next(one for ref, one in topology.resources.items() if ref.kind == "region")
    names = [ref.name for ref in topology.resources if ref.kind == "cluster"]
    for name in names:
        cluster = world.add_cluster(name)
        node(cluster, f"{name}-0")
        for definition in (*OTHER_KINDS, *eso.DEFINITIONS):
            cluster.serve(definition)
        workloads.run(world, cluster)
    _garden(world, region, names)
    site.furnish(world, topology)
    flux = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "flux-system"}}
    world.clusters["mgmt"].apply(flux, manager="test")
    PlainHelm(world, world.clusters["mgmt"]).start()
    ledger = Ledger()
    climate = Climate(world, ledger)
    net = SimNetwork(world, climate)
    clock = LoopClock(START)
    gates = Gates(defaults.LIMITS, clock)
    clusters = Clusters(
        net.kube, gates=gates, clock=clock, rng=random.Random(seed), wake=lambda _: None
    )
    rules = Rules()
    rules.take(COMPONENTS)
    fleet = Fleet(topology)
    keys = Keys(world, Topology(digest="", resources={}, edges=()))
    tools = Tools(
        clock=clock,
        clusters=clusters,
        net=Ways(net, gates, clock),
        polls=Polls(clock),
        secrets=keys,
        rules=rules,
        fleet=fleet,
    )
    stage = Stage(world, climate, ledger, tools, fleet, {})
    stage.restart()
    for name in world.clusters:
        clusters.put(_backend(name), _kubeconfig(world, name))
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(clusters.run(), name="clusters")
        try:
            await asyncio.sleep(0)
            yield stage
            assert world.failures == []
        finally:
            watching.cancel()
