"""
How much faster than life is a rehearsal?

A whole region comes up on its simulated twin, with the real planner, executor, drivers and clients,
and is then seen to rest, as a rehearsal does it; and once more with a whole day of rest after it.
The figure is simulated seconds per second of CPU.
"""

import logging
import time
from datetime import timedelta
from pathlib import Path

import structlog

from bench import measure
from bench.measure import Sizes
from bench.table import Goal, Row
from fleetd import settings
from fleetd.plan.policy import Policy
from fleetd.sim import build, loop, rehearsal, twin
from fleetd.sim.faults import Climate
from fleetd.sim.ledger import Ledger
from fleetd.sim.net import SimNetwork
from fleetd.sim.rehearsal import Outcome, Script
from fleetd.sim.twin import Twin, Wanted
from fleetd.store.memory import MemoryStore
from topology import read

EXAMPLE = Path(__file__).parents[1] / "topology" / "examples" / "minimal"
FASTER = Goal(least=1000)
DAY = timedelta(days=1)


def run(sizes: Sizes) -> list[Row]:
    # stdout is the answer; the daemon's own lines would stand in it.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    found = read.read([EXAMPLE])
    assert found.topology is not None, found.problems
    script = Script(
        topology=found.topology,
        catalogue=found.catalogue,
        policy=Policy.of(item.document for item in found.bundle.items),
        modules=settings.Settings().drivers,
        # Quick: does it run at all?
        within=timedelta(minutes=1) if sizes is measure.QUICK else rehearsal.WITHIN,
    )
    measure.progress("one to load the modules")
    _once(script, within=timedelta(seconds=10))
    ratios: list[float] = []
    for number in range(sizes.rounds):
        measure.progress(f"bring-up {number + 1} of {sizes.rounds}")
        spent, outcome = _once(script)
        ratios.append(outcome.simulated.total_seconds() / max(spent, 1e-9))
    measure.progress("bring-up and a day at rest")
    whole = _rested(script, timedelta(0) if sizes is measure.QUICK else DAY)
    return [
        Row(
            what="bring-up of a region on its twin, times as fast as life",
            value=sorted(ratios)[len(ratios) // 2],
            unit="×",
            goal=FASTER,
            raw={"simulated seconds per CPU second": ratios},
        ),
        Row(
            what="the same and a day at rest, times as fast as life",
            value=whole,
            unit="×",
            goal=FASTER,
            note="one round",
        ),
    ]


def _once(script: Script, within: timedelta | None = None) -> tuple[float, Outcome]:
    given = script if within is None else _shorter(script, within)
    began = time.process_time()
    outcome = rehearsal.rehearse(given)
    return time.process_time() - began, outcome


def _rested(script: Script, rest: timedelta) -> float:
    """Simulated seconds per CPU second of a bring-up, if it ends in time, and of the rest."""
    began = time.process_time()
    simulated = loop.run(_lived(script, rest))
    return simulated / max(time.process_time() - began, 1e-9)


async def _lived(script: Script, rest: timedelta) -> float:
    world = build.build(script.topology, script.seed)
    wanted = Wanted(topology=script.topology, catalogue=script.catalogue, policy=script.policy)
    store = MemoryStore()
    await store.open()
    net = SimNetwork(world, Climate(world, Ledger()))
    daemon = Twin(world, net, store, wanted, script.modules)
    await twin.live(daemon, until=daemon.quiet, within=script.within)
    if rest:
        assert daemon.all_ready(), "the region did not come up"
        daemon = Twin(world, net, store, wanted, script.modules)
        await twin.live(daemon, until=lambda: False, within=rest, every=60.0)
        assert daemon.all_ready(), "the region did not stay up"
    return world.elapsed()


def _shorter(script: Script, within: timedelta) -> Script:
    return Script(
        topology=script.topology,
        catalogue=script.catalogue,
        policy=script.policy,
        modules=script.modules,
        within=within,
    )
