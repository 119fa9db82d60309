"""A stage for the engine's own tests: one daemon in virtual time, with a driver one can script."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from fleetd.clock import LoopClock
from fleetd.plan.policy import Policy
from fleetd.store.memory import MemoryStore
from fleetd.vocabulary import (
    READY,
    Condition,
    Done,
    Observation,
    Outcome,
    Step,
    Truth,
    make_step,
)
from tests.toy.universe import START, Daemon
from topology.resource import Limit, Ref, Resource, Topology


def thing(name: str, *needs: str, backend: str = "far:side", kind: str = "thing") -> Resource:
    return Resource(
        ref=Ref(kind, name),
        driver="toy",
        region="r",
        spec={"version": 1},
        generation=1,
        needs=frozenset(Ref(kind, need) for need in needs),
        backend=backend,
        limits={"*": Limit(within=timedelta(hours=1), action="look at it")},
    )


def fleet(*things: Resource) -> Topology:
    return Topology(digest="d" * 16, resources={one.ref: one for one in things}, edges=())


@dataclass
class Scripted:
    """Things exist once `make` was applied. How `observe` and `apply` go can be replaced."""

    clock: LoopClock
    made: set[Ref] = field(default_factory=set[Ref])
    applied: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    looked: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    on_apply: Callable[[Step], Awaitable[Outcome]] | None = None
    on_observe: Callable[[Resource], Awaitable[None]] | None = None
    disrupts: bool = False
    kind: str = "toy"

    def check(self, want: Resource) -> Sequence[str]:
        return ()

    async def observe(self, want: Resource) -> Observation:
        self.looked.append((self.clock.monotonic(), want.ref.name))
        if self.on_observe is not None:
            await self.on_observe(want)
        facts = {"made": True} if want.ref in self.made else {}
        return Observation(ref=want.ref, at=self.clock.now(), facts=facts)

    def propose(self, want: Resource, seen: Observation) -> Sequence[Step]:
        if seen.facts is None or seen.facts.get("made"):
            return ()
        return (
            make_step(
                want, "make", {"version": 1}, why="it is not there", deadline=timedelta(seconds=30)
            ),
        )

    async def apply(self, step: Step) -> Outcome:
        self.applied.append((self.clock.monotonic(), step.ref.name))
        if self.on_apply is not None:
            return await self.on_apply(step)
        self.made.add(step.ref)
        return Done()

    def judge(self, want: Resource, seen: Observation) -> Sequence[Condition]:
        return (
            Condition(
                type=READY,
                truth=Truth.TRUE,
                reason="Ready",
                message="made",
                generation=want.generation,
                since=seen.at,
                reason_since=seen.at,
            ),
        )


@dataclass
class Stage:
    topology: Topology
    policy: Policy = field(default_factory=Policy)
    store: MemoryStore = field(default_factory=MemoryStore)
    clock: LoopClock = field(default_factory=lambda: LoopClock(START))
    driver: Scripted = field(init=False)
    opened: bool = False

    def __post_init__(self) -> None:
        self.driver = Scripted(self.clock)
        self.stop = asyncio.Event()

    async def play(self, seconds: float) -> Daemon:
        """Run a daemon for so long, then tell it to stop and wait for it."""
        if not self.opened:
            await self.store.open()
            self.opened = True
        daemon = self.daemon()
        async with asyncio.TaskGroup() as group:
            group.create_task(daemon.run(self.stop), name="daemon")
            await asyncio.sleep(seconds)
            self.stop.set()
        return daemon

    def daemon(self) -> Daemon:
        return Daemon(
            self.driver, self.store, self.clock, self.topology, self.policy, random.Random(1)
        )
