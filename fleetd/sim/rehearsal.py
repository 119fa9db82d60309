"""
A change, tried on a simulated twin in virtual time before anybody touches the real fleet.

The same planner, executor, drivers and clients run; only the far side is simulated. What comes out
is a timeline, what was held and why, what was disrupted, and whether it converged: everything
Ready, nothing left to do or held back, nothing written for three more rounds of looks, nobody hurt.
What needs an approval gets it, and the timeline says so. The first breach of an invariant ends it.
The same documents, seed and faults give the same, to the byte.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from fleetd.engine.commands import BadCommand
from fleetd.plan import words
from fleetd.plan.policy import Policy
from fleetd.sim import build, chaos, loop, twin
from fleetd.sim.faults import Climate
from fleetd.sim.invariants import Breach, Judge, WatchedStore
from fleetd.sim.ledger import Ledger
from fleetd.sim.mishaps import Mishaps
from fleetd.sim.net import SimNetwork
from fleetd.sim.script import Line, ScriptError
from fleetd.sim.twin import Twin, Wanted
from fleetd.sim.world import World
from fleetd.store.base import Intent
from fleetd.store.memory import MemoryStore
from fleetd.vocabulary import Hold, HoldReason, Step
from topology.catalogue import Component
from topology.documents import base
from topology.resource import Ref, Topology

WITHIN = timedelta(hours=24)
"""Longest rehearsal. A region on bare metal is up within hours; a day without convergence is an
answer."""
ROUNDS = 3
"""Rounds of looks without a write that end a rehearsal."""
WHO = "the rehearsal"
APPROVE_EVERY = 30.0
"""Seconds until a person has read what is asked."""
PASSING = frozenset((HoldReason.BUDGET, HoldReason.WINDOW, HoldReason.STALE, HoldReason.OVERDUE))
"""Holds that end by themselves. Any other needs a person, and waiting for one is of no use here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What is to be rehearsed."""

    topology: Topology
    catalogue: Mapping[str, Component]
    policy: Policy
    before: Topology | None = None
    """Where the fleet starts from; None: nothing is there yet."""
    seed: int = 0
    faults: Sequence[Line] = ()
    chaos: bool = False
    approvals: bool = True
    """Whether what needs an approval gets it."""
    within: timedelta = WITHIN
    modules: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One line of the timeline."""

    at: timedelta
    about: str
    what: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What became of one line of the script."""

    said: str
    """In the operator's words."""
    begun: bool
    met: int
    """How often somebody met it."""

    @property
    def told(self) -> str:
        if not self.begun:
            return "never began: the rehearsal was over before"
        if not self.met:
            return "met nobody: it proves nothing"
        return "was met once" if self.met == 1 else f"was met {self.met} times"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    converged: bool
    why: str
    """Why not; empty if it did."""
    steps: int
    simulated: timedelta
    disrupted: tuple[Ref, ...]
    """What was taken down on purpose, each time counted."""
    held: Mapping[HoldReason, int]
    """Things that were held for this reason at some time."""
    timeline: tuple[Moment, ...]
    requests: int
    writes: int
    hits: Mapping[str, int] = field(default_factory=dict[str, int])
    """Faults of the way, and mishaps, that were met."""
    faults: tuple[Fault, ...] = ()
    """Those of the script, in order of time."""
    before: tuple[str, ...] = ()
    """What happened before a breach of an invariant; empty if there was none."""
    consent: str = ""
    """What a daemon would ask for before it takes these documents; empty if nothing."""

    @property
    def last_line(self) -> str:
        if not self.converged:
            return f"not converged: {self.why}"
        return (
            f"converged: {self.steps} steps, {words.span(self.simulated)} simulated, "
            f"{len(self.disrupted)} disruptions"
        )


def rehearse(script: Script, progress: Callable[[str], None] | None = None) -> Outcome:
    """Blocking, in a loop of its own."""
    return loop.run(_Rehearsal(script, progress).run())


class _ToldStore(WatchedStore):
    """Tells what is about to be done."""

    def __init__(self, told: Callable[[Intent], None]) -> None:
        super().__init__()
        self._told = told

    async def intend(self, intent: Intent) -> int:
        self._told(intent)
        return await super().intend(intent)


@dataclass(frozen=True, slots=True)
class _Stage:
    world: World
    ledger: Ledger
    climate: Climate
    net: SimNetwork
    store: _ToldStore
    judge: Judge


