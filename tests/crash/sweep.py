"""
The crash-point harness: cut the power at every write, on every side of it, and look what is left.

A reference run without faults says what should happen to the world. Each crash point runs the
same bring-up, cuts the power once, starts a new daemon on the same world and store, and compares:
the end state, the deeds, the journal. Points are enumerated, not sampled: the window of one known
bug of this class was 0.7 ms in 440 s.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fleetd.clock import LoopClock
from fleetd.sim import loop
from fleetd.store.base import Entry
from fleetd.store.memory import MemoryStore
from fleetd.vocabulary import Driver, Lost
from tests.toy import fleet
from tests.toy.driver import ToyDriver
from tests.toy.universe import InProcessWire, Power, Universe
from topology.resource import Ref, Topology

SIDES = ("intent", "before", "inside", "after")
"""Not yet written down; written down but not sent; done but the answer lost; answered but not
written down."""
WITHIN = timedelta(hours=6)
"""Convergence (I6): the bring-up takes 40 min without faults; a stuck one takes for ever."""
QUIET = timedelta(seconds=3 * 33)
"""Three resync periods (I7), with the jitter of a tenth."""

MakeDriver = Callable[[InProcessWire, LoopClock], Driver]
Deeds = Counter[tuple[Ref, str, str]]


@dataclass(frozen=True)
class Reference:
    deeds: Deeds
    writes: int


@dataclass(frozen=True)
class Workflow:
    """Fleets to be reached one after the other; the power is cut on the way to the last."""

    name: str
    fleets: tuple[Topology, ...]


BRING_UP = Workflow("bring-up", (fleet.bring_up(),))
UPGRADE = Workflow("upgrade", (fleet.bring_up(), fleet.bring_up(version=2)))
WORKFLOWS = {workflow.name: workflow for workflow in (BRING_UP, UPGRADE)}


def universe(workflow: Workflow, make: MakeDriver = ToyDriver, **options: Any) -> Universe:
    return Universe(workflow.fleets[0], MemoryStore(), make_driver=make, **options)


def reference(workflow: Workflow, make: MakeDriver = ToyDriver) -> Reference:
    """The fault-free run. It must itself keep every invariant."""
    power = Power()
    world = universe(workflow, make)
    broken = loop.run(_live_and_judge(world, workflow, [power], None))
    if broken:
        raise Broken(broken)
    return Reference(world.world.summary(), power.writes)


def crash(
    workflow: Workflow, point: tuple[int, str], known: Reference, make: MakeDriver = ToyDriver
) -> list[str]:
    """What is broken after a power cut at this point; empty if nothing is."""
    cut = Power(cut_at=point)
    world = universe(workflow, make)
    broken = loop.run(_live_and_judge(world, workflow, [cut, Power()], known))
    if not cut.was_cut:
        broken.append(f"the power was never cut at {point}: this point tests nothing")
    return broken


def crash_again_and_again(
    workflow: Workflow, point: tuple[int, str], known: Reference, *, times: int
) -> list[str]:
    """The power goes at the same point of each of several daemons in a row."""
    cuts = [Power(cut_at=point) for _ in range(times)]
    return loop.run(_live_and_judge(universe(workflow), workflow, [*cuts, Power()], known))


def seed(
    workflow: Workflow, number: int, known: Reference, make: MakeDriver = ToyDriver
) -> list[str]:
    """What is broken after a run with faults and two power cuts drawn from a seed."""
    rng = random.Random(number)
    cuts = [Power(cut_at=(rng.randrange(known.writes), rng.choice(SIDES))) for _ in range(2)]
    world = universe(workflow, make, seed=number, chance=rng.choice((0.02, 0.05, 0.1)))
    return loop.run(_live_and_judge(world, workflow, [*cuts, Power()], known))


class Broken(AssertionError):
    """The run without any fault already breaks an invariant."""

    def __init__(self, found: list[str]) -> None:
        super().__init__("without any fault: " + "; ".join(found[:3]))
        self.found = found


async def _live_and_judge(
    world: Universe, workflow: Workflow, powers: list[Power], known: Reference | None
) -> list[str]:
    await world.store.open()
    chance, world.fault.chance = world.fault.chance, 0.0
    for fleet_before in workflow.fleets[:-1]:
        world.want(fleet_before)
        await world.live(Power(), until=world.all_ready, within=WITHIN)
    world.want(workflow.fleets[-1])
    world.fault.chance = chance
    reached = False
    for power in powers:
        reached = await world.live(power, until=world.all_ready, within=WITHIN)
    if not reached:
        now = world.clock.now()
        late = [ref for ref in world.topology.resources if not world.world.is_ready(ref, now)]
        return [
            f"I6 not converged after {WITHIN}: {', '.join(map(str, late[:5]))}",
            *world.world.harm,
        ]
    open_at_end = [] if chance else sorted(world.cut_off - world.cut_before_last)
    world.fault.chance = 0.0
    broken = await _stable(world)
    broken += world.world.harm
    if known is not None:
        broken += _same_deeds(world.world.summary(), known.deeds)
    journal = list(await world.store.journal(limit=10**6))
    broken += _accounted(world, journal)
    broken += [
        f"I15 entry {seq} was left open by a daemon that had converged" for seq in open_at_end
    ]
    return broken


async def _stable(universe: Universe) -> list[str]:
    """I7: a daemon on a converged world, the same one or a new one, writes nothing."""
    before = len(universe.world.deeds)
    await universe.live(Power(), until=lambda: False, within=QUIET)
    more = universe.world.deeds[before:]
    return [f"I7 {deed.verb} {deed.ref} after convergence" for deed in more]


def _same_deeds(deeds: Deeds, known: Deeds) -> list[str]:
    """I8: every thing suffered exactly what it suffers without faults."""
    more = [
        f"I8 {_say(deed)} {count} more than without faults"
        for deed, count in (deeds - known).items()
    ]
    less = [
        f"I8 {_say(deed)} {count} less than without faults"
        for deed, count in (known - deeds).items()
    ]
    return more + less


def _say(deed: tuple[Ref, str, str]) -> str:
    return f"{deed[1]} {deed[0]} ({deed[2]})"


def _accounted(universe: Universe, journal: list[Entry]) -> list[str]:
    """I15: each deed has an intent of its own before it and an ending after it."""
    broken = [
        f"I15 {entry.intent.verb} {entry.intent.ref} has no ending"
        for entry in journal
        if entry.ending is None
    ]
    broken += [
        f"I15 {entry.intent.verb} {entry.intent.ref} ended as lost, but no daemon died in it"
        for entry in journal
        if isinstance(entry.ending, Lost) and entry.seq not in universe.cut_off
    ]
    free = list(journal)
    for deed in universe.world.deeds:
        match = next(
            (
                entry
                for entry in free
                if entry.intent.step == deed.step
                and entry.intent.at <= deed.at
                and (entry.ended_at is None or entry.ended_at >= deed.at)
            ),
            None,
        )
        if match is None:
            broken.append(f"I15 {deed.verb} {deed.ref} at {deed.at:%H:%M:%S} has no intent")
        else:
            free.remove(match)
    return broken
