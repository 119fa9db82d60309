"""
`make sweep`: every crash point of a workflow on a simulated region, and as many seeds as wanted.

The first part is the toy world's, where every write of every seed is cheap; the second is a whole
region with real drivers and clients, where each crash point costs seconds. `all` sweeps every
workflow of the region, after one bring-up.
"""

import argparse
import multiprocessing
import os
import sys
import time

from fleetd.sim import loop
from tests.crash import big
from tests.crash.sweep import WORKFLOWS as TOY
from tests.twin import points, workflows
from tests.twin.test_seeds import fair, story
from tests.twin.workflows import WORKFLOWS

ALL = "all"
SHOWN = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--workflow", choices=sorted({*WORKFLOWS, *TOY, ALL}), default=ALL)
    parser.add_argument("--classes", action="store_true", help="one point of each class")
    given = parser.parse_args()
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
    began = time.monotonic()
    bad: list[str] = []
    with multiprocessing.Pool(os.cpu_count() or 1) as pool:
        for number, words in enumerate(pool.imap_unordered(_seed, range(count)), start=1):
            bad += [words] if words else []
            if number % 20 == 0:
                print(f"  {time.monotonic() - began:.0f} s: {number} seeds", flush=True)
    print(f"{count} seeds, {len(bad)} broken, {time.monotonic() - began:.0f} s")
    for words in bad[:SHOWN]:
        print(f"  {words}")
    return len(bad)


def _seed(number: int) -> str:
    fair()
    broken, _ = loop.run(story(number))
    return f"seed {number}: {'; '.join(broken[:3])}" if broken else ""


if __name__ == "__main__":
    sys.exit(main())
