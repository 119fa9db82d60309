"""
A simulated region, a store that survives, and as many daemons one after the other as it takes.

The daemon is `fleetd.sim.twin.Twin`: real planner, executor, drivers and clients. `Power` ends it
at once, as `kill -9` does: from then on nothing that it still does reaches the world or the store.
"""

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from fleetd import settings
from fleetd.engine import records
from fleetd.kube import facts
from fleetd.kube.transport import Request, Response
from fleetd.plan.policy import Policy
from fleetd.sim import build, invariants
from fleetd.sim.faces.weather import Fate, Passage
from fleetd.sim.faults import Climate
from fleetd.sim.invariants import Judge, WatchedStore
from fleetd.sim.ledger import Ledger, changes, current_step
from fleetd.sim.mishaps import Mishaps
from fleetd.sim.net import SimNetwork
from fleetd.sim.services.nova import NovaApi
from fleetd.sim.twin import Twin, Wanted
from fleetd.sim.world import HttpRequest, HttpResponse, Service, World
from tests.toy.universe import PowerCut, bury
from topology import read
from topology.resource import EMPTY, Ref, Resource, Topology

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "topology" / "examples"
WITHIN = timedelta(hours=12)
"""I6. A bring-up of the minimal region takes about two simulated hours."""
LOOKED_AT = timedelta(seconds=264)
"""Within which everything is looked at, with the jitter of a tenth."""
ROUNDS = 3 * LOOKED_AT
"""I7: three rounds of looks at what is looked at most rarely."""


_ZEROS = re.compile(r'(?<=\dh)0m0s(?=")|(?<=\dm)0s(?=")')
"""Controllers that are written in Go add them to a duration when they write an object."""


@lru_cache
def reading(name: str = "minimal") -> read.Reading:
    found = read.read([EXAMPLES / name])
    assert found.topology is not None, found.problems
    return found


@dataclass
class Power:
    """Goes off when it is told to; asked at every side of every write."""

    on: bool = True
    at: Callable[[str, str], bool] = lambda _side, _what: False
    """Whether it goes off at this side of this write; `what` says which kind of write it is."""

    def check(self) -> None:
        if not self.on:
            raise PowerCut

    def side(self, side: str, what: str) -> None:
        self.check()
        if self.at(side, what):
            self.on = False
            raise PowerCut


class PoweredClimate(Climate):
    """The weather, on a line that can be cut."""

    def __init__(self, world: World, ledger: Ledger, power: Power) -> None:
        super().__init__(world, ledger)
        self.power = power

    def before(self, backend: str, request: Request) -> Fate:
        self.power.check()
        if changes(request.method, request.path):
            self.power.side("before", kind_of(current_step()))
        return super().before(backend, request)

    def after(self, backend: str, request: Request, response: Response) -> Fate:
        fate = super().after(backend, request, response)
        self.power.check()
        if changes(request.method, request.path) and response.status < 400:
            self.power.side("inside", kind_of(current_step()))
        return fate

    def line(self, backend: str, request: Request, line: bytes) -> Passage:
        self.power.check()
        return super().line(backend, request, line)

    def over(self, name: str, request: HttpRequest, service: Service) -> HttpResponse:
        self.power.check()
        writes = changes(request.method, request.path)
        if writes:
            self.power.side("before", kind_of(current_step()))
        answer = super().over(name, request, service)
        if writes and answer.status < 400:
            self.power.side("inside", kind_of(current_step()))
        return answer


_KINDS: dict[str, str] = {}
"""What each step that was announced is about, for grouping crash points."""


def kind_of(step: str) -> str:
    return _KINDS.get(step, "unannounced")


class PoweredStore(WatchedStore):
    """Dead when the power is off."""

    def __init__(self) -> None:
        super().__init__()
        self.power = Power()
        self.intents = 0

    async def intend(self, intent: Any) -> int:
        args: Mapping[str, Any] = intent.args
        # An object is written in the same way whatever it belongs to; a verb of a driver's own
        # is about one kind of thing.
        where = str(args.get("backend", "")).partition(":")[0]
        about = f"{intent.verb} {_object(args) or intent.ref.kind} {where}".rstrip()
        _KINDS[intent.step] = about
        self.power.side("intent", about)
        self.intents += 1
        return await super().intend(intent)

    async def conclude(self, seq: int, ending: Any, at: Any) -> None:
        self.power.check()
        intent = next(e.intent for e in await super().journal(after=seq - 1, limit=1))
        self.power.side("after", kind_of(intent.step))
        await super().conclude(seq, ending, at)

    async def put(self, table: str, values: Mapping[str, bytes | None]) -> None:
        self.power.check()
        await super().put(table, values)

    async def record(self, events: Any) -> None:
        self.power.check()
        await super().record(events)


def _object(args: Mapping[str, Any]) -> str:
    manifest: Mapping[str, Any] = args.get("manifest") or args
    return str(manifest.get("kind", ""))