class _Rehearsal:
    def __init__(self, script: Script, progress: Callable[[str], None] | None) -> None:
        self._script = script
        self._progress = progress
        self._steps = 0
        self._disrupted: list[Ref] = []
        self._held: dict[HoldReason, set[Ref]] = {}
        self._twin: Twin | None = None

    async def run(self) -> Outcome:
        script = self._script
        start = script.before or script.topology
        world = build.build(_union(start, script.topology), script.seed)
        ledger = Ledger()
        climate = Climate(world, ledger)
        store = _ToldStore(self._intended)
        known = {*start.resources, *script.topology.resources}
        judge = Judge(world, ledger, lambda: known, store.under_way)
        stage = _Stage(world, ledger, climate, SimNetwork(world, climate), store, judge)
        mishaps = Mishaps(world, climate, _clusters(script.topology))
        mishaps.check(script.faults)
        _check_times(script.faults, script.within)
        faults = list(script.faults)
        if script.chaos:
            faults += chaos.lines(script.seed, mishaps, script.topology, chaos.UNTIL)
        await store.open()
        if script.before is not None:
            await self._bring_up(stage, script.before)
        began, events = world.elapsed(), await _last_event(store)
        self._steps, writes = 0, len(ledger.deeds)
        self._disrupted.clear()
        climate.chance = chaos.CHANCE if script.chaos else 0.0
        mishaps.plan([_shifted(line, began) for line in faults])
        why = await self._live(stage, began, _over(faults))
        timeline = await _timeline(store, world, began, events)
        await store.close()
        return Outcome(
            converged=not why,
            why=why,
            steps=self._steps,
            simulated=timedelta(seconds=round(world.elapsed() - began)),
            disrupted=tuple(self._disrupted),
            held={reason: len(refs) for reason, refs in sorted(self._held.items())},
            timeline=tuple(timeline),
            requests=sum(ledger.requests.values()),
            writes=len(ledger.deeds) - writes,
            hits={
                **{cell.value: count for cell, count in sorted(climate.hits.items())},
                **{" ".join(cell): count for cell, count in sorted(mishaps.hits.items())},
            },
            faults=_faults(script.faults, mishaps),
            before=_before(world),
            consent=self._twin.documents.consent if self._twin is not None else "",
        )

    async def _bring_up(self, stage: _Stage, topology: Topology) -> None:
        """The fleet as it is today, in fair weather."""
        daemon = self._daemon(stage, topology)
        reached = await twin.live(daemon, until=daemon.quiet, within=self._script.within)
        if not reached:
            raise RuntimeError(f"the start does not come up: {_blame(daemon)}")

    def _daemon(self, stage: _Stage, topology: Topology) -> Twin:
        wanted = Wanted(
            topology=topology,
            catalogue=self._script.catalogue,
            policy=self._script.policy,
        )
        stage.judge.limit(topology, self._script.policy)
        self._twin = Twin(stage.world, stage.net, stage.store, wanted, self._script.modules)
        return self._twin

    async def _live(self, stage: _Stage, began: float, over: float) -> str:
        """Empty if it converged, otherwise why not."""
        daemon = self._daemon(stage, self._script.topology)
        world, ledger, climate = stage.world, stage.ledger, stage.climate
        calm_from = max(over, chaos.UNTIL.total_seconds() if self._script.chaos else 0.0)
        quiet_since: list[tuple[float, int]] = []
        rest = ROUNDS * daemon.core.tuning.pace.calm.total_seconds()

        def done() -> bool:
            if daemon.documents.complaint:
                return True
            self._note_holds(daemon)
            passed = world.elapsed() - began
            if self._progress is not None:
                self._progress(_progress(daemon, passed))
            if passed >= calm_from:
                climate.chance = 0.0
            if passed < calm_from or not daemon.at_rest() or self._goes_on(daemon):
                quiet_since.clear()
                return False
            if not quiet_since or quiet_since[0][1] != len(ledger.deeds):
                quiet_since[:] = [(passed, len(ledger.deeds))]
            return passed - quiet_since[0][0] >= rest and daemon.quiet()

        async with asyncio.TaskGroup() as group:
            approving = group.create_task(self._approve(daemon), name="approvals")
            reached = await twin.live(daemon, until=done, within=self._script.within, every=5.0)
            approving.cancel()
        return _verdict(daemon, world, reached=reached)

    def _goes_on(self, daemon: Twin) -> bool:
        """Whether time, or an approval that is given here, will end a hold."""
        asked = self._script.approvals
        return any(
            hold.reason in PASSING or (asked and hold.reason is HoldReason.APPROVAL)
            for hold in _holds(daemon)
        )

    async def _approve(self, daemon: Twin) -> None:
        """As a person would who agrees to everything that is asked."""
        while self._script.approvals:
            await asyncio.sleep(APPROVE_EVERY)
            asked = {
                hold.approval: None for hold in _holds(daemon) if hold.reason is HoldReason.APPROVAL
            }
            for one in asked:
                # The plan may have changed while the one before was written down.
                with contextlib.suppress(BadCommand):
                    await daemon.commands.approve(one, who=WHO)

    def _intended(self, intent: Intent) -> None:
        self._steps += 1
        step = self._step(intent)
        if step is not None:
            self._disrupted.extend(sorted(step.disrupts | step.destroys))

    def _step(self, intent: Intent) -> Step | None:
        plans = self._twin.core.state.plans.values() if self._twin is not None else ()
        steps = (step for plan in plans for step in plan.steps)
        return next((step for step in steps if step.id == intent.step), None)

    def _note_holds(self, daemon: Twin) -> None:
        for hold in _holds(daemon):
            self._held.setdefault(hold.reason, set()).add(hold.ref)


