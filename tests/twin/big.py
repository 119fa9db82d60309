"""
`make sweep`: every crash point of a workflow on a simulated region, and as many seeds as wanted.

The first part is the toy world's, where every write of every seed is cheap; the second is a whole
region with real drivers and clients, where each crash point costs seconds. `all` sweeps every
workflow of the region, after one bring-up. A cell of the matrix of faults that none of the seeds
met fails the run.
"""

import argparse
import logging
import os
import sys
import time

import structlog

from tests.crash import big
from tests.crash.sweep import WORKFLOWS as TOY
from tests.twin import points, storms, workflows
from tests.twin.workflows import WORKFLOWS

ALL = "all"
SHOWN = 20
ENOUGH = 200
"""Seeds that must meet every cell."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--workflow", choices=sorted({*WORKFLOWS, *TOY, ALL}), default=ALL)
    parser.add_argument("--classes", action="store_true", help="one point of each class")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable(logging.CRITICAL)
    broken = 0
    if given.workflow in TOY:
        sys.argv[1:] = ["--seeds", str(given.seeds), "--workflow", given.workflow]
        broken += big.main()
    if given.workflow in WORKFLOWS or given.workflow == ALL:
        broken += _region(given.workflow, every=not given.classes)
        broken += _seeds(given.seeds)
    return 1 if broken else 0


def _region(name: str, *, every: bool) -> int:
    began = time.monotonic()

    def tell(words: str) -> None:
        print(f"  {time.monotonic() - began:.0f} s: {words}", flush=True)

    chosen = WORKFLOWS if name == ALL else {name: WORKFLOWS[name]}
    how = points.How(every=every, at_once=os.cpu_count() or 1, tell=tell)
    done = points.sweep(chosen, workflows.region, workflows.bring_up, how)
    for one in done:
        print(
            f"{one.name}: {one.points} crash points of {one.classes} classes, "
            f"{len(one.broken)} broken, {one.seconds:.0f} s"
        )
        for words in one.broken[:SHOWN]:
            print(f"  {words}")
    return sum(len(one.broken) for one in done)


def _seeds(count: int) -> int:
    if not count:
        return 0
    began = time.monotonic()

    def tell(words: str) -> None:
        print(f"  {time.monotonic() - began:.0f} s: {words} of seeds", flush=True)

    told = storms.sweep(range(count), points.How(at_once=os.cpu_count() or 1, tell=tell))
    bad = [one for one in told if one.broken]
    print(f"{count} seeds, {len(bad)} broken, {time.monotonic() - began:.0f} s")
    for one in bad[:SHOWN]:
        print(f"  {one.point}: {'; '.join(one.broken[:3])}")
    unmet = storms.never_met(told) if count >= ENOUGH else []
    if unmet:
        print(f"no seed ever met: {', '.join(unmet)}")
    return len(bad) + len(unmet)


if __name__ == "__main__":
    sys.exit(main())
