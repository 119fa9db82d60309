"""
How much faster than life is a rehearsal?

A whole region comes up on its simulated twin, with the real planner, executor, drivers and clients,
and then rests for some hours. The figure is simulated seconds per second of CPU.
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
from fleetd.sim import rehearsal
from fleetd.sim.rehearsal import Outcome, Script
from topology import read

EXAMPLE = Path(__file__).parents[1] / "topology" / "examples" / "minimal"
FASTER = Goal(least=1000)


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
    return [
        Row(
            what="bring-up of a region on its twin, times as fast as life",
            value=sorted(ratios)[len(ratios) // 2],
            unit="×",
            goal=FASTER,
            raw={"simulated seconds per CPU second": ratios},
        )
    ]


def _once(script: Script, within: timedelta | None = None) -> tuple[float, Outcome]:
    given = script if within is None else _shorter(script, within)
    began = time.process_time()
    outcome = rehearsal.rehearse(given)
    return time.process_time() - began, outcome


def _shorter(script: Script, within: timedelta) -> Script:
    return Script(
        topology=script.topology,
        catalogue=script.catalogue,
        policy=script.policy,
        modules=script.modules,
        within=within,
    )