def _holds(daemon: Twin) -> list[Hold]:
    return [hold for plan in daemon.core.state.plans.values() for hold in plan.holds]


def _verdict(daemon: Twin, world: World, *, reached: bool) -> str:
    if world.failures:
        first = world.failures[0]
        if isinstance(first, Breach):
            return f"{first.words} ({first.where})"
        return f"the simulator failed: {type(first).__name__}: {first}"
    if daemon.documents.complaint:
        return f"a daemon would refuse these documents: {daemon.documents.complaint}"
    if not reached:
        return _blame(daemon)
    held = [hold for hold in _holds(daemon) if hold.reason is not HoldReason.ORPHANED]
    if not held:
        return ""
    # What waits for another comes last: the other is the cause.
    first = min(held, key=lambda hold: (hold.reason is HoldReason.DEPENDENCY, hold.ref))
    return f"{len(held)} held, first {first.ref} ({first.reason.value}: {first.message})"


def _before(world: World) -> tuple[str, ...]:
    first = world.failures[0] if world.failures else None
    return first.before if isinstance(first, Breach) else ()


def _check_times(faults: Sequence[Line], within: timedelta) -> None:
    """Raises ScriptError for one that no rehearsal would live to see the end of."""
    for line in faults:
        if line.at + (line.span or timedelta(0)) >= within:
            longest = base.show_duration(within)
            raise ScriptError(
                f"'{line}': a rehearsal lasts {longest} at most; let it be over before that"
            )


def _over(faults: Sequence[Line]) -> float:
    """When the last of them is."""
    ends = (line.at + (line.span or timedelta(0)) for line in faults)
    return max(ends, default=timedelta(0)).total_seconds()


def _faults(lines: Sequence[Line], mishaps: Mishaps) -> tuple[Fault, ...]:
    """Each of them, also if the same was said twice."""
    begun = [one for one in mishaps.begun if one.line.said]
    found: list[Fault] = []
    for line in lines:
        one = next((one for one in begun if one.line.said == line.said), None)
        if one is not None:
            begun.remove(one)
        met = one.met if one is not None else 0
        found.append(Fault(said=line.said or str(line), begun=one is not None, met=met))
    return tuple(found)


def _blame(daemon: Twin) -> str:
    """What keeps it from converging, in a line."""
    unready = daemon.unready()
    if not unready:
        return "it does not come to rest: everything is Ready and there is still something to do"
    view = daemon.core.state.view.topology.resources
    ref, condition = min(unready, key=lambda one: (view[one[0]].rank, one[0]))
    told = f"{condition.reason}: {condition.message}" if condition is not None else "never seen"
    return f"{len(unready)} not Ready, first {ref} ({told})"


def _progress(daemon: Twin, passed: float) -> str:
    total = len(daemon.core.state.view.topology.resources)
    ready = total - len(daemon.unready())
    return f"{ready} of {total} Ready after {words.span(timedelta(seconds=passed))}"


def _shifted(line: Line, began: float) -> Line:
    return Line(
        at=line.at + timedelta(seconds=began),
        what=line.what,
        whom=line.whom,
        how=line.how,
        span=line.span,
        said=line.said,
    )


def _clusters(topology: Topology) -> list[str]:
    return [ref.name for ref in topology.resources if ref.kind == "cluster"]


def _union(old: Topology, new: Topology) -> Topology:
    """Everything that either names: a server that is added later stands there from the start."""
    return Topology(
        digest=new.digest,
        resources={**old.resources, **new.resources},
        edges=(*old.edges, *new.edges),
    )


async def _last_event(store: MemoryStore) -> int:
    last = 0
    while page := await store.events(after=last):
        last = page[-1].seq
    return last


async def _timeline(store: MemoryStore, world: World, began: float, after: int) -> list[Moment]:
    """What happened, in order: events of the daemon, and faults of the world."""
    start: datetime = world.start + timedelta(seconds=began)
    found: list[Moment] = []
    while page := await store.events(after=after):
        after = page[-1].seq
        for one in page:
            event = one.event
            found.append(
                Moment(
                    at=event.at - start,
                    about=str(event.ref),
                    what=event.reason,
                    detail=event.message,
                )
            )
    for happening in world.trace:
        if happening.what in ("fault", "mended") and happening.at >= began:
            at = timedelta(seconds=happening.at - began)
            found.append(
                Moment(at=at, about=happening.where, what=happening.what, detail=happening.detail)
            )
    return sorted(found, key=lambda moment: moment.at)