@dataclass
class Region:
    """One world and one store."""

    topology: Topology
    catalogue: Mapping[str, Any]
    policy: Policy
    seed: int = 1
    chance: float = 0.0
    modules: Sequence[str] = field(default_factory=lambda: settings.Settings().drivers)
    start: datetime = build.START
    furniture: Topology = EMPTY
    """What stands there though no document names it yet: servers, versions in the garden."""

    def __post_init__(self) -> None:
        there = {**self.topology.resources, **self.furniture.resources}
        edges = (*self.topology.edges, *self.furniture.edges)
        world = Topology(digest=self.topology.digest, resources=there, edges=edges)
        self.world = build.build(world, self.seed, self.start)
        self.ledger = Ledger()
        self.climate = PoweredClimate(self.world, self.ledger, Power())
        self.climate.chance = self.chance
        self.store = PoweredStore()
        self.mishaps = Mishaps(self.world, self.climate, clusters(self.topology))
        self.watch = Judge(
            self.world,
            self.ledger,
            lambda: {*self.topology.resources, *self.unnamed()},
            lambda step: self.store.under_way(step),  # noqa: PLW0108 - the store is replaced
        )
        self.twin: Twin | None = None

    @classmethod
    def of(cls, name: str = "minimal", **options: Any) -> "Region":
        found = reading(name)
        assert found.topology is not None
        policy = Policy.of(item.document for item in found.bundle.items)
        return cls(found.topology, found.catalogue, policy, **options)

    async def live(
        self,
        power: Power,
        *,
        until: Callable[[Twin], bool],
        within: timedelta = WITHIN,
        say: Callable[[Twin], Awaitable[None]] | None = None,
    ) -> bool:
        """One daemon, until the world is as it should be, time is up, or the power is cut. `say`
        is what a person tells it again and again."""
        self.store.crash()
        await self.store.open()
        self.store.power = self.climate.power = power
        self.watch.limit(self.topology, self.policy)
        wanted = Wanted(
            topology=self.topology,
            catalogue=self.catalogue,
            policy=self.policy,
        )
        net = SimNetwork(self.world, self.climate)
        self.twin = Twin(self.world, net, self.store, wanted, self.modules)
        task = asyncio.create_task(self.twin.run(asyncio.Event()), name="daemon")
        deadline = self.world.elapsed() + within.total_seconds()
        reached = False
        while power.on and not task.done() and self.world.elapsed() < deadline:
            if self.world.failures:
                raise self.world.failures[0]
            if say is not None:
                await say(self.twin)
            reached = until(self.twin)
            if reached:
                break
            await asyncio.sleep(5)
        power.on = False
        await bury(task)
        self.store.power = Power()
        return reached

    def done(self, twin: Twin) -> bool:
        """All is as the documents say, what was retired is gone, and nothing is under way."""
        state = twin.core.state
        return (
            state.declared.digest == self.topology.digest
            and not state.retired
            and not twin.unready()
            and twin.core.executor.running == 0
            and all(not plan.steps for plan in state.plans.values())
        )

    def settled(self) -> Callable[[Twin], bool]:
        """Done, and still so after everything was looked at once more: what depends on all of the
        fleet (OpenBao's policies) notices a change by itself."""
        since: list[float] = []

        def until(twin: Twin) -> bool:
            if not self.done(twin):
                since.clear()
                return False
            since.append(self.world.elapsed())
            # News that are not planned yet undo nothing by themselves: see Twin.at_rest.
            long = since[-1] - since[0] >= LOOKED_AT.total_seconds()
            return long and not twin.core.state.dirty

        return until

    async def judge(self, *, reached: bool) -> list[str]:
        """Everything that is broken now; empty if nothing is."""
        found: list[str] = []
        if not reached and self.twin is not None:
            unready = [
                f"{ref} {ready.reason if ready else ''}" for ref, ready in self.twin.unready()
            ]
            found.append(f"I6 not converged: {', '.join(unready[:5]) or 'never quiet'}")
        journal = [*await self.store.journal(limit=100_000)]
        orphans = await self.orphans()
        found += invariants.at_end(self.world, self.ledger, journal, self.topology, orphans)
        return found

    def unnamed(self) -> Collection[Ref]:
        """What the daemon knows and no document names any more."""
        return self.twin.core.state.view.orphans if self.twin is not None else ()

    async def orphans(self) -> dict[Ref, Resource]:
        """The same, as it is kept."""
        return records.decode_orphans(await self.store.load(records.ORPHANS))

    async def rest(self, span: timedelta = ROUNDS) -> list[str]:
        """I7: a new daemon on a world that has converged writes nothing."""
        deeds = len(self.ledger.deeds)
        end = self.world.elapsed() + span.total_seconds()
        await self.live(Power(), until=lambda _: self.world.elapsed() >= end)
        new = self.ledger.since(deeds)
        return [f"I7 written at rest: {deed}" for deed in new[:3]]

    def vacate(self) -> None:
        """The tenants of all clouds leave."""
        for service in self.world.services.values():
            if isinstance(service, NovaApi) and service.cloud.tenants is not None:
                service.cloud.tenants.leave()

    def picture(self) -> dict[str, str]:
        """I8: what fleetd made, as it is at the end. Which machine serves which node is luck, and
        others' objects follow it."""
        found: dict[str, str] = {}
        for name in sorted(self.world.clusters):
            cluster = self.world.clusters[name]
            for gk in cluster.kinds():
                if gk in invariants.MOVING:
                    continue
                for obj in cluster.list(gk, labels={facts.MANAGED_BY: facts.MANAGER}):
                    metadata = obj["metadata"]
                    where = f"{name} {gk[1]} {metadata.get('namespace', '')}/{metadata['name']}"
                    text = json.dumps(obj.get("spec", {}), sort_keys=True, default=str)
                    text = _ZEROS.sub("", text)
                    found[where] = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        return found


def clusters(topology: Topology) -> list[str]:
    return [ref.name for ref in topology.resources if ref.kind == "cluster"]
